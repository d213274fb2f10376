// Package supervisor is the shell over supervisor/restart: it keeps the failure history of each live actor, asks the kernel
// what to do, and remembers the actors that were given up.
//
// An actor that fails is restarted after a growing delay, with its mailbox and name as they were; one that keeps failing is
// parked: it stops for good, is logged at Error with its reason and stack, and stands in Parked until Unpark. Nothing ever
// escalates: no failure touches another actor.
package supervisor

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/supervisor/restart"
)

// DefaultMaxParked is what Config.MaxParked means when it is 0.
const DefaultMaxParked = 1000

// Config of a Strategy. The zero value is usable.
type Config struct {
	// Policy is the same for all actors. Zero fields mean the defaults of package restart.
	Policy restart.Policy
	// Logger is told of each restart (Warn) and each parked actor (Error). nil: slog.Default().
	Logger *slog.Logger
	// Now is the clock. nil: time.Now.
	Now func() time.Time
	// Rand spreads the delays. nil: the random source of math/rand/v2.
	Rand func() uint64
	// OnParked is told of each actor that is parked, before it stops. It is called on a worker of the engine and must not
	// block: tell an actor, or start a goroutine. A panic in it is logged and does no harm.
	OnParked func(Parked)
	// OnRestart is told of each restart that has been decided, with the same rules.
	OnRestart func(Restarted)
	// MaxParked is how many parked actors are remembered; beyond it the oldest are forgotten. 0: 1000.
	MaxParked int
}

// Restarted is a restart that has been decided.
type Restarted struct {
	Name        string
	Incarnation uint64 // the one that failed
	Reason      any
	At          time.Time     // of the decision
	After       time.Duration // until the restart
	Redeliver   bool          // the message on which it failed is delivered again
	Why         string        // one line, for people
}

// Strategy implements engine.Supervisor. Its methods may be called from any goroutine.
type Strategy struct {
	cfg Config

	mu        sync.Mutex
	histories map[*engine.Ref]restart.History // of actors that have failed and live
	parked    records
}

var (
	_ engine.Supervisor = (*Strategy)(nil)
	_ engine.Forgetter  = (*Strategy)(nil)
)

// New returns a strategy, or an error that names the field of cfg that is out of range.
func New(cfg Config) (*Strategy, error) {
	if err := cfg.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("supervisor: Policy: %w", err)
	}
	if cfg.MaxParked < 0 {
		return nil, fmt.Errorf("supervisor: MaxParked is %d, must be positive (0: %d)", cfg.MaxParked, DefaultMaxParked)
	}
	if cfg.MaxParked == 0 {
		cfg.MaxParked = DefaultMaxParked
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Uint64
	}
	return &Strategy{cfg: cfg, histories: map[*engine.Ref]restart.History{}, parked: records{limit: cfg.MaxParked}}, nil
}

// Failed decides about a failure.
func (s *Strategy) Failed(f engine.Failure) engine.Verdict {
	now := s.cfg.Now()
	history, d := s.decide(f, now)
	if d.Restart {
		s.restarted(Restarted{Name: f.Ref.Name(), Incarnation: f.Incarnation, Reason: f.Reason, At: now,
			After: d.After, Redeliver: d.Redeliver, Why: d.Why})
	} else {
		s.park(Parked{Name: f.Ref.Name(), Incarnation: f.Incarnation, Reason: f.Reason, Stack: f.Stack, Since: now,
			Restarts: history.Restarts(), Why: d.Why})
	}
	return engine.Verdict{Restart: d.Restart, After: d.After, Redeliver: d.Redeliver}
}

func (s *Strategy) decide(f engine.Failure, now time.Time) (restart.History, restart.Decision) {
	rnd := s.cfg.Rand()
	s.mu.Lock()
	defer s.mu.Unlock()
	failure := restart.Failure{Reason: f.Reason, SameMessage: f.Deliveries}
	history, d := restart.Decide(s.histories[f.Ref], s.cfg.Policy, failure, now, rnd)
	if d.Restart {
		s.histories[f.Ref] = history
	} else {
		delete(s.histories, f.Ref)
	}
	return history, d
}

func (s *Strategy) restarted(r Restarted) {
	s.cfg.Logger.Warn("supervisor: actor failed, restarting", slog.String("actor", r.Name), slog.Uint64("incarnation", r.Incarnation),
		slog.String("why", r.Why))
	if s.cfg.OnRestart != nil {
		s.guard("OnRestart", func() { s.cfg.OnRestart(r) })
	}
}

func (s *Strategy) park(p Parked) {
	s.mu.Lock()
	s.parked.add(p)
	s.mu.Unlock()
	s.cfg.Logger.Error("supervisor: actor parked", slog.String("actor", p.Name), slog.Uint64("incarnation", p.Incarnation),
		slog.String("why", p.Why), slog.Any("reason", p.Reason), slog.String("stack", string(p.Stack)))
	if s.cfg.OnParked != nil {
		s.guard("OnParked", func() { s.cfg.OnParked(p) })
	}
}

// guard runs a callback of the user, in which a panic does no harm.
func (s *Strategy) guard(name string, callback func()) {
	defer func() {
		if reason := recover(); reason != nil {
			s.cfg.Logger.Error("supervisor: "+name+" panicked", slog.Any("reason", reason), slog.String("stack", string(debug.Stack())))
		}
	}()
	callback()
}

// Forget drops the history of an actor that has stopped.
func (s *Strategy) Forget(r *engine.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.histories, r)
}

// Parked returns the actors that were given up and not unparked, the first parked first.
func (s *Strategy) Parked() []Parked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked.list()
}

// Unpark forgets that an actor was parked, and reports whether it was. Whoever spawned the actor may spawn it anew.
func (s *Strategy) Unpark(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked.remove(name)
}
