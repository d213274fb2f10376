package engine

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// trouble is what the turn keeps of a cell that has closed its gate or has failed.
type trouble struct {
	held   queue // behind the closed gate
	fault  *fault
	timer  *time.Timer // of the last restart that the cell waited, or waits, for
	judged bool        // the supervisor has been asked about this cell
}

// fault is one failure, and the message on which it happened for as long as nobody has decided about it.
type fault struct {
	Failure
	cell *cell
	raw  any // nil: no message that could be delivered again
}

func (c *cell) troubled() *trouble {
	if c.trouble == nil {
		c.trouble = &trouble{}
	}
	return c.trouble
}

// begin makes an instance and starts it.
func (c *cell) begin() {
	c.phase = phaseStarting
	c.actor = c.produce()
	if c.actor == nil {
		panic(fmt.Errorf("engine: produce of actor %q returned nil", c.name()))
	}
	c.actor.Receive(c.ctx(), Started{})
	c.endBatch()
}

// unwound notes that the code of the phase panicked or, if reason is nil, ended its goroutine.
func (c *cell) unwound(reason any, stack []byte) {
	if reason == nil {
		reason = ErrGoexit
	}
	switch c.phase {
	case phaseStarting:
		c.fail(reason, stack, Started{}, nil)
	case phaseReceiving:
		raw := c.work.pop(&c.engine.pool.depot)
		msg, _ := unwrap(raw)
		c.fail(reason, stack, msg, raw)
	case phaseEnding:
		c.fail(reason, stack, nil, nil)
	case phaseJudging:
		c.report("supervisor failed, so its actor is parked", reason, stack)
		c.settle(Verdict{})
	default:
		c.report("an actor's end or restart was interrupted, and goes on", reason, stack)
	}
}

func (c *cell) report(what string, reason any, stack []byte) {
	c.engine.logger.Error("engine: "+what, slog.String("actor", c.name()), slog.Uint64("incarnation", uint64(c.incarnation)),
		slog.Any("reason", reason), slog.String("stack", string(stack)))
}

func (c *cell) fail(reason any, stack []byte, msg, raw any) {
	f := &fault{cell: c, raw: raw, Failure: Failure{
		Ref: c.ref(), Incarnation: uint64(c.incarnation), Reason: reason, Stack: stack, Message: msg, At: time.Now()}}
	if raw != nil {
		f.Deliveries = 1
		if r, ok := raw.(*redelivery); ok {
			f.Deliveries = r.times + 1
			f.raw = r.raw
		}
	}
	c.troubled().fault = f
	c.phase = phaseFailed
}

// judge has proto.actor report the failure to our guardian, which asks the supervisor and settles it here and now.
func (c *cell) judge() {
	c.phase = phaseJudging
	f := c.trouble.fault
	c.trouble.judged = true
	c.context.EscalateFailure(f.Reason, f)
}

// guardian is the strategy that all our actors run under. It keeps nothing, so that engines on one actor system share one. It
// never escalates, which would end the process, and asks for no children, which a guardian does not know.
type guardian struct{}

// HandleFailure settles a fault of one of our cells.
func (guardian) HandleFailure(system *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, msg any) {
	f, ok := msg.(*fault)
	if !ok {
		return // no cell's
	}
	v := f.cell.engine.supervisor.Failed(f.Failure)
	directive := actor.StopDirective
	if v.Restart {
		directive = actor.RestartDirective
	}
	f.cell.settle(v)
	system.EventStream.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: directive})
}

// settle does what the supervisor wants.
func (c *cell) settle(v Verdict) {
	c.phase = phaseWaiting
	c.mu.Lock()
	c.asleep = true
	c.mu.Unlock()

	f := c.trouble.fault
	switch {
	case !v.Restart:
		c.ask(askStop)
		return
	case v.After > 0:
		incarnation := c.incarnation
		c.trouble.timer = time.AfterFunc(v.After, func() { c.reawake(incarnation) })
	default:
		c.ask(askRestart)
	}
	if raw := f.raw; raw != nil && !v.Redeliver {
		f.raw = nil
		c.lost(raw, ErrFailed)
	}
}

// reawake asks for the restart that incarnation waits for, if it still does.
func (c *cell) reawake(incarnation uint32) {
	c.mu.Lock()
	run := !c.gone && c.incarnation == incarnation && c.askLocked(askRestart)
	c.mu.Unlock()
	if run {
		c.engine.pool.add(c)
	}
}

// restart tells the old instance, if there is one, that it is being replaced.
func (c *cell) restart() {
	c.phase = phaseRestarting
	c.tell(Restarting{})
	c.replace()
}

// replace forgets the old instance. The gate opens, and the message that failed comes first if it is to be delivered again.
func (c *cell) replace() {
	c.context.InvokeSystemMessage(&actor.Restart{})
	c.mu.Lock()
	c.incarnation++
	c.asleep = false
	c.asked.And(^askRestart)
	c.mu.Unlock()
	c.actor = nil
	c.releaseHeld()
	if t := c.trouble; t != nil && t.fault != nil {
		if f := t.fault; f.raw != nil {
			c.pushFront(&redelivery{raw: f.raw, times: f.Deliveries})
		}
		t.fault = nil
	}
	c.phase = phaseNew
}

func (c *cell) pushFront(raw any) {
	var q queue
	q.push(&c.engine.pool.depot, raw)
	c.work.prepend(&c.engine.pool.depot, &q)
}

// tell gives the instance, if there is one, a lifecycle message.
func (c *cell) tell(msg any) {
	if c.actor != nil {
		c.actor.Receive(c.ctx(), msg)
	}
}

// obey hands system messages to proto.actor's context: foreign actors that watch this one, mostly.
func (c *cell) obey() {
	for {
		c.mu.Lock()
		if len(c.extras.system) == 0 {
			c.extras.system = nil
			c.asked.And(^askSystem)
			c.mu.Unlock()
			return
		}
		msg := c.extras.system[0]
		c.extras.system = c.extras.system[1:]
		c.mu.Unlock()
		c.context.InvokeSystemMessage(msg)
	}
}

// end goes through the last phases. Whatever is interrupted in one of them is not done again: the next turn enters with the
// phase as it is and takes up the next.
func (c *cell) end() {
	if c.phase < phaseStopping {
		if c.trouble != nil && c.trouble.timer != nil {
			c.trouble.timer.Stop()
		}
		c.phase = phaseStopping
		c.tell(Stopping{})
	}
	if c.phase == phaseStopping {
		c.phase = phaseStopped
		c.tell(Stopped{})
	}
	if c.phase == phaseStopped {
		c.phase = phaseLeaving
		c.context.InvokeSystemMessage(&actor.Stop{}) // takes the name off the registry, tells foreign watchers
	}
	if c.phase == phaseLeaving {
		c.phase = phaseGone
		c.mu.Lock()
		c.gone = true
		c.mu.Unlock()
	}
	if c.phase == phaseGone {
		c.drain()
		c.beForgotten()
		c.phase = phaseEnded
		c.engine.unlink(c)
		c.announce()
	}
	c.actor, c.produce, c.trouble = nil, nil, nil
	c.engine.left()
}

// drain sends what is left to dead letters. Nothing is added any more.
func (c *cell) drain() {
	d := &c.engine.pool.depot
	if t := c.trouble; t != nil {
		if f := t.fault; f != nil && f.raw != nil {
			raw := f.raw
			f.raw = nil
			c.lost(raw, ErrGone)
		}
		c.work.prepend(d, &t.held)
	}
	for {
		for !c.work.empty() {
			c.lost(c.work.pop(d), ErrGone)
		}
		if !c.take() {
			break
		}
	}
	c.work.release(d)
	c.in.release(d)
}

// beForgotten tells the supervisor, if it knows the actor.
func (c *cell) beForgotten() {
	if f, ok := c.engine.supervisor.(Forgetter); ok && c.trouble != nil && c.trouble.judged {
		c.trouble.judged = false
		c.engine.guard("forgetting an actor", func() { f.Forget(c.ref()) })
	}
}

// announce tells whoever waits for the end.
func (c *cell) announce() {
	c.mu.Lock()
	c.ended = true
	var x extras
	if c.extras != nil {
		x, c.extras = *c.extras, nil
	}
	c.mu.Unlock()
	if x.done != nil {
		close(x.done)
	}
	for _, w := range x.watchers {
		w.PostUserMessage(Terminated{c.ref()})
	}
	for _, msg := range x.system {
		c.postSystem(msg)
	}
}

// lost makes a dead letter of a message, and tells it so.
func (c *cell) lost(raw any, why error) {
	msg, _ := unwrap(raw)
	switch msg.(type) {
	case *actor.PoisonPill, lastCall, Terminated:
		return // nobody's loss
	}
	if u, ok := msg.(Undeliverable); ok {
		c.engine.guard("Undelivered", func() { u.Undelivered(fmt.Errorf("%w: %s", why, c.name())) })
	}
	if r, ok := raw.(*redelivery); ok {
		raw = r.raw
	}
	c.engine.guard("a dead letter", func() { c.engine.system.DeadLetter.SendUserMessage(c.pid(), raw) })
}
