package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// taskFunc is a task made of a function.
type taskFunc func() bool

func (f taskFunc) turn() bool { return f() }

func once(f func()) taskFunc { return func() bool { f(); return false } }

func TestPoolRunsAtMostLimitAtOnceAndThenNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{limit: 3}
		var running, most, ran int64
		for range 100 {
			p.add(once(func() {
				n := atomic.AddInt64(&running, 1)
				for old := atomic.LoadInt64(&most); n > old && !atomic.CompareAndSwapInt64(&most, old, n); {
					old = atomic.LoadInt64(&most)
				}
				time.Sleep(time.Second)
				atomic.AddInt64(&running, -1)
				atomic.AddInt64(&ran, 1)
			}))
		}
		start := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, int64(3), most)
		require.Equal(t, int64(100), ran)
		require.Equal(t, time.Minute, time.Since(start))
		require.Zero(t, p.running)
		require.Equal(t, queue{}, p.queue)
	})
}

func TestPoolRunsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{limit: 1}
		var got []string
		rounds := 0
		p.add(once(func() { time.Sleep(time.Second) }))
		p.add(taskFunc(func() bool {
			got = append(got, "again")
			rounds++
			return rounds < 3
		}))
		for range 2 {
			p.add(once(func() { got = append(got, "once") }))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"again", "once", "once", "again", "again"}, got, "who asks again goes to the end")
	})
}

// The dispatcher must drop nothing: a mailbox whose turn is lost is stuck for ever.
func TestHazardDispatcherNeverDrops(*testing.T) {
	p := &pool{limit: 2}
	const producers, each = 8, 20_000
	var ran, producing sync.WaitGroup
	ran.Add(producers * each)
	for range producers {
		producing.Go(func() {
			for range each {
				p.add(once(ran.Done))
			}
		})
	}
	producing.Wait()
	ran.Wait()
}

func TestHazardGoexitEndsNoWorker(*testing.T) {
	p := &pool{limit: 2}
	const tasks = 10_000
	var ran sync.WaitGroup
	ran.Add(tasks)
	for i := range tasks {
		p.add(once(func() {
			ran.Done()
			if i%3 == 0 {
				runtime.Goexit()
			}
		}))
	}
	ran.Wait()
}

// Adding returns at once, whatever the workers do.
func TestPoolNeverBlocksWhoAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{limit: 1}
		release := make(chan struct{})
		ran := 0
		p.add(once(func() { <-release }))
		for range 100_000 {
			p.add(once(func() { ran++ }))
		}
		close(release)
		synctest.Wait()
		require.Equal(t, 100_000, ran)
	})
}
