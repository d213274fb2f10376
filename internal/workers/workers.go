// Package workers hands out a fixed number of permits to run, first come, first served.
package workers

import "context"

// Pool is a set of permits.
type Pool struct{}

// New returns a pool of n permits.
func New(n int) *Pool                          { return &Pool{} }
func (p *Pool) TryAcquire() bool               { panic("workers: coming") }
func (p *Pool) Acquire(fn func())              { panic("workers: coming") }
func (p *Pool) Go(fn func())                   { panic("workers: coming") }
func (p *Pool) Release()                       { panic("workers: coming") }
func (p *Pool) InUse() int                     { panic("workers: coming") }
func (p *Pool) Waiting() int                   { panic("workers: coming") }
func (p *Pool) Size() int                      { panic("workers: coming") }
func (p *Pool) Wait(ctx context.Context) error { panic("workers: coming") }
