package workers_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/quarterjack/quarterjack/internal/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPermitsAreBounded(t *testing.T) {
	p := workers.New(2)
	require.Equal(t, 2, p.Size())
	require.True(t, p.TryAcquire())
	require.True(t, p.TryAcquire())
	require.False(t, p.TryAcquire())
	require.Equal(t, 2, p.InUse())
	p.Release()
	require.Equal(t, 1, p.InUse())
	require.True(t, p.TryAcquire())
	p.Release()
	p.Release()
	require.Zero(t, p.InUse())
}

func TestWaitersAreServedInTurnAndNotOvertaken(t *testing.T) {
	p := workers.New(1)
	var served []int
	p.Acquire(func() { served = append(served, 0) })
	require.Equal(t, []int{0}, served, "at once")
	for i := 1; i <= 20; i++ {
		p.Acquire(func() { served = append(served, i) })
	}
	require.Equal(t, 20, p.Waiting())
	for i := 1; i <= 20; i++ {
		require.False(t, p.TryAcquire(), "somebody waits")
		p.Release()
		require.Len(t, served, i+1)
		require.Equal(t, 1, p.InUse())
		require.Equal(t, 20-i, p.Waiting())
	}
	require.True(t, slices.IsSorted(served))
	p.Release()
	require.Zero(t, p.InUse())
	require.True(t, p.TryAcquire())
}

// A waiter that wants its permit no more gives it back within its fn; all behind it have their turn all the same.
func TestWaiterMayReleaseAtOnce(t *testing.T) {
	p := workers.New(1)
	require.True(t, p.TryAcquire())
	const waiters = 100_000
	served := 0
	for range waiters {
		p.Acquire(func() {
			served++
			p.Release()
		})
	}
	p.Release()
	require.Equal(t, waiters, served)
	require.Zero(t, p.InUse())
}

func TestGoReleasesWhateverTheWorkDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workers.New(2)
		for _, work := range []func(){
			func() {},
			func() { runtime.Goexit() },
			func() { defer func() { _ = recover() }(); panic("caught") },
			func() { time.Sleep(time.Second) },
		} {
			p.Acquire(func() { p.Go(work) })
		}
		require.NoError(t, p.Wait(t.Context()))
		require.Zero(t, p.InUse())
		require.Zero(t, p.Waiting())
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workers.New(1)
		require.NoError(t, p.Wait(t.Context()), "idle already")

		start := time.Now()
		for range 3 {
			p.Acquire(func() { p.Go(func() { time.Sleep(time.Minute) }) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "workers: 1 of 1 permits are held and 2 wanted: context deadline exceeded")

		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if err := p.Wait(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		require.Equal(t, 3*time.Minute, time.Since(start), "those that wait count too")
		require.NoError(t, p.Wait(ctx), "what is so is so, whatever the context")
	})
}

func TestMisuse(t *testing.T) {
	require.PanicsWithValue(t, "workers: a pool of 0 permits, must be at least 1", func() { workers.New(0) })
	require.PanicsWithValue(t, "workers: Release of a permit that nobody holds", func() { workers.New(1).Release() })
}

func TestManyAtOnce(t *testing.T) {
	const permits, producers, each = 3, 8, 5000
	p := workers.New(permits)
	var running, ran atomic.Int64
	var producing, done sync.WaitGroup
	done.Add(producers * each)
	work := func() {
		defer done.Done()
		if n := running.Add(1); n > permits {
			t.Errorf("%d run at once", n)
		}
		running.Add(-1)
		if ran.Add(1)%7 == 0 {
			runtime.Goexit()
		}
	}
	for range producers {
		producing.Go(func() {
			for i := range each {
				if i%2 == 0 && p.TryAcquire() {
					p.Go(work)
					continue
				}
				p.Acquire(func() { p.Go(work) })
			}
		})
	}
	producing.Wait()
	done.Wait()
	require.NoError(t, p.Wait(t.Context()))
	require.Equal(t, int64(producers*each), ran.Load())
	require.Zero(t, p.Waiting())
}

// A plain slice judges the pool.
func TestPoolAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 4).Draw(t, "size")
		p := workers.New(size)
		held, next := 0, 0
		var waiting, served, want []int
		t.Repeat(map[string]func(*rapid.T){
			"try": func(*rapid.T) {
				free := held < size
				require.Equal(t, free, p.TryAcquire())
				if free {
					held++
				}
			},
			"acquire": func(*rapid.T) {
				id := next
				next++
				p.Acquire(func() { served = append(served, id) })
				if held < size {
					held++
					want = append(want, id)
				} else {
					waiting = append(waiting, id)
				}
			},
			"release": func(*rapid.T) {
				if held == 0 {
					return
				}
				p.Release()
				if len(waiting) == 0 {
					held--
				} else {
					want, waiting = append(want, waiting[0]), waiting[1:]
				}
			},
			"": func(*rapid.T) {
				require.Equal(t, held, p.InUse())
				require.Equal(t, len(waiting), p.Waiting())
				require.Equal(t, want, served)
			},
		})
	})
}

func BenchmarkAcquireRelease(b *testing.B) {
	p := workers.New(4)
	b.ReportAllocs()
	for b.Loop() {
		p.Acquire(func() {})
		p.Release()
	}
}
