// Package bounded calls functions that somebody else wrote from a goroutine that must not be held up: the one that has
// a store's writer.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// Errors of a function that ended in another way than by returning.
var (
	ErrPanic  = errors.New("panic")
	ErrGoexit = errors.New("the function ended its goroutine (runtime.Goexit) instead of returning")
)

// Call runs fn on a goroutine of its own and returns its error, for at most the bound: then it returns
// [claim.ErrTxBound], and fn's context is over while fn itself may still run, for as long as it ignores that. A panic and
// a Goexit in fn are errors. The context that fn is given is marked by [claim.EnterTx].
func Call(ctx context.Context, bound time.Duration, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(claim.EnterTx(ctx), bound, claim.ErrTxBound)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := ErrGoexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
			}
			done <- err
		}()
		err = fn(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, claim.ErrTxBound) {
			return cause
		}
		return fmt.Errorf("%w of %v", claim.ErrTxBound, bound)
	}
}
