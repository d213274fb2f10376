package clock

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hands whose wall steps away from the monotonic one by as much as the test says.
type hands struct {
	base time.Time
	step atomic.Int64
}

func (h *hands) Wall() time.Time     { return time.Now().Round(0).UTC().Add(time.Duration(h.step.Load())) }
func (h *hands) Mono() time.Duration { return time.Since(h.base) }

func TestAlarmsRingInOrderAndNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Shards: 2})
		defer c.Stop()
		start := c.Now()
		type rung struct {
			after time.Duration
			gen   uint64
		}
		got := make(chan rung, 10)
		for i, d := range []time.Duration{3 * time.Hour, 10 * time.Millisecond, 90 * time.Second, -time.Hour} {
			a := c.Alarm(func(g uint64) { got <- rung{c.Now().Sub(start).Truncate(time.Millisecond), g} })
			a.Set(start.Add(d), uint64(i))
		}
		for _, want := range []rung{{0, 3}, {10 * time.Millisecond, 1}, {90 * time.Second, 2}, {3 * time.Hour, 0}} {
			require.Equal(t, want, <-got)
		}
	})
}

func TestAnAlarmIsSetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		defer c.Stop()
		got := make(chan uint64, 10)
		a := c.Alarm(func(g uint64) { got <- g })
		for g := range uint64(1000) {
			a.Set(c.Now().Add(time.Second), g)
		}
		require.Equal(t, uint64(999), <-got)
		a.Set(c.Now().Add(time.Second), 1000)
		a.Set(time.Time{}, 1001)
		time.Sleep(time.Hour) // virtual
		require.Empty(t, got)
	})
}

func TestAStepOfTheWallClockIsNoticedWithinAMinute(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hands{base: time.Now()}
				jumps := make(chan time.Duration, 10)
				c := New(Config{Hands: h, OnJump: func(d time.Duration) { jumps <- d }})
				defer c.Stop()
				rung := make(chan time.Time, 1)
				at := c.Now().Add(30 * time.Minute)
				c.Alarm(func(uint64) { rung <- c.Now() }).Set(at, 1)
				time.Sleep(10 * time.Minute)
				require.Empty(t, jumps)
				before := time.Now()
				h.step.Store(int64(step))
				require.Equal(t, step, <-jumps)
				require.LessOrEqual(t, time.Since(before), time.Minute)
				require.False(t, (<-rung).Before(at), "never early")
				require.EqualValues(t, 1, c.Jumps())
			})
		})
	}
}

func TestAnAlarmSetAfterAStepOfTheWallClock(t *testing.T) {
	for name, test := range map[string]struct{ first, step time.Duration }{
		"forward, with an alarm that is not due yet":     {3 * time.Hour, time.Hour},
		"forward, past an alarm":                         {10 * time.Minute, time.Hour},
		"forward, with an alarm that the timer is for":   {time.Hour + 10*time.Second, time.Hour},
		"forward, and the alarm before is due meanwhile": {45 * time.Second, time.Hour},
		"back": {10 * time.Minute, -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hands{base: time.Now()}
				c := New(Config{Hands: h})
				defer c.Stop()
				c.Alarm(func(uint64) {}).Set(c.Now().Add(test.first), 1)
				h.step.Store(int64(test.step))
				rung := make(chan time.Duration, 1)
				set := time.Now()
				c.Alarm(func(uint64) { rung <- time.Since(set) }).Set(c.Now().Add(time.Second), 1)
				require.Equal(t, time.Second, <-rung)
			})
		})
	}
}

func TestAStoppedClockIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		a := c.Alarm(func(uint64) { t.Error("rang") })
		a.Set(c.Now().Add(time.Second), 1)
		c.Stop()
		a.Set(c.Now().Add(time.Second), 2)
		time.Sleep(time.Hour) // virtual
	})
}
