package keygroup

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
)

// ending is the one Close of a group.
type ending[K comparable, A any] struct {
	begun atomic.Bool
	done  chan struct{}
	left  map[K]A // set before done is closed
	err   error
}

// heir gets what keys give back.
type heir[K comparable, A any] struct {
	latch *latch

	mu   sync.Mutex
	left map[K]A
}

func (h *heir[K, A]) add(k K, value A) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left[k] = value
}

// Close refuses new items with ErrClosed, hands over at once all that is there, and returns when all of it is through,
// retries included, and every key has stopped.
//
// When ctx is over first, the contexts of the handlers that still run are cancelled, they have Config.Grace to return, and
// what no handler has then, or gave back by failing, is returned, by key. An error says how many items that are and wraps
// ctx's cause. It also says how many batches are left in handlers that did not return: those are handled if their handler
// succeeds in the end, and dead letters if it fails. With a ctx that is over at the call, nothing more is handed over.
//
// Close may be called again, also at the same time: each call waits for the first one's end, as long as its own ctx allows,
// and returns the same. From a handler of the group it is ErrReentrant.
func (g *Group[K, V, A]) Close(ctx context.Context) (map[K]A, error) {
	if g.inHandler(ctx) {
		return nil, fmt.Errorf("%w: group %q: Close", ErrReentrant, g.cfg.Name)
	}
	e := &g.closed
	if e.begun.CompareAndSwap(false, true) {
		e.left, e.err = g.close(ctx)
		close(e.done)
	}
	select {
	case <-e.done:
		return e.left, e.err
	default:
	}
	select {
	case <-e.done:
		return e.left, e.err
	case <-ctx.Done():
		return nil, fmt.Errorf("keygroup: group %q is being closed by somebody else: %w", g.cfg.Name, context.Cause(ctx))
	}
}

func (g *Group[K, V, A]) close(ctx context.Context) (map[K]A, error) {
	g.shut.Store(true)
	g.room.close()
	defer g.end(ErrClosed)
	if ctx.Err() == nil {
		l := newLatch()
		g.keys.each(func(k *key[K, V, A]) { k.tell(l, &shutdown{latch: l}) })
		l.part(nil)
		err := l.wait(ctx)
		if err == nil {
			err = g.pool.Wait(ctx) // the last OnDead
		}
		if err == nil {
			return nil, nil
		}
	}
	left := g.surrender(ctx)
	running := g.pool.InUse()
	if len(left) == 0 && running == 0 {
		return nil, nil
	}
	return left, fmt.Errorf("keygroup: group %q closed with %d items of %d keys left, and %d handlers that did not return: %w",
		g.cfg.Name, g.counts.left.Load(), len(left), running, context.Cause(ctx))
}

// surrender takes back what no handler has.
func (g *Group[K, V, A]) surrender(ctx context.Context) map[K]A {
	h := &heir[K, A]{latch: newLatch(), left: make(map[K]A)}
	g.keys.each(func(k *key[K, V, A]) { k.tell(h.latch, &surrender[K, A]{heir: h}) })
	h.latch.part(nil)
	// Now, when each key has been told: what a handler gives back because of this comes after that.
	g.end(ErrClosed)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Grace)
	defer cancel()
	if h.latch.wait(grace) != nil {
		g.keys.each(func(k *key[K, V, A]) { k.tell(nil, abandon{}) })
		<-h.latch.done
	}
	_ = g.pool.Wait(grace) // the last OnDead; the error says what the caller is told anyway
	return h.left
}

// tell sends msg, which ends a part of l, unless the key is gone.
func (k *key[K, V, A]) tell(l *latch, msg any) {
	k.mu.Lock()
	gone, ref := k.gone, k.ref
	k.mu.Unlock()
	if gone {
		return
	}
	if l != nil {
		l.add()
	}
	ref.Tell(msg)
}

// handBack gives what is left to the heir. Without one the actor was stopped from outside, and it is a dead letter.
func (k *key[K, V, A]) handBack(e *batch.Left[A]) {
	g := k.group
	switch {
	case e.Items == 0:
	case k.heir == nil:
		k.dead += uint64(e.Items)
		g.bury(DeadLetter{Group: g.cfg.Name, Key: k.key, Value: e.Value, Items: e.Items, Err: ErrStopped}, nil)
	default:
		g.counts.left.Add(uint64(e.Items))
		k.heir.add(k.key, e.Value)
	}
}

// inherit tells the heir, once, that it has got all there is.
func (k *key[K, V, A]) inherit() {
	if k.heir != nil && !k.inherited {
		k.inherited = true
		k.heir.latch.part(nil)
	}
}

// leave takes the key off the directory if there is nothing to do; the actor is then to stop.
func (k *key[K, V, A]) leave() bool {
	if !k.resting() {
		return false
	}
	k.mu.Lock()
	k.gone = len(k.inbox) == 0
	gone := k.gone
	k.mu.Unlock()
	if gone {
		k.group.keys.remove(k)
	}
	return gone
}

// stop is how far a stop from outside has come. Until it is over the key takes nothing and stays in the directory: no other
// actor of it can run a batch beside the one that the stopped actor has left in its handler.
type stop struct {
	held     bool // the stop has begun and is not over
	ended    bool // the actor has ended
	returned bool // no handler has a batch of it
}

// letGo forgets a key that was stopped from outside when its actor has ended and its handler has returned, in either order.
func (k *key[K, V, A]) letGo(ended, returned bool) {
	k.mu.Lock()
	k.stop.ended = k.stop.ended || ended
	k.stop.returned = k.stop.returned || returned
	over := k.stop.ended && k.stop.returned
	if over {
		k.stop.held = false
	}
	k.mu.Unlock()
	if over {
		k.group.keys.remove(k)
	}
}

// stopped is the actor's end: after leave, or from outside. Nobody waits for it in vain, whatever the accumulator does now.
func (k *key[K, V, A]) stopped() {
	outside := false
	defer func() {
		if outside {
			k.letGo(true, k.state.Phase() != batch.PhaseRunning)
		}
		for _, w := range k.flushes {
			w.latch.part(ErrStopped)
		}
		k.inherit()
		if k.closing != nil {
			k.closing.part(nil)
		}
	}()
	k.mu.Lock()
	outside = !k.gone
	k.gone, k.stop.held = true, outside
	k.mu.Unlock()
	if outside {
		k.drain()
		k.perform(k.state.Abandon())
		k.settle()
	}
}
