package keygroup

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// bed is a sleeper that notes when it was rung, and with what.
type bed struct {
	token atomic.Uint64
	mu    sync.Mutex
	rung  []uint64
	at    time.Time
	ended sync.WaitGroup // of the entry with the token last
	last  uint64
}

func (b *bed) awaited() *atomic.Uint64 { return &b.token }
func (b *bed) ring(token uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rung, b.at = append(b.rung, token), time.Now()
	if token == b.last {
		b.ended.Done()
	}
}

// heard returns the tokens that it was rung with, and when it was last.
func (b *bed) heard() ([]uint64, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.rung), b.at
}

func newAlarm() *alarm[*bed] { return &alarm[*bed]{now: time.Now, epoch: time.Now()} }

func TestAlarmRingsEachAtItsTimeWithTheLastTokenOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2_000
		a := newAlarm()
		rnd := rand.New(rand.NewPCG(1, 2))
		began := time.Now()
		beds := make([]bed, n)
		want := make([]time.Duration, n)
		for round := uint64(1); round <= 5; round++ {
			for i := range beds {
				want[i] = time.Duration(rnd.IntN(10_000)) * time.Millisecond
				a.set(began.Add(want[i]), &beds[i], round)
			}
		}
		require.Less(t, len(a.heap), 2*n+200, "what was dropped does not pile up")
		for i := 0; i < n; i += 10 {
			a.drop(&beds[i])
			a.drop(&beds[i])
		}
		pass(time.Minute)
		for i := range beds {
			rung, at := beds[i].heard()
			if i%10 == 0 {
				require.Empty(t, rung)
				continue
			}
			require.Equal(t, []uint64{5}, rung)
			require.Equal(t, want[i], at.Sub(began))
		}
		require.Empty(t, a.heap)
		require.Zero(t, a.stale)
	})
}

func TestAlarmIsSetAnewForAnEarlierTimeAndAfterItRang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarm()
		began := time.Now()
		var late, early, past bed
		heard := func(b *bed) []uint64 { rung, _ := b.heard(); return rung }
		a.set(began.Add(time.Hour), &late, 1)
		a.set(began.Add(time.Second), &early, 1)
		a.set(began.Add(-time.Second), &past, 1)
		pass(time.Second)
		require.Equal(t, []uint64{1}, heard(&past))
		require.Equal(t, []uint64{1}, heard(&early))
		a.set(began.Add(2*time.Second), &early, 2)
		pass(time.Second)
		require.Equal(t, []uint64{1, 2}, heard(&early))
		require.Empty(t, heard(&late))
		pass(time.Hour)
		_, at := late.heard()
		require.Equal(t, time.Hour, at.Sub(began))
	})
}

func TestAlarmUnderStressRingsOrDropsEachOnce(t *testing.T) {
	const sleepers, rounds = 8, 2_000
	a := newAlarm()
	beds := make([]bed, sleepers)
	var wg sync.WaitGroup
	for i := range beds {
		wg.Go(func() {
			b := &beds[i]
			b.last = rounds + 1
			b.ended.Add(1)
			for token := uint64(1); token <= rounds; token++ {
				a.set(time.Now().Add(time.Duration(token%50)*time.Microsecond), b, token)
				if token%3 == 0 {
					a.drop(b)
				}
			}
			a.set(time.Now(), b, b.last)
		})
	}
	wg.Wait()
	for i := range beds {
		beds[i].ended.Wait()
		rung, _ := beds[i].heard()
		slices.Sort(rung) // two firings may ring in another order than they took them off
		require.Len(t, slices.Compact(rung), len(rung), "rung twice with one token")
	}
}
