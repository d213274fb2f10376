package engine

import (
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// phase is what the turn is at. The actor's own code runs in starting, receiving, ending, restarting, stopping and stopped
// only; when that code panics or ends its goroutine the phase says what was interrupted, and the next turn goes on from there
// with a clean stack.
type phase uint8

const (
	phaseNew        phase = iota // the next thing is to make an instance and tell it Started
	phaseStarting                // that is being done
	phaseIdle                    // started, and none of its code runs
	phaseReceiving               // the front of work is being handled
	phaseEnding                  // EndBatch runs
	phaseFailed                  // trouble is noted, the supervisor is to be asked
	phaseJudging                 // the supervisor is being asked
	phaseWaiting                 // for the restart or the stop that the supervisor wants
	phaseRestarting              // the old instance is being told Restarting
	phaseStopping                // Stopping is being told; from here on there is only forward
	phaseStopped                 // Stopped is being told
	phaseLeaving                 // proto.actor forgets the actor
	phaseGone                    // what is left goes to dead letters
	phaseEnded                   // everybody who waits for the end is being told
)

// gate is whether messages that are not Urgent are held back.
type gate uint8

const (
	gateOpen gate = iota
	gateClosed
	gateOpening // open, and what was held back is to come first
)

// turn lets the actor handle up to Config.Throughput messages, and whatever else it is asked. It reports whether there is more.
func (c *cell) turn() (again bool) {
	clean := false
	defer func() {
		if !clean {
			c.unwound(recover(), debug.Stack())
			c.engine.pool.add(c)
		}
	}()
	again = c.run()
	clean = true
	return again
}

func (c *cell) run() (again bool) {
	c.left = c.engine.throughput
	for c.left > 0 {
		asked := c.asked.Load()
		switch {
		case c.phase >= phaseStopping:
			c.end()
			return false
		case c.phase == phaseFailed:
			c.judge()
		case c.phase == phaseRestarting:
			c.replace()
		case c.phase == phaseNew:
			c.begin()
		case asked&askSystem != 0:
			c.obey()
		case asked&askStop != 0:
			c.end()
			return false
		case asked&askRestart != 0:
			c.restart()
		case asked&askLast != 0 && c.phase == phaseWaiting:
			c.end()
			return false
		case (c.phase == phaseWaiting || c.work.empty() && c.gate != gateOpening) && c.rest():
			return false
		case c.phase != phaseWaiting:
			c.context.InvokeUserMessage(c)
		}
	}
	return true
}

// rest reports whether there is nothing to do; then the turn is over and whoever posts next adds the cell to the pool.
func (c *cell) rest() bool {
	d := &c.engine.pool.depot
	c.work.release(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted, posted := askNow, !c.in.empty()
	if c.asleep {
		wanted, posted = askNow|askLast, false
	}
	if posted || c.asked.Load()&wanted != 0 {
		return false
	}
	c.in.release(d)
	c.scheduled = false
	return true
}

// take swaps the empty work for what was posted.
func (c *cell) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in.empty() {
		return false
	}
	c.in, c.work = c.work, c.in
	return true
}

// bridge is the actor that proto.actor sees, one for all. Lifecycle messages mean nothing to it: the cell tells them itself, so
// that no panic in them can break off what proto.actor does at a stop or a restart.
type bridge struct{}

// Receive has a cell deliver a batch.
func (bridge) Receive(ctx actor.Context) {
	if c, ok := ctx.Message().(*cell); ok {
		c.deliver()
	}
}

// deliver hands messages to the actor until none is left, the turn is used up, or the cell is asked for something else.
func (c *cell) deliver() {
	delivered := false
	for c.asked.Load()&askNow == 0 {
		msg, ok := c.next()
		if !ok {
			break
		}
		c.left--
		c.phase = phaseReceiving
		c.receive(msg)
		c.phase = phaseIdle
		c.work.pop(&c.engine.pool.depot)
		delivered = true
	}
	if delivered {
		c.endBatch()
	}
}

// next finds the next message that may be handled and leaves it at the front of work.
func (c *cell) next() (msg any, ok bool) {
	for c.left > 0 {
		if c.gate == gateOpening {
			c.releaseHeld()
		}
		if c.work.empty() && !c.take() {
			return nil, false
		}
		msg = c.work.front()
		if c.gate == gateOpen || urgent(msg) {
			return msg, true
		}
		c.left--
		c.troubled().held.push(&c.engine.pool.depot, c.work.pop(&c.engine.pool.depot))
	}
	return nil, false
}

// releaseHeld puts what a closed gate held back before everything else.
func (c *cell) releaseHeld() {
	if c.trouble != nil {
		c.work.prepend(&c.engine.pool.depot, &c.trouble.held)
	}
	c.gate = gateOpen
}

func (c *cell) receive(raw any) {
	msg, envelope := unwrap(raw)
	switch msg.(type) {
	case *actor.PoisonPill, lastCall:
		c.ask(askStop)
		return
	}
	c.actor.Receive(c.ctx(), msg)
	if envelope != nil && envelope.Sender != nil {
		if m, ok := msg.(actor.AutoRespond); ok {
			c.engine.root.Send(envelope.Sender, m.GetAutoResponse(c.context.(actor.Context)))
		}
	}
}

func (c *cell) endBatch() {
	if e, ok := c.actor.(BatchEnder); ok {
		c.phase = phaseEnding
		e.EndBatch(c.ctx())
	}
	c.phase = phaseIdle
}

// sender returns who sent the message that is being handled, if that is known.
func (c *cell) sender() *actor.PID {
	if c.phase != phaseReceiving {
		return nil
	}
	if _, envelope := unwrap(c.work.front()); envelope != nil {
		return envelope.Sender
	}
	return nil
}

// redelivery is a message that has failed and is to be delivered again.
type redelivery struct {
	raw   any // as it was posted
	times int // deliveries so far
}

// unwrap returns the message that was sent, and the envelope that it came in, if any.
func unwrap(raw any) (msg any, envelope *actor.MessageEnvelope) {
	if r, ok := raw.(*redelivery); ok {
		raw = r.raw
	}
	if e, ok := raw.(*actor.MessageEnvelope); ok {
		return e.Message, e
	}
	return raw, nil
}

func urgent(raw any) bool {
	msg, _ := unwrap(raw)
	_, ok := msg.(Urgent)
	return ok
}
