package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// What a zero field of Config means, and its bounds.
const (
	DefaultThroughput = 256
	MaxThroughput     = 1 << 20
	MinWorkers        = 2
)

// Config of one runtime's engine. The zero value is usable.
type Config struct {
	// System is joined when given: actors are spawned in it, and it is not shut down by Stop. nil: the engine makes its own,
	// whose chatter is logged at Debug.
	System *actor.ActorSystem
	// Prefix and a slash stand before the names of all actors, so that several engines may share a system. "": qj-<n>, of which
	// no other engine of the system has the n.
	Prefix string
	// Logger is told of failures that no Supervisor sees. nil: slog.Default().
	Logger *slog.Logger
	// Workers is how many goroutines run actors at once, at most. 0: GOMAXPROCS, at least 2.
	Workers int
	// Throughput is how many messages an actor handles before others have their turn, at most 1<<20. 0: 256. Small and much
	// time goes to changing actors and batches are short; large and one busy actor makes the others wait.
	Throughput int
	// Supervisor is asked what to do about each failure. nil: log it and restart at once, without bound, which is for tests.
	Supervisor Supervisor
}

func (cfg Config) validate() error {
	switch {
	case cfg.Workers < 0:
		return fmt.Errorf("engine: Workers is %d, must be positive (0: GOMAXPROCS)", cfg.Workers)
	case cfg.Throughput < 0 || cfg.Throughput > MaxThroughput:
		return fmt.Errorf("engine: Throughput is %d, must be 1 to %d (0: %d)", cfg.Throughput, MaxThroughput, DefaultThroughput)
	}
	return nil
}

// Engine runs actors on a pool of workers of its own. It owns no goroutine while no actor has anything to do.
type Engine struct {
	system     *actor.ActorSystem
	owned      bool // system was made here
	root       *actor.RootContext
	props      *actor.Props
	prefix     string
	logger     *slog.Logger
	throughput int32
	supervisor Supervisor
	pool       pool

	mu       sync.Mutex // held for a spawn, and never while an actor's code runs
	nursery  *cell      // the cell that is being spawned
	newest   *cell      // of the live ones
	live     int
	leaving  int // no longer live, but still telling others that they have ended
	stopping bool
	stopped  chan struct{} // closed when stopping and none is live or leaving
}

// New returns an engine. It starts nothing; an engine in which nothing was spawned need not be stopped.
func New(cfg Config) (*Engine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		system:     cfg.System,
		prefix:     cfg.Prefix + "/",
		logger:     cfg.Logger,
		throughput: int32(cfg.Throughput),
		supervisor: cfg.Supervisor,
		stopped:    make(chan struct{}),
	}
	e.pool.limit = cfg.Workers
	if e.pool.limit == 0 {
		e.pool.limit = max(MinWorkers, runtime.GOMAXPROCS(0))
	}
	if e.throughput == 0 {
		e.throughput = DefaultThroughput
	}
	if e.logger == nil {
		e.logger = slog.Default()
	}
	if e.supervisor == nil {
		e.supervisor = restarter{e.logger}
	}
	if e.system == nil {
		e.system, e.owned = newSystem(e.logger), true
	}
	if cfg.Prefix == "" {
		e.prefix = "qj-" + e.system.ProcessRegistry.NextID()[1:] + "/"
	}
	// A root of our own: whatever middleware the system's root has, our actors' parent is our guardian.
	e.root = actor.NewRootContext(e.system, nil).WithGuardian(guardian{})
	e.props = actor.PropsFromProducer(func() actor.Actor { return bridge{} },
		actor.WithMailbox(func() actor.Mailbox { return e.nursery }))
	return e, nil
}

// Spawn starts an actor and returns its address. Produce makes an instance, on a worker: the first at once, another after each
// failure that the Supervisor answers with a restart; a panic in it is a failure like any other. The name is free again when
// Done is closed. Errors are ErrNameTaken and ErrStopped, and one for an empty name or a nil produce.
//
// It costs some 8 µs, most of them in proto.actor's registry, and about 450 B for as long as the actor lives.
func (e *Engine) Spawn(name string, produce func() Actor) (*Ref, error) {
	if name == "" || produce == nil {
		return nil, fmt.Errorf("engine: spawn of %q: name and produce must be given", name)
	}
	c := &cell{engine: e, produce: produce, incarnation: 1}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return nil, fmt.Errorf("engine: spawn of %q: %w", name, ErrStopped)
	}
	e.nursery = c
	_, err := e.root.SpawnNamed(e.props, e.prefix+name)
	e.nursery = nil
	if errors.Is(err, actor.ErrNameExists) {
		return nil, fmt.Errorf("%w: %q", ErrNameTaken, name)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: spawn of %q: %w", name, err)
	}
	if e.newest != nil {
		c.older, e.newest.newer = e.newest, c
	}
	e.newest = c
	e.live++
	return c.ref(), nil
}

// Stop stops every actor of this engine and waits until all have stopped: the newest first, after it has handled what is in its
// mailbox, and the next when that has ended. So an actor may rely on older ones to its last moment. One that has failed and
// waits for its restart does not come back, and what a closed gate holds becomes dead letters. Spawn returns ErrStopped from
// now on.
//
// If ctx is over first, all that are left are told to stop at once, and the error wraps ctx's cause and says how many still
// live. Stop may be called again, also at the same time: each call waits for the same stop. An actor must not call it.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	if !e.stopping {
		e.stopping = true
		e.stopNext()
	}
	e.mu.Unlock()
	select {
	case <-e.stopped:
		return nil
	default:
	}
	select {
	case <-e.stopped:
		return nil
	case <-ctx.Done():
		e.mu.Lock()
		defer e.mu.Unlock()
		waitsFor := "others' code"
		if e.newest != nil {
			waitsFor = fmt.Sprintf("actor %q", e.newest.name())
		}
		for c := e.newest; c != nil; c = c.older {
			c.ask(askStop)
		}
		return fmt.Errorf("engine: stop: %d actors still live, waiting for %s: %w", e.live+e.leaving, waitsFor, context.Cause(ctx))
	}
}

// stopNext, under mu, goes on with a stop.
func (e *Engine) stopNext() {
	switch {
	case e.newest != nil:
		e.newest.dismiss()
	case e.leaving == 0:
		if e.owned {
			e.system.Shutdown()
		}
		close(e.stopped)
	}
}

// unlink takes a cell that has ended off the list. It is leaving until left.
func (e *Engine) unlink(c *cell) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		e.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	}
	c.newer, c.older = nil, nil
	e.live--
	e.leaving++
}

// left says that a cell that was leaving has left.
func (e *Engine) left() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leaving--
	if e.stopping {
		e.stopNext()
	}
}

// System returns the actor system, for proto.actor actors of the user.
func (e *Engine) System() *actor.ActorSystem { return e.system }

// Len returns how many actors of this engine have not ended.
func (e *Engine) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live
}

// guard runs somebody else's code, in which a panic does us no harm.
func (e *Engine) guard(what string, fn func()) {
	defer func() {
		if reason := recover(); reason != nil {
			e.logger.Error("engine: "+what+" made others' code panic", slog.Any("reason", reason), slog.String("stack", string(debug.Stack())))
		}
	}()
	fn()
}

// restarter is the Supervisor of an engine that was given none.
type restarter struct {
	logger *slog.Logger
}

// Failed restarts at once.
func (r restarter) Failed(f Failure) Verdict {
	r.logger.Error("engine: actor failed, and is restarted", slog.String("actor", f.Ref.Name()), slog.Uint64("incarnation", f.Incarnation),
		slog.Any("reason", f.Reason), slog.String("stack", string(f.Stack)))
	return Verdict{Restart: true}
}

// newSystem makes an actor system that is quiet: see quiet. The throttle of its dead letter log is a goroutine that lives for
// the interval, after the first dead letter in it.
func newSystem(logger *slog.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithDeadLetterThrottleInterval(100*time.Millisecond),
		actor.WithLoggerFactory(func(system *actor.ActorSystem) *slog.Logger {
			return slog.New(quiet{logger.Handler()}).With("lib", "proto.actor", "system", system.ID)
		}))
}
