package engine

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Question is one question and the place for its answer, for goroutines outside actors: an actor never waits, it tells and is
// told back. Embed a pointer to it in a message:
//
//	type Describe struct{ *engine.Question[Status] }
//
//	q := Describe{engine.NewQuestion[Status]()}
//	ref.Tell(q)
//	status, err := q.Wait(ctx)
//
// The first of Reply, Fail and Undelivered answers it; what comes later is ignored. All methods may be called from any
// goroutine. An actor that takes a question and then fails before it answers leaves the asker to its context.
type Question[T any] struct {
	taken atomic.Bool
	done  chan struct{}
	value T
	err   error
}

var _ Undeliverable = (*Question[int])(nil)

// NewQuestion returns a question that has no answer yet.
func NewQuestion[T any]() *Question[T] {
	return &Question[T]{done: make(chan struct{})}
}

// Reply answers with a value. It never blocks.
func (q *Question[T]) Reply(value T) { q.answer(value, nil) }

// Fail answers with an error. It never blocks.
func (q *Question[T]) Fail(err error) {
	var none T
	q.answer(none, err)
}

// Undelivered answers with the reason why the question reached nobody.
func (q *Question[T]) Undelivered(err error) { q.Fail(err) }

func (q *Question[T]) answer(value T, err error) {
	if !q.taken.CompareAndSwap(false, true) {
		return
	}
	q.value, q.err = value, err
	close(q.done)
}

// Wait returns the answer, or an error that wraps the context's cause if that ends first. It may be called more than once and
// returns the same answer each time; an answer that is there wins over a context that is over.
func (q *Question[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-q.done:
		return q.value, q.err
	default:
	}
	select {
	case <-q.done:
		return q.value, q.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("engine: no answer: %w", context.Cause(ctx))
	}
}
