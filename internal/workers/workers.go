// Package workers hands out a fixed number of permits to run, first come, first served.
//
//   - Bounded: no more permits are held than there are.
//   - Fair: whoever waits is served in the order of arrival, and nobody overtakes.
//   - Stingy: waiting costs a closure, not a goroutine; a pool that is idle owns none.
//   - Sound: no permit is lost, whatever the work does to its goroutine.
package workers

import (
	"context"
	"fmt"
	"sync"
)

// Pool is a set of permits. Its methods may be called from any goroutine.
type Pool struct {
	size int

	mu      sync.Mutex
	inUse   int
	waiting line
	idle    chan struct{} // closed when inUse becomes 0; nil when nobody waits for that
}

// New returns a pool of n permits. It panics if n is less than 1: nothing could ever run.
func New(n int) *Pool {
	if n < 1 {
		panic(fmt.Sprintf("workers: a pool of %d permits, must be at least 1", n))
	}
	return &Pool{size: n}
}

// TryAcquire takes a permit if one is free and nobody waits for it, and reports whether it did. Whoever got one owes a Release
// or a Go.
func (p *Pool) TryAcquire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// While somebody waits no permit is free: Release hands its permit on.
	if p.inUse == p.size {
		return false
	}
	p.inUse++
	return true
}

// Acquire calls fn exactly once, with a permit held: before it returns if one is free, otherwise later, in turn, from within
// the Release that frees one. Fn must not block; typically it tells an actor or calls Go. Whoever fn gives the permit to owes a
// Release or a Go. A panic in fn is the caller's, or the releaser's, and the permit stays held.
func (p *Pool) Acquire(fn func()) {
	p.mu.Lock()
	if p.inUse == p.size {
		p.waiting.push(fn)
		p.mu.Unlock()
		return
	}
	p.inUse++
	p.mu.Unlock()
	fn()
}

// Go runs fn on a new goroutine with a permit that the caller has acquired, and releases it when fn has ended: by returning, by
// a panic (which then ends the process as any other), or by runtime.Goexit.
func (p *Pool) Go(fn func()) {
	go func() {
		defer p.Release()
		fn()
	}()
}

// Release gives a permit back: to the first that waits, whose fn it calls, or to the pool. It panics if no permit is held.
func (p *Pool) Release() {
	p.mu.Lock()
	if p.inUse == 0 {
		p.mu.Unlock()
		panic("workers: Release of a permit that nobody holds")
	}
	if next := p.waiting.pop(); next != nil {
		p.mu.Unlock()
		next()
		return
	}
	p.inUse--
	if p.inUse == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	p.mu.Unlock()
}

// InUse returns how many permits are held.
func (p *Pool) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

// Waiting returns how many calls of Acquire have not been served.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.n
}

// Size returns how many permits there are.
func (p *Pool) Size() int { return p.size }

// Wait returns nil as soon as no permit is held, and so nobody waits for one, if only for a moment; or an error that wraps ctx's
// cause if that ends first and says how many are held and wanted.
func (p *Pool) Wait(ctx context.Context) error {
	p.mu.Lock()
	if p.inUse == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("workers: %d of %d permits are held and %d wanted: %w", p.InUse(), p.size, p.Waiting(), context.Cause(ctx))
	}
}
