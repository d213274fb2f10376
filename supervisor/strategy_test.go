package supervisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/supervisor"
	"github.com/quarterjack/quarterjack/supervisor/restart"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exact is the default policy without jitter.
var exact = restart.Policy{Backoff: backoff.Policy{Jitter: backoff.NoJitter}}

// patient is an actor that fails on what it is told to fail on.
type patient struct {
	mu      *sync.Mutex
	starts  *[]time.Time
	handled *[]any
}

type (
	fail    struct{ reason any }
	failing struct{ times *int } // as often as it says
)

// Receive notes its starts and what it does not fail on.
func (p patient) Receive(_ *engine.Context, msg any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch msg := msg.(type) {
	case engine.Started:
		*p.starts = append(*p.starts, time.Now())
	case fail:
		panic(msg.reason)
	case failing:
		if *msg.times--; *msg.times >= 0 {
			panic("not yet")
		}
		*p.handled = append(*p.handled, msg)
	case string:
		*p.handled = append(*p.handled, msg)
	}
}

// bubble runs body in virtual time with a strategy and an engine under it. It returns what was logged.
func bubble(t *testing.T, cfg supervisor.Config, body func(t *testing.T, e *engine.Engine, s *supervisor.Strategy)) string {
	t.Helper()
	var out bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
	s, err := supervisor.New(cfg)
	require.NoError(t, err)
	actortest.With(t, engine.Config{Supervisor: s, Logger: cfg.Logger}, func(t *testing.T, e *engine.Engine) { body(t, e, s) })
	return out.String()
}

func spawn(t *testing.T, e *engine.Engine, name string) (*engine.Ref, patient) {
	t.Helper()
	p := patient{new(sync.Mutex), new([]time.Time), new([]any)}
	ref, err := e.Spawn(name, func() engine.Actor { return p })
	require.NoError(t, err)
	return ref, p
}

func TestActorThatAlwaysFailsIsParked(t *testing.T) {
	boom := errors.New("boom")
	var told []supervisor.Parked
	var restarts []supervisor.Restarted
	cfg := supervisor.Config{
		Policy:    exact,
		OnParked:  func(p supervisor.Parked) { told = append(told, p); panic("OnParked fails itself") },
		OnRestart: func(r supervisor.Restarted) { restarts = append(restarts, r); panic("OnRestart fails itself") },
	}
	logged := bubble(t, cfg, func(t *testing.T, e *engine.Engine, s *supervisor.Strategy) {
		sick, _ := spawn(t, e, "sick")
		well, neighbour := spawn(t, e, "well")
		start := time.Now()
		for range 20 {
			sick.Tell(fail{boom})
			well.Tell("are you well?")
		}
		<-sick.Done()
		synctest.Wait()
		require.Equal(t, 13*time.Minute+31*time.Second, time.Since(start))
		require.Len(t, *neighbour.handled, 20)
		require.Len(t, *neighbour.starts, 1, "neighbours notice nothing")
		require.Equal(t, 1, e.Len())

		require.Len(t, restarts, 10)
		for i, r := range restarts {
			require.Equal(t, uint64(i+1), r.Incarnation)
			require.Equal(t, min(time.Second<<i, 5*time.Minute), r.After)
			require.Equal(t, i%3 != 2, r.Redeliver, "each message is delivered three times")
		}
		parked := s.Parked()
		require.Equal(t, told, parked)
		require.Len(t, parked, 1)
		p := parked[0]
		require.Contains(t, string(p.Stack), "patient.Receive")
		p.Stack = nil
		require.Equal(t, supervisor.Parked{Name: "sick", Incarnation: 11, Reason: boom, Since: time.Now(), Restarts: 10,
			Why: "parked after 10 restarts within 1h0m0s: boom"}, p)

		require.False(t, s.Unpark("well"))
		require.True(t, s.Unpark("sick"))
		require.False(t, s.Unpark("sick"))
		require.Empty(t, s.Parked())

		again, anew := spawn(t, e, "sick")
		synctest.Wait()
		again.Tell(fail{boom})
		synctest.Wait()
		require.Equal(t, "restart 1 of 10 within 1h0m0s, in 1s with the same message again: boom", restarts[10].Why, "it begins anew")
		require.Len(t, *anew.starts, 1)
	})
	require.Contains(t, logged, `level=ERROR msg="supervisor: actor parked" actor=sick incarnation=11 why="parked after 10 restarts within 1h0m0s: boom" reason=boom stack="goroutine `)
	require.Contains(t, logged, `level=WARN msg="supervisor: actor failed, restarting" actor=sick incarnation=1 why="restart 1 of 10`)
	require.Contains(t, logged, `level=ERROR msg="supervisor: OnParked panicked" reason="OnParked fails itself"`)
	require.Contains(t, logged, `level=ERROR msg="supervisor: OnRestart panicked" reason="OnRestart fails itself"`)
}

func TestGoexitInACallbackParks(t *testing.T) {
	cfg := supervisor.Config{OnRestart: func(supervisor.Restarted) { runtime.Goexit() }}
	bubble(t, cfg, func(t *testing.T, e *engine.Engine, _ *supervisor.Strategy) {
		ref, _ := spawn(t, e, "a")
		ref.Tell(fail{"boom"})
		<-ref.Done()
		other, p := spawn(t, e, "b")
		other.Tell("still there?")
		synctest.Wait()
		require.Len(t, *p.handled, 1)
	})
}

func TestFaultThatPassesIsForgotten(t *testing.T) {
	bubble(t, supervisor.Config{Policy: exact}, func(t *testing.T, e *engine.Engine, s *supervisor.Strategy) {
		ref, p := spawn(t, e, "a")
		start := time.Now()
		times := 2
		ref.Tell(failing{&times})
		ref.Tell("next")
		time.Sleep(time.Hour)
		ref.Tell(fail{"later"})
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []any{failing{&times}, "next"}, *p.handled, "nothing is lost, and the order is kept")
		back := []time.Duration{0, time.Second, 3 * time.Second, time.Hour + time.Second, time.Hour + 3*time.Second, time.Hour + 7*time.Second}
		for i, at := range *p.starts {
			require.Equal(t, back[i], at.Sub(start))
		}
		require.Len(t, *p.starts, len(back), "the message of the hour is given up after three deliveries")
		require.Empty(t, s.Parked())
	})
}

func TestClockAndRandomnessAreTheCallers(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var restarts []supervisor.Restarted
	cfg := supervisor.Config{
		Policy:    restart.Policy{Backoff: backoff.Policy{Jitter: 1}},
		Now:       func() time.Time { return now },
		Rand:      func() uint64 { return 1 << 63 },
		OnRestart: func(r supervisor.Restarted) { restarts = append(restarts, r) },
	}
	bubble(t, cfg, func(t *testing.T, e *engine.Engine, _ *supervisor.Strategy) {
		ref, _ := spawn(t, e, "a")
		ref.Tell(fail{"boom"})
		synctest.Wait()
	})
	require.Equal(t, []supervisor.Restarted{{Name: "a", Incarnation: 1, Reason: "boom", At: now, After: 500 * time.Millisecond,
		Redeliver: true, Why: "restart 1 of 10 within 1h0m0s, in 500ms with the same message again: boom"}}, restarts)
}

func TestParkedActorsAreBounded(t *testing.T) {
	cfg := supervisor.Config{Policy: restart.Policy{MaxRestarts: restart.None}, MaxParked: 3}
	bubble(t, cfg, func(t *testing.T, e *engine.Engine, s *supervisor.Strategy) {
		park := func(name string) {
			ref, _ := spawn(t, e, name)
			ref.Tell(fail{"boom"})
			<-ref.Done()
		}
		names := func() string {
			var all []string
			for _, p := range s.Parked() {
				all = append(all, p.Name)
			}
			return fmt.Sprint(all)
		}
		for i := range 5 {
			park(fmt.Sprint(i))
		}
		require.Equal(t, "[2 3 4]", names())
		park("3")
		require.Equal(t, "[2 4 3]", names(), "one record a name, the latest")
		require.True(t, s.Unpark("4"))
		park("5")
		require.Equal(t, "[2 3 5]", names())
	})
}

func TestConfigIsChecked(t *testing.T) {
	_, err := supervisor.New(supervisor.Config{Policy: restart.Policy{Quiet: -1}})
	require.EqualError(t, err, "supervisor: Policy: restart: Quiet is -1ns, must be positive (0: 10m0s)")
	_, err = supervisor.New(supervisor.Config{MaxParked: -1})
	require.EqualError(t, err, "supervisor: MaxParked is -1, must be positive (0: 1000)")
	s, err := supervisor.New(supervisor.Config{})
	require.NoError(t, err)
	require.Empty(t, s.Parked())
}

// Actors fail, stop and are parked all at once, and nothing is kept of those that are gone.
func TestManyActorsAtOnce(t *testing.T) {
	s, err := supervisor.New(supervisor.Config{
		Policy: restart.Policy{MaxRestarts: 2, Backoff: backoff.Policy{Initial: time.Microsecond, Max: time.Microsecond}, Redeliver: restart.None},
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	e, err := engine.New(engine.Config{Supervisor: s, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	const actors = 500
	var all sync.WaitGroup
	for i := range actors {
		ref, _ := spawn(t, e, fmt.Sprint(i))
		all.Go(func() {
			for range i%5 + 1 {
				ref.Tell(fail{"boom"})
			}
			if i%5 < 2 { // the others are parked
				ref.Stop()
			}
			<-ref.Done()
		})
	}
	all.Wait()
	require.NoError(t, e.Stop(t.Context()))
	require.Zero(t, s.Remembered())
}
