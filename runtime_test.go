package quarterjack_test

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
	"go.uber.org/goleak"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestArrows(t *testing.T) {
	const values = "the root links no driver: stores are values that the user passes in"
	deptest.Deps(t, ".", map[string]string{
		"modernc.org/sqlite":     values,
		"github.com/jackc/pgx":   values,
		"google.golang.org/grpc": "the root speaks no wire",
	})
}

// scene is a runtime in virtual time, on a memory store that outlives it.
type scene struct {
	t     *testing.T
	store *memory.Store
	rt    *qj.Runtime
	begun time.Time

	mu   sync.Mutex
	runs []qj.Run
}

func play(t *testing.T, body func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, store: memory.New(), begun: time.Now().Round(0).UTC()}
		defer time.Sleep(3 * time.Second) // what proto.actor does behind a dead letter ends
		s.open()
		defer func() { _ = s.rt.Close(context.Background()) }() // where a test has closed it, it has looked at what came of it
		body(t, s)
	})
}

func (s *scene) open() {
	s.t.Helper()
	var err error
	s.rt, err = qj.Open(s.t.Context(), qj.Config{Store: s.store, Logger: actortest.Logger(s.t)})
	require.NoError(s.t, err)
}

// reopen plays a restart of the process.
func (s *scene) reopen() {
	s.t.Helper()
	require.NoError(s.t, s.rt.Close(s.t.Context()))
	s.open()
}

// handle registers a job that takes so long and ends with what end says.
func (s *scene) handle(job string, takes time.Duration, end func(r *qj.Run) error, mode ...qj.Mode) {
	s.t.Helper()
	require.NoError(s.t, s.rt.Handle(job, func(ctx context.Context, r *qj.Run) error {
		s.mu.Lock()
		s.runs = append(s.runs, qj.Run{Trigger: r.Trigger, Key: r.Key, Kind: r.Kind, Slot: r.Slot, FiredAt: r.FiredAt, Attempt: r.Attempt,
			Fence: r.Fence, Missed: r.Missed, Data: r.Data})
		s.mu.Unlock()
		// A context's timer, not a channel's: under -race the runtime of Go 1.26 may crash on those in a bubble.
		work, cancel := context.WithTimeout(ctx, takes)
		defer cancel()
		if <-work.Done(); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if end != nil {
			return end(r)
		}
		return nil
	}, mode...))
}

func (s *scene) ran() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		out = append(out, fmt.Sprintf("%s %v", r.Trigger, r.FiredAt.Sub(s.begun)))
	}
	return out
}

func (s *scene) states() map[string]int {
	s.t.Helper()
	list, err := s.store.Records(s.t.Context(), claim.Query{})
	if errors.Is(err, claim.ErrClosed) { // the runtime is closed: look at what it left
		_, err = s.store.Open(s.t.Context())
		require.NoError(s.t, err)
		defer func() { require.NoError(s.t, s.store.Close()) }()
		list, err = s.store.Records(s.t.Context(), claim.Query{})
	}
	require.NoError(s.t, err)
	out := map[string]int{}
	for _, r := range list {
		out[r.State.String()]++
	}
	return out
}

func (s *scene) declare(triggers ...qj.Trigger) {
	s.t.Helper()
	require.NoError(s.t, s.rt.Declare(s.t.Context(), "test", triggers...))
}

func (s *scene) start() { s.t.Helper(); require.NoError(s.t, s.rt.Start(s.t.Context())) }

func TestATriggersLife(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", time.Second, nil)
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(10 * time.Second)})
		time.Sleep(5 * time.Second)
		require.Empty(t, s.ran(), "nothing fires before Start")
		s.start()
		time.Sleep(25500 * time.Millisecond)
		require.Equal(t, []string{"a 5s", "a 10s", "a 20s", "a 30s"}, s.ran(), "the first slot was late by less than the threshold")
		i, err := s.rt.Describe(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, s.begun.Add(40*time.Second), i.Next)
		require.Equal(t, 1, i.Running)
		require.Equal(t, time.Minute, i.Threshold, "defaults are shown")
	})
}

func TestDeclareIsIdempotent(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(10 * time.Second)}
		b := qj.Trigger{ID: "b", Job: "job", Schedule: qj.Every(10 * time.Second)}
		s.handle("job", 0, nil)
		s.declare(a, b)
		s.declare(a, b)
		s.start()
		time.Sleep(15 * time.Second)
		s.declare(a, b)
		i, err := s.rt.Describe(t.Context(), "a")
		require.NoError(t, err)
		require.EqualValues(t, 1, i.Version)
		require.EqualValues(t, 2, i.Triggered)

		a.Schedule = qj.Every(7 * time.Second)
		s.declare(a) // a is changed, b is gone
		time.Sleep(10 * time.Second)
		i, err = s.rt.Describe(t.Context(), "a")
		require.NoError(t, err)
		require.EqualValues(t, 2, i.Version)
		require.Equal(t, []string{"a 15s", "a 22s"}, s.ran()[4:])
		_, err = s.rt.Describe(t.Context(), "b")
		require.ErrorIs(t, err, qj.ErrNotFound)

		s.declare(a, b) // b is back: a new incarnation
		i, err = s.rt.Describe(t.Context(), "b")
		require.NoError(t, err)
		require.EqualValues(t, 2, i.Incarnation)
		require.EqualValues(t, 1, i.Version)

		require.ErrorIs(t, s.rt.Declare(t.Context(), "another", a), qj.ErrExists)
		require.ErrorIs(t, s.rt.Declare(t.Context(), "test", a, a), qj.ErrConfig)
	})
}

func TestScheduleRefusesAnotherDefinition(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(10 * time.Second)}
		require.NoError(t, s.rt.Schedule(t.Context(), a))
		require.NoError(t, s.rt.Schedule(t.Context(), a))
		a.Attempts = 2
		require.ErrorIs(t, s.rt.Schedule(t.Context(), a), qj.ErrExists)
	})
}

func TestARestartKeepsTheGridAndRecovers(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		every := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Every(10 * time.Second), Misfire: qj.NextExisting, Threshold: 5 * time.Second}
		s.handle("job", 0, nil)
		s.declare(every)
		s.start()
		time.Sleep(15 * time.Second)
		s.reopen()
		time.Sleep(60 * time.Second)
		s.handle("job", 0, nil)
		s.declare(every)
		s.start()
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"a 0s", "a 10s", "a 1m20s"}, s.ran())
		ranges, err := s.store.Ranges(t.Context(), claim.Query{})
		require.NoError(t, err)
		require.Len(t, ranges, 1)
		require.EqualValues(t, 6, ranges[0].Count)
	})
}

func TestShutdownInterruptsAndSpendsNoAttempt(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		slow := qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(s.begun), Attempts: 1}
		for i := range 5 {
			s.handle("job", time.Hour, nil)
			s.declare(slow)
			s.start()
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := s.rt.Close(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, map[string]int{"pending": 1}, s.states(), "round %d", i)
			s.open()
		}
		s.handle("job", time.Second, nil)
		s.start()
		time.Sleep(2 * time.Second)
		require.Equal(t, map[string]int{"done": 1}, s.states())
		s.mu.Lock()
		defer s.mu.Unlock()
		last := s.runs[len(s.runs)-1]
		require.Equal(t, 1, last.Attempt)
		require.EqualValues(t, 11, last.Fence, "each claim and each release raises it")
	})
}

func TestCloseWaitsForRuns(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		s.handle("job", 20*time.Second, nil)
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(s.begun)})
		s.start()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.NoError(t, s.rt.Close(ctx))
		require.NoError(t, s.rt.Close(ctx), "twice is once")
		require.Equal(t, map[string]int{"done": 1}, s.states())
		require.ErrorIs(t, s.rt.Handle("x", func(context.Context, *qj.Run) error { return nil }), qj.ErrClosed)
		_, err := s.rt.Do(t.Context(), "k", nil)
		require.ErrorIs(t, err, qj.ErrClosed)
		require.ErrorIs(t, s.rt.Start(t.Context()), qj.ErrClosed)
	})
}

func TestCloseFromAHandler(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		closed := make(chan error, 1)
		require.NoError(t, s.rt.Handle("job", func(ctx context.Context, _ *qj.Run) error {
			closed <- s.rt.Close(ctx)
			return nil
		}))
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(s.begun)})
		s.start()
		require.NoError(t, <-closed)
		require.NoError(t, s.rt.Close(t.Context()))
		require.Equal(t, map[string]int{"done": 1}, s.states())
	})
}

func TestHandlersThatMisbehaveTouchNobodyElse(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		for job, h := range map[string]qj.Handler{
			"panics": func(context.Context, *qj.Run) error { panic("oh") },
			"goexit": func(context.Context, *qj.Run) error { runtimeGoexit(); return nil },
			"fails":  func(context.Context, *qj.Run) error { return errors.New("no") },
			"drops":  func(context.Context, *qj.Run) error { return qj.Drop(errors.New("never")) },
			"good":   func(context.Context, *qj.Run) error { return nil },
		} {
			require.NoError(t, s.rt.Handle(job, h))
			s.declareMore(job, qj.Trigger{ID: job, Job: job, Schedule: qj.Once(s.begun), Attempts: 2})
		}
		s.start()
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"dead": 4, "done": 1}, s.states())
		list, err := s.store.Records(t.Context(), claim.Query{})
		require.NoError(t, err)
		for _, r := range list {
			switch r.Key.Trigger {
			case "panics":
				require.Contains(t, r.Reason, "panic: oh")
				require.Contains(t, r.Reason, "runtime_test.go", "with its stack")
				require.EqualValues(t, 2, r.Attempt)
			case "drops":
				require.EqualValues(t, 1, r.Attempt)
				require.Equal(t, "never", r.Reason)
			}
		}
	})
}

func (s *scene) declareMore(owner string, triggers ...qj.Trigger) {
	s.t.Helper()
	require.NoError(s.t, s.rt.Declare(s.t.Context(), owner, triggers...))
}

func TestATxJobMustCommit(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		var effects atomic.Int32
		s.handle("forgets", 0, nil, qj.Tx)
		s.handle("commits", 0, func(r *qj.Run) error {
			return memory.Commit(t.Context(), r, func(context.Context) error {
				effects.Add(1)
				return nil
			})
		}, qj.Tx)
		s.declare(qj.Trigger{ID: "forgets", Job: "forgets", Schedule: qj.Once(s.begun), Attempts: 1},
			qj.Trigger{ID: "commits", Job: "commits", Schedule: qj.Every(10 * time.Second).Times(3)})
		s.start()
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"dead": 1, "done": 3}, s.states())
		require.EqualValues(t, 3, effects.Load())
		i, err := s.rt.Describe(t.Context(), "commits")
		require.NoError(t, err)
		require.Equal(t, qj.Tx, i.Mode)
	})
}

func TestTheLedgerIsRefusedInsideACommit(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		got := make(chan error, 3)
		require.NoError(t, s.rt.Handle("job", func(ctx context.Context, r *qj.Run) error {
			return memory.Commit(ctx, r, func(inner context.Context) error {
				_, err := s.rt.Do(inner, "k", nil)
				got <- err
				_, err = s.rt.Do(ctx, "k", nil) // the handler's own context is no way around it
				got <- err
				got <- memory.Commit(ctx, r, func(context.Context) error { return nil })
				return nil
			})
		}))
		s.declare(qj.Trigger{ID: "a", Job: "job", Schedule: qj.Once(s.begun)})
		s.start()
		for range 3 {
			require.ErrorIs(t, <-got, qj.ErrInTx)
		}
	})
}
