package bounded

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

func TestCall(t *testing.T) {
	own := errors.New("no such invoice")
	for _, tt := range []struct {
		name string
		fn   func(ctx context.Context) error
		err  error
		says string
	}{
		{"nil", func(context.Context) error { return nil }, nil, ""},
		{"its own error", func(context.Context) error { return own }, own, ""},
		{"the context is marked", claim.InTx, claim.ErrInTx, ""},
		{"a panic, with the place", func(context.Context) error { panic("boom") }, ErrPanic, "bounded_test.go"},
		{"a panic with an error", func(context.Context) error { panic(own) }, ErrPanic, "no such invoice"},
		{"a goexit", func(context.Context) error { runtime.Goexit(); return nil }, ErrGoexit, ""},
		{"too long", func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Hour); return nil }, claim.ErrTxBound, "its bound of 100ms"},
		{"just in time", func(context.Context) error { time.Sleep(100*time.Millisecond - 1); return nil }, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := Call(t.Context(), 100*time.Millisecond, tt.fn)
				require.ErrorIs(t, err, tt.err)
				if tt.err != nil {
					require.ErrorContains(t, err, tt.says)
				}
				assert.LessOrEqual(t, time.Since(began), 100*time.Millisecond)
				time.Sleep(2 * time.Hour) // what ignores its context ends in its own time
			})
		})
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		var seen error
		err := Call(ctx, time.Hour, func(ctx context.Context) error {
			<-ctx.Done()
			seen = ctx.Err()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.ErrorIs(t, seen, context.Canceled)
	})
}
