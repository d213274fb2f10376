package trigger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/actors/trigger/clock"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is all that a trigger's actor stands on, in a bubble of virtual time: a real store behind a dumb ledger actor,
// and a runner whose handlers take as long as the test says.
type stage struct {
	t       *testing.T
	engine  *engine.Engine
	store   *memory.Store
	session claim.Session
	begun   time.Time
	deps    *Deps
	clock   *clock.Clock

	mu      sync.Mutex
	jobs    map[string]bool
	takes   time.Duration
	ends    func(Work, *firing.Ended)
	runs    []Work
	commits []claim.Request
	down    bool          // the store cannot be reached
	delay   time.Duration // of each commit
	onHas   func()        // called by the actor at each step
}

// perform plays in a bubble.
func perform(t *testing.T, play func(t *testing.T, s *stage)) {
	t.Helper()
	actortest.With(t, engine.Config{Supervisor: again3{}}, func(t *testing.T, e *engine.Engine) {
		s := &stage{t: t, engine: e, store: memory.New(), begun: time.Now(), jobs: map[string]bool{"job": true}}
		var err error
		s.session, err = s.store.Open(t.Context())
		require.NoError(t, err)
		s.clock = clock.New(clock.Config{})
		defer s.clock.Stop()
		ledger, err := e.Spawn("ledger", func() engine.Actor { return (*ledger)(s) })
		require.NoError(t, err)
		s.deps = &Deps{Ledger: ledger, Clock: s.clock, Permits: workers.New(4), Runner: s, Session: s.session.ID, Logger: actortest.Logger(t)}
		play(t, s)
		s.change(func() { s.delay, s.takes, s.down = 0, 0, false })
		time.Sleep(time.Minute) // what is under way comes to its end before the engine stops
	})
}

// again3 restarts at once, three times a message.
type again3 struct{}

func (again3) Failed(f engine.Failure) engine.Verdict {
	return engine.Verdict{Restart: true, Redeliver: f.Deliveries < 3}
}

// ledger applies each request by itself, after the stage's delay, in order.
type ledger stage

type apply struct{ do func() }

func (l *ledger) Receive(c *engine.Context, msg any) {
	s := (*stage)(l)
	s.mu.Lock()
	down, delay := s.down, s.delay
	s.mu.Unlock()
	var do func()
	switch m := msg.(type) {
	case *claim.Commit:
		do = func() {
			if down {
				m.Reply(claim.Outcome{Err: claim.ErrUnavailable})
				return
			}
			s.mu.Lock()
			s.commits = append(s.commits, m.Request)
			s.mu.Unlock()
			now := claim.Hand{Wall: s.clock.Now(), Mono: time.Since(s.begun) + 1, Session: s.session.ID, Sole: s.session.Sole}
			out, err := s.store.Apply(context.Background(), now, []claim.Request{m.Request})
			if err != nil {
				m.Reply(claim.Outcome{Err: err})
				return
			}
			m.Reply(out[0])
		}
	case *claim.Read:
		do = func() {
			if down {
				m.Reply(claim.ErrUnavailable)
				return
			}
			m.Reply(m.Do(context.Background(), s.store))
		}
	case apply:
		m.do()
		return
	default:
		return
	}
	if delay == 0 {
		do()
		return
	}
	self := c.Self()
	time.AfterFunc(delay, func() { self.Tell(apply{do}) })
}

// Has and Run make the stage the runner.
func (s *stage) Has(job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onHas != nil {
		s.onHas()
	}
	return s.jobs[job]
}

func (s *stage) Run(w Work, done func(firing.Ended)) {
	s.mu.Lock()
	s.runs = append(s.runs, w)
	takes, ends := s.takes, s.ends
	s.mu.Unlock()
	s.deps.Permits.Go(func() {
		time.Sleep(takes)
		e := firing.Ended{Key: w.Record.Key, Job: w.Record.Job, Slot: w.Record.Slot, Fence: w.Record.Fence, Attempt: int(w.Record.Attempt), At: s.clock.Now()}
		if ends != nil {
			ends(w, &e)
		}
		done(e)
	})
}

func (s *stage) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// put stores a trigger's row as Declare would.
func (s *stage) put(id string, def firing.Definition, revision uint64) {
	s.t.Helper()
	def.Job = "job"
	if def.Threshold == 0 {
		def.Threshold = time.Minute
	}
	if def.Attempts == 0 {
		def.Attempts = 3
	}
	def.Namespace, def.Trigger = "test", id
	blob, err := Stored{Definition: def, State: firing.Begin(def, s.clock.Now(), 1, uint32(revision)+1), Timeout: time.Hour}.Encode()
	require.NoError(s.t, err)
	s.putBlob(id, blob, revision)
}

func (s *stage) putBlob(id string, blob []byte, revision uint64) {
	s.t.Helper()
	now := claim.Hand{Wall: s.clock.Now(), Mono: time.Since(s.begun) + 1, Session: s.session.ID}
	out, err := s.store.Apply(s.t.Context(), now, []claim.Request{{Rows: []claim.Row{{Kind: RowKind, Namespace: "test", ID: id, Revision: revision, Blob: blob}}}})
	require.NoError(s.t, err)
	require.NoError(s.t, out[0].Err)
}

func (s *stage) spawn(id string) *engine.Ref {
	s.t.Helper()
	ref, err := Spawn(s.engine, s.deps, "test", id)
	require.NoError(s.t, err)
	return ref
}

// trigger stores and spawns one.
func (s *stage) trigger(id string, def firing.Definition) *engine.Ref {
	s.t.Helper()
	s.put(id, def, 0)
	return s.spawn(id)
}

func (s *stage) status(ref *engine.Ref) Status {
	s.t.Helper()
	q := engine.NewQuestion[Status]()
	ref.Tell(&Describe{q})
	st, err := q.Wait(s.t.Context())
	require.NoError(s.t, err)
	return st
}

// ran lists when the runs were started, since the play began.
func (s *stage) ran() (out []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.runs {
		out = append(out, w.Record.FiredAt.Sub(s.begun.Round(0).UTC()))
	}
	return out
}

func (s *stage) records() []claim.Record {
	s.t.Helper()
	list, err := s.store.Records(s.t.Context(), claim.Query{})
	require.NoError(s.t, err)
	for i := range list {
		require.NoError(s.t, list[i].Valid())
	}
	return list
}

func (s *stage) states() map[string]int {
	out := map[string]int{}
	for _, r := range s.records() {
		out[r.State.String()]++
	}
	return out
}

func (s *stage) ranges() (out []claim.Range) {
	s.t.Helper()
	list, err := s.store.Ranges(s.t.Context(), claim.Query{})
	require.NoError(s.t, err)
	return list
}

func seconds(n ...int) (out []time.Duration) {
	for _, n := range n {
		out = append(out, time.Duration(n)*time.Second)
	}
	return out
}

func ask[T any](t *testing.T, q *engine.Question[T], ref *engine.Ref, msg any) (T, error) {
	t.Helper()
	ref.Tell(msg)
	return q.Wait(t.Context())
}

var errTest = errors.New("test")

func everySecond(n int) schedule.Schedule { return schedule.Every(time.Duration(n) * time.Second) }

func sorted(d []time.Duration) []time.Duration { slices.Sort(d); return d }
