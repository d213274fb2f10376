package keygroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestG13RejectedAddsLeaveNothingBehind(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{MaxItems: 10, OnFull: Reject}, nil)
		w.add("a", seq(1, 10)...)
		synctest.Wait()
		for i := range 100_000 {
			if err := w.Add(bg, fmt.Sprint(i), i); !errors.Is(err, ErrFull) {
				require.ErrorIs(t, err, ErrFull)
			}
		}
		require.ErrorIs(t, w.AddMany(bg, "b", seq(1, 11)), ErrFull)
		require.Equal(t, Stats{Adds: 10, Merged: 9, Rejected: 100_011, Keys: 1, Pending: 10}, w.Stats())
		w.close()
	})
}

func TestABlockedAddWakesWhenThereIsRoom(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{MaxItems: 3}, nil)
		w.add("a", 1, 2, 3)
		w.add("b", 4, 5)
		require.Equal(t, time.Second, time.Since(w.began))
		require.Equal(t, 2, w.Pending())

		ctx := within(t, 500*time.Millisecond)
		err := w.AddMany(ctx, "c", []int{6, 7})
		require.ErrorIs(t, err, ErrFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2, w.Pending())
		require.Zero(t, w.room.queued.Load())
		require.ErrorIs(t, w.AddMany(bg, "c", seq(1, 4)), ErrFull, "it could never fit")
		w.close()
	})
}

func TestG14FlushWaitsForRetries(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: time.Hour}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Attempt == 1 {
				return errBoom
			}
			return nil
		})
		w.add("a", 1)
		w.add("b", 2)
		require.NoError(t, w.Flush(bg))
		require.Equal(t, time.Second, time.Since(w.began))
		require.Zero(t, w.Pending())
		require.NoError(t, w.Flush(bg), "nothing to flush")

		w.add("a", 3)
		w.add("b", 4)
		require.ErrorIs(t, w.FlushKey(within(t, time.Millisecond), "a"), context.DeadlineExceeded)
		require.NoError(t, w.FlushKey(bg, "a"))
		require.NoError(t, w.FlushKey(bg, "nobody"))
		require.Equal(t, 1, w.Pending())
		require.Equal(t, batch.Flush, w.seen()[4].Trigger)
		w.close()
	})
}

func TestFlushWaitsForNothingThatCameAfterIt(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: time.Hour, Workers: 1}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Value[0] > 1 {
				time.Sleep(time.Minute)
			} else {
				time.Sleep(time.Second)
			}
			return nil
		})
		w.add("a", 1)
		flushed := make(chan time.Duration, 1)
		go func() {
			if w.Flush(bg) == nil {
				flushed <- time.Since(w.began)
			}
		}()
		pass(500 * time.Millisecond)
		w.add("a", 2)
		require.Equal(t, time.Second, <-flushed)
		w.close()
	})
}

func TestFlushWaitsForOnDead(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		var told atomic.Int64
		w := newWorld(t, e, Config{Attempts: 1, OnDead: func(d DeadLetter) {
			time.Sleep(5 * time.Second)
			told.Add(int64(d.Items))
			panic("and then it fails")
		}}, func(context.Context, *Batch[string, []int]) error { return errBoom })
		w.add("a", 1, 2, 3)
		require.NoError(t, w.Flush(bg))
		require.EqualValues(t, 3, told.Load())
		require.Equal(t, 5*time.Second, time.Since(w.began))
		w.close()
	})
}

func TestBlockingCallsFromAHandlerAreRefused(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		var w *world
		var once sync.Once
		var errs []error
		w = newWorld(t, e, Config{MaxItems: 2}, func(ctx context.Context, b *Batch[string, []int]) error {
			once.Do(func() {
				_, err := w.Close(ctx)
				errs = append(errs, w.Flush(ctx), w.FlushKey(ctx, b.Key), w.FlushKey(ctx, "other"), err,
					w.Add(ctx, b.Key, 3), // the group is full with the batch itself
				)
			})
			return nil
		})
		w.add("a", 1, 2)
		pass(time.Minute)
		require.Len(t, errs, 5)
		for _, err := range errs {
			require.ErrorIs(t, err, ErrReentrant)
		}
		w.close()
	})
}

func TestAHandlerMayAddToItsOwnGroup(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		var w *world
		w = newWorld(t, e, Config{}, func(ctx context.Context, b *Batch[string, []int]) error {
			if n := b.Value[0]; n > 0 {
				return w.Add(ctx, b.Key, n-1)
			}
			return nil
		})
		w.add("a", 3)
		pass(time.Minute)
		require.Len(t, w.seen(), 4)
		require.Equal(t, batch.Follow, w.seen()[3].Trigger)
		w.close()
	})
}
