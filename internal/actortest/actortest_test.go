package actortest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is an actor that counts ticks of an hour.
type clock struct{ ticks int }

type (
	tick struct{}
	ask  struct{ *engine.Question[int] }
)

// Receive counts.
func (a *clock) Receive(c *engine.Context, msg any) {
	again := func() {
		self := c.Self()
		time.AfterFunc(time.Hour, func() { self.Tell(tick{}) })
	}
	switch msg := msg.(type) {
	case engine.Started:
		again()
	case tick:
		a.ticks++
		again()
	case ask:
		msg.Reply(a.ticks)
	}
}

func TestThirtySixHours(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, err := e.Spawn("clock", func() engine.Actor { return &clock{} })
		require.NoError(t, err)
		time.Sleep(36*time.Hour + time.Minute)
		q := ask{engine.NewQuestion[int]()}
		ref.Tell(q)
		ticks, err := q.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 36, ticks)
	})
}

// Actors that are left, dead letters and timers do not keep a bubble from ending.
func TestBubbleCleansUp(t *testing.T) {
	var left *engine.Ref
	actortest.With(t, engine.Config{Prefix: "left"}, func(t *testing.T, e *engine.Engine) {
		var err error
		left, err = e.Spawn("behind", func() engine.Actor { return &clock{} })
		require.NoError(t, err)
		require.Equal(t, "left/behind", left.PID().Id)
		gone, err := e.Spawn("gone", func() engine.Actor { return &clock{} })
		require.NoError(t, err)
		gone.Stop()
		<-gone.Done()
		gone.Tell(tick{})
		synctest.Wait()
	})
	require.NotNil(t, left)
}
