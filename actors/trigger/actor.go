package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/clock"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Spawn starts the actor of a stored trigger. It loads itself; a row that cannot be read parks this trigger alone.
func Spawn(e *engine.Engine, deps *Deps, namespace, id string) (*engine.Ref, error) {
	return spawn(e, "trigger/"+id, &place{deps: deps, namespace: namespace, id: id})
}

// SpawnQueue starts the actor of a queue: a trigger without a schedule and without a row, whose runs are all asked for
// (Submit). Its unfinished work is found by its job.
func SpawnQueue(e *engine.Engine, deps *Deps, def firing.Definition, timeout time.Duration) (*engine.Ref, error) {
	return spawn(e, "queue/"+def.Job, &place{deps: deps, namespace: def.Namespace, queue: &Stored{Definition: def, Timeout: timeout}})
}

func spawn(e *engine.Engine, name string, p *place) (*engine.Ref, error) {
	p.live = map[claim.Key]*firing.Ended{}
	return e.Spawn(name, func() engine.Actor { return &Actor{place: p} })
}

// place is what outlives the restarts of a trigger's actor. Only the actor touches it.
type place struct {
	deps          *Deps
	namespace, id string
	queue         *Stored

	alarm *clock.Alarm
	// live are the runs that were emitted: nil while in flight, then how they ended, until that is committed.
	live    map[claim.Key]*firing.Ended
	permits int          // held, not yet used
	wanting bool         // a permit has been asked for
	out     *outstanding // the commit that the ledger has not answered
	serial  uint64       // of the last commit
	replies []reply      // of what was noted since, to be given when it is committed

	lastDrift  time.Duration
	fired      int64
	staleTicks int64
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

	again    bool // something was noted while a commit was outstanding
	tries    int  // of the commit or reload that failed last
	parked   string
	saidJob  bool // that the job is missing
	draining bool
	stopping bool
}

// outstanding is a step whose Persist is with the ledger: its other effects wait for it.
type outstanding struct {
	serial  uint64
	persist firing.Persist
	rest    []firing.Effect
	replies []reply
	ended   []claim.Key // runs whose end is in it
}

// reply answers a question when what it asked for is committed.
type reply func(results []claim.Result, err error)

// retryStore is how a store that is unavailable is asked again.
var retryStore = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// Receive handles one message. It never blocks.
func (a *Actor) Receive(c *engine.Context, msg any) {
	switch msg := msg.(type) {
	case engine.Started:
		a.started(c)
	case *loaded:
		a.loaded(c, msg)
	case again:
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
		a.step()
	case committed:
		a.committed(c, msg)
	case ended:
		a.live[msg.e.Key] = &msg.e
		if a.m != nil {
			a.m.Ended(msg.e)
			a.step()
		} else if a.parked != "" {
			a.settle()
		}
	case JobRegistered:
		a.step()
	case Reload:
		a.reload(c)
	case Drain:
		a.draining = true
		if a.m != nil {
			a.m.Drain()
		}
	case *Pause:
		a.control(msg.Fail, func() bool { return a.m.Pause(msg.Note) }, func() { msg.Reply(struct{}{}) })
	case *Resume:
		a.control(msg.Fail, a.m.Resume, func() { msg.Reply(struct{}{}) })
	case *Fire:
		a.fire(msg)
	case *Describe:
		msg.Reply(a.status())
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
	a.reload(c)
}

// reload reads the trigger anew, behind all that it has sent to the ledger before. The gate is shut until then.
func (a *Actor) reload(c *engine.Context) {
	c.CloseGate()
	a.forget(errors.New("the trigger was reloaded; ask again"))
	a.m = nil
	got := &loaded{incarnation: a.incarnation}
	self, p := a.self, a.place
	a.deps.Ledger.Tell(&claim.Read{
		Do: func(ctx context.Context, r claim.Reader) error { return p.read(ctx, r, got) },
		Reply: func(err error) {
			got.err = err
			self.Tell(got)
		},
	})
}

// read fetches the row and the unfinished records. It runs on the ledger's worker.
func (p *place) read(ctx context.Context, r claim.Reader, got *loaded) error {
	q := claim.Query{Namespace: p.namespace, Trigger: p.id, States: []claim.State{claim.Pending, claim.Claimed}}
	if p.queue != nil {
		q.Kind, q.Job = claim.KindFree, p.queue.Definition.Job
	} else {
		rows, err := r.Rows(ctx, claim.RowQuery{Kind: RowKind, Namespace: p.namespace, ID: p.id, Limit: 1})
		if err != nil {
			return err
		}
		if len(rows) == 1 {
			got.row = &rows[0]
		}
	}
	got.unfinished = nil
	return claim.EachRecord(ctx, r, q, func(rec *claim.Record) error {
		got.unfinished = append(got.unfinished, *rec)
		return nil
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
	now := a.deps.Clock.Now()
	a.parked, a.timeout = "", stored.Timeout
	live := func(k claim.Key) bool { _, ok := a.live[k]; return ok }
	a.m = firing.New(stored.Definition, stored.State, l.unfinished, a.deps.Session, live, now)
	for _, e := range a.live {
		if e != nil {
			a.m.Ended(*e)
		}
	}
	if a.draining {
		a.m.Drain()
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

// Grace is how much longer than its timeout a run is kept alive: one that does not end by then is stuck.
const Grace = time.Minute

// Lease is how long a claim of a trigger lasts without a sign of life; the ledger's heartbeat extends it.
const Lease = 30 * time.Second

// park stops everything but answers: the trigger is listed with the reason.
func (a *Actor) park(why string) {
	a.parked = why
	a.settle()
	a.forget(fmt.Errorf("%w: %s", ErrParked, why))
	a.deps.Logger.Error("trigger parked", "trigger", a.id, "reason", why)
}

// control notes a change of state, to be answered when it is committed.
func (a *Actor) control(fail func(error), change func() bool, done func()) {
	switch {
	case a.m == nil:
		fail(fmt.Errorf("%w: %s", ErrParked, a.parked))
	case a.m.State().Retired:
		fail(ErrRetired)
	case !change() && a.out == nil:
		done() // nothing to commit
	default:
		a.replies = append(a.replies, func(_ []claim.Result, err error) {
			if err != nil {
				fail(err)
				return
			}
			done()
		})
		a.step()
	}
}

func (a *Actor) fire(msg *Fire) {
	if a.m == nil {
		msg.Fail(fmt.Errorf("%w: %s", ErrParked, a.parked))
		return
	}
	st := a.m.State()
	switch {
	case st.Retired:
		msg.Fail(ErrRetired)
		return
	case a.draining:
		msg.Fail(claim.ErrClosed)
		return
	}
	if msg.Ask.Key.Kind == claim.KindManual {
		if msg.Ask.Payload == nil {
			msg.Ask.Payload = a.m.Definition().Payload
		}
		msg.Ask.Key.Incarnation, msg.Ask.Key.Version, msg.Ask.Key.Epoch = st.Incarnation, 0, 0
	}
	key := msg.Ask.Key.Canonical()
	a.m.Ask(msg.Ask)
	a.replies = append(a.replies, func(results []claim.Result, err error) {
		for i := range results {
			if err == nil && results[i].Record.Key == key {
				if err = results[i].Err; err == nil {
					msg.Reply(Fired{Record: results[i].Record, First: results[i].Answer == claim.Recorded})
					return
				}
			}
		}
		if err == nil {
			err = fmt.Errorf("%s: no answer of the ledger", key)
		}
		msg.Fail(err)
	})
	a.step()
}

func (a *Actor) status() Status {
	s := Status{Owner: a.owner, Timeout: a.timeout, Parked: a.parked, LastDrift: a.lastDrift, Fired: a.fired,
		StaleTicks: a.staleTicks, Restarts: a.incarnation - 1}
	if a.m != nil {
		s.Definition, s.State, s.Running, s.Waiting = a.m.Definition(), a.m.State(), a.m.Running(), a.m.Waiting()
	}
	return s
}

// stop gives back what is held. Runs that are in flight end by themselves; their ends reach the ledger as undelivered.
func (a *Actor) stop() {
	a.stopping = true
	if a.alarm != nil {
		a.alarm.Set(time.Time{}, 0)
	}
	a.settle()
	a.forget(fmt.Errorf("%w: the trigger's actor has stopped", claim.ErrClosed))
}

// settle records the ends of runs that no step will: they must not be lost with the actor.
func (a *Actor) settle() {
	for k, e := range a.live {
		if e != nil && (a.out == nil || !slices.Contains(a.out.ended, k)) {
			delete(a.live, k)
			ended{a.place, *e}.Undelivered(nil)
		}
	}
}

// forget gives up what is under way: the ledger's answer will come to nobody.
func (a *Actor) forget(err error) {
	if a.out != nil {
		a.fail(a.out.replies, err)
		a.out = nil
	}
	a.fail(a.replies, err)
	a.replies = nil
	a.giveBack()
}

func (a *Actor) fail(replies []reply, err error) {
	for _, r := range replies {
		r(nil, err)
	}
}

func (a *Actor) giveBack() {
	for ; a.permits > 0; a.permits-- {
		a.deps.Permits.Release()
	}
}
