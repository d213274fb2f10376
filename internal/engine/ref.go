package engine

import "github.com/asynkron/protoactor-go/actor"

// Ref is an actor's address.
type Ref struct{}

func (r *Ref) Tell(msg any)          { panic("engine: coming") }
func (r *Ref) Name() string          { panic("engine: coming") }
func (r *Ref) PID() *actor.PID       { panic("engine: coming") }
func (r *Ref) Stop()                 { panic("engine: coming") }
func (r *Ref) Done() <-chan struct{} { panic("engine: coming") }
