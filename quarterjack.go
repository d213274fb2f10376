package quarterjack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/actors/trigger/clock"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/workers"
	"github.com/quarterjack/quarterjack/supervisor"
)

// Runtime is one Quarterjack: its triggers, its key groups and its ledger. Open makes one; its methods may be called
// from any goroutine.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	session claim.Session
	engine  *engine.Engine
	book    *ledger.Ledger
	ledger  *engine.Ref // of book
	clock   *clock.Clock
	runs    *runner
	calls   *workers.Pool // one permit for each Do in flight
	doing   sync.Map      // the keys of Do that are in flight in this process
	parked  *supervisor.Strategy
	deps    *trigger.Deps

	mu       sync.Mutex
	phase    phase
	triggers map[string]*engine.Ref // by id
	queues   map[string]*engine.Ref // of Submit, by job
	groups   map[string]group
	closed   chan struct{} // closed when Close is through
	closeErr error
}

// phase of a runtime's life; it only grows.
type phase uint8

const (
	opened phase = iota
	started
	closing
)

// group is what the runtime needs of a key group, whatever its types.
type group interface {
	end(ctx context.Context) (left int, err error)
	keys() int
	pending() int
}

// Open connects to the store and makes a runtime that is ready to be prepared: Handle, Declare, Schedule and groups.
// Nothing fires before Start. Errors are ErrConfig, and those of the store: ErrLocked, ErrNewer, ErrCorrupt,
// ErrUnavailable.
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	rt := &Runtime{cfg: cfg, log: cfg.Logger, triggers: map[string]*engine.Ref{}, queues: map[string]*engine.Ref{},
		groups: map[string]group{}, closed: make(chan struct{})}
	rt.clock = clock.New(clock.Config{Shards: shards(), OnJump: func(step time.Duration) {
		rt.log.Warn("the wall clock stepped, or the machine slept", "step", step)
	}})
	if rt.parked, err = supervisor.New(supervisor.Config{Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	if rt.engine, err = engine.New(engine.Config{System: cfg.System, Logger: cfg.Logger, Supervisor: rt.parked}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if rt.session, err = cfg.Store.Open(ctx); err != nil {
		return nil, err
	}
	rt.book, err = ledger.Spawn(rt.engine, ledger.Config{Store: cfg.Store, Session: rt.session, Logger: cfg.Logger})
	if err != nil {
		return nil, errors.Join(err, cfg.Store.Close())
	}
	rt.ledger = rt.book.Ref()
	rt.runs = &runner{permits: workers.New(cfg.Workers), ledger: rt.ledger, jobs: map[string]job{}}
	rt.calls = workers.New(math.MaxInt32)
	rt.runs.ctx, rt.runs.cancel = context.WithCancelCause(context.Background())
	rt.deps = &trigger.Deps{Ledger: rt.ledger, Clock: rt.clock, Permits: rt.runs.permits, Runner: rt.runs, Session: rt.session.ID, Logger: cfg.Logger}
	return rt, nil
}

// Handle registers the handler of a job. It may be called at any time before Close, also after Start: triggers and
// submitted work that were parked for want of it go on. A job is registered once; a second time is ErrExists.
func (rt *Runtime) Handle(name string, h Handler, mode ...Mode) error {
	if err := checkID("job", name); err != nil {
		return err
	}
	if h == nil || len(mode) > 1 || len(mode) == 1 && mode[0] > Tx {
		return fmt.Errorf("%w: job %q: want a handler and at most one mode, Keyed or Tx", ErrConfig, name)
	}
	j := job{handler: h}
	if len(mode) == 1 {
		j.mode = mode[0]
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.phase == closing {
		return ErrClosed
	}
	rt.runs.mu.Lock()
	_, twice := rt.runs.jobs[name]
	if !twice {
		rt.runs.jobs[name] = j
	}
	rt.runs.mu.Unlock()
	if twice {
		return fmt.Errorf("%w: job %q has a handler", ErrExists, name)
	}
	for _, refs := range []map[string]*engine.Ref{rt.triggers, rt.queues} {
		for _, ref := range refs {
			ref.Tell(trigger.JobRegistered{})
		}
	}
	return nil
}

// Start recovers what an earlier process left (claims that were cut short, retries that are due, slots that were
// missed, each by its misfire rule) and begins to fire. It may be called once.
func (rt *Runtime) Start(ctx context.Context) error {
	// From here on what is submitted or declared finds its actor, or is read below.
	if err := rt.advance(opened, started); err != nil {
		return err
	}
	rows, err := rt.rows(ctx, claim.RowQuery{Kind: trigger.RowKind, Namespace: rt.cfg.Namespace})
	if err != nil {
		return errors.Join(err, rt.advance(started, opened))
	}
	triggers, jobs, err := rt.unfinished(ctx)
	if err != nil {
		return errors.Join(err, rt.advance(started, opened))
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for i := range rows {
		s, bad := trigger.Decode(rows[i].Blob)
		if rt.triggers[rows[i].ID] != nil || bad == nil && s.State.Retired && !triggers[rows[i].ID] {
			continue // a retired one only ends what it left
		}
		if err := rt.spawn(rows[i].ID); err != nil {
			return rt.mapped(err)
		}
	}
	for name := range jobs {
		if rt.queues[name] != nil {
			continue
		}
		if _, err := rt.spawnQueue(name); err != nil {
			return rt.mapped(err)
		}
	}
	return nil
}

// advance changes the phase from one to another.
func (rt *Runtime) advance(from, to phase) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.phase == from {
		rt.phase = to
		return nil
	}
	if rt.phase == started {
		return ErrStarted
	}
	return ErrClosed
}

// spawn starts a trigger's actor, also one that was parked. The lock is held.
func (rt *Runtime) spawn(id string) error {
	rt.parked.Unpark("trigger/" + id)
	ref, err := trigger.Spawn(rt.engine, rt.deps, rt.cfg.Namespace, id)
	if err != nil {
		return err
	}
	rt.triggers[id] = ref
	return nil
}

func (rt *Runtime) spawnQueue(job string) (*engine.Ref, error) {
	ref, err := trigger.SpawnQueue(rt.engine, rt.deps, firing.Definition{Namespace: rt.cfg.Namespace, Job: job, Overlap: firing.Allow,
		Limit: rt.cfg.Workers, Attempts: DefaultAttempts, Backoff: Backoff{}.WithDefaults()}, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	rt.queues[job] = ref
	return ref, nil
}

// queue gives the actor that runs submitted work of a job; nil before Start.
func (rt *Runtime) queue(job string) (*engine.Ref, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch rt.phase {
	case opened:
		return nil, nil
	case closing:
		return nil, ErrClosed
	case started:
	}
	if ref := rt.queues[job]; ref != nil {
		return ref, nil
	}
	return rt.spawnQueue(job)
}

// ready says whether the ledger may be called.
func (rt *Runtime) ready(ctx context.Context) error {
	if err := outsideTx(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.phase == closing {
		return ErrClosed
	}
	return nil
}

// mapped gives errors from inside the names that callers know.
func (rt *Runtime) mapped(err error) error {
	switch {
	case errors.Is(err, claim.ErrClosed), errors.Is(err, engine.ErrStopped):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, trigger.ErrRetired):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// read asks the ledger's store, behind all that was committed before.
func (rt *Runtime) read(ctx context.Context, do func(ctx context.Context, r claim.Reader) error) error {
	return rt.mapped(rt.book.Read(ctx, do))
}

func (rt *Runtime) rows(ctx context.Context, q claim.RowQuery) (all []claim.Row, err error) {
	err = rt.read(ctx, func(ctx context.Context, r claim.Reader) error {
		all = nil
		return claim.EachRow(ctx, r, q, func(row *claim.Row) error {
			all = append(all, *row)
			return nil
		})
	})
	return all, err
}

// unfinished finds the triggers, and the jobs of submitted work, that have keys without a verdict.
func (rt *Runtime) unfinished(ctx context.Context) (triggers, jobs map[string]bool, err error) {
	triggers, jobs = map[string]bool{}, map[string]bool{}
	q := claim.Query{Namespace: rt.cfg.Namespace, States: []claim.State{claim.Pending, claim.Claimed}}
	err = rt.read(ctx, func(ctx context.Context, r claim.Reader) error {
		return claim.EachRecord(ctx, r, q, func(rec *claim.Record) error {
			switch {
			case rec.Key.Kind != claim.KindFree:
				triggers[rec.Key.Trigger] = true
			case rec.Job != "":
				jobs[rec.Job] = true
			}
			return nil
		})
	})
	return triggers, jobs, err
}
