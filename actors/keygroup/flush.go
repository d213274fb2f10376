package keygroup

import (
	"context"
	"fmt"
)

// Flush hands over at once all that was in the group when it was called, and returns when that is through: handled, or given
// up after its attempts. It waits for retries as long as ctx allows. Errors: what ended ctx, ErrClosed, ErrReentrant from a
// handler, ErrStopped where a key was stopped from outside.
//
// Most callers need no Flush: a batch comes with its delay, and Close flushes.
func (g *Group[K, V, A]) Flush(ctx context.Context) error {
	if err := g.mayWait(ctx, "Flush"); err != nil {
		return err
	}
	l := newLatch()
	g.keys.each(func(k *key[K, V, A]) { k.flush(l) })
	l.part(nil)
	return l.wait(ctx)
}

// FlushKey is Flush for one key, and ErrKey for what cannot be one.
func (g *Group[K, V, A]) FlushKey(ctx context.Context, k K) error {
	if err := g.mayWait(ctx, "FlushKey"); err != nil {
		return err
	}
	s, err := g.place(k)
	if err != nil {
		return err
	}
	l := newLatch()
	if at := s.find(k); at != nil {
		at.flush(l)
	}
	l.part(nil)
	return l.wait(ctx)
}

func (g *Group[K, V, A]) mayWait(ctx context.Context, what string) error {
	if g.inHandler(ctx) {
		return fmt.Errorf("%w: group %q: %s", ErrReentrant, g.cfg.Name, what)
	}
	if g.shut.Load() {
		return g.errClosed()
	}
	return nil
}

// flush tells the actor, unless there is nothing to flush.
func (k *key[K, V, A]) flush(l *latch) {
	k.mu.Lock()
	held := k.stop.held
	skip := !held && (k.gone || !k.quiet.IsZero())
	ref := k.ref
	k.mu.Unlock()
	if skip {
		return
	}
	l.add()
	if held {
		l.part(ErrStopped)
		return
	}
	ref.Tell(&flush{latch: l})
}
