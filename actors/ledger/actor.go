package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// What a zero field of Config means.
const (
	DefaultName     = "ledger"
	DefaultMaxBatch = 1000
)

// Config of a ledger. Store and Session must be given.
type Config struct {
	Store   claim.Store   // open; whoever opened it closes it, after the ledger
	Session claim.Session // what opening the store gave

	Name   string       // of the actor; empty: "ledger"
	Logger *slog.Logger // is told of what no caller hears; nil: slog.Default()

	// Now is the wall clock, as records show it; nil: time.Now. Leases do not depend on it.
	Now func() time.Time

	// MaxBatch is how many requests share a transaction at most; 0: 1,000. With fewer, the disk is asked more often;
	// with more, each of them waits longer for the others.
	MaxBatch int
}

func (cfg *Config) check() error {
	switch {
	case cfg.Store == nil:
		return errors.New("ledger: Store is nil, must be a store that is open")
	case cfg.Session.ID == 0:
		return errors.New("ledger: Session has number 0, must be what opening the store gave")
	case cfg.MaxBatch < 0:
		return fmt.Errorf("ledger: MaxBatch is %d, must be positive (0: %d)", cfg.MaxBatch, DefaultMaxBatch)
	}
	if cfg.Name == "" {
		cfg.Name = DefaultName
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxBatch == 0 {
		cfg.MaxBatch = DefaultMaxBatch
	}
	return nil
}

// Ledger is the actor with what belongs to it. Make it with Spawn.
type Ledger struct {
	cfg   Config
	ref   *engine.Ref
	began time.Time // of the session; leases are measured from here, by its monotonic reading
	line  line
	held  held

	unavailable atomic.Bool // said, and not yet said that it is over
	counts      counts
}

// Spawn starts a ledger over a store that is open. Close it, or stop its actor and [Ledger.Wait], before the store is
// closed.
func Spawn(e *engine.Engine, cfg Config) (*Ledger, error) {
	return spawn(e, cfg, func(l *line) engine.Actor { return front{l} })
}

func spawn(e *engine.Engine, cfg Config, produce func(*line) engine.Actor) (*Ledger, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	l := &Ledger{cfg: cfg, began: time.Now()}
	l.line.init(cfg.MaxBatch, l.work, l.held.stop)
	l.held.init(l.mono, l.extend, cfg.Logger)
	ref, err := e.Spawn(cfg.Name, func() engine.Actor { return produce(&l.line) })
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l.ref = ref
	return l, nil
}

// Ref returns the actor's address: it takes *claim.Commit and *claim.Read.
func (l *Ledger) Ref() *engine.Ref { return l.ref }

// Close commits what was sent before, then stops the heartbeat, and waits for that. What is sent later is answered with
// ErrClosed. Claims that are still held end with the session. When ctx ends first, all that still goes on, and the error
// says how many requests wait. It may be called more than once. It does not close the store.
func (l *Ledger) Close(ctx context.Context) error {
	l.ref.Tell(closing{&l.line})
	return l.Wait(ctx)
}

// Wait returns when the actor has been stopped, by Close or otherwise, and every request that reached it has been
// answered: the store may be closed then. When ctx ends first, the error says how many requests wait.
func (l *Ledger) Wait(ctx context.Context) error {
	select {
	case <-l.line.drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ledger: %d requests wait for the store: %w", l.line.len(), context.Cause(ctx))
	}
}

// mono is the session's monotonic hand.
func (l *Ledger) mono() time.Duration { return time.Since(l.began) }

// hand reads the clocks.
func (l *Ledger) hand() claim.Hand {
	return claim.Hand{Wall: l.cfg.Now(), Mono: l.mono(), Session: l.cfg.Session.ID, Sole: l.cfg.Session.Sole}
}
