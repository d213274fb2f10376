package engine

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// Context is what an actor's code may do and ask. It is the actor's for its whole life, but its methods are for the goroutine
// of Receive and EndBatch only; what other goroutines need, such as Self and Incarnation, is asked before they start.
type Context cell

// Self returns the actor's address.
func (c *Context) Self() *Ref { return c.cell().ref() }

// Incarnation returns 1 for the first instance of the actor and one more for each restart. Timer messages and continuations
// carry it, so that a later instance knows those of an earlier one.
func (c *Context) Incarnation() uint64 { return uint64(c.incarnation) }

// Engine returns the engine that runs the actor.
func (c *Context) Engine() *Engine { return c.engine }

// Logger returns the engine's logger with the actor's name. It makes a new one at each call.
func (c *Context) Logger() *slog.Logger {
	return c.engine.logger.With("actor", c.cell().name())
}

// Sender returns who sent the message that is being handled: nil unless it came in an envelope that names its sender, as
// Request of proto.actor makes it.
func (c *Context) Sender() *actor.PID { return c.cell().sender() }

// Respond sends msg to Sender, if there is one.
func (c *Context) Respond(msg any) {
	if to := c.cell().sender(); to != nil {
		c.engine.root.Send(to, msg)
	}
}

// CloseGate holds messages back, all but those that are Urgent, until OpenGate. A restart opens the gate: the new instance
// closes it in Started if it must.
func (c *Context) CloseGate() { c.gate = gateClosed }

// OpenGate lets messages through again; those that were held back come first, in order.
func (c *Context) OpenGate() {
	if c.gate == gateClosed {
		c.gate = gateOpening
	}
}

// Watch has this actor told Terminated when r has stopped for good, at once if it has already. Watching twice is watching
// once. A watch outlasts restarts of both.
func (c *Context) Watch(r *Ref) { r.cell().watch(c.cell()) }

// Unwatch ends a watch. A Terminated that is already in the mailbox is still received.
func (c *Context) Unwatch(r *Ref) { r.cell().unwatch(c.cell()) }

// Stop stops this actor as soon as the message that it is handling is done; those behind it become dead letters.
func (c *Context) Stop() { c.cell().ask(askStop) }

func (c *Context) cell() *cell { return (*cell)(c) }
