package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Lease is how long a claim of a trigger lasts without a sign of life; the ledger's heartbeat extends it.
const Lease = 30 * time.Second

// Grace is how much longer than its timeout a run is kept alive: one that does not end by then is stuck.
const Grace = time.Minute

// Spawn starts the actor of a stored trigger. It loads itself; a row that cannot be read parks this trigger alone.
func Spawn(e *engine.Engine, deps *Deps, namespace, id string) (*engine.Ref, error) {
	return spawn(e, "trigger/"+id, &place{deps: deps, namespace: namespace, id: id})
}

// SpawnQueue starts the actor of a queue: a trigger without a schedule and without a row, whose runs are all asked for
// (Submit). Its unfinished work is found by its job.
func SpawnQueue(e *engine.Engine, deps *Deps, def firing.Definition, timeout time.Duration) (*engine.Ref, error) {
	def.Lease, def.Hold = Lease, timeout+Grace
	return spawn(e, "queue/"+def.Job, &place{deps: deps, namespace: def.Namespace, queue: &Stored{Definition: def, Timeout: timeout}})
}

func spawn(e *engine.Engine, name string, p *place) (*engine.Ref, error) {
	p.live = map[claim.Key]*firing.Ended{}
	return e.Spawn(name, func() engine.Actor { return &Actor{place: p} })
}

// Actor is one trigger. See the package comment.
type Actor struct {
	*place
	self        *engine.Ref
	incarnation uint64

	m        *firing.Machine // nil until loaded, and while parked as unreadable
	timeout  time.Duration
	revision uint64
	owner    string

	again    bool // there is more to do when the outstanding commit is answered
	reread   bool // the row was changed while a commit was outstanding
	retrying bool // the store failed: the next try is on its way, and nothing is asked of it before
	tries    int
	waiters  []func() // for the end of the outstanding commit
	parked   string
	orphaned bool // it was said that the job is missing
}

// retryStore is how a store that is unavailable is asked again.
var retryStore = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// Receive handles one message. It never blocks.
func (a *Actor) Receive(c *engine.Context, msg any) {
	switch msg := msg.(type) {
	case engine.Started:
		a.started(c)
	case *loaded:
		a.loaded(c, msg)
	case retry:
		a.retry(c, msg)
	case tick:
		if a.m == nil || msg.token != a.token(a.m.Generation()) {
			a.staleTicks++
			return
		}
		a.step()
	case permit:
		a.wanting = false
		a.permits++
		if a.step(); a.m == nil {
			a.giveBack()
		}
	case committed:
		a.committed(c, msg)
	case ended:
		a.ended(msg.e)
	case JobRegistered:
		a.step()
	case *Pause:
		a.control(&note{apply: func(m *firing.Machine) { m.Pause(msg.Note) }, done: answerTo(msg.Question)})
	case *Resume:
		a.control(&note{apply: (*firing.Machine).Resume, done: answerTo(msg.Question)})
	case *Fire:
		a.fire(msg)
	case *Describe:
		msg.Reply(a.status())
	case *Freeze:
		a.frozen = true
		a.whenIdle(func() { msg.Reply(struct{}{}) })
	case Reload:
		a.frozen = false
		a.reload(c)
	case *Drain:
		a.drain(msg)
	case engine.Stopping:
		a.stop()
	}
}

// token tells a tick of this incarnation and generation from every other.
func (a *Actor) token(generation uint64) uint64 { return a.incarnation<<40 | generation&(1<<40-1) }

func (a *Actor) started(c *engine.Context) {
	a.self, a.incarnation = c.Self(), c.Incarnation()
	if a.alarm == nil {
		self := a.self
		a.alarm = a.deps.Clock.Alarm(func(token uint64) { self.Tell(tick{token}) })
	}
	a.out = nil // of an earlier incarnation: what it came to is seen by reading it
	a.disown()
	a.giveBack()
	a.reload(c)
}

// reload reads the trigger anew, behind all that it has sent to the ledger before. The gate is shut until then.
func (a *Actor) reload(c *engine.Context) {
	c.CloseGate()
	if a.out != nil { // its answer passes the gate
		a.reread = true
		return
	}
	a.m, a.reread = nil, false
	got := &loaded{incarnation: a.incarnation}
	self, p := a.self, a.place
	a.deps.Ledger.Tell(&claim.Read{
		Do:    func(ctx context.Context, r claim.Reader) error { return p.read(ctx, r, got) },
		Reply: func(err error) { got.err = err; self.Tell(got) },
	})
}

func (a *Actor) loaded(c *engine.Context, l *loaded) {
	switch {
	case l.incarnation != a.incarnation || a.m != nil:
		return
	case l.err != nil:
		a.later(l.err, "the trigger could not be loaded")
		return
	}
	a.tries = 0
	stored, err := a.stored(l.row)
	if err != nil {
		a.park(err.Error())
		c.OpenGate()
		return
	}
	a.parked, a.timeout = "", stored.Timeout
	a.m = firing.New(stored.Definition, stored.State, l.unfinished, a.deps.Session, a.live, a.deps.Clock.Now())
	a.recorded()
	if a.draining {
		a.m.Drain()
	}
	for _, n := range a.notes {
		n.apply(a.m)
	}
	c.OpenGate()
	a.step()
}

// stored is what the row says, or the queue's own definition.
func (a *Actor) stored(row *claim.Row) (Stored, error) {
	if a.queue != nil {
		return *a.queue, nil
	}
	if row == nil {
		return Stored{}, errors.New("its row is gone")
	}
	a.revision, a.owner = row.Revision, row.Owner
	s, err := Decode(row.Blob)
	s.Definition.Namespace, s.Definition.Trigger = a.namespace, a.id
	s.Definition.Lease, s.Definition.Hold = Lease, s.Timeout+Grace
	return s, err
}

// park stops everything but answers: the trigger is listed with the reason.
func (a *Actor) park(why string) {
	a.parked = why
	a.settle()
	a.fail(fmt.Errorf("%w: %s", ErrParked, why))
	a.giveBack()
	a.deps.Logger.Error("trigger parked", "trigger", a.id, "reason", why)
}

// recorded forgets the runs whose end needs no recording by us any more: a machine that knows them says so.
func (a *Actor) recorded() {
	for k, e := range a.live {
		if e != nil && !a.m.Holds(k) {
			delete(a.live, k)
		}
	}
}

func (a *Actor) ended(e firing.Ended) {
	a.live[e.Key] = &e
	switch {
	case a.m != nil:
		a.m.Ended(e)
		a.step()
	case a.parked != "":
		a.settle()
	}
}

// control notes a change of state, to be answered when it is committed.
func (a *Actor) control(n *note) {
	switch {
	case a.m == nil:
		n.done(nil, fmt.Errorf("%w: %s", ErrParked, a.parked))
	case a.m.State().Retired:
		n.done(nil, ErrRetired)
	case a.draining:
		n.done(nil, claim.ErrClosed)
	default:
		a.add(n)
		a.step()
	}
}

func answerTo(q *engine.Question[struct{}]) func(*claim.Result, error) {
	return func(_ *claim.Result, err error) {
		if err != nil {
			q.Fail(err)
			return
		}
		q.Reply(struct{}{})
	}
}

func (a *Actor) fire(msg *Fire) {
	a.lastAsk++
	ask := msg.Ask
	ask.ID = a.lastAsk
	a.control(&note{
		ask: ask.ID,
		apply: func(m *firing.Machine) {
			ask := ask
			if ask.Key.Kind == claim.KindManual {
				ask.Key.Incarnation = m.State().Incarnation
				if ask.Payload == nil {
					ask.Payload = m.Definition().Payload
				}
			}
			m.Ask(ask)
		},
		done: func(r *claim.Result, err error) {
			switch {
			case err == nil && r == nil: // it drains
				err = claim.ErrClosed
			case err == nil:
				err = r.Err
			}
			if err != nil {
				msg.Fail(err)
				return
			}
			msg.Reply(Fired{Record: r.Record, First: r.Answer == claim.Recorded})
		},
	})
}

func (a *Actor) status() Status {
	s := Status{Owner: a.owner, Timeout: a.timeout, Parked: a.parked, LastDrift: a.lastDrift, Fired: a.fired,
		Failed: a.failed, Dead: a.dead,
		StaleTicks: a.staleTicks, Restarts: a.incarnation - 1}
	if a.m != nil {
		s.Definition, s.State, s.Running, s.Waiting = a.m.Definition(), a.m.State(), a.m.Running(), a.m.Waiting()
	}
	return s
}

// drain ends all but the recording of ends, and tells when there is none left.
func (a *Actor) drain(msg *Drain) {
	if a.draining = true; a.m != nil {
		a.m.Drain()
	}
	a.settled = append(a.settled, func() { msg.Reply(struct{}{}) })
	a.tellSettled()
}

// tellSettled answers Drain when nothing runs and nothing is left to record.
func (a *Actor) tellSettled() {
	if !a.draining || a.out != nil || len(a.live) > 0 {
		return
	}
	for _, tell := range a.settled {
		tell()
	}
	a.settled = nil
}

// stop gives back what is held. Runs that are in flight end by themselves; their ends reach the ledger as undelivered.
func (a *Actor) stop() {
	a.stopping = true
	if a.alarm != nil {
		a.alarm.Set(time.Time{}, 0)
	}
	a.settle()
	a.fail(fmt.Errorf("%w: the trigger's actor has stopped", claim.ErrClosed))
	a.giveBack()
}
