package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// The tests of this file are named after what goes wrong in proto.actor as it comes. Each would fail with its default mailbox,
// dispatcher or strategy.

// A1: SpawnNamed makes an actor known before its mailbox has handlers. Whoever sends to the name in that moment panics, or the
// actor receives a message before Started.
func TestHazardA1SpawnNamedRace(t *testing.T) {
	e, err := engine.New(engine.Config{Prefix: "race", Logger: actortest.Logger(t)})
	require.NoError(t, err)
	const rounds = 5000
	var spawned atomic.Int64
	var early, handled, over atomic.Int64
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for over.Load() == 0 {
				pid := e.System().NewLocalPID(fmt.Sprintf("race/%d", spawned.Load()))
				for range 10 {
					e.System().Root.Send(pid, "early bird")
				}
			}
		})
	}
	for i := range int64(rounds) {
		spawned.Store(i)
		ref, err := e.Spawn(fmt.Sprint(i), func() engine.Actor {
			started := false
			return receive(func(_ *engine.Context, msg any) {
				switch msg.(type) {
				case engine.Started:
					started = true
				case string:
					handled.Add(1)
					if !started {
						early.Add(1)
					}
				}
			})
		})
		if err != nil {
			t.Error(err)
			break
		}
		ref.Stop()
	}
	over.Store(1)
	senders.Wait()
	require.NoError(t, e.Stop(t.Context()))
	require.Zero(t, early.Load())
	t.Logf("%d messages in the race", handled.Load())
}

// A2: messages that wait when an actor is stopped vanish.
func TestHazardA2SilentLossAtStop(t *testing.T) {
	for name, stop := range map[string]func(*engine.Engine, *engine.Ref){
		"stop":   func(_ *engine.Engine, r *engine.Ref) { r.Stop() },
		"poison": func(e *engine.Engine, r *engine.Ref) { e.System().Root.Poison(r.PID()) },
		"proto":  func(e *engine.Engine, r *engine.Ref) { e.System().Root.Stop(r.PID()) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := engine.New(engine.Config{Logger: actortest.Logger(t)})
			require.NoError(t, err)
			dead := deadLetters(t, e)
			var handled atomic.Int64
			ref, err := e.Spawn("a", func() engine.Actor {
				return receive(func(_ *engine.Context, msg any) {
					if _, ok := msg.(int); ok {
						handled.Add(1)
					}
				})
			})
			require.NoError(t, err)
			const producers, each = 4, 10_000
			var sent sync.WaitGroup
			for range producers {
				sent.Go(func() {
					for i := range each {
						ref.Tell(i)
					}
				})
			}
			stop(e, ref)
			sent.Wait()
			<-ref.Done()
			lost := 0
			for _, msg := range dead.all() {
				if _, ok := msg.(int); ok {
					lost++
				}
			}
			require.Equal(t, producers*each, int(handled.Load())+lost)
			require.NoError(t, e.Stop(t.Context()))
		})
	}
}

// A9: after a panic in Stopped watchers are never told; after one in Stopping the actor is restarted instead of stopped.
func TestHazardA9PanicInStopping(t *testing.T) {
	inLastMoments(t, func(what do) recorder { return recorder{onEnd: what} })
}

func TestHazardA9PanicInStopped(t *testing.T) {
	inLastMoments(t, func(what do) recorder { return recorder{onStop: what} })
}

func inLastMoments(t *testing.T, with func(do) recorder) {
	for name, what := range unwinders {
		t.Run(name, func(t *testing.T) {
			s := always(engine.Verdict{Restart: true})
			supervised(t, s, func(t *testing.T, e *engine.Engine) {
				dead := deadLetters(t, e)
				ref, got := spawn(t, e, "a", with(what))
				watcher, told := spawn(t, e, "w")
				watcher.Tell(do(func(c *engine.Context) { c.Watch(ref) }))
				synctest.Wait()
				ref.Tell(do(func(*engine.Context) {
					ref.Tell("left")
					ref.Stop()
				}))
				<-ref.Done()
				synctest.Wait()
				require.Equal(t, list(engine.Started{}, engine.Stopping{}, engine.Stopped{}), got.all())
				require.Equal(t, list(engine.Started{}, engine.Terminated{Ref: ref}), told.all())
				require.Equal(t, list("left"), dead.all())
				require.Empty(t, s.seen(), "it is not a failure that a restart would mend")
			})
		})
	}
}

var unwinders = map[string]do{
	"panic":  func(*engine.Context) { panic("in the last moments") },
	"Goexit": func(*engine.Context) { runtime.Goexit() },
}

// A9 once more: the old instance may fail on Restarting as well.
func TestHazardA9PanicInRestarting(t *testing.T) {
	for name, what := range unwinders {
		t.Run(name, func(t *testing.T) {
			s := always(engine.Verdict{Restart: true})
			supervised(t, s, func(t *testing.T, e *engine.Engine) {
				ref, got := spawn(t, e, "a", recorder{onReborn: what})
				ref.Tell(do(func(*engine.Context) { panic("restart me") }))
				ref.Tell("next")
				synctest.Wait()
				require.Equal(t, list(engine.Started{}, engine.Restarting{}, engine.Started{}, "next"), got.all())
				require.Len(t, s.seen(), 1)
			})
		})
	}
}

// A11: runtime.Goexit in Receive, as testify's require does, wedges the actor for ever.
func TestHazardA11GoexitInReceive(t *testing.T) {
	for workers := range 3 {
		t.Run(fmt.Sprint("workers=", workers), func(t *testing.T) {
			s := always(engine.Verdict{Restart: true})
			actortest.With(t, engine.Config{Workers: workers, Supervisor: s}, func(t *testing.T, e *engine.Engine) {
				ref, got := spawn(t, e, "a")
				for i := range 100 {
					ref.Tell(do(func(*engine.Context) { runtime.Goexit() }))
					ref.Tell(i)
				}
				synctest.Wait()
				var handled []any
				for _, msg := range got.all() {
					if i, ok := msg.(int); ok {
						handled = append(handled, i)
					}
				}
				require.Equal(t, numbers(0, 100), handled)
				require.Len(t, s.seen(), 100)
				require.ErrorIs(t, s.seen()[0].Reason.(error), engine.ErrGoexit)
				require.Contains(t, string(s.seen()[0].Stack), "hazard_test.go")
			})
		})
	}
}

// A panic in what decides about failures kills the process in proto.actor, for it is called in a deferred recover.
func TestHazardSupervisorThatFailsItself(t *testing.T) {
	for name, what := range unwinders {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{decide: func(engine.Failure) engine.Verdict {
				what(nil)
				return engine.Verdict{Restart: true}
			}}
			supervised(t, s, func(t *testing.T, e *engine.Engine) {
				dead := deadLetters(t, e)
				ref, got := spawnFragile(t, e, -1)
				tellAll(ref, "bad", "next")
				<-ref.Done()
				require.Equal(t, list(engine.Stopping{}, engine.Stopped{}), got.all())
				require.Equal(t, list("bad", "next"), dead.all())
				require.Len(t, s.seen(), 1)
			})
		})
	}
}

// A13: while it stops or restarts, an actor is given user messages.
func TestHazardA13MessagesBetweenLifecycleMessages(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true, After: time.Second}), func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		tellSelf := func(c *engine.Context) { c.Self().Tell(c.Incarnation()) }
		ref, got := spawn(t, e, "a", recorder{onReborn: tellSelf, onEnd: tellSelf, onStop: tellSelf})
		ref.Tell(do(func(*engine.Context) { panic("restart me") }))
		time.Sleep(2 * time.Second)
		require.Equal(t, list(engine.Started{}, engine.Restarting{}, engine.Started{}, uint64(1)), got.all())
		dead.all() // the message that failed
		ref.Stop()
		<-ref.Done()
		require.Equal(t, list(engine.Stopping{}, engine.Stopped{}), got.all())
		require.Equal(t, list(uint64(2), uint64(2)), dead.all())
	})
}

// Section 2: the message of a failure is dropped and known to nobody; the strategy knows only the reason.
func TestHazardFailingMessageIsDropped(t *testing.T) {
	s := always(engine.Verdict{Restart: true, Redeliver: true})
	supervised(t, s, func(t *testing.T, e *engine.Engine) {
		ref, got := spawnFragile(t, e, 1)
		ref.Tell("bad")
		synctest.Wait()
		require.Equal(t, list(engine.Restarting{}, engine.Started{}, "bad"), got.all())
		require.Equal(t, "bad", s.seen()[0].Message)
	})
}

// Section 2: timers and continuations outlive a restart and reach the new instance.
func TestHazardStaleContinuation(t *testing.T) {
	type tick struct{ incarnation uint64 }
	supervised(t, always(engine.Verdict{Restart: true}), func(t *testing.T, e *engine.Engine) {
		l := &log{}
		ref, err := e.Spawn("a", func() engine.Actor {
			return receive(func(c *engine.Context, msg any) {
				switch msg := msg.(type) {
				case engine.Started:
					self, mine := c.Self(), c.Incarnation()
					time.AfterFunc(time.Minute, func() { self.Tell(tick{mine}) })
				case tick:
					if msg.incarnation != c.Incarnation() {
						l.add("stale")
						return
					}
					l.add("tick")
				case error:
					panic(msg)
				}
			})
		})
		require.NoError(t, err)
		time.Sleep(time.Second)
		ref.Tell(errors.New("restart me"))
		time.Sleep(2 * time.Minute)
		require.Equal(t, list("stale", "tick"), l.all())
	})
}

// Section 2: ActorSystem.Shutdown stops no actor, and panics when called twice.
func TestHazardShutdownTwice(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		_, got := spawn(t, e, "a")
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if err := e.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		require.NoError(t, e.Stop(t.Context()))
		require.Equal(t, list(engine.Started{}, engine.Stopping{}, engine.Stopped{}), got.all())
	})
}

// Section 2: the default mailbox never gives its goroutine back while it is not empty, so one busy actor has a pool's worker for
// ever.
func TestHazardPoolMonopolisedByHotActor(t *testing.T) {
	const throughput, turns = 8, 100
	actortest.With(t, engine.Config{Workers: 1, Throughput: throughput}, func(t *testing.T, e *engine.Engine) {
		rounds, left := 0, turns*throughput // of the only worker
		var forEver, sometime do
		forEver = func(c *engine.Context) {
			rounds++
			c.Self().Tell(forEver)
		}
		q := engine.NewQuestion[int]()
		sometime = func(c *engine.Context) {
			if left--; left == 0 {
				q.Reply(rounds)
				return
			}
			c.Self().Tell(sometime)
		}
		hot, _ := spawn(t, e, "hot")
		other, _ := spawn(t, e, "other")
		other.Tell(do(func(*engine.Context) {
			hot.Tell(forEver)
			other.Tell(sometime)
		}))
		seen, err := q.Wait(t.Context())
		require.NoError(t, err)
		require.InDelta(t, turns*throughput, seen, 2*throughput, "they take turns")
		hot.Stop()
		<-hot.Done()
	})
}

// Section 2: a message with GetMessages is delivered element by element, without senders, and then once more as a whole.
func TestHazardMessageBatchTwice(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, got := spawn(t, e, "a")
		e.System().Root.Send(ref.PID(), &batch{})
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, &batch{}), got.all())
	})
}

type batch struct{}

// GetMessages is what makes proto.actor take it apart.
func (*batch) GetMessages() []any { return []any{1, 2} }

// Section 2: a question that waits behind a stop is never answered, and the asker only times out.
func TestHazardAskBehindStop(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, _ := spawn(t, e, "a")
		start := time.Now()
		future := actor.NewFuture(e.System(), time.Hour)
		ref.Tell(do(func(*engine.Context) {
			e.System().Root.RequestWithCustomSender(ref.PID(), "question", future.PID())
			ref.Stop()
		}))
		_, err := future.Result()
		require.ErrorIs(t, err, actor.ErrDeadLetter)
		require.Zero(t, time.Since(start))
	})
}

// Section 2: what is told of a dead letter runs in the goroutine of whoever sent it, and its panic hits that.
func TestHazardDeadLetterHandlerPanics(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		sub := e.System().EventStream.Subscribe(func(event any) {
			if _, ok := event.(*actor.DeadLetterEvent); ok {
				panic("handler")
			}
		})
		ref, _ := spawn(t, e, "a")
		bomb := onLoss(func() { panic("message") })
		ref.Tell(do(func(*engine.Context) {
			ref.Tell(bomb)
			ref.Tell("left")
			ref.Stop()
		}))
		<-ref.Done()
		ref.Tell(bomb)
		ref.Tell("late")
		require.Len(t, dead.all(), 4, "each of them became a dead letter all the same")
		e.System().EventStream.Unsubscribe(sub)
	})
}

// The same with a handler that ends the goroutine: the actor's end goes on.
func TestHazardDeadLetterHandlerGoexits(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, _ := spawn(t, e, "a")
		ref.Tell(do(func(*engine.Context) {
			ref.Tell(onLoss(runtime.Goexit))
			ref.Tell("left")
			ref.Stop()
		}))
		<-ref.Done()
		require.Equal(t, list("left"), dead.all())
		require.Zero(t, e.Len())
	})
}
