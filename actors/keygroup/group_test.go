package keygroup

import (
	"context"
	"fmt"
	"runtime"
	"sync"
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

func TestG3AHungHandlerIsTimedOutWithoutMoreAdds(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Timeout: 5 * time.Second, Attempts: 2}, func(ctx context.Context, b *Batch[string, []int]) error {
			if b.Attempt == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		w.add("a", 1)
		pass(time.Minute)
		require.Equal(t, []call{
			{"a", []int{1}, 1, batch.Time, time.Second},
			{"a", []int{1}, 2, batch.Retry, 7 * time.Second},
		}, w.seen())
		w.close()
	})
}

func TestATimeoutIsNamedInTheError(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Timeout: 5 * time.Second, Attempts: 1}, func(ctx context.Context, _ *Batch[string, []int]) error {
			<-ctx.Done()
			return errBoom
		})
		w.add("a", 1)
		pass(time.Minute)
		require.ErrorIs(t, w.letters()[0].Err, ErrTimeout)
		require.ErrorIs(t, w.letters()[0].Err, errBoom)
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

func TestG11AFailingHandlerBacksOff(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Attempt < 3 {
				return errBoom
			}
			return nil
		})
		w.add("a", 1)
		pass(1500 * time.Millisecond)
		w.add("a", 2)
		pass(time.Minute)
		require.Equal(t, []call{
			{"a", []int{1}, 1, batch.Time, 1 * time.Second},
			{"a", []int{1, 2}, 2, batch.Retry, 2 * time.Second},
			{"a", []int{1, 2}, 3, batch.Retry, 4 * time.Second},
		}, w.seen())
		w.close()
	})
}

func TestAttemptsAreBoundedAndEndInADeadLetter(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Attempts: 3}, func(context.Context, *Batch[string, []int]) error { return errBoom })
		w.add("a", 1, 2)
		pass(time.Minute)
		require.Len(t, w.seen(), 3)
		require.Len(t, w.letters(), 1)
		d := w.letters()[0]
		require.ErrorIs(t, d.Err, errBoom)
		require.Equal(t, []any{"test", "a", []int{1, 2}, 2, 3}, []any{d.Group, d.Key, d.Value, d.Items, d.Attempts})
		require.Zero(t, w.Pending())
		w.close()
	})
}

type later struct {
	error
	after time.Duration
}

func (l later) RetryAfter() time.Duration { return l.after }

type dropped struct{ error }

func (dropped) Drop() bool { return true }

func TestTheHandlersErrorDecides(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		again time.Duration // of the second attempt; 0: there is none
	}{
		"retry after 7 s":          {fmt.Errorf("wrapped: %w", later{errBoom, 7 * time.Second}), 8 * time.Second},
		"retry by the policy":      {later{errBoom, 0}, 2 * time.Second},
		"drop":                     {fmt.Errorf("wrapped: %w", dropped{errBoom}), 0},
		"drop wins over retry":     {later{dropped{errBoom}, time.Second}, 2 * time.Second},
		"any other, by the policy": {errBoom, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
				w := newWorld(t, e, Config{}, func(_ context.Context, b *Batch[string, []int]) error {
					if b.Attempt == 1 {
						return c.err
					}
					return nil
				})
				w.add("a", 1)
				pass(time.Minute)
				if c.again == 0 {
					require.Len(t, w.seen(), 1)
					require.Len(t, w.letters(), 1)
				} else {
					require.Equal(t, c.again, w.seen()[1].At)
				}
				w.close()
			})
		})
	}
}

func TestAHandlerThatPanicsOrEndsItsGoroutineTouchesNobodyElse(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Attempts: 2}, func(_ context.Context, b *Batch[string, []int]) error {
			switch b.Key {
			case "panics":
				panic("out of cheese")
			case "ends":
				runtime.Goexit()
			}
			return nil
		})
		w.add("panics", 1)
		w.add("ends", 2)
		w.add("good", 3)
		pass(time.Minute)
		require.Len(t, w.letters(), 2)
		for _, d := range w.letters() {
			var p *PanicError
			require.ErrorAs(t, d.Err, &p)
			require.Contains(t, string(p.Stack), "group_test.go")
			require.Contains(t, d.Err.Error(), "group_test.go")
			if d.Key == "ends" {
				require.ErrorIs(t, d.Err, ErrGoexit)
			} else {
				require.Equal(t, "out of cheese", p.Value)
			}
			require.Equal(t, 2, d.Attempts)
		}
		require.EqualValues(t, 1, w.Stats().Batches)
		w.close()
	})
}

func TestG13RejectedAddsLeaveNothingBehind(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{MaxItems: 10, OnFull: Reject}, nil)
		w.add("a", seq(1, 10)...)
		synctest.Wait()
		for i := range 100_000 {
			err := w.Add(bg, fmt.Sprint(i), i)
			if err != ErrFull {
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

func TestAPanicInMergeLosesThatItemOnly(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		for name, end := range map[string]func(){
			"panic":  func() { panic("no thirteen") },
			"goexit": func() { runtime.Goexit() },
		} {
			var letters []DeadLetter
			var got []int
			g, err := New(Deps{Engine: e, Logger: actortest.Logger(t)},
				Config{Name: name, OnDead: func(d DeadLetter) { letters = append(letters, d) }},
				superstitious{end: end},
				func(_ context.Context, b *Batch[string, []int]) error {
					got = b.Value
					return nil
				})
			require.NoError(t, err)
			require.NoError(t, g.AddMany(bg, "a", seq(11, 15)))
			pass(2 * time.Second)
			require.Equal(t, []int{11, 12, 14, 15}, got)
			require.Len(t, letters, 1)
			require.Equal(t, 13, letters[0].Value)
			require.ErrorContains(t, letters[0].Err, "panic: ")
			require.Zero(t, g.Pending())
			left, err := g.Close(bg)
			require.NoError(t, err)
			require.Empty(t, left)
		}
	})
}

// superstitious lists do not take a 13, nor let themselves be taken or restored with a 666.
type superstitious struct {
	batch.List[int]
	end func()
}

func (s superstitious) Merge(a []int, v int) []int {
	if v == 13 {
		s.end()
	}
	return s.List.Merge(a, v)
}

func (s superstitious) Take(a []int, limit int) (taken, rest []int) {
	s.check(a)
	return s.List.Take(a, limit)
}

func (s superstitious) Restore(taken, rest []int) []int {
	s.check(rest)
	return s.List.Restore(taken, rest)
}

func (s superstitious) check(a []int) {
	for _, v := range a {
		if v == 666 {
			s.end()
		}
	}
}

func TestAnAccumulatorThatCannotBeTakenOrRestoredIsADeadLetter(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("no 666") },
		"goexit": func() { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
				var mu sync.Mutex
				var letters []DeadLetter
				g, err := New(Deps{Engine: e, Logger: actortest.Logger(t)}, Config{Name: name, Workers: 1, OnDead: func(d DeadLetter) {
					mu.Lock()
					defer mu.Unlock()
					letters = append(letters, d)
				}}, superstitious{end: end}, func(_ context.Context, b *Batch[string, []int]) error {
					time.Sleep(time.Second)
					if b.Key == "restore" && b.Value[0] == 1 {
						return errBoom
					}
					return nil
				})
				require.NoError(t, err)
				require.NoError(t, g.AddMany(bg, "take", []int{1, 666}))
				pass(2 * time.Second)
				require.Len(t, letters, 1)
				require.Equal(t, []int{1, 666}, letters[0].Value)
				require.NoError(t, g.Add(bg, "take", 2), "the key goes on")
				require.NoError(t, g.Flush(bg))
				require.EqualValues(t, 1, g.Stats().Handled)

				require.NoError(t, g.Add(bg, "restore", 1))
				pass(1500 * time.Millisecond)
				require.NoError(t, g.AddMany(bg, "restore", []int{666, 3}))
				require.NoError(t, g.Flush(bg))
				require.Len(t, letters, 3)
				require.Equal(t, []int{1}, letters[1].Value, "the batch that failed")
				require.ErrorIs(t, letters[1].Err, errBoom)
				require.Equal(t, []int{666, 3}, letters[2].Value)
				require.Zero(t, g.Pending())
				left, err := g.Close(bg)
				require.NoError(t, err)
				require.Empty(t, left)
			})
		})
	}
}
