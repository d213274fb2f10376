package keygroup

import (
	"errors"
	"fmt"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/workers"
)

// Messages to a key. Those that somebody waits for say so themselves when they reach nobody.

type (
	wake      struct{}                    // the inbox is no longer empty
	passivate struct{}                    // be gone, if there is nothing to do
	abandon   struct{}                    // give back what no handler has, and wait for none
	tick      struct{ generation uint64 } // the time is over
	buried    struct{ items int }         // OnDead has returned
)

// permit is a worker for the batch that is ready.
type permit struct {
	pool       *workers.Pool
	generation uint64
	used       bool
}

// Undelivered gives the worker back.
func (p *permit) Undelivered(error) {
	if !p.used {
		p.pool.Release()
	}
}

// finished is a handler's result.
type finished[K comparable, V, A any] struct {
	of      *key[K, V, A]
	run     *batch.Run[A]
	outcome batch.Outcome
	seen    bool
}

// Undelivered says what became of a batch whose key was stopped while it ran. Now another batch of the key may run.
func (f *finished[K, V, A]) Undelivered(error) {
	if f.seen {
		return
	}
	g := f.of.group
	g.count(f.run, f.outcome)
	if f.outcome.Err == nil {
		g.room.release(int64(f.run.Items))
	} else {
		g.bury(g.letter(f.of.key, f.run, fmt.Errorf("%w: %w", ErrStopped, f.outcome.Err)), nil)
	}
	f.of.letGo(false, true)
}

// flush hands over at once all that is there.
type flush struct {
	latch *latch
	taken bool
}

// Undelivered ends the wait: a key that was forgotten had nothing.
func (f *flush) Undelivered(err error) {
	if f.taken {
		return
	}
	if errors.Is(err, engine.ErrGone) {
		err = nil
	}
	f.latch.part(err)
}

// shutdown is a flush after which the key stops.
type shutdown struct {
	latch *latch
	taken bool
}

// Undelivered ends the wait: the key has stopped.
func (s *shutdown) Undelivered(error) {
	if !s.taken {
		s.latch.part(nil)
	}
}

// surrender has the key give back what no handler has.
type surrender[K comparable, A any] struct {
	heir  *heir[K, A]
	taken bool
}

// Undelivered ends the wait: the key has stopped, and has nothing.
func (s *surrender[K, A]) Undelivered(error) {
	if !s.taken {
		s.heir.latch.part(nil)
	}
}
