package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestWatcherIsToldOnce(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, _ := spawn(t, e, "a")
		watcher, got := spawn(t, e, "w")
		watcher.Tell(do(func(c *engine.Context) {
			c.Watch(ref)
			c.Watch(ref)
		}))
		synctest.Wait()
		got.all()
		ref.Tell(do(func(c *engine.Context) {
			watcher.Tell("from a")
			c.Stop()
		}))
		<-ref.Done()
		synctest.Wait()
		require.Equal(t, list("from a", engine.Terminated{Ref: ref}), got.all(), "after all that it told")
	})
}

func TestWatchOfOneThatIsGone(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, _ := spawn(t, e, "a")
		watcher, got := spawn(t, e, "w", recorder{onStart: func(c *engine.Context) { c.CloseGate() }})
		ref.Stop()
		<-ref.Done()
		watcher.Tell(watching{ref})
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, watching{ref}), got.all())
	})
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, _ := spawn(t, e, "a")
		ref.Stop()
		<-ref.Done()
		watcher, got := spawn(t, e, "w", recorder{onStart: func(c *engine.Context) {
			c.CloseGate()
			c.Watch(ref)
		}})
		synctest.Wait()
		require.Equal(t, list(engine.Started{}, engine.Terminated{Ref: ref}), got.all(), "Terminated passes a closed gate")
		require.NotSame(t, ref, watcher)
	})
}

// watching is a message that names an actor.
type watching struct{ ref *engine.Ref }

func (watching) Urgent() {}

func TestUnwatchedIsNotTold(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		a, _ := spawn(t, e, "a")
		b, _ := spawn(t, e, "b")
		watcher, got := spawn(t, e, "w")
		watcher.Tell(do(func(c *engine.Context) {
			c.Unwatch(a) // not watched yet
			c.Watch(a)
			c.Watch(b)
			c.Unwatch(a)
		}))
		synctest.Wait()
		got.all()
		a.Stop()
		b.Stop()
		synctest.Wait()
		require.Equal(t, list(engine.Terminated{Ref: b}), got.all())
	})
}

func TestWatchOutlastsRestarts(t *testing.T) {
	supervised(t, always(engine.Verdict{Restart: true}), func(t *testing.T, e *engine.Engine) {
		ref, _ := spawn(t, e, "a")
		watcher, got := spawn(t, e, "w")
		watcher.Tell(do(func(c *engine.Context) { c.Watch(ref) }))
		synctest.Wait()
		for _, r := range []*engine.Ref{ref, watcher} {
			r.Tell(do(func(*engine.Context) { panic("restart me") }))
		}
		synctest.Wait()
		got.all()
		ref.Stop()
		synctest.Wait()
		require.Equal(t, list(engine.Terminated{Ref: ref}), got.all())
	})
}

func TestStoppedWatcherLeavesNoDeadLetter(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		dead := deadLetters(t, e)
		ref, _ := spawn(t, e, "a")
		watcher, _ := spawn(t, e, "w")
		watcher.Tell(do(func(c *engine.Context) { c.Watch(ref) }))
		synctest.Wait()
		watcher.Stop()
		<-watcher.Done()
		ref.Stop()
		<-ref.Done()
		synctest.Wait()
		require.Empty(t, dead.all())
	})
}

// A user's own proto.actor actor watches one of ours, before and after its end, and stops it.
func TestForeignWatcher(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, got := spawn(t, e, "a")
		ended, _ := spawn(t, e, "ended")
		ended.Stop()
		<-ended.Done()
		l := &log{}
		root := e.System().Root
		foreign := root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *actor.Started:
				c.Watch(ref.PID())
				c.Watch(ended.PID())
			case *actor.Terminated:
				l.add(msg.Who.Id)
			}
		}))
		synctest.Wait()
		require.Equal(t, list(ended.PID().Id), l.all())
		root.Stop(ref.PID())
		synctest.Wait()
		require.Equal(t, list(ref.PID().Id), l.all())
		require.Equal(t, list(engine.Started{}, engine.Stopping{}, engine.Stopped{}), got.all())
		root.Stop(foreign)
		synctest.Wait()
	})
}

// One that watches while the actor ends is told as well, even when proto.actor has forgotten the actor already.
func TestWatchDuringTheEnd(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		l := &log{}
		root := e.System().Root
		foreign := root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if msg, ok := c.Message().(*actor.Terminated); ok {
				l.add(msg.Who.Id)
			}
		}))
		var process actor.Process
		watch := do(func(c *engine.Context) { process.SendSystemMessage(c.Self().PID(), &actor.Watch{Watcher: foreign}) })
		ref, _ := spawn(t, e, "a", recorder{onStop: watch})
		process = system(t, e, ref)
		ref.Tell(do(func(c *engine.Context) {
			ref.Tell(onLoss(func() { watch(c) }))
			ref.Stop()
		}))
		<-ref.Done()
		synctest.Wait()
		id := ref.PID().Id
		require.Equal(t, list(id, id), l.all(), "in Stopped, and when its mailbox is drained")

		process.SendSystemMessage(ref.PID(), &actor.Watch{Watcher: foreign})
		process.SendSystemMessage(ref.PID(), &actor.Stop{})
		synctest.Wait()
		require.Equal(t, list(id), l.all(), "and afterwards")
		root.Stop(foreign)
		synctest.Wait()
	})
}

// onLoss is a message that runs a function when it is lost.
type onLoss func()

// Undelivered calls it.
func (f onLoss) Undelivered(error) { f() }
