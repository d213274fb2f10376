package backoff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestArrows(t *testing.T) { deptest.Deps(t, ".", deptest.Kernel) }

func TestDelaysWithoutJitter(t *testing.T) {
	const s, m = time.Second, time.Minute
	for _, c := range []struct {
		name   string
		policy backoff.Policy
		want   []time.Duration // of attempts 1, 2, 3 …
	}{
		{"defaults", backoff.Policy{}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 5 * m, 5 * m}},
		{"capped", backoff.Policy{Initial: 3 * s, Max: 10 * s}, []time.Duration{3 * s, 6 * s, 10 * s, 10 * s}},
		{"slow growth", backoff.Policy{Initial: s, Factor: 1.5}, []time.Duration{s, 1500 * time.Millisecond, 2250 * time.Millisecond}},
		{"constant", backoff.Policy{Initial: 7 * s, Factor: 1}, []time.Duration{7 * s, 7 * s, 7 * s}},
		{"Initial beyond the default Max", backoff.Policy{Initial: time.Hour}, []time.Duration{time.Hour, time.Hour}},
		{"a nanosecond", backoff.Policy{Initial: 1, Max: 3}, []time.Duration{1, 2, 3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.policy.Validate())
			c.policy.Jitter = backoff.NoJitter
			require.NoError(t, c.policy.Validate())
			for i, want := range c.want {
				require.Equal(t, want, c.policy.Delay(i+1, rand.Uint64()), "attempt %d", i+1)
			}
		})
	}
}

func TestAttemptsBelowOneAreTheFirst(t *testing.T) {
	p := backoff.Policy{Jitter: backoff.NoJitter}
	for _, attempt := range []int{math.MinInt, -1, 0, 1} {
		require.Equal(t, time.Second, p.Delay(attempt, 0))
	}
}

func TestJitterTakesOff(t *testing.T) {
	for _, c := range []struct {
		jitter   float64
		rnd      uint64
		from, to time.Duration
	}{
		{0, 0, time.Second, time.Second}, // the default
		{0, math.MaxUint64, 800 * time.Millisecond, 800*time.Millisecond + 1},
		{0.5, 1 << 63, 750 * time.Millisecond, 750 * time.Millisecond},
		{1, 0, time.Second, time.Second},
		{1, 1 << 63, 500 * time.Millisecond, 500 * time.Millisecond},
		{1, math.MaxUint64, 1, time.Microsecond},
	} {
		got := backoff.Policy{Jitter: c.jitter}.Delay(1, c.rnd)
		require.GreaterOrEqual(t, got, c.from, "%+v", c)
		require.LessOrEqual(t, got, c.to, "%+v", c)
	}
}

func TestFullJitterIsSpreadEvenly(t *testing.T) {
	p := backoff.Policy{Initial: 10 * time.Second, Jitter: 1}
	var tenths [10]int
	for i := range 10_000 {
		tenths[min(9, p.Delay(1, backoff.Hash(fmt.Sprint("invoice-", i), 1))/time.Second)]++
	}
	for _, n := range tenths {
		require.InDelta(t, 1000, n, 150)
	}
}

// Whatever the policy, even one that Validate refuses, a delay is positive, within Max, and the same for the same arguments.
func TestDelayIsAlwaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := backoff.Policy{
			Initial: time.Duration(rapid.Int64().Draw(t, "initial")),
			Max:     time.Duration(rapid.Int64().Draw(t, "max")),
			Factor:  rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1))).Draw(t, "factor"),
			Jitter:  rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1), rapid.Just(math.NaN())).Draw(t, "jitter"),
		}
		attempt := rapid.Int().Draw(t, "attempt")
		rnd := rapid.Uint64().Draw(t, "rnd")
		got := p.Delay(attempt, rnd)
		require.Positive(t, got)
		require.LessOrEqual(t, got, max(1, p.WithDefaults().Max))
		require.Equal(t, got, p.Delay(attempt, rnd))
	})
}

func TestDelaysOfAValidPolicyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		initial := rapid.Int64Range(1, math.MaxInt64).Draw(t, "initial")
		p := backoff.Policy{
			Initial: time.Duration(initial),
			Max:     time.Duration(rapid.Int64Range(initial, math.MaxInt64).Draw(t, "max")),
			Factor:  rapid.Float64Range(1, 1e6).Draw(t, "factor"),
			Jitter:  backoff.NoJitter,
		}
		require.NoError(t, p.Validate())
		attempt := rapid.IntRange(1, 10_000).Draw(t, "attempt")
		require.LessOrEqual(t, p.Delay(attempt, 0), p.Delay(attempt+1, 0))
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		policy backoff.Policy
		want   string
	}{
		{backoff.Policy{}, ""},
		{backoff.Policy{Initial: time.Hour}, ""},
		{backoff.Policy{Jitter: 1, Factor: 1}, ""},
		{backoff.Policy{Initial: -1}, "backoff: Initial is -1ns, must be positive (0: 1s)"},
		{backoff.Policy{Max: -1}, "backoff: Max is -1ns, must be at least Initial, which is 1s"},
		{backoff.Policy{Max: time.Millisecond}, "backoff: Max is 1ms, must be at least Initial, which is 1s"},
		{backoff.Policy{Factor: 0.5}, "backoff: Factor is 0.5, must be at least 1 and finite (0: 2)"},
		{backoff.Policy{Factor: math.NaN()}, "backoff: Factor is NaN, must be at least 1 and finite (0: 2)"},
		{backoff.Policy{Factor: math.Inf(1)}, "backoff: Factor is +Inf, must be at least 1 and finite (0: 2)"},
		{backoff.Policy{Jitter: 1.5}, "backoff: Jitter is 1.5, must be 0 to 1 (0: 0.2) or NoJitter"},
		{backoff.Policy{Jitter: -0.5}, "backoff: Jitter is -0.5, must be 0 to 1 (0: 0.2) or NoJitter"},
		{backoff.Policy{Jitter: math.NaN()}, "backoff: Jitter is NaN, must be 0 to 1 (0: 0.2) or NoJitter"},
	} {
		if c.want == "" {
			require.NoError(t, c.policy.Validate())
		} else {
			require.EqualError(t, c.policy.Validate(), c.want)
		}
	}
}

func TestHash(t *testing.T) {
	seen := map[uint64]bool{}
	for key := range 1000 {
		for attempt := range 10 {
			seen[backoff.Hash(fmt.Sprint(key), attempt)] = true
		}
	}
	require.Len(t, seen, 10_000)
	// It must not change between versions: delays of running retries would.
	require.Equal(t, uint64(0x15b3183c9f985b7e), backoff.Hash("invoice-nightly", 3))
}

func BenchmarkDelay(b *testing.B) {
	var p backoff.Policy
	for i := 0; b.Loop(); i++ {
		p.Delay(i%20, backoff.Hash("invoice-nightly", i))
	}
}
