package engine_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// fragile panics on a message "bad" as often as its budget says, counted over all its instances.
type fragile struct {
	recorder
	budget *int
}

// Receive writes down what it does not fail on.
func (f *fragile) Receive(c *engine.Context, msg any) {
	if msg == "bad" && *f.budget != 0 {
		*f.budget--
		panic("cannot stand it")
	}
	f.recorder.Receive(c, msg)
}

func spawnFragile(t *testing.T, e *engine.Engine, budget int) (*engine.Ref, *log) {
	t.Helper()
	l := &log{}
	ref, err := e.Spawn("a", func() engine.Actor { return &fragile{recorder{log: l}, &budget} })
	require.NoError(t, err)
	synctest.Wait()
	l.all()
	return ref, l
}

// tellAll has the actor itself post the messages, so that they form one batch.
func tellAll(ref *engine.Ref, messages ...any) {
	ref.Tell(do(func(*engine.Context) {
		for _, msg := range messages {
			ref.Tell(msg)
		}
	}))
}

func TestFailingMessageIsKnownExactly(t *testing.T) {
	s := always(engine.Verdict{Restart: true})
	supervised(t, s, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, got := spawnFragile(t, e, -1)
		start := time.Now()
		tellAll(ref, 1, 2, "bad", 3, &actor.MessageEnvelope{Message: "bad"}, 4)
		synctest.Wait()
		require.Equal(t, list(1, 2, engine.Restarting{}, engine.Started{}, 3, engine.Restarting{}, engine.Started{}, 4), got.all())
		require.Equal(t, list("bad", "bad"), dead.all())

		failures := s.seen()
		require.Len(t, failures, 2)
		for i, f := range failures {
			require.Same(t, ref, f.Ref)
			require.Equal(t, uint64(i+1), f.Incarnation)
			require.Equal(t, "cannot stand it", f.Reason)
			require.Contains(t, string(f.Stack), "(*fragile).Receive")
			require.Equal(t, "bad", f.Message)
			require.Equal(t, 1, f.Deliveries)
			require.Equal(t, start, f.At)
		}
	})
}

func TestRedeliveryComesFirst(t *testing.T) {
	s := always(engine.Verdict{Restart: true, Redeliver: true})
	supervised(t, s, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, got := spawnFragile(t, e, 3)
		tellAll(ref, 1, "bad", 2)
		synctest.Wait()
		again := list(engine.Restarting{}, engine.Started{})
		require.Equal(t, join(list(1), again, again, again, list("bad", 2)), got.all())
		require.Empty(t, dead.all())
		require.Equal(t, []int{1, 2, 3}, deliveries(s))

		ref.Tell("bad")
		synctest.Wait()
		require.Equal(t, list("bad"), got.all(), "a later message is another message")
	})
}

func TestMessageThatIsNotRedeliveredIsUndelivered(t *testing.T) {
	type bad struct{ *engine.Question[int] }
	s := &supervisor{decide: func(f engine.Failure) engine.Verdict {
		return engine.Verdict{Restart: true, Redeliver: f.Deliveries < 3}
	}}
	supervised(t, s, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, err := e.Spawn("a", func() engine.Actor {
			return receive(func(_ *engine.Context, msg any) {
				if _, ok := msg.(bad); ok {
					panic("no")
				}
			})
		})
		require.NoError(t, err)
		q := bad{engine.NewQuestion[int]()}
		ref.Tell(q)
		_, err = q.Wait(t.Context())
		require.ErrorIs(t, err, engine.ErrFailed)
		synctest.Wait()
		require.Equal(t, list(q), dead.all())
		require.Equal(t, []int{1, 2, 3}, deliveries(s))
	})
}

func TestRestartOpensTheGateAndKeepsTheOrder(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true, Redeliver: true}), func(t *testing.T, e *engine.Engine) {
		l := &log{}
		type answer struct {
			urgent
			incarnation uint64
		}
		ref, err := e.Spawn("a", func() engine.Actor {
			return receive(func(c *engine.Context, msg any) {
				l.add(msg)
				if _, ok := msg.(engine.Started); ok && c.Incarnation() == 1 {
					c.CloseGate()
				}
				if a, ok := msg.(answer); ok && a.incarnation == c.Incarnation() {
					panic("the answer is unbearable")
				}
			})
		})
		require.NoError(t, err)
		ref.Tell(1)
		ref.Tell(answer{incarnation: 1})
		ref.Tell(2)
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, answer{incarnation: 1}, engine.Restarting{}, engine.Started{}, answer{incarnation: 1}, 1, 2), l.all())
	})
}

func TestBackOffRestartKeepsTheMailbox(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true, After: time.Hour, Redeliver: true}), func(t *testing.T, e *engine.Engine) {
		ref, got := spawnFragile(t, e, 1)
		start := time.Now()
		tellAll(ref, 1, "bad", 2)
		time.Sleep(time.Hour - 1)
		ref.Tell(3)
		synctest.Wait()
		require.Equal(t, list(1), got.all(), "nothing is handled while it waits")

		ref.Tell(do(func(c *engine.Context) {
			got.add(time.Since(start))
			got.add(c.Incarnation())
		}))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, list(engine.Restarting{}, engine.Started{}, "bad", 2, 3, time.Hour, uint64(2)), got.all())
	})
}

func TestStopDuringBackOffStopsAtOnce(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true, After: time.Hour, Redeliver: true}), func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, got := spawnFragile(t, e, 1)
		start := time.Now()
		tellAll(ref, "bad", 1)
		synctest.Wait()
		ref.Stop()
		<-ref.Done()
		require.Zero(t, time.Since(start))
		require.Equal(t, list(engine.Stopping{}, engine.Stopped{}), got.all())
		require.Equal(t, list("bad", 1), dead.all())

		heir, inherited := spawn(t, e, "a")
		time.Sleep(2 * time.Hour)
		require.Equal(t, list(engine.Started{}), inherited.all(), "the timer restarts nobody else of that name")
		require.NotSame(t, ref, heir)
	})
}

func TestRestartFromOutsideEndsTheWait(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true, After: time.Hour}), func(t *testing.T, e *engine.Engine) {
		ref, got := spawnFragile(t, e, 1)
		tellAll(ref, "bad", 1)
		synctest.Wait()
		system(t, e, ref).SendSystemMessage(ref.PID(), &actor.Restart{})
		time.Sleep(30 * time.Minute)
		require.Equal(t, list(engine.Restarting{}, engine.Started{}, 1), got.all())

		ref.Tell(do(func(*engine.Context) { panic("again") }))
		time.Sleep(45 * time.Minute)
		require.Empty(t, got.all(), "the timer of the first failure is nobody's any more")
		time.Sleep(15*time.Minute + time.Second)
		require.Equal(t, list(engine.Restarting{}, engine.Started{}), got.all())
	})
}

func TestParkedActorStops(t *testing.T) {
	s := always(engine.Verdict{})
	supervised(t, s, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, got := spawnFragile(t, e, 1)
		neighbour, heard := spawn(t, e, "b")
		tellAll(ref, 1, "bad", 2)
		<-ref.Done()
		synctest.Wait()
		require.Equal(t, list(1, engine.Stopping{}, engine.Stopped{}), got.all())
		require.Equal(t, list("bad", 2), dead.all())
		require.Equal(t, []*engine.Ref{ref}, s.forgot)

		neighbour.Tell("still there")
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, "still there"), heard.all())
	})
	require.Len(t, s.forgot, 1, "an actor that never failed is not forgotten")
}

func TestSupervisorThatFailsToForget(t *testing.T) {
	for name, what := range unwinders {
		t.Run(name, func(t *testing.T) {
			actortest.With(t, engine.Config{Supervisor: forgetful{what}}, func(t *testing.T, e *engine.Engine) {
				watcher, told := spawn(t, e, "w")
				ref, _ := spawn(t, e, "a")
				watcher.Tell(do(func(c *engine.Context) { c.Watch(ref) }))
				synctest.Wait()
				done := ref.Done()
				ref.Tell(do(func(*engine.Context) { panic("park me") }))
				<-done
				synctest.Wait()
				require.Equal(t, 1, e.Len())
				require.Equal(t, list(engine.Started{}, engine.Terminated{Ref: ref}), told.all())
			})
		})
	}
}

// forgetful is a Supervisor that parks, and fails when it is to forget.
type forgetful struct{ fail do }

// Failed parks.
func (forgetful) Failed(engine.Failure) engine.Verdict { return engine.Verdict{} }

// Forget fails.
func (f forgetful) Forget(*engine.Ref) { f.fail(nil) }

func TestFailuresOutsideMessages(t *testing.T) {
	boom := errors.New("boom")
	cases := []struct {
		name    string
		produce func(first bool) engine.Actor
		reason  any
		message any
	}{
		{"in Started", func(first bool) engine.Actor {
			return receive(func(_ *engine.Context, msg any) {
				if _, ok := msg.(engine.Started); ok && first {
					panic(boom)
				}
			})
		}, boom, engine.Started{}},
		{"in EndBatch of Started", func(first bool) engine.Actor {
			return ender(func() {
				if first {
					panic(boom)
				}
			})
		}, boom, nil},
		{"in produce", func(first bool) engine.Actor {
			if first {
				panic(boom)
			}
			return receive(func(*engine.Context, any) {})
		}, boom, engine.Started{}},
		{"Goexit in produce", func(first bool) engine.Actor {
			if first {
				runtime.Goexit()
			}
			return receive(func(*engine.Context, any) {})
		}, engine.ErrGoexit, engine.Started{}},
		{"produce returns nil", func(first bool) engine.Actor {
			if first {
				return nil
			}
			return receive(func(*engine.Context, any) {})
		}, errors.New(`engine: produce of actor "a" returned nil`), engine.Started{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := always(engine.Verdict{Restart: true, Redeliver: true})
			supervised(t, s, func(t *testing.T, e *engine.Engine) {
				instances := 0
				ref, err := e.Spawn("a", func() engine.Actor { instances++; return c.produce(instances == 1) })
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, 2, instances)
				require.Len(t, s.seen(), 1)
				f := s.seen()[0]
				require.Equal(t, c.message, f.Message)
				require.Zero(t, f.Deliveries)
				if want, ok := c.reason.(error); ok {
					require.EqualError(t, f.Reason.(error), want.Error())
				}
				ref.Stop()
				<-ref.Done()
			})
		})
	}
}

func TestNilSupervisorRestartsAtOnce(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, got := spawnFragile(t, e, 100)
		for range 100 {
			ref.Tell("bad")
		}
		ref.Tell("good")
		synctest.Wait()
		entries := got.all()
		require.Len(t, entries, 201)
		require.Equal(t, "good", entries[200])
	})
}

func TestIncarnation(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true}), func(t *testing.T, e *engine.Engine) {
		ref, got := spawnFragile(t, e, -1)
		for want := range uint64(5) {
			ref.Tell(do(func(c *engine.Context) { got.add(c.Incarnation()) }))
			synctest.Wait()
			require.Equal(t, list(want+1), got.all())
			ref.Tell("bad")
			synctest.Wait()
			got.all()
		}
	})
}

// ender is an actor that only ends batches.
type ender func()

// Receive does nothing.
func (ender) Receive(*engine.Context, any) {}

// EndBatch calls it.
func (e ender) EndBatch(*engine.Context) { e() }

func deliveries(s *supervisor) []int {
	var n []int
	for _, f := range s.seen() {
		n = append(n, f.Deliveries)
	}
	return n
}

func join(lists ...[]any) []any {
	var all []any
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// system returns what proto.actor knows of an actor.
func system(t *testing.T, e *engine.Engine, ref *engine.Ref) actor.Process {
	t.Helper()
	process, ok := e.System().ProcessRegistry.Get(ref.PID())
	require.True(t, ok)
	return process
}
