package engine

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// Context is what an actor's code is given.
type Context struct{}

func (c *Context) Self() *Ref           { panic("engine: coming") }
func (c *Context) Incarnation() uint64  { panic("engine: coming") }
func (c *Context) Engine() *Engine      { panic("engine: coming") }
func (c *Context) Logger() *slog.Logger { panic("engine: coming") }
func (c *Context) Sender() *actor.PID   { panic("engine: coming") }
func (c *Context) Respond(msg any)      { panic("engine: coming") }
func (c *Context) CloseGate()           { panic("engine: coming") }
func (c *Context) OpenGate()            { panic("engine: coming") }
func (c *Context) Watch(r *Ref)         { panic("engine: coming") }
func (c *Context) Unwatch(r *Ref)       { panic("engine: coming") }
func (c *Context) Stop()                { panic("engine: coming") }
