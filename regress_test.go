package quarterjack_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/internal/actortest"
)

// Each of these was found by somebody who tried to break the runtime.

func TestATriggerThatComesBackRuns(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", 0, nil)
		s.start()
		every := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(time.Second)}
		for range 50 {
			s.declare(every)
			_, err := s.rt.FireNow(t.Context(), "a", "r", nil)
			require.NoError(t, err)
			s.declare()
		}
		s.declare(every)
		before := len(s.ran())
		time.Sleep(10 * time.Second)
		require.GreaterOrEqual(t, len(s.ran())-before, 10)
		require.NoError(t, s.rt.Pause(t.Context(), "a", ""))
	})
}

func TestARenamedJobLeavesItsWorkWaiting(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("old", 0, func(*qj.Run) error { return qj.Retry(time.Hour, errors.New("no")) })
		a := qj.Trigger{ID: "a", Job: "old", Schedule: qj.Every(10 * time.Second)}
		s.declare(a)
		s.start()
		time.Sleep(time.Second)
		s.reopen()
		s.handle("new", 0, nil)
		a.Job = "new"
		s.declare(a)
		s.start()
		time.Sleep(2 * time.Hour)
		require.Equal(t, 1, s.states()["pending"], "nobody can do it, and it is not tried in a loop")
		require.Greater(t, s.states()["done"], 700)
	})
}

func TestEditingDoesNotRunAgain(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", 0, nil)
		once := qj.Trigger{ID: "once", Job: "job", Schedule: qj.Once(s.begun.Add(time.Minute))}
		grid := qj.Trigger{ID: "grid", Job: "job", Schedule: qj.Every(time.Hour)}
		s.declare(once, grid)
		s.start()
		time.Sleep(90 * time.Minute)
		once.Timeout, grid.Timeout = time.Minute, time.Minute
		s.declare(once, grid)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"grid 0s", "once 1m0s", "grid 1h0m0s", "grid 2h0m0s"}, s.ran())
	})
}

func TestTheSameRequestAgainTellsHowItStands(t *testing.T) {
	play(t, func(t *testing.T, _ *scene) {
		rt, err := qj.Open(t.Context(), qj.Config{Workers: 1, Logger: actortest.Logger(t)})
		require.NoError(t, err)
		block := make(chan struct{})
		require.NoError(t, rt.Handle("slow", func(context.Context, *qj.Run) error { <-block; return nil }))
		require.NoError(t, rt.Handle("job", func(context.Context, *qj.Run) error { return nil }))
		require.NoError(t, rt.Schedule(t.Context(), qj.Trigger{ID: "slow", Job: "slow"}))
		require.NoError(t, rt.Schedule(t.Context(), qj.Trigger{ID: "b", Job: "job"}))
		require.NoError(t, rt.Start(t.Context()))
		_, err = rt.FireNow(t.Context(), "slow", "r", nil)
		require.NoError(t, err)
		for i := range 3 {
			out, err := rt.FireNow(t.Context(), "b", "r", nil)
			require.NoError(t, err)
			require.Equal(t, i == 0, out.First)
			require.Equal(t, "pending", out.Verdict)
		}
		firsts := make(chan bool, 5)
		for range cap(firsts) {
			go func() {
				out, _ := rt.Submit(context.Background(), "job", "k", nil)
				firsts <- out.First
			}()
		}
		first := 0
		for range cap(firsts) {
			if <-firsts {
				first++
			}
		}
		require.Equal(t, 1, first)
		close(block)
		time.Sleep(time.Second)
		out, err := rt.FireNow(t.Context(), "b", "r", nil)
		require.NoError(t, err)
		require.Equal(t, "done", out.Verdict)
		require.NoError(t, rt.Close(t.Context()))
	})
}

func TestCloseStopsTriggersBeforeGroups(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		sum, err := qj.NewSum(s.rt, "g", qj.GroupConfig{}, func(context.Context, *qj.Batch[string, int64]) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		require.NoError(t, err)
		s.handle("job", 0, func(*qj.Run) error { return sum.Add(t.Context(), "k", 1) })
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(10 * time.Millisecond)})
		s.start()
		time.Sleep(3005 * time.Millisecond)
		before := len(s.ran())
		require.NoError(t, s.rt.Close(t.Context()))
		require.Len(t, s.ran(), before, "nothing is started any more")
		require.Zero(t, s.states()["pending"])
		require.Zero(t, sum.Pending())
	})
}

func TestCloseFromAGroupsHandler(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		var handled int64
		closed := make(chan error, 1)
		sum, err := qj.NewSum(s.rt, "g", qj.GroupConfig{Delay: time.Second}, func(ctx context.Context, b *qj.Batch[string, int64]) error {
			if b.Key == "quit" {
				closed <- s.rt.Close(ctx)
			} else {
				handled += b.Value
			}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, sum.Add(t.Context(), "quit", 1))
		time.Sleep(900 * time.Millisecond)
		for range 50 {
			require.NoError(t, sum.Add(t.Context(), "other", 1))
		}
		require.NoError(t, <-closed)
		require.NoError(t, s.rt.Close(t.Context()))
		require.EqualValues(t, 50, handled, "what was accepted is handled")
	})
}

func TestAnErrorThatPanicsIsAFailure(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", 0, func(*qj.Run) error {
			var none *fs.PathError
			return none // not a nil error, and none that can be read
		})
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(s.begun), Attempts: 2})
		s.start()
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"dead": 1}, s.states())
		_, err := s.rt.Do(t.Context(), "k", func(context.Context, *qj.Run) error {
			var none *fs.PathError
			return none
		})
		require.Error(t, err)
		_, err = s.rt.Do(t.Context(), "k", func(context.Context, *qj.Run) error { return nil })
		require.NoError(t, err, "the key is free again")
	})
}

func TestDeclareAmongBusyTriggers(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", 0, nil)
		many := make([]qj.Trigger, 200)
		for i := range many {
			many[i] = qj.Trigger{ID: fmt.Sprint(i), Job: "job", Schedule: qj.Every(time.Millisecond)}
		}
		s.declare(many...)
		s.start()
		for round := range 5 {
			time.Sleep(10 * time.Millisecond)
			for i := range many {
				many[i].Timeout = time.Duration(round+1) * time.Minute
			}
			s.declare(many...)
		}
		i, err := s.rt.Describe(t.Context(), many[7].ID)
		require.NoError(t, err)
		require.EqualValues(t, 6, i.Version)
		before := len(s.ran())
		time.Sleep(10 * time.Millisecond)
		require.Greater(t, len(s.ran()), before, "they run on")
	})
}

func TestADroppedKeyIsDeadForTheNextCaller(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		never := errors.New("never")
		_, err := s.rt.Do(t.Context(), "k", func(context.Context, *qj.Run) error { return qj.Drop(never) })
		require.ErrorIs(t, err, never)
		_, err = s.rt.Do(t.Context(), "k", func(context.Context, *qj.Run) error { return nil })
		require.ErrorIs(t, err, qj.ErrDead)
		require.ErrorContains(t, err, "never")
	})
}

func TestTheSecondCloseNeedNotWaitAsLong(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", time.Hour, nil)
		require.NoError(t, s.rt.Handle("quit", func(ctx context.Context, _ *qj.Run) error { return s.rt.Close(ctx) }))
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(s.begun)}, qj.Trigger{ID: "quit", Job: "quit", Schedule: qj.Once(s.begun.Add(time.Second))})
		s.start()
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, s.rt.Close(ctx), context.DeadlineExceeded)
		synctest.Wait()
		require.NoError(t, s.rt.Close(t.Context()))
		require.Less(t, time.Since(s.begun), 10*time.Second, "the runs are cancelled when the first caller's time is over")
		require.Equal(t, 1, s.states()["pending"])
	})
}

// failing is a store that cannot be reached for a while.
type failing struct {
	*memory.Store
	down chan bool
	now  bool
}

func (f *failing) Apply(ctx context.Context, now claim.Hand, reqs []claim.Request) ([]claim.Outcome, error) {
	select {
	case f.now = <-f.down:
	default:
	}
	if f.now {
		return nil, claim.ErrUnavailable
	}
	return f.Store.Apply(ctx, now, reqs)
}

func TestADoWhoseEndCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second)
		store := &failing{Store: memory.New(), down: make(chan bool, 1)}
		rt, err := qj.Open(t.Context(), qj.Config{Store: store, Logger: actortest.Logger(t)})
		require.NoError(t, err)
		ok := func(context.Context, *qj.Run) error { return nil }
		_, err = rt.Do(t.Context(), "k", func(context.Context, *qj.Run) error { store.down <- true; return nil })
		require.ErrorIs(t, err, qj.ErrUnavailable)
		time.Sleep(5 * time.Minute)
		_, err = rt.Do(t.Context(), "k", ok)
		require.ErrorIs(t, err, qj.ErrInFlight, "nobody else does it meanwhile")
		store.down <- false
		time.Sleep(time.Minute)
		out, err := rt.Do(t.Context(), "k", ok)
		require.NoError(t, err)
		require.False(t, out.First, "it is recorded as soon as it can be")
		require.NoError(t, rt.Close(t.Context()))
	})
}

// TestIgnoreMakesUpForMissedSlotsAndKeepsTheGrid is what the README's nightly job relies on.
func TestIgnoreMakesUpForMissedSlotsAndKeepsTheGrid(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		nightly := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(24 * time.Hour).From(s.begun.Add(3 * time.Hour)), Misfire: qj.Ignore}
		s.handle("job", time.Minute, nil)
		s.declare(nightly)
		s.start()
		time.Sleep(4 * time.Hour)
		s.reopen()
		time.Sleep(50 * time.Hour) // down over two nights
		s.handle("job", time.Minute, nil)
		s.declare(nightly)
		s.start()
		time.Sleep(24 * time.Hour)
		require.Equal(t, []string{"a 3h0m0s", "a 54h0m0s", "a 54h1m0s", "a 75h0m0s"}, s.ran())
	})
}
