package keygroup

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestItemsOfAKeyAreMergedIntoOneBatch(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, nil)
		w.add("a", 1)
		pass(300 * time.Millisecond)
		w.add("a", 2, 3)
		require.Equal(t, 3, w.Pending())
		pass(699 * time.Millisecond)
		require.Empty(t, w.seen())
		pass(time.Millisecond)
		require.Equal(t, []call{{"a", []int{1, 2, 3}, 1, batch.Time, time.Second}}, w.seen())
		require.Equal(t, Stats{Adds: 3, Merged: 2, Batches: 1, Handled: 3, Keys: 1}, w.Stats())
		w.close()
	})
}

func TestABatchKnowsItsArrivals(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		began := time.Now()
		w := newWorld(t, e, Config{}, func(_ context.Context, b *Batch[string, []int]) error {
			if !b.First.Equal(began) || !b.Last.Equal(began.Add(500*time.Millisecond)) || b.Items != 2 {
				return fmt.Errorf("first %v, last %v, %d items", b.First.Sub(began), b.Last.Sub(began), b.Items)
			}
			return nil
		})
		w.add("a", 1)
		pass(500 * time.Millisecond)
		w.add("a", 2)
		pass(time.Second)
		require.Zero(t, w.Stats().Failures)
		w.close()
	})
}

func TestAFullBatchRunsAtOnce(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{BatchItems: 3}, nil)
		w.add("a", 1, 2)
		w.add("a", 3)
		synctest.Wait()
		require.Equal(t, []call{{"a", []int{1, 2, 3}, 1, batch.Size, 0}}, w.seen())
		w.close()
	})
}

func TestDelayAtOnce(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: AtOnce}, nil)
		w.add("a", 1)
		synctest.Wait()
		require.Equal(t, []call{{"a", []int{1}, 1, batch.Time, 0}}, w.seen())
		w.close()
	})
}

func TestG1AndG2ALateCompletionIsWaitedForAndSubtractsNothing(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		release := make(chan struct{})
		w := newWorld(t, e, Config{Timeout: 5 * time.Second}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Value[0] == 1 {
				<-release // deaf to its context
			}
			return nil
		})
		w.add("a", seq(1, 10)...)
		pass(10 * time.Second)
		w.add("a", seq(11, 15)...)
		pass(time.Minute)
		require.Len(t, w.seen(), 1, "the next one starts only after the first has returned")
		close(release)
		synctest.Wait()
		require.Equal(t, seq(11, 15), w.seen()[1].Value)
		require.EqualValues(t, 1, w.Stats().Late)
		require.Zero(t, w.Pending())
		w.close()
	})
}

func TestG4OutgrownWhileInFlight(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{BatchItems: 100}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Value[0] == 0 {
				time.Sleep(time.Second)
			}
			return nil
		})
		w.add("a", 0)
		pass(1500 * time.Millisecond)
		w.add("a", seq(1, 350)...)
		pass(500 * time.Millisecond)
		var got [][]int
		for _, c := range w.seen() {
			got = append(got, c.Value)
		}
		require.Equal(t, [][]int{{0}, seq(1, 100), seq(101, 200), seq(201, 300), seq(301, 350)}, got)
		w.close()
	})
}

func TestG7KeysAreForgottenWhenIdle(t *testing.T) {
	const keys = 5_000
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		g, err := New(Deps{Engine: e}, Config{Name: "churn", IdleAfter: 10 * time.Second}, batch.Sum[int]{},
			func(context.Context, *Batch[int, int]) error { return nil })
		require.NoError(t, err)
		for k := range keys {
			require.NoError(t, g.Add(bg, k, 1))
		}
		require.Equal(t, keys, g.Keys())
		pass(11 * time.Second)
		require.Equal(t, keys, g.Keys(), "idle, and still remembered")
		pass(10 * time.Second)
		require.Zero(t, g.Keys())
		require.Zero(t, e.Len())
		require.EqualValues(t, keys, g.Stats().Handled)

		require.NoError(t, g.Add(bg, 1, 1), "a key that was forgotten comes back")
		left, err := g.Close(bg)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestG7AndG13NeitherAKeyNorARejectOwnsAGoroutine(t *testing.T) {
	const keys = 5_000
	e, err := engine.New(engine.Config{Logger: actortest.Logger(t)})
	require.NoError(t, err)
	g, err := New(Deps{Engine: e}, Config{Name: "still", Delay: time.Hour, MaxItems: keys, OnFull: Reject}, batch.Sum[int]{},
		func(context.Context, *Batch[int, int]) error { return nil })
	require.NoError(t, err)
	for k := range keys {
		require.NoError(t, g.Add(bg, k, 1))
	}
	for k := range keys {
		require.ErrorIs(t, g.Add(bg, -k, 1), ErrFull)
	}
	goleak.VerifyNone(t) // gathering
	require.NoError(t, g.Flush(bg))
	goleak.VerifyNone(t) // idle
	left, err := g.Close(bg)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, e.Stop(bg))
}

func TestG8ASlowKeyDelaysNobody(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Workers: 2}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Key == "slow" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		w.add("slow", 0)
		for i := range 1_000 {
			w.add(fmt.Sprint("key", i), i)
		}
		pass(time.Second)
		require.Len(t, w.seen(), 1_001)
		for _, c := range w.seen() {
			require.Equal(t, time.Second, c.At)
		}
		w.close()
	})
}

func TestG9MoreHungKeysThanWorkers(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Workers: 2, Timeout: 10 * time.Second, Attempts: 1}, func(ctx context.Context, b *Batch[string, []int]) error {
			if b.Key == "good" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		for i := range 6 {
			w.add(fmt.Sprint("hung", i), i)
		}
		pass(2 * time.Second)
		w.add("good", 1)
		pass(2 * time.Second)
		w.add("good", 2) // merges while the key waits for a worker
		s := w.Stats()
		require.Equal(t, 2, s.Running)
		require.Equal(t, 5, s.Waiting)
		pass(time.Minute)
		var good []call
		for _, c := range w.seen() {
			if c.Key == "good" {
				good = append(good, c)
			}
		}
		require.Equal(t, []call{{"good", []int{1, 2}, 1, batch.Time, 31 * time.Second}}, good)
		require.Len(t, w.letters(), 6)
		w.close()
	})
}

func TestG16AMergeDuringARunIsNotVisibleInTheBatch(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		var sum atomic.Int64
		w := newWorld(t, e, Config{BatchItems: 100}, func(_ context.Context, b *Batch[string, []int]) error {
			time.Sleep(10 * time.Millisecond)
			for _, v := range b.Value {
				sum.Add(int64(v))
			}
			return nil
		})
		for v := 1; v <= 1_000; v++ {
			w.add("a", v)
			pass(time.Millisecond)
		}
		w.close()
		require.EqualValues(t, 500_500, sum.Load())
	})
}

func TestG17ASteadyTrickleStillFlushes(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, nil)
		for v := range 100 {
			w.add("a", v)
			pass(100 * time.Millisecond)
		}
		require.Len(t, w.seen(), 10)
		w.close()
	})
}
