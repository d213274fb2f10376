package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// cell is all that the engine keeps of one actor, in one allocation of 144 B. It has three faces: Ref for those who talk to the
// actor, Context for the actor's own code, and actor.Mailbox for proto.actor.
//
// The fields down to phase belong to the turn, which is the one worker that runs the actor at the moment (see turn.go); those
// from mu on to whoever holds it. A cell is with the pool, waiting or running, exactly while scheduled is true.
type cell struct {
	engine  *Engine
	context protoContext // set before open

	produce     func() Actor
	actor       Actor
	trouble     *trouble // nil until needed
	work        queue    // taken out of in; while a message is handled it is the front
	incarnation uint32
	left        int32 // messages that this turn may still handle
	gate        gate
	phase       phase

	mu        sync.Mutex
	asked     atomic.Uint32 // what the turn is asked to do before it handles messages; written under mu, read by the turn
	open      bool          // Start was called; until then everything queues
	scheduled bool
	asleep    bool    // failed and waiting for its restart: messages do not wake it
	gone      bool    // takes nothing more
	ended     bool    // has told everybody that it is gone
	in        queue   // what was posted since the turn last looked
	extras    *extras // nil until needed
	newer     *cell   // neighbours in the engine's list, under Engine.mu
	older     *cell
}

// protoContext is what a cell needs of proto.actor's context of its actor.
type protoContext interface {
	actor.MessageInvoker
	Self() *actor.PID
}

// extras are what few cells need, under the cell's mu.
type extras struct {
	system   []any // messages for proto.actor's context
	watchers []*cell
	done     chan struct{}
}

// What a turn may be asked.
const (
	askSystem  uint32 = 1 << iota // hand extras.system to proto.actor's context
	askStop                       // stop for good
	askRestart                    // make a new instance
	askLast                       // lastCall is in the mailbox; there is no use in waiting for a restart
)

// askNow is what the turn is asked to do before the next message.
const askNow = askSystem | askStop | askRestart

// lastCall stops an actor after the messages before it.
type lastCall struct{}

// Urgent lets it pass a closed gate.
func (lastCall) Urgent() {}

var _ actor.Mailbox = (*cell)(nil)

// RegisterHandlers gives the mailbox its context. The dispatcher is not used: a cell knows its engine's pool.
func (c *cell) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	c.context = invoker.(protoContext)
}

// Start opens the mailbox. Its first turn starts the actor, before anything that was posted earlier: SpawnNamed makes an actor
// known before it has registered its handlers.
func (c *cell) Start() {
	c.mu.Lock()
	c.open, c.scheduled = true, true
	c.mu.Unlock()
	c.engine.pool.add(c)
}

// PostUserMessage takes a message.
func (c *cell) PostUserMessage(msg any) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		c.lost(msg, ErrGone)
		return
	}
	c.in.push(&c.engine.pool.depot, msg)
	run := !c.asleep && c.wake()
	c.mu.Unlock()
	if run {
		c.engine.pool.add(c)
	}
}

// PostSystemMessage takes a system message.
func (c *cell) PostSystemMessage(msg any) {
	switch msg := msg.(type) {
	case *actor.Started, *actor.SuspendMailbox, *actor.ResumeMailbox:
		// Start starts, and a cell suspends itself the moment that it fails.
	case *actor.Stop:
		c.ask(askStop)
	case *actor.Restart:
		c.ask(askRestart)
	default:
		c.postSystem(msg)
	}
}

func (c *cell) postSystem(msg any) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		// proto.actor answers a Watch that reaches a dead letter.
		c.engine.guard("a dead letter", func() { c.engine.system.DeadLetter.SendSystemMessage(c.pid(), msg) })
		return
	}
	c.rare().system = append(c.rare().system, msg)
	run := c.askLocked(askSystem)
	c.mu.Unlock()
	if run {
		c.engine.pool.add(c)
	}
}

// UserMessageCount returns how many messages have been posted since the actor last looked.
func (c *cell) UserMessageCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.len()
}

// ask asks the turn for something; a cell that is gone has nothing left to do.
func (c *cell) ask(what uint32) {
	c.mu.Lock()
	run := !c.gone && c.askLocked(what)
	c.mu.Unlock()
	if run {
		c.engine.pool.add(c)
	}
}

// dismiss asks the cell, once, to stop after what is in its mailbox.
func (c *cell) dismiss() {
	if c.asked.Load()&askLast != 0 {
		return
	}
	c.PostUserMessage(lastCall{})
	c.ask(askLast)
}

// askLocked reports whether the caller must add the cell to the pool, once it has let go of mu.
func (c *cell) askLocked(what uint32) bool {
	c.asked.Or(what)
	return c.wake()
}

// wake, under mu, reports whether the caller must add the cell to the pool.
func (c *cell) wake() bool {
	if !c.open || c.scheduled {
		return false
	}
	c.scheduled = true
	return true
}

// rare returns the extras, under mu.
func (c *cell) rare() *extras {
	if c.extras == nil {
		c.extras = &extras{}
	}
	return c.extras
}

// watch has by told when c has stopped for good.
func (c *cell) watch(by *cell) {
	c.mu.Lock()
	ended := c.ended
	if !ended && !slices.Contains(c.rare().watchers, by) {
		c.extras.watchers = append(c.extras.watchers, by)
	}
	c.mu.Unlock()
	if ended {
		by.PostUserMessage(Terminated{c.ref()})
	}
}

func (c *cell) unwatch(by *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.extras; x != nil {
		if i := slices.Index(x.watchers, by); i >= 0 {
			x.watchers = slices.Delete(x.watchers, i, i+1)
		}
	}
}

// done returns a channel that is closed when the actor has stopped for good.
func (c *cell) done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.rare()
	if x.done == nil {
		x.done = make(chan struct{})
		if c.ended {
			close(x.done)
		}
	}
	return x.done
}

func (c *cell) ref() *Ref       { return (*Ref)(c) }
func (c *cell) ctx() *Context   { return (*Context)(c) }
func (c *cell) pid() *actor.PID { return c.context.Self() }
func (c *cell) name() string    { return c.pid().Id[len(c.engine.prefix):] }
