package keygroup

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

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
			require.Contains(t, string(p.Stack), "failure_test.go")
			require.Contains(t, d.Err.Error(), "failure_test.go")
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

func TestAStoreThatIsUnavailableSpendsNoAttempt(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		var down atomic.Bool
		down.Store(true)
		w := newWorld(t, e, Config{Attempts: 2, Backoff: backoff.Policy{Max: time.Minute}}, func(context.Context, *Batch[string, []int]) error {
			if down.Load() {
				return fmt.Errorf("%w: the disk is full", claim.ErrUnavailable)
			}
			return nil
		})
		w.add("a", 1)
		pass(time.Hour)
		require.Empty(t, w.letters())
		w.add("a", 2)
		down.Store(false)
		pass(2 * time.Minute)
		calls := w.seen()
		require.Equal(t, []int{1, 2}, calls[len(calls)-1].Value, "nothing is lost, and the order is kept")
		w.close()
	})
}
