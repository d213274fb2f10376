package keygroup

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestG6CloseHandsAPartBatchOverAtOnce(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: time.Hour}, nil)
		w.add("a", 1, 2, 3)
		w.close()
		require.Equal(t, []call{{"a", []int{1, 2, 3}, 1, batch.Close, 0}}, w.seen())
		synctest.Wait()
		require.Zero(t, e.Len(), "every key has stopped")
	})
}

func TestG6CloseWithAnExpiredContextReturnsWhatWasNotHandled(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: time.Hour}, nil)
		w.add("a", 1, 2, 3)
		w.add("b", 4)
		left, err := w.Close(expired())
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "4 items of 2 keys left, and 0 handlers")
		require.Equal(t, map[string][]int{"a": {1, 2, 3}, "b": {4}}, left)
		require.Empty(t, w.seen())
		require.Zero(t, w.Keys())
		w.balanced()
	})
}

func TestCloseWithAnExpiredContextAndNothingLeftIsNoError(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, nil)
		w.add("a", 1)
		require.NoError(t, w.Flush(bg))
		left, err := w.Close(expired())
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestCloseWaitsForRetriesAsLongAsItsContextAllows(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: time.Hour}, func(_ context.Context, b *Batch[string, []int]) error {
			if b.Attempt < 3 {
				return errBoom
			}
			return nil
		})
		w.add("a", 1)
		w.close()
		require.Equal(t, 3*time.Second, time.Since(w.began))
	})
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Delay: time.Hour}, func(context.Context, *Batch[string, []int]) error { return errBoom })
		w.add("a", 1)
		left, err := w.Close(within(t, 2*time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, map[string][]int{"a": {1}}, left, "what is backing off is given back")
		require.Empty(t, w.letters())
		w.balanced()
	})
}

func TestCloseCancelsHandlersWhenItsContextIsOver(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Attempts: 1}, func(ctx context.Context, b *Batch[string, []int]) error {
			<-ctx.Done()
			if b.Key == "finishes" {
				return nil
			}
			return context.Cause(ctx)
		})
		w.add("finishes", 1)
		w.add("fails", 2)
		pass(1500 * time.Millisecond)
		w.add("finishes", 3)
		w.add("fails", 4)
		left, err := w.Close(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2500*time.Millisecond, time.Since(w.began), "handlers that obey are not waited for any longer")
		require.Equal(t, map[string][]int{"finishes": {3}, "fails": {2, 4}}, left, "cut short is no attempt used up")
		w.balanced()
		require.Zero(t, w.Keys())
	})
}

func TestCloseDoesNotWaitForHandlersThatAreDeaf(t *testing.T) {
	for name, fails := range map[string]bool{"and succeed": false, "and fail": true} {
		t.Run(name, func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
				release := make(chan struct{})
				w := newWorld(t, e, Config{Grace: 5 * time.Second, Timeout: time.Hour}, func(context.Context, *Batch[string, []int]) error {
					<-release
					if fails {
						return errBoom
					}
					return nil
				})
				w.add("a", 1)
				pass(time.Second)
				w.add("a", 2)
				left, err := w.Close(within(t, time.Second))
				require.ErrorContains(t, err, "1 handlers that did not return")
				require.Equal(t, 7*time.Second, time.Since(w.began))
				require.Equal(t, map[string][]int{"a": {2}}, left)
				require.Equal(t, 1, w.Pending())

				close(release)
				synctest.Wait()
				if fails {
					require.Equal(t, []int{1}, w.letters()[0].Value)
					require.ErrorIs(t, w.letters()[0].Err, ErrClosed)
				} else {
					require.Empty(t, w.letters())
				}
				w.balanced()
				require.Zero(t, w.Keys())
			})
		})
	}
}

func TestCloseDoesNotWaitForAnOnDeadThatHangs(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		release := make(chan struct{})
		w := newWorld(t, e, Config{Attempts: 1, OnDead: func(DeadLetter) { <-release }},
			func(context.Context, *Batch[string, []int]) error { return errBoom })
		w.add("a", 1)
		pass(time.Second)
		left, err := w.Close(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, left)
		require.Equal(t, 3*time.Second, time.Since(w.began))
		close(release)
		synctest.Wait()
		w.balanced()
		require.Zero(t, w.Keys())
	})
}

func TestCloseMayBeCalledAgain(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, func(context.Context, *Batch[string, []int]) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		w.add("a", 1)
		second := make(chan error, 1)
		go func() {
			time.Sleep(time.Second)
			_, err := w.Close(bg)
			second <- err
		}()
		go func() {
			time.Sleep(time.Second)
			_, err := w.Close(expired())
			second <- err
		}()
		w.close()
		require.ErrorIs(t, <-second, context.Canceled)
		require.NoError(t, <-second)
		w.close()
	})
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, nil)
		w.add("a", 1)
		left, err := w.Close(expired())
		again, errAgain := w.Close(bg)
		require.Equal(t, left, again)
		require.Equal(t, err, errAgain)
	})
}

func TestAfterCloseNothingIsTaken(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, nil)
		w.add("old", 1)
		w.close()
		require.ErrorIs(t, w.Add(bg, "old", 1), ErrClosed)
		require.ErrorIs(t, w.AddMany(bg, "new", seq(1, 3)), ErrClosed)
		require.ErrorIs(t, w.Flush(bg), ErrClosed)
		require.ErrorIs(t, w.FlushKey(bg, "old"), ErrClosed)
		require.Zero(t, w.Pending())
	})
}

func TestCloseWakesBlockedAdds(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{MaxItems: 1, Delay: time.Hour}, func(context.Context, *Batch[string, []int]) error {
			time.Sleep(time.Hour)
			return nil
		})
		w.add("a", 1)
		blocked := make(chan error, 1)
		go func() { blocked <- w.Add(bg, "b", 2) }()
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_, _ = w.Close(bg)
		}()
		require.ErrorIs(t, <-blocked, ErrClosed)
		require.Zero(t, time.Since(w.began))
		<-closed
		w.balanced()
	})
}

func TestAddsAfterTheEngineHasStoppedAreErrClosed(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, nil)
		require.NoError(t, e.Stop(bg))
		err := w.Add(bg, "a", 1)
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, err, engine.ErrStopped)
		require.Zero(t, w.Pending())
		require.Zero(t, w.Keys())
	})
}

func TestAKeyThatIsStoppedFromOutsideLosesNothingSilently(t *testing.T) {
	for name, fails := range map[string]bool{"its handler succeeds": false, "its handler fails": true} {
		t.Run(name, func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
				w := newWorld(t, e, Config{Timeout: time.Hour}, func(context.Context, *Batch[string, []int]) error {
					time.Sleep(10 * time.Second)
					if fails {
						return errBoom
					}
					return nil
				})
				w.add("a", 1)
				pass(2 * time.Second)
				w.add("a", 2)
				flushed := make(chan error, 1)
				go func() { flushed <- w.Flush(bg) }()
				synctest.Wait()
				w.stop("a")
				require.ErrorIs(t, <-flushed, ErrStopped)
				synctest.Wait()
				require.Equal(t, []int{2}, w.letters()[0].Value)
				require.ErrorIs(t, w.letters()[0].Err, ErrStopped)

				err := w.Add(bg, "a", 3)
				require.ErrorIs(t, err, ErrStopped, "another actor could run a batch beside the handler")
				require.ErrorContains(t, err, "its handler has not returned")
				require.ErrorIs(t, w.FlushKey(bg, "a"), ErrStopped, "one batch is not through")
				require.Equal(t, 1, w.Keys())
				require.Equal(t, 1, w.Pending())
				pass(time.Minute)
				require.Zero(t, w.Keys())
				w.add("a", 3) // another actor
				require.Equal(t, 1, w.Keys())
				if fails {
					require.Equal(t, []int{1}, w.letters()[1].Value)
					require.ErrorIs(t, w.letters()[1].Err, ErrStopped)
					require.ErrorIs(t, w.letters()[1].Err, errBoom)
				} else {
					require.Len(t, w.letters(), 1)
				}
				w.close()
				require.Equal(t, []int{3}, w.seen()[1].Value)
			})
		})
	}
}

func TestAGroupClosesWithAHandlerWhoseKeyWasStoppedFromOutside(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{}, func(context.Context, *Batch[string, []int]) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		w.add("a", 1)
		pass(2 * time.Second)
		w.stop("a")
		synctest.Wait()
		require.Equal(t, 1, w.Keys())
		w.close()
		require.Equal(t, 11*time.Second, time.Since(w.began), "it waits for the handler")
	})
}

func TestAKeyThatIsStoppedWhileItWaitsForAWorkerGivesItBack(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w := newWorld(t, e, Config{Workers: 1}, func(context.Context, *Batch[string, []int]) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		w.add("first", 1)
		pass(1500 * time.Millisecond)
		w.add("second", 2)
		pass(1500 * time.Millisecond)
		require.Equal(t, 1, w.Stats().Waiting)
		w.stop("second")
		pass(time.Minute)
		require.Zero(t, w.Stats().Running)
		w.add("third", 3)
		w.close()
		require.Len(t, w.letters(), 1)
	})
}
