package restart_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/deptest"
	"github.com/quarterjack/quarterjack/supervisor/restart"
)

func TestArrows(t *testing.T) { deptest.Deps(t, ".", deptest.Kernel) }

var errBoom = errors.New("boom")

// exact is a policy whose delays are what they say.
var exact = backoff.Policy{Jitter: backoff.NoJitter}

// at reads a date of the tables.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse("2006-01-02 15:04:05", text)
	require.NoError(t, err)
	return when
}

// step is one failure and the answer to it: a delay, or "parked".
type step struct {
	when string
	want string
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy restart.Policy
		steps  []step
	}{
		{"a fault that lasts is parked after ten restarts in the hour", restart.Policy{}, []step{
			{"2026-03-01 12:00:00", "1s"},
			{"2026-03-01 12:00:01", "2s"},
			{"2026-03-01 12:00:03", "4s"},
			{"2026-03-01 12:00:07", "8s"},
			{"2026-03-01 12:00:15", "16s"},
			{"2026-03-01 12:00:31", "32s"},
			{"2026-03-01 12:01:03", "1m4s"},
			{"2026-03-01 12:02:07", "2m8s"},
			{"2026-03-01 12:04:15", "4m16s"},
			{"2026-03-01 12:08:31", "5m0s"},
			{"2026-03-01 12:13:31", "parked"},
		}},
		{"quiet for ten minutes since it was back forgets everything", restart.Policy{}, []step{
			{"2026-03-01 12:00:00", "1s"},
			{"2026-03-01 12:00:01", "2s"},
			{"2026-03-01 12:10:02", "4s"}, // back at 12:00:03, so a second short of ten minutes
			{"2026-03-01 12:20:06", "1s"}, // back at 12:10:06
			{"2026-03-01 12:20:10", "2s"},
		}},
		{"the wait for a restart is not quiet", restart.Policy{Quiet: time.Minute, Backoff: backoff.Policy{Initial: 10 * time.Minute, Max: 20 * time.Minute}, Window: 10 * time.Hour}, []step{
			{"2026-03-01 12:00:00", "10m0s"},
			{"2026-03-01 12:10:59", "20m0s"}, // back at 12:10:00
			{"2026-03-01 12:31:59", "10m0s"}, // back at 12:30:59
		}},
		{"restarts older than the window do not count, but the delay stays", restart.Policy{MaxRestarts: 2, Window: 10 * time.Minute, Quiet: time.Hour}, []step{
			{"2026-03-01 12:00:00", "1s"},
			{"2026-03-01 12:05:00", "2s"},
			{"2026-03-01 12:10:00", "4s"},
			{"2026-03-01 12:14:59", "parked"},
		}},
		{"at the window's edge it has left", restart.Policy{MaxRestarts: 1, Window: time.Minute, Quiet: time.Hour}, []step{
			{"2026-03-01 12:00:00", "1s"},
			{"2026-03-01 12:01:00", "2s"},
			{"2026-03-01 12:01:59", "parked"},
		}},
		{"None grants no restart", restart.Policy{MaxRestarts: restart.None}, []step{
			{"2026-03-01 12:00:00", "parked"},
		}},
		{"over the turn of a year", restart.Policy{MaxRestarts: 2}, []step{
			{"2026-12-31 23:59:58", "1s"},
			{"2026-12-31 23:59:59", "2s"},
			{"2027-01-01 00:00:01", "parked"},
		}},
		{"a clock that steps back makes nothing old or quiet", restart.Policy{MaxRestarts: 3}, []step{
			{"2026-03-01 12:00:00", "1s"},
			{"2026-03-01 10:00:00", "2s"},
			{"2026-03-01 10:00:02", "4s"},
			{"2026-03-01 10:00:06", "parked"},
		}},
		{"and is over it when those have left the window", restart.Policy{MaxRestarts: 3, Quiet: 5 * time.Hour}, []step{
			{"2026-03-01 12:00:00", "1s"},
			{"2026-03-01 10:00:00", "2s"},
			{"2026-03-01 12:30:00", "4s"}, // that of 10:00 has left
			{"2026-03-01 12:30:04", "8s"},
			{"2026-03-01 12:30:12", "parked"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.policy.Backoff.Jitter = backoff.NoJitter
			require.NoError(t, c.policy.Validate())
			var h restart.History
			for _, s := range c.steps {
				var d restart.Decision
				h, d = restart.Decide(h, c.policy, restart.Failure{Reason: errBoom}, at(t, s.when), rand.Uint64())
				got := "parked"
				if d.Restart {
					got = d.After.String()
				}
				require.Equal(t, s.want, got, "%s: %s", s.when, d.Why)
			}
		})
	}
}

func TestMessageIsRedeliveredSoOften(t *testing.T) {
	for _, c := range []struct {
		redeliver int
		same      int
		want      bool
	}{
		{0, 0, false}, // no message
		{0, 1, true},
		{0, 2, true},
		{0, 3, false},
		{1, 1, true},
		{1, 2, false},
		{restart.None, 1, false},
	} {
		_, d := restart.Decide(restart.History{}, restart.Policy{Redeliver: c.redeliver}, restart.Failure{SameMessage: c.same}, time.Time{}, 0)
		require.True(t, d.Restart)
		require.Equal(t, c.want, d.Redeliver, "%+v", c)
	}
}

func TestWhyIsForPeople(t *testing.T) {
	p := restart.Policy{Backoff: exact, MaxRestarts: 2}
	now := at(t, "2026-03-01 12:00:00")
	h, d := restart.Decide(restart.History{}, p, restart.Failure{Reason: errBoom, SameMessage: 1}, now, 0)
	require.Equal(t, "restart 1 of 2 within 1h0m0s, in 1s with the same message again: boom", d.Why)
	h, d = restart.Decide(h, p, restart.Failure{Reason: errBoom, SameMessage: 3}, now, 0)
	require.Equal(t, "restart 2 of 2 within 1h0m0s, in 2s without the message, which has made it fail 3 times: boom", d.Why)
	_, d = restart.Decide(h, p, restart.Failure{Reason: "text"}, now, 0)
	require.Equal(t, "parked after 2 restarts within 1h0m0s: text", d.Why)
	_, d = restart.Decide(restart.History{}, p, restart.Failure{Reason: errBoom}, now, 0)
	require.Equal(t, "restart 1 of 2 within 1h0m0s, in 1s: boom", d.Why)
}

func TestHistoryIsAValue(t *testing.T) {
	p := restart.Policy{Backoff: exact}
	now := at(t, "2026-03-01 12:00:00")
	one, _ := restart.Decide(restart.History{}, p, restart.Failure{}, now, 0)
	left, l := restart.Decide(one, p, restart.Failure{}, now.Add(time.Second), 0)
	right, r := restart.Decide(one, p, restart.Failure{}, now.Add(2*time.Second), 0)
	require.Equal(t, l, r)
	require.NotEqual(t, left, right)
	require.Equal(t, 1, one.Restarts())
	require.Equal(t, 2, left.Restarts())
	again, _ := restart.Decide(one, p, restart.Failure{}, now.Add(time.Second), 0)
	require.Equal(t, left, again)
}

// Whatever happens when: the history is bounded, no window sees more restarts than granted, and the same input gives the same.
func TestDecideKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := restart.Policy{
			Backoff:     backoff.Policy{Initial: time.Second, Max: 30 * time.Second},
			MaxRestarts: rapid.SampledFrom([]int{restart.None, 1, 2, 5, 10}).Draw(t, "maxRestarts"),
			Window:      time.Duration(rapid.IntRange(301, 3600).Draw(t, "window")) * time.Second,
			Quiet:       time.Hour,
		}
		require.NoError(t, p.Validate())
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		var h restart.History
		var granted []time.Time
		for range rapid.IntRange(1, 100).Draw(t, "failures") {
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second)
			rnd := rapid.Uint64().Draw(t, "rnd")
			next, d := restart.Decide(h, p, restart.Failure{}, now, rnd)
			same, again := restart.Decide(h, p, restart.Failure{}, now, rnd)
			require.Equal(t, next, same)
			require.Equal(t, d, again)
			require.LessOrEqual(t, next.Restarts(), max(p.MaxRestarts, 0))
			if d.Restart {
				require.Positive(t, d.After)
				require.LessOrEqual(t, d.After, 30*time.Second)
				granted = append(granted, now)
			}
			h = next
		}
		for i, first := range granted {
			within := 0
			for _, g := range granted[i:] {
				if g.Sub(first) < p.Window {
					within++
				}
			}
			require.LessOrEqual(t, within, p.MaxRestarts)
		}
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		policy restart.Policy
		want   string
	}{
		{restart.Policy{}, ""},
		{restart.Policy{MaxRestarts: restart.None, Redeliver: restart.None}, ""},
		{restart.Policy{MaxRestarts: 1000, Window: 100 * time.Hour}, ""},
		{restart.Policy{Backoff: backoff.Policy{Initial: -1}}, "restart: Backoff: backoff: Initial is -1ns, must be positive (0: 1s)"},
		{restart.Policy{MaxRestarts: -2}, "restart: MaxRestarts is -2, must be 1 to 1000 (0: 10) or None"},
		{restart.Policy{MaxRestarts: 1001}, "restart: MaxRestarts is 1001, must be 1 to 1000 (0: 10) or None"},
		{restart.Policy{Window: -1}, "restart: Window is -1ns, must be positive (0: 1h0m0s)"},
		{restart.Policy{Quiet: -1}, "restart: Quiet is -1ns, must be positive (0: 10m0s)"},
		{restart.Policy{Redeliver: -2}, "restart: Redeliver is -2, must be positive (0: 2) or None"},
		{restart.Policy{Window: 10 * time.Minute}, "restart: Window is 10m0s, must be longer than what MaxRestarts (10) delays of Backoff may add up to"},
		{restart.Policy{MaxRestarts: 1000}, "restart: Window is 1h0m0s, must be longer than what MaxRestarts (1000) delays of Backoff may add up to"},
	} {
		err := c.policy.Validate()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.Error(t, err)
		require.True(t, strings.HasPrefix(err.Error(), c.want), err)
	}
}
