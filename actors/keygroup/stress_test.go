package keygroup

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func newEngine(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Logger: actortest.Logger(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Stop(bg)) })
	return e
}

func TestAddsRacingCloseAreAdmittedOrRefusedAndNeverLost(t *testing.T) {
	for _, c := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
	}{
		{"patient", func() (context.Context, context.CancelFunc) { return context.WithCancel(bg) }},
		{"hasty", func() (context.Context, context.CancelFunc) { return context.WithTimeout(bg, 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for round := range 12 {
				var handled atomic.Int64
				g, err := New(Deps{Engine: newEngine(t)}, Config{Name: "race", Delay: time.Millisecond, MaxItems: 500}, batch.Sum[int64]{},
					func(_ context.Context, b *Batch[int, int64]) error {
						handled.Add(b.Value)
						return nil
					})
				require.NoError(t, err)
				var admitted atomic.Int64
				var wg sync.WaitGroup
				strange := make(chan error, 64)
				under := make(chan struct{})
				for p := range 64 {
					wg.Go(func() {
						for i := 0; ; i++ {
							err := g.Add(bg, (p+i)%100, 1)
							if err != nil {
								if !errors.Is(err, ErrClosed) {
									strange <- err
								}
								return
							}
							if admitted.Add(1) == int64(round*50+1) {
								close(under)
							}
						}
					})
				}
				<-under
				ctx, cancel := c.ctx()
				left, err := g.Close(ctx)
				cancel()
				wg.Wait()
				require.Empty(t, strange)
				var sum int64
				for _, v := range left {
					sum += v
				}
				require.Equal(t, len(left) > 0, err != nil)
				require.Equal(t, admitted.Load(), handled.Load()+sum)
				require.Zero(t, g.Pending())
				require.Zero(t, g.Keys())
			}
		})
	}
}

func TestPassivationRacingAddsLosesNothing(t *testing.T) {
	const producers, items, keys = 8, 1_000, 40
	var mu sync.Mutex
	last := map[string]int{} // per key and producer
	var handled, disorder int
	g, err := New(Deps{Engine: newEngine(t)}, Config{Name: "passivate", Delay: AtOnce, IdleAfter: time.Microsecond, MaxItems: 100}, batch.List[[2]int]{},
		func(_ context.Context, b *Batch[int, [][2]int]) error {
			mu.Lock()
			defer mu.Unlock()
			for _, v := range b.Value {
				at := fmt.Sprint(b.Key, "/", v[0])
				if v[1] <= last[at] {
					disorder++
				}
				last[at] = v[1]
				handled++
			}
			return nil
		})
	require.NoError(t, err)
	stop := make(chan struct{})
	var sweeper, wg sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				g.sweep()
				runtime.Gosched()
			}
		}
	})
	failed := make(chan error, producers)
	for p := range producers {
		wg.Go(func() {
			for i := 1; i <= items; i++ {
				if err := g.Add(bg, i%keys, [2]int{p, i}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	sweeper.Wait()
	require.Empty(t, failed)
	left, err := g.Close(bg)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, producers*items, handled)
	require.Zero(t, disorder)
	require.Greater(t, g.spawned.Load(), uint64(keys), "no key was ever forgotten: the test raced nothing")
}

func TestFlushesRacingAddsAlwaysReturn(t *testing.T) {
	g, err := New(Deps{Engine: newEngine(t)}, Config{Name: "flushes", Delay: time.Hour, BatchItems: 7}, batch.List[int]{},
		func(_ context.Context, b *Batch[int, []int]) error {
			if b.Value[0]%5 == 0 && b.Attempt == 1 {
				return later{errBoom, time.Millisecond}
			}
			return nil
		})
	require.NoError(t, err)
	var wg sync.WaitGroup
	failed := make(chan error, 8)
	for p := range 8 {
		wg.Go(func() {
			for i := range 200 {
				err := g.Add(bg, p%3, i)
				if err == nil && i%10 == p {
					err = g.Flush(bg)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, failed)
	require.NoError(t, g.Flush(bg))
	require.Zero(t, g.Pending())
	require.EqualValues(t, 1_600, g.Stats().Handled)
	_, err = g.Close(bg)
	require.NoError(t, err)
}

// TestAKeyIsSerialHoweverOftenItIsStopped stops keys from outside at the very moments at which handlers return and items come.
func TestAKeyIsSerialHoweverOftenItIsStopped(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		var atOnce, worst atomic.Int32
		w := newWorld(t, e, Config{Delay: time.Millisecond, BatchItems: 3, Attempts: 1}, func(_ context.Context, b *Batch[string, []int]) error {
			defer atOnce.Add(-1)
			if n := atOnce.Add(1); n > worst.Load() {
				worst.Store(n)
			}
			time.Sleep(time.Duration(b.Generation%4) * time.Millisecond)
			if b.Generation%3 == 0 {
				return errBoom
			}
			return nil
		})
		var admitted, refused atomic.Uint64
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 500 {
					switch err := w.Add(bg, "a", n); {
					case err == nil:
						admitted.Add(1)
					case errors.Is(err, ErrStopped):
						refused.Add(1)
					default:
						t.Errorf("add: %v", err)
					}
					time.Sleep(time.Duration(n%(i+2)) * time.Millisecond)
				}
			})
		}
		all.Go(func() {
			for range 300 {
				time.Sleep(3 * time.Millisecond)
				if s, err := w.place("a"); err == nil {
					if k := s.find("a"); k != nil {
						k.mu.Lock()
						ref := k.ref
						k.mu.Unlock()
						ref.Stop()
					}
				}
			}
		})
		all.Wait()
		pass(time.Minute)
		require.EqualValues(t, 1, worst.Load(), "two handlers of one key at once")
		require.Positive(t, refused.Load())
		w.close()
		require.Equal(t, admitted.Load(), w.Stats().Adds, "what was admitted was merged or buried")
	})
}
