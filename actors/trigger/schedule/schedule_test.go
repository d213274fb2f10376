package schedule

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestKernelIsPure(t *testing.T) { deptest.Deps(t, ".", deptest.Kernel) }

func day(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestBadSchedulesNameFieldValueAndWhatIsAllowed(t *testing.T) {
	at := day("2026-03-02 10:00:00")
	for says, s := range map[string]Schedule{
		"period is 0s, want at least 1ms":        Every(0),
		"period is -1s":                          Delay(-time.Second),
		"period is 1ns":                          Every(1),
		"period is 1.0000001s, want whole micro": Every(time.Second + 100),
		"count is 0, want at least 1":            Every(time.Second).Times(0),
		"count is -2":                            Every(time.Second).Times(-2),
		"count is 2, a one-shot is due once":     Once(at).Times(2),
		"at is the zero time":                    Once(time.Time{}),
		"start is 10000-01-01":                   Once(day("2026-01-01 00:00:00").AddDate(7974, 0, 0)),
		"end is 2026-03-02T10:00:00Z, want it after the start, 2026-03-02T10:00:00Z": Every(time.Second).From(at).Until(at),
		"kind is missing": Schedule{}.From(at),
	} {
		err := s.Validate()
		require.ErrorIs(t, err, ErrBad, says)
		require.ErrorContains(t, err, says)
	}
	require.ErrorIs(t, Cron("0 0 3 * * ?", "Europe/Berlin").Validate(), ErrCron)
	for _, s := range []Schedule{{}, Once(at), Every(MinPeriod), Every(math.MaxInt64 / 1000 * 1000), Delay(time.Hour).From(at).Until(Latest).Times(math.MaxInt64)} {
		require.NoError(t, s.Validate(), s)
	}
}

func TestAScheduleIsAValue(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 1_500, time.FixedZone("", 3600))
	s := Every(5 * time.Second)
	require.NotEqual(t, s, s.From(at))
	require.Equal(t, s, Every(5*time.Second))
	require.Equal(t, day("2026-03-02 09:00:00").Add(time.Microsecond), s.From(at).Start(), "UTC, and no finer than a store keeps")
}

func TestSchedulesReadWell(t *testing.T) {
	at := day("2026-03-02 10:00:00")
	for want, s := range map[string]Schedule{
		"never by itself":              {},
		"once at 2026-03-02T10:00:00Z": Once(at),
		"every 5s":                     Every(5 * time.Second),
		"delay 1m30s times 7":          Delay(90 * time.Second).Times(7),
		"every 1h0m0s from 2026-03-02T10:00:00Z until 2026-03-03T10:00:00Z times 3": Every(time.Hour).From(at).Until(at.AddDate(0, 0, 1)).Times(3),
		`cron "0 0 3 * * ?" in Europe/Berlin`:                                       Cron("0 0 3 * * ?", "Europe/Berlin"),
	} {
		require.Equal(t, want, s.String())
		b, err := json.Marshal(s)
		require.NoError(t, err)
		var back string
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, want, back)
	}
}

func TestTheGridNeverOverflows(t *testing.T) {
	g := Grid{Start: day("2026-03-02 10:00:00"), Period: time.Millisecond}
	for _, k := range []int64{math.MaxInt64, math.MaxInt64 / 2, 1 << 60} {
		_, ok := g.At(k)
		require.False(t, ok, k)
	}
	_, ok := g.At(-1)
	require.False(t, ok)
	long := Grid{Start: Earliest, Period: 292 * 365 * 24 * time.Hour}
	last, ok := long.At(30)
	require.True(t, ok)
	require.EqualValues(t, 30, long.Index(last))
	require.EqualValues(t, 29, long.Index(last.Add(-1)))
	require.EqualValues(t, -1, long.Index(Earliest.Add(-1)))
}

// TestTheGridAgreesWithBigNumbers holds the arithmetic against arithmetic that has no bounds.
func TestTheGridAgreesWithBigNumbers(t *testing.T) {
	nanos := func(t time.Time) *big.Int {
		n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
		return n.Add(n, big.NewInt(int64(t.Nanosecond())))
	}
	rapid.Check(t, func(t *rapid.T) {
		g := Grid{
			Start:  time.Unix(rapid.Int64Range(Earliest.Unix(), Latest.Unix()).Draw(t, "start"), rapid.Int64Range(0, 999_999).Draw(t, "micros")*1000).UTC(),
			Period: time.Duration(rapid.Int64Range(1000, math.MaxInt64/1000).Draw(t, "period")) * time.Microsecond,
		}
		k := rapid.Int64Range(0, 1<<40).Draw(t, "k")
		want := new(big.Int).Mul(big.NewInt(k), big.NewInt(int64(g.Period)))
		want.Add(want, nanos(g.Start))
		at, ok := g.At(k)
		if inside := want.Cmp(nanos(Latest)) <= 0; ok != inside {
			t.Fatalf("At(%d) of %+v: ok is %v, the instant is within bounds: %v", k, g, ok, inside)
		}
		if !ok {
			return
		}
		if nanos(at).Cmp(want) != 0 {
			t.Fatalf("At(%d) of %+v is %v, want %v ns", k, g, at, want)
		}
		if got := g.Index(at); got != k {
			t.Fatalf("Index(At(%d)) of %+v is %d", k, g, got)
		}
		if got := g.Index(at.Add(-1)); got != k-1 {
			t.Fatalf("Index just before At(%d) of %+v is %d", k, g, got)
		}
	})
}
