package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		cfg  engine.Config
		want string
	}{
		{engine.Config{Workers: -1}, "engine: Workers is -1, must be positive (0: GOMAXPROCS)"},
		{engine.Config{Throughput: -1}, "engine: Throughput is -1, must be 1 to 1048576 (0: 256)"},
		{engine.Config{Throughput: 1<<20 + 1}, "engine: Throughput is 1048577, must be 1 to 1048576 (0: 256)"},
	} {
		_, err := engine.New(c.cfg)
		require.EqualError(t, err, c.want)
	}
}

func TestNames(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, _ := spawn(t, e, "billing/invoice")
		require.Equal(t, "billing/invoice", ref.Name())
		require.Equal(t, "billing/invoice", fmt.Sprint(ref))
		require.Regexp(t, `^qj-\w+/billing/invoice$`, ref.PID().Id)

		_, err := e.Spawn("billing/invoice", func() engine.Actor { return nil })
		require.ErrorIs(t, err, engine.ErrNameTaken)
		require.EqualError(t, err, `engine: name is taken: "billing/invoice"`)
		require.Equal(t, 1, e.Len())

		ref.Stop()
		<-ref.Done()
		<-ref.Done()
		heir, heard := spawn(t, e, "billing/invoice")
		synctest.Wait()
		require.NotSame(t, ref, heir)
		ref.Tell("to the dead")
		synctest.Wait()
		require.Equal(t, list(engine.Started{}), heard.all(), "a Ref names one actor, not whoever has the name")

		for _, err := range []error{second(e.Spawn("", func() engine.Actor { return nil })), second(e.Spawn("b", nil))} {
			require.ErrorContains(t, err, "name and produce must be given")
		}
	})
}

func TestTwoEnginesShareASystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := actortest.Logger(t)
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
		user := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		var engines []*engine.Engine
		for _, prefix := range []string{"", "", "mine"} {
			e, err := engine.New(engine.Config{System: system, Prefix: prefix, Logger: logger})
			require.NoError(t, err)
			require.Same(t, system, e.System())
			engines = append(engines, e)
			spawn(t, e, "a")
		}
		ref, _ := spawn(t, engines[2], "b")
		require.Equal(t, "mine/b", ref.PID().Id)
		for i, e := range engines {
			require.NoError(t, e.Stop(t.Context()))
			require.Zero(t, e.Len())
			if i == 0 {
				require.Equal(t, 1, engines[1].Len())
			}
		}
		require.False(t, system.IsStopped(), "the system is the user's")
		_, alive := system.ProcessRegistry.Get(user)
		require.True(t, alive)
		system.Root.Stop(user)
		synctest.Wait()
	})
}

// The user's root may carry middleware that spawns under no guardian; ours is not theirs.
func TestRootMiddlewareOfTheUserDoesNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := actortest.Logger(t)
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
		system.Root.WithSpawnMiddleware(func(actor.SpawnFunc) actor.SpawnFunc {
			return func(*actor.ActorSystem, string, *actor.Props, actor.SpawnerContext) (*actor.PID, error) {
				return nil, errors.New("not through here")
			}
		})
		s := always(engine.Verdict{})
		e, err := engine.New(engine.Config{System: system, Logger: logger, Supervisor: s})
		require.NoError(t, err)
		ref, _ := spawn(t, e, "a")
		ref.Tell(do(func(*engine.Context) { panic("park me") }))
		<-ref.Done()
		require.Len(t, s.seen(), 1)
		require.NoError(t, e.Stop(t.Context()))
		time.Sleep(2 * time.Second)
	})
}

func TestStopIsNewestFirst(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		l := &log{}
		var oldest *engine.Ref
		var heard *log
		for i := range 10 {
			note := func(c *engine.Context) {
				l.add(c.Self().Name())
				if c.Self() != oldest {
					oldest.Tell("last words of " + c.Self().Name())
				}
			}
			ref, got := spawn(t, e, fmt.Sprint(i), recorder{onStop: note})
			if i == 0 {
				oldest, heard = ref, got
			}
			if i == 5 {
				ref.Stop()
				<-ref.Done()
			}
		}
		require.Equal(t, 9, e.Len())
		require.NoError(t, e.Stop(t.Context()))
		require.Equal(t, list("5", "9", "8", "7", "6", "4", "3", "2", "1", "0"), l.all())
		require.Len(t, heard.all(), 9+3, "the oldest hears them all, between Started and Stopping")
		require.Zero(t, e.Len())
		_, err := e.Spawn("late", func() engine.Actor { return nil })
		require.ErrorIs(t, err, engine.ErrStopped)
	})
}

func TestStopWaitsForNoGateAndNoRestart(t *testing.T) {
	s := always(engine.Verdict{Restart: true, After: time.Hour, Redeliver: true})
	supervised(t, s, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		start := time.Now()
		gated, got := spawn(t, e, "gated", recorder{onStart: func(c *engine.Context) { c.CloseGate() }})
		gated.Tell("held")
		waiting, _ := spawn(t, e, "waiting")
		waiting.Tell(do(func(*engine.Context) { panic("restart me") }))
		synctest.Wait()
		waiting.Tell("queued")
		failing, _ := spawn(t, e, "failing", recorder{onEnd: func(*engine.Context) { gated.Tell(urgent("good bye")) }})
		failing.Tell(do(func(*engine.Context) {
			failing.Tell(do(func(*engine.Context) { panic("restart me") }))
			go func() {
				if err := e.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			time.Sleep(time.Second) // until the stop has come
		}))
		<-gated.Done()
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, list(engine.Started{}, urgent("good bye"), engine.Stopping{}, engine.Stopped{}), got.all())
		require.Len(t, dead.all(), 4)
	})
}

func TestStopWhenContextIsOver(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		older, _ := spawn(t, e, "older")
		release := make(chan struct{})
		spawn(t, e, "newer", recorder{onEnd: func(*engine.Context) { <-release }})
		err := e.Stop(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, `engine: stop: 2 actors still live, waiting for actor "newer": context deadline exceeded`)
		<-older.Done() // it waits for nobody any more
		require.Error(t, e.Stop(within(t, time.Second)))
		close(release)
		require.NoError(t, e.Stop(t.Context()))
		require.NoError(t, e.Stop(within(t, 0)), "what is done is done, whatever the context")
	})
}

func TestManyActorsStopAndLeaveNothing(t *testing.T) {
	e, err := engine.New(engine.Config{Logger: actortest.Logger(t)})
	require.NoError(t, err)
	const actors = 20_000
	refs := make([]*engine.Ref, actors)
	for i := range refs {
		refs[i], err = e.Spawn(fmt.Sprint(i), func() engine.Actor { return receive(func(*engine.Context, any) {}) })
		require.NoError(t, err)
	}
	var producers sync.WaitGroup
	for range 4 {
		producers.Go(func() {
			for _, r := range refs[:actors/2] {
				r.Stop()
			}
		})
	}
	require.NoError(t, e.Stop(t.Context()))
	producers.Wait()
	for _, r := range refs {
		<-r.Done()
	}
	require.Zero(t, e.Len())
	require.True(t, e.System().IsStopped(), "a system of its own is shut down")
}

func TestProtoActorsChatterIsDebug(t *testing.T) {
	for level, want := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		var out bytes.Buffer
		e, err := engine.New(engine.Config{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))})
		require.NoError(t, err)
		logger := e.System().Logger().WithGroup("group")
		logger.Info("chatter")
		logger.Error("fault")
		require.Equal(t, want, bytes.Contains(out.Bytes(), []byte("level=DEBUG msg=chatter lib=proto.actor")), out.String())
		require.Contains(t, out.String(), "level=ERROR msg=fault")
	}
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		e, err := engine.New(engine.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		require.NoError(t, err)
		ref, _ := spawn(t, e, "a")
		l := &log{}
		ref.Tell(do(func(c *engine.Context) {
			l.add(c.Self() == ref)
			l.add(c.Engine() == e)
			l.add(c.Sender() == nil)
			c.Respond("to nobody")
			c.Logger().Info("hello")
		}))
		synctest.Wait()
		require.Equal(t, list(true, true, true), l.all())
		require.Contains(t, out.String(), "level=INFO msg=hello actor=a\n")
		require.NoError(t, e.Stop(t.Context()))
	})
}

func second[T any](_ T, err error) error { return err }
