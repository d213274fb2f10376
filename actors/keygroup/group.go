package keygroup

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/verdict"
	"github.com/quarterjack/quarterjack/internal/workers"
)

// Group is a named family of keys with one handler. Its methods may be called from any goroutine.
type Group[K comparable, V, A any] struct {
	cfg     Config
	deps    Deps
	acc     batch.Accumulator[V, A]
	rules   batch.Rules
	handler func(context.Context, *Batch[K, A]) error

	keys     directory[K, V, A]
	alarm    alarm[*key[K, V, A]]
	room     admission
	pool     *workers.Pool
	counts   counters
	spawned  atomic.Uint64 // numbers the actors, so that a key's next one never waits for its name
	sweeping atomic.Bool

	life   context.Context // of all handlers
	end    context.CancelCauseFunc
	shut   atomic.Bool
	closed ending[K, A]
}

// New returns a group whose keys gather in acc and are handled by handler. Errors wrap ErrConfig.
func New[K comparable, V, A any](deps Deps, cfg Config, acc batch.Accumulator[V, A], handler func(context.Context, *Batch[K, A]) error) (*Group[K, V, A], error) {
	switch {
	case deps.Engine == nil:
		return nil, fmt.Errorf("%w: group %q: Deps.Engine is nil, must be given", ErrConfig, cfg.Name)
	case acc == nil:
		return nil, fmt.Errorf("%w: group %q: the accumulator is nil, must be given", ErrConfig, cfg.Name)
	case handler == nil:
		return nil, fmt.Errorf("%w: group %q: the handler is nil, must be given", ErrConfig, cfg.Name)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	cfg = cfg.withDefaults(deps.Logger)
	g := &Group[K, V, A]{cfg: cfg, deps: deps, acc: acc, handler: handler, pool: workers.New(cfg.Workers)}
	g.rules = batch.Rules{Delay: cfg.Delay, Limit: cfg.BatchItems, Attempts: cfg.Attempts, Timeout: cfg.Timeout}
	if cfg.Delay <= AtOnce {
		g.rules.Delay = 0
	}
	g.alarm.now, g.alarm.epoch = deps.Now, deps.Now()
	g.keys.seed = maphash.MakeSeed()
	g.room.limit = int64(cfg.MaxItems)
	g.closed.done = make(chan struct{})
	g.life, g.end = context.WithCancelCause(context.Background())
	return g, nil
}

// Name is the group's name.
func (g *Group[K, V, A]) Name() string { return g.cfg.Name }

// Add gives the group one item. nil means that it was admitted. Errors are ErrFull (under Block it wraps the cause of ctx,
// which ended the wait too), ErrClosed, ErrReentrant where a handler of the group would have to wait for room, ErrKey, and
// ErrStopped as long as a handler runs whose key was stopped from outside; after any of them nothing of the item is left
// behind.
//
// On a key that is there it takes a fraction of a microsecond; a new key takes a few, for its actor.
func (g *Group[K, V, A]) Add(ctx context.Context, k K, v V) error {
	at, err := g.admit(ctx, k, 1)
	if err != nil {
		return err
	}
	at.push(v)
	return nil
}

// AddMany gives the group items of one key, all or none, in their order. More than Config.MaxItems at once are ErrFull. The
// slice is the caller's again when it returns.
func (g *Group[K, V, A]) AddMany(ctx context.Context, k K, vs []V) error {
	if len(vs) == 0 {
		return nil
	}
	at, err := g.admit(ctx, k, int64(len(vs)))
	if err != nil {
		return err
	}
	at.push(vs...)
	return nil
}

// admit reserves room for n items and returns the key, locked, to put them into.
func (g *Group[K, V, A]) admit(ctx context.Context, k K, n int64) (*key[K, V, A], error) {
	if g.shut.Load() {
		return nil, g.errClosed()
	}
	s, err := g.place(k)
	if err != nil {
		return nil, err
	}
	if !g.room.try(n) {
		if err := g.waitForRoom(ctx, n); err != nil {
			return nil, err
		}
	}
	at, err := g.lock(s, k)
	if err != nil {
		g.room.release(n)
	}
	return at, err
}

func (g *Group[K, V, A]) waitForRoom(ctx context.Context, n int64) error {
	var err error
	switch {
	case n > g.room.limit:
		err = fmt.Errorf("%w: group %q: %d items at once, MaxItems is %d", ErrFull, g.cfg.Name, n, g.room.limit)
	case g.cfg.OnFull == Reject:
		err = ErrFull // as it is: a rejection is cheap
	case g.inHandler(ctx):
		err = fmt.Errorf("%w: group %q: Add to a full group", ErrReentrant, g.cfg.Name)
	default:
		err = g.room.wait(ctx, n)
	}
	if err != nil {
		g.counts.rejected.Add(uint64(n))
	}
	return err
}

// place returns the shard of k, or says why k is no key.
func (g *Group[K, V, A]) place(k K) (*shard[K, V, A], error) {
	s, err := g.keys.place(k)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", g.cfg.Name, err)
	}
	return s, nil
}

// lock returns the live actor of k, whose shard is s, with its lock held, and makes it if need be.
func (g *Group[K, V, A]) lock(s *shard[K, V, A], k K) (*key[K, V, A], error) {
	for {
		at := s.find(k)
		if at == nil {
			var err error
			if at, err = g.spawn(s, k); at != nil || err != nil {
				return at, err
			}
			continue // somebody else was quicker
		}
		at.mu.Lock()
		switch {
		case g.shut.Load(): // looked at under the lock: what was put in before Close asks the key is seen by it
			at.mu.Unlock()
			return nil, g.errClosed()
		case !at.gone:
			return at, nil
		case at.stop.held:
			at.mu.Unlock()
			return nil, fmt.Errorf("%w: group %q: its handler has not returned", ErrStopped, g.cfg.Name)
		}
		at.mu.Unlock()
		g.keys.remove(at)
	}
}

// spawn makes the actor of k and returns it with its lock held, or nil if there is one already.
func (g *Group[K, V, A]) spawn(s *shard[K, V, A], k K) (*key[K, V, A], error) {
	name := g.actorName(k)
	n := &key[K, V, A]{group: g, key: k, home: s, state: batch.New(g.acc, &g.rules)}
	n.mu.Lock()
	ok, err := g.keys.insert(n, func() error {
		if g.shut.Load() { // under the shard's lock: a key that is there before Close looks is seen by it
			return g.errClosed()
		}
		return nil
	})
	if !ok {
		return nil, err
	}
	n.ref, err = g.deps.Engine.Spawn(name, func() engine.Actor { return n })
	if err != nil {
		n.gone = true
		n.mu.Unlock()
		g.keys.remove(n)
		if errors.Is(err, engine.ErrStopped) {
			return nil, fmt.Errorf("%w: %q: %w", ErrClosed, g.cfg.Name, err)
		}
		return nil, fmt.Errorf("keygroup: group %q: %w", g.cfg.Name, err)
	}
	g.sweepLater()
	return n, nil
}

// actorName is for k's next actor. The group's part has no slash, so that no key of another group has the same name.
func (g *Group[K, V, A]) actorName(k K) string {
	return fmt.Sprintf("group/%s/%.64s~%d", url.PathEscape(g.cfg.Name), verdict.Text(k), g.spawned.Add(1))
}

func (g *Group[K, V, A]) errClosed() error { return fmt.Errorf("%w: %q", ErrClosed, g.cfg.Name) }

// inHandler says whether ctx is that of a handler of this group, or comes from it.
func (g *Group[K, V, A]) inHandler(ctx context.Context) bool { return ctx.Value(handling{g}) != nil }

// handling is the key under which a handler's context says whose it is.
type handling struct{ group any }
