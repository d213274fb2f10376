package engine

import "github.com/asynkron/protoactor-go/actor"

// Ref is the address of one actor for its whole life, restarts included. There is one Ref for each actor, so they may be
// compared by pointer; an actor that is spawned later under the same name has another.
//
// All methods may be called from any goroutine, and after the actor has stopped.
type Ref cell

// Tell sends a message. It never blocks and never fails: what cannot be delivered becomes a dead letter of the actor system,
// and is told so if it is Undeliverable. Messages of one sender to one actor arrive in order.
func (r *Ref) Tell(msg any) { r.cell().PostUserMessage(msg) }

// Name returns the name that the actor was spawned with.
func (r *Ref) Name() string { return r.cell().name() }

// PID returns the actor's address in its actor system, for proto.actor actors of the user. It names whoever has the name, now
// or later; a Ref names this actor.
func (r *Ref) PID() *actor.PID { return r.cell().pid() }

// Stop asks the actor to stop and does not wait. It stops as soon as the message that it is handling is done, before those that
// wait in its mailbox, which become dead letters.
func (r *Ref) Stop() { r.cell().ask(askStop) }

// Done returns a channel that is closed when the actor has stopped for good.
func (r *Ref) Done() <-chan struct{} { return r.cell().done() }

// String returns the name.
func (r *Ref) String() string { return r.Name() }

func (r *Ref) cell() *cell { return (*cell)(r) }
