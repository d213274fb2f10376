package keygroup

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// admission counts the items that are in the group and holds back those that do not fit. A reservation is one atomic
// operation as long as nobody waits; who waits is served in order, and nobody overtakes.
type admission struct {
	limit  int64
	used   atomic.Int64
	queued atomic.Int64 // how many wait; written under mu

	mu      sync.Mutex
	waiting list.List // of *waiter
	closed  bool
}

type waiter struct {
	n     int64
	ready chan struct{} // closed when the waiter is served, or refused
	err   error         // set before ready is closed
}

// try reserves n items if there is room and nobody waits.
func (a *admission) try(n int64) bool { return a.queued.Load() == 0 && a.reserve(n) }

func (a *admission) reserve(n int64) bool {
	for {
		used := a.used.Load()
		if used+n > a.limit {
			return false
		}
		if a.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// wait reserves n items as soon as there is room. The error is ErrClosed, or wraps the context's cause.
func (a *admission) wait(ctx context.Context, n int64) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return ErrClosed
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	at := a.waiting.PushBack(w)
	a.queued.Add(1) // before the look at what is free: a release after that look sees somebody waiting
	a.serve()
	a.mu.Unlock()

	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-w.ready:
		return w.err // served at the last moment
	default:
	}
	a.leave(at)
	a.serve() // those behind may be smaller
	return fmt.Errorf("%w and the wait for room ended: %w", ErrFull, context.Cause(ctx))
}

// release gives n items' room back.
func (a *admission) release(n int64) {
	a.used.Add(-n)
	if a.queued.Load() > 0 {
		a.mu.Lock()
		a.serve()
		a.mu.Unlock()
	}
}

// close refuses all who wait, now and later.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for a.waiting.Len() > 0 {
		w := a.leave(a.waiting.Front())
		w.err = ErrClosed
		close(w.ready)
	}
}

// serve, under mu, lets those in front in as far as there is room.
func (a *admission) serve() {
	for at := a.waiting.Front(); at != nil && a.reserve(at.Value.(*waiter).n); at = a.waiting.Front() {
		close(a.leave(at).ready)
	}
}

func (a *admission) leave(at *list.Element) *waiter {
	a.queued.Add(-1)
	return a.waiting.Remove(at).(*waiter)
}
