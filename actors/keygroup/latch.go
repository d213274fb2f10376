package keygroup

import (
	"context"
	"fmt"
	"sync"
)

// latch waits for a number of parts, which is not known at first: whoever hands out parts holds one itself meanwhile.
type latch struct {
	mu   sync.Mutex
	left int
	err  error // the first that a part failed with
	done chan struct{}
}

// newLatch has one part, the caller's.
func newLatch() *latch { return &latch{left: 1, done: make(chan struct{})} }

func (l *latch) add() {
	l.mu.Lock()
	l.left++
	l.mu.Unlock()
}

// part ends one part.
func (l *latch) part(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.left--
	if l.left == 0 {
		close(l.done)
	}
}

// wait returns when all parts have ended, or with an error that wraps the context's cause. Parts that ended win.
func (l *latch) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Errorf("keygroup: %d keys are not through: %w", l.left, context.Cause(ctx))
	}
}
