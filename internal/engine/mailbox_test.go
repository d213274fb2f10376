package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestMessagesArriveInOrderAfterStarted(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, got := spawn(t, e, "a")
		for i := range 1000 {
			ref.Tell(i)
		}
		synctest.Wait()
		require.Equal(t, append(list(engine.Started{}), numbers(0, 1000)...), got.all())
	})
}

func TestBatchesEndWhenNothingWaitsOrTheTurnIsUsedUp(t *testing.T) {
	actortest.With(t, engine.Config{Throughput: 4}, func(t *testing.T, e *engine.Engine) {
		l := &log{}
		ref, err := e.Spawn("a", func() engine.Actor { return &batches{recorder{log: l}} })
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, endOfBatch{}), l.all(), "Started is a batch of its own")

		ref.Tell(do(func(c *engine.Context) {
			for i := range 10 {
				c.Self().Tell(i)
			}
		}))
		synctest.Wait()
		require.Equal(t, list(0, 1, 2, endOfBatch{}, 3, 4, 5, 6, endOfBatch{}, 7, 8, 9, endOfBatch{}), l.all())

		ref.Tell(do(func(c *engine.Context) {
			c.Self().Tell("not handled")
			c.Stop()
		}))
		<-ref.Done()
		require.Equal(t, list(endOfBatch{}, engine.Stopping{}, engine.Stopped{}), l.all(), "a stop ends the batch")
	})
}

func TestStopGoesBeforeMessagesThatWait(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, got := spawn(t, e, "a", recorder{onEnd: func(c *engine.Context) { c.Self().Tell("last words") }})
		ref.Tell(do(func(*engine.Context) {
			for i := range 500 {
				ref.Tell(i)
			}
			ref.Stop()
		}))
		<-ref.Done()
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, engine.Stopping{}, engine.Stopped{}), got.all())
		require.Equal(t, append(numbers(0, 500), "last words"), dead.all())
	})
}

func TestPoisonPillStopsAfterEarlierMessages(t *testing.T) {
	for name, pill := range map[string]any{
		"bare":      &actor.PoisonPill{},
		"enveloped": &actor.MessageEnvelope{Message: &actor.PoisonPill{}},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
				dead := deadLetters(t, e)
				ref, got := spawn(t, e, "a")
				ref.Tell(do(func(*engine.Context) {
					ref.Tell("before")
					ref.Tell(pill)
					ref.Tell("behind")
					ref.Tell(pill)
				}))
				<-ref.Done()
				require.Equal(t, list(engine.Started{}, "before", engine.Stopping{}, engine.Stopped{}), got.all())
				require.Equal(t, list("behind"), dead.all(), "the second pill is nobody's loss")
			})
		})
	}
}

func TestClosedGateHoldsBackAllButUrgent(t *testing.T) {
	actortest.With(t, engine.Config{Throughput: 2}, func(t *testing.T, e *engine.Engine) {
		ref, got := spawn(t, e, "a", recorder{onStart: func(c *engine.Context) { c.CloseGate() }})
		other, _ := spawn(t, e, "b")
		for _, msg := range list("1", urgent("first"), "2", "3", &actor.MessageEnvelope{Message: urgent("second")}, "4") {
			ref.Tell(msg)
		}
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, urgent("first"), urgent("second")), got.all())

		ref.Tell(urgent("third"))
		other.Tell(do(func(c *engine.Context) { c.Stop() }))
		synctest.Wait()
		require.Equal(t, list(urgent("third")), got.all())
	})
}

func TestOpenedGateLetsThroughInOrder(t *testing.T) {
	type open struct {
		urgent
		again bool
	}
	inTurnsOf(t, []int{1, 2, 256}, func(t *testing.T, e *engine.Engine) {
		l := &log{}
		ref, err := e.Spawn("a", func() engine.Actor {
			return receive(func(c *engine.Context, msg any) {
				switch msg := msg.(type) {
				case engine.Started:
					c.OpenGate() // it is open
					c.CloseGate()
				case open:
					c.OpenGate()
					if msg.again {
						c.CloseGate()
					}
				default:
					l.add(msg)
				}
			})
		})
		require.NoError(t, err)
		ref.Tell(1)
		ref.Tell(2)
		synctest.Wait()
		require.Empty(t, l.all())
		ref.Tell(open{again: true})
		ref.Tell(3)
		synctest.Wait()
		require.Empty(t, l.all(), "opened and closed at once lets nothing through")
		ref.Tell(urgent("urgent"))
		ref.Tell(4)
		ref.Tell(open{})
		synctest.Wait()
		require.Equal(t, list(urgent("urgent"), 1, 2, 3, 4), l.all())
	})
}

// inTurnsOf runs body in a bubble for each throughput.
func inTurnsOf(t *testing.T, throughputs []int, body func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	for _, n := range throughputs {
		t.Run(fmt.Sprint("throughput=", n), func(t *testing.T) {
			actortest.With(t, engine.Config{Throughput: n}, body)
		})
	}
}

func TestStopDrainsWhatAClosedGateHolds(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, got := spawn(t, e, "a", recorder{onStart: func(c *engine.Context) { c.CloseGate() }})
		ref.Tell(1)
		ref.Tell(2)
		synctest.Wait()
		ref.Stop()
		<-ref.Done()
		require.Equal(t, list(engine.Started{}, engine.Stopping{}, engine.Stopped{}), got.all())
		require.Equal(t, list(1, 2), dead.all())
	})
}

func TestSenderIsKnownAndAnswered(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, err := e.Spawn("a", func() engine.Actor {
			return receive(func(c *engine.Context, msg any) {
				if msg, ok := msg.(string); ok {
					c.Respond(msg + ", answered")
				}
			})
		})
		require.NoError(t, err)
		ref.Tell("nobody asks, nobody is answered")
		answer, err := e.System().Root.RequestFuture(ref.PID(), "question", time.Minute).Result()
		require.NoError(t, err)
		require.Equal(t, "question, answered", answer)

		touched, err := e.System().Root.RequestFuture(ref.PID(), &actor.Touch{}, time.Minute).Result()
		require.NoError(t, err)
		require.Equal(t, ref.PID().Id, touched.(*actor.Touched).Who.Id, "proto.actor's own questions are answered too")
	})
}

func TestUndeliverable(t *testing.T) {
	ask := func() closing { return closing{engine.NewQuestion[string]()} }
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, _ := spawn(t, e, "a")
		waiting, late := ask(), ask()
		ref.Tell(do(func(*engine.Context) {
			ref.Tell(&actor.MessageEnvelope{Message: waiting})
			ref.Stop()
		}))
		_, err := waiting.Wait(t.Context())
		require.ErrorIs(t, err, engine.ErrGone)
		require.EqualError(t, err, "engine: actor is gone: a")

		<-ref.Done()
		ref.Tell(late)
		_, err = late.Wait(t.Context())
		require.ErrorIs(t, err, engine.ErrGone)
		require.Equal(t, list(waiting, late), dead.all(), "they are dead letters as well")
	})
}

func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := engine.NewQuestion[int]()
		_, err := q.Wait(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "engine: no answer: ")

		q.Reply(1)
		q.Reply(2)
		q.Fail(errors.New("too late"))
		q.Undelivered(errors.New("too late"))
		for range 2 {
			got, err := q.Wait(within(t, 0))
			require.NoError(t, err)
			require.Equal(t, 1, got, "an answer that is there wins over a context that is over")
		}
		failed := engine.NewQuestion[int]()
		boom := errors.New("boom")
		go failed.Fail(boom)
		_, err = failed.Wait(t.Context())
		require.ErrorIs(t, err, boom)
	})
}

// receive is an actor made of a function.
type receive func(c *engine.Context, msg any)

// Receive calls it.
func (r receive) Receive(c *engine.Context, msg any) { r(c, msg) }
