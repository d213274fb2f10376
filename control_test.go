package quarterjack_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor" //nolint:depguard // a runtime joins its user's own actor system
	"github.com/stretchr/testify/require"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/internal/actortest"
)

func TestDo(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		release := make(chan struct{})
		first := make(chan error, 1)
		go func() {
			_, err := s.rt.Do(context.Background(), "k", func(_ context.Context, r *qj.Run) error {
				<-release
				r.Result = []byte("42")
				return nil
			})
			first <- err
		}()
		synctest.Wait()
		time.Sleep(5 * time.Minute) // far longer than a lease: the heartbeat keeps it
		_, err := s.rt.Do(t.Context(), "k", nil)
		require.ErrorIs(t, err, qj.ErrInFlight)
		close(release)
		require.NoError(t, <-first)
		out, err := s.rt.Do(t.Context(), "k", nil)
		require.NoError(t, err)
		require.False(t, out.First)
		require.Equal(t, "42", string(out.Result))

		no := errors.New("no")
		_, err = s.rt.Do(t.Context(), "fails", func(context.Context, *qj.Run) error { return no })
		require.ErrorIs(t, err, no)
		out, err = s.rt.Do(t.Context(), "fails", func(context.Context, *qj.Run) error { return nil })
		require.NoError(t, err)
		require.EqualValues(t, 2, out.Fence)

		require.Panics(t, func() {
			_, _ = s.rt.Do(t.Context(), "panics", func(context.Context, *qj.Run) error { panic("oh") })
		})
		out, err = s.rt.Do(t.Context(), "panics", func(context.Context, *qj.Run) error { return nil })
		require.NoError(t, err)
		require.Equal(t, 2, out.Attempt)
	})
}

func TestSubmitSurvivesAndWaitsForItsJob(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		_, err := s.rt.Submit(t.Context(), "mail", "m1", []byte("one")) // before Start, and nobody handles it yet
		require.NoError(t, err)
		s.start()
		_, err = s.rt.Submit(t.Context(), "mail", "m2", []byte("two"))
		require.NoError(t, err)
		_, err = s.rt.Submit(t.Context(), "mail", "m2", []byte("other"))
		require.ErrorIs(t, err, qj.ErrKeyConflict)
		time.Sleep(time.Minute)
		s.reopen()
		s.start()
		time.Sleep(time.Minute)
		s.handle("mail", time.Second, nil)
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"done": 2}, s.states())
		out, err := s.rt.Submit(t.Context(), "mail", "m1", []byte("one"))
		require.NoError(t, err)
		require.False(t, out.First)
		require.Equal(t, "done", out.Verdict)
	})
}

func TestPauseResumeAndHealth(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", 0, nil)
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(10 * time.Second), Misfire: qj.NextExisting, Threshold: 5 * time.Second},
			qj.Trigger{ID: "orphan", Job: "nobody", Schedule: qj.Every(10 * time.Second)})
		require.ErrorIs(t, s.rt.Pause(t.Context(), "a", ""), qj.ErrNotStarted)
		s.start()
		require.ErrorIs(t, s.rt.Start(t.Context()), qj.ErrStarted)
		require.ErrorIs(t, s.rt.Pause(t.Context(), "none", ""), qj.ErrNotFound)
		time.Sleep(5 * time.Second)
		require.NoError(t, s.rt.Pause(t.Context(), "a", "migration"))
		time.Sleep(30 * time.Second)
		i, err := s.rt.Describe(t.Context(), "a")
		require.NoError(t, err)
		require.True(t, i.Paused)
		require.Equal(t, "migration", i.Note)
		require.NoError(t, s.rt.Resume(t.Context(), "a"))
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"a 0s", "a 40s"}, s.ran())

		h, err := s.rt.Health(t.Context())
		require.NoError(t, err)
		require.True(t, h.Started)
		require.Equal(t, 2, h.Triggers)
		require.Contains(t, h.Parked, "trigger/orphan")
		require.False(t, h.OK())
	})
}

func TestBadInputNamesWhatIsAllowed(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		good := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(time.Second)}
		for want, change := range map[string]func(*qj.Trigger){
			"ID is empty":             func(t *qj.Trigger) { t.ID = "" },
			"Job is empty":            func(t *qj.Trigger) { t.Job = "" },
			"control":                 func(t *qj.Trigger) { t.ID = "a\nb" },
			"period is 0s":            func(t *qj.Trigger) { t.Schedule = qj.Every(0) },
			"period is -1s":           func(t *qj.Trigger) { t.Schedule = qj.Delay(-time.Second) },
			"period is 1ns":           func(t *qj.Trigger) { t.Schedule = qj.Every(1) },
			"at is the zero time":     func(t *qj.Trigger) { t.Schedule = qj.Once(time.Time{}) },
			"come with the next":      func(t *qj.Trigger) { t.Schedule = qj.Cron("0 0 3 * * ?", "Europe/Berlin") },
			"Misfire is 99":           func(t *qj.Trigger) { t.Misfire = 99 },
			"Overlap is 99":           func(t *qj.Trigger) { t.Overlap = 99 },
			"Threshold is -1s":        func(t *qj.Trigger) { t.Threshold = -time.Second },
			"Attempts is -1":          func(t *qj.Trigger) { t.Attempts = -1 },
			"Limit is 3":              func(t *qj.Trigger) { t.Limit = 3 },
			"count is 0, want":        func(t *qj.Trigger) { t.Schedule = qj.Every(time.Second).Times(0) },
			"Data is 1048577 bytes":   func(t *qj.Trigger) { t.Data = make([]byte, qj.MaxData+1) },
			"Backoff":                 func(t *qj.Trigger) { t.Backoff.Factor = -1 },
			"want it after the start": func(t *qj.Trigger) { t.Schedule = qj.Every(time.Second).From(s.begun).Until(s.begun) },
		} {
			bad := good
			change(&bad)
			err := s.rt.Declare(t.Context(), "test", bad)
			require.ErrorIs(t, err, qj.ErrConfig, want)
			require.ErrorContains(t, err, want)
		}
		_, err := qj.Open(t.Context(), qj.Config{Workers: -1})
		require.ErrorIs(t, err, qj.ErrConfig)
		require.ErrorIs(t, s.rt.Handle("job", nil), qj.ErrConfig)
		s.handle("job", 0, nil)
		require.ErrorIs(t, s.rt.Handle("job", func(context.Context, *qj.Run) error { return nil }), qj.ErrExists)
		_, err = s.rt.Do(t.Context(), "", nil)
		require.ErrorIs(t, err, qj.ErrBadKey)
		_, err = s.rt.Do(t.Context(), "\xff", nil)
		require.ErrorIs(t, err, qj.ErrBadKey)
		_, err = s.rt.Submit(t.Context(), "job", string(make([]byte, 10_000)), nil)
		require.ErrorIs(t, err, qj.ErrBadKey)
	})
}

func TestGroupsBelongToTheRuntime(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		got := make(chan int64, 10)
		sum, err := qj.NewSum(s.rt, "g", qj.GroupConfig{Delay: time.Hour}, func(ctx context.Context, b *qj.Batch[string, int64]) error {
			return memory.Commit(ctx, b, func(context.Context) error {
				got <- b.Value
				return nil
			})
		})
		require.NoError(t, err)
		_, err = qj.NewLast(s.rt, "g", qj.GroupConfig{}, func(context.Context, *qj.Batch[string, int]) error { return nil })
		require.ErrorIs(t, err, qj.ErrExists)
		for range 10 {
			require.NoError(t, sum.Add(t.Context(), "k", 2))
		}
		require.NoError(t, s.rt.Close(t.Context()))
		require.EqualValues(t, 20, <-got, "Close hands over what is gathered")
		require.ErrorIs(t, sum.Add(t.Context(), "k", 1), qj.ErrGroupClosed)
	})
}

func TestSeveralRuntimesInOneSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second)
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return actortest.Logger(t) }))
		var ran atomic.Int32
		var all []*qj.Runtime
		for range 3 {
			rt, err := qj.Open(t.Context(), qj.Config{System: system, Logger: actortest.Logger(t)})
			require.NoError(t, err)
			require.NoError(t, rt.Handle("job", func(context.Context, *qj.Run) error { ran.Add(1); return nil }))
			require.NoError(t, rt.Schedule(t.Context(), qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(time.Now())}))
			require.NoError(t, rt.Start(t.Context()))
			all = append(all, rt)
		}
		time.Sleep(time.Second)
		for _, rt := range all {
			require.NoError(t, rt.Close(t.Context()))
		}
		require.EqualValues(t, 3, ran.Load())
		require.False(t, system.IsStopped(), "the system is its owner's")
	})
}

// runtimeGoexit is in a function of its own, so that the compiler does not see that what follows is unreachable.
func runtimeGoexit() { runtime.Goexit() }
