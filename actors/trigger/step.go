package trigger

import (
	"errors"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// step asks the kernel what is to be done and does it: Persist first, and what stands behind it when the ledger has
// committed. While a commit is outstanding, the store is down, or the row is being edited, it only notes that there is
// more to do.
func (a *Actor) step() {
	if a.m == nil || a.out != nil || a.retrying || a.frozen {
		a.again = true
		return
	}
	a.again = false
	now := a.deps.Clock.Now()
	a.sayOrphaned()
	for want := a.m.Want(now); a.permits < want && a.deps.Permits.TryAcquire(); {
		a.permits++
	}
	effects := a.m.Step(now, a.permits, a.deps.Runner.Has)
	p, ok := effects[0].(firing.Persist)
	if !ok {
		a.answer(0, func(*note) (*claim.Result, error) { return nil, nil }) // what they asked for was so already
		a.recorded()
		a.perform(effects, nil)
		a.tellSettled()
		return
	}
	a.serial++
	a.out = &outstanding{serial: a.serial, persist: p, rest: effects[1:]}
	for _, n := range a.notes {
		if n.serial == 0 {
			n.serial = a.serial
		}
	}
	for k, e := range a.live {
		if e != nil {
			a.out.ended = append(a.out.ended, k)
		}
	}
	a.keep(a.out.rest)
	a.commit(p)
}

// sayOrphaned says once that nobody has registered the job that something is due for.
func (a *Actor) sayOrphaned() {
	job := a.m.Definition().Job
	missing := !a.deps.Runner.Has(job) && !a.m.Finished()
	if missing == a.orphaned {
		return
	}
	a.orphaned = missing
	if a.parked = ""; missing {
		a.parked = "no job is registered as " + job
		a.deps.Logger.Warn("trigger parked until its job is registered; its slots wait", "trigger", a.id, "job", job)
	}
}

// keep gives back the permits that the effects do not use, so that nobody waits for what a commit leaves idle.
func (a *Actor) keep(effects []firing.Effect) {
	used := 0
	for _, e := range effects {
		if _, ok := e.(firing.Emit); ok {
			used++
		}
	}
	for ; a.permits > used; a.permits-- {
		a.deps.Permits.Release()
	}
}

// commit sends a Persist to the ledger.
func (a *Actor) commit(p firing.Persist) {
	req := claim.Request{Ops: p.Ops, Ranges: p.Ranges}
	if p.State != nil && a.queue == nil {
		blob, err := Stored{Definition: a.m.Definition(), State: *p.State, Timeout: a.timeout}.Encode()
		if err != nil { // only a value that Decode would refuse: the actor must not go on with it
			panic(err)
		}
		req.Rows = []claim.Row{{Kind: RowKind, Namespace: a.namespace, ID: a.id, Owner: a.owner, Revision: a.revision,
			Due: p.State.Next, Blob: blob}}
	}
	self, serial := a.self, a.serial
	a.deps.Ledger.Tell(&claim.Commit{Request: req, Reply: func(o claim.Outcome) { self.Tell(committed{serial, o}) }})
}

// committed goes on behind the commit.
func (a *Actor) committed(c *engine.Context, msg committed) {
	out := a.out
	if out == nil || msg.serial != out.serial {
		return // of a step that a restart has overtaken
	}
	a.out = nil
	err := msg.outcome.Err
	switch {
	case err == nil:
		a.tries = 0
		if out.persist.State != nil {
			a.revision++
		}
		for _, k := range out.ended {
			delete(a.live, k)
		}
		results := msg.outcome.Results
		a.sayFailed(out.persist.Ops, results)
		a.again = a.m.Persisted(results) || a.again
		asked := map[uint64]*claim.Result{}
		for _, x := range out.persist.Asked {
			asked[x.ID] = &results[x.Op]
		}
		a.answer(out.serial, func(n *note) (*claim.Result, error) { return asked[n.ask], nil })
		a.perform(out.rest, results)
	case errors.Is(err, claim.ErrStale):
		// Somebody else has edited the trigger. What was noted is still to be done, by the new definition.
		a.disown()
		a.giveBack()
		a.reread = true
	default:
		a.m.Refused()
		a.disown()
		a.giveBack()
		a.later(err, "a step of the trigger could not be committed")
	}
	switch {
	case a.reread:
		a.reload(c)
	case a.again:
		a.step()
	}
	a.idle()
}

// whenIdle calls fn when no commit is outstanding.
func (a *Actor) whenIdle(fn func()) {
	a.waiters = append(a.waiters, fn)
	a.idle()
}

func (a *Actor) idle() {
	if a.out != nil {
		return
	}
	for _, fn := range a.waiters {
		fn()
	}
	a.waiters = nil
	a.tellSettled()
}

// later tries again after a while. Nothing fires meanwhile; afterwards the misfire rules apply.
func (a *Actor) later(err error, what string) {
	if errors.Is(err, claim.ErrClosed) || a.stopping {
		a.fail(err)
		return
	}
	if a.retrying {
		return
	}
	if a.tries++; a.tries == 1 {
		a.deps.Logger.Error(what+"; it is tried again", "trigger", a.id, "error", err)
	}
	a.retrying = true
	self, msg := a.self, retry{a.incarnation}
	time.AfterFunc(retryStore.Delay(a.tries, backoff.Hash(a.id, a.tries)), func() { self.Tell(msg) })
}

func (a *Actor) retry(c *engine.Context, msg retry) {
	if msg.incarnation != a.incarnation || a.stopping {
		return
	}
	a.retrying = false
	if a.m == nil && a.parked == "" {
		a.reload(c)
		return
	}
	a.step()
}

// perform does what stands behind the Persist.
func (a *Actor) perform(effects []firing.Effect, results []claim.Result) {
	for _, e := range effects {
		switch e := e.(type) {
		case firing.Emit:
			a.emit(e, results[e.Op])
		case firing.Permit:
			if !a.wanting {
				a.wanting = true
				self, m := a.self, permit{a.place}
				a.deps.Permits.Acquire(func() { self.Tell(m) })
			}
		case firing.Wake:
			a.alarm.Set(e.At, a.token(e.Generation))
		}
	}
	a.giveBack()
}

// emit starts a run under the permit that was kept for it, if the ledger has granted its claim.
func (a *Actor) emit(e firing.Emit, r claim.Result) {
	if r.Answer != claim.Recorded {
		return // the permit is given back with the rest
	}
	rec := r.Record
	a.permits--
	a.live[rec.Key] = nil
	a.fired++
	if rec.Key.Kind == claim.KindSlot || rec.Key.Kind == claim.KindOrdinal {
		a.lastDrift = rec.FiredAt.Sub(rec.Slot)
	}
	self, p := a.self, a.place
	a.deps.Runner.Run(Work{Record: rec, Missed: e.Missed, Timeout: a.timeout}, func(e firing.Ended) { self.Tell(ended{p, e}) })
}

// sayFailed tells of attempts that failed: nobody else does.
func (a *Actor) sayFailed(ops []claim.Op, results []claim.Result) {
	for i := range ops {
		if ops[i].Action != claim.Fail || results[i].Answer != claim.Recorded {
			continue
		}
		a.failed++
		r := &results[i].Record
		log := a.deps.Logger.With("trigger", a.id, "job", r.Job, "key", r.Key.String(), "attempt", r.Attempt, "error", r.Reason)
		if r.State == claim.Dead {
			a.dead++
			log.Error("a run failed for good")
		} else {
			log.Warn("a run failed; it is tried again", "due", r.Due)
		}
	}
}
