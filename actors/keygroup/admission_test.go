package keygroup

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhoWaitsForRoomIsServedInOrderAndNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{limit: 10}
		require.True(t, a.try(8))
		var order []int64
		var mu sync.Mutex
		wait := func(n int64) {
			if a.wait(bg, n) == nil {
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
			}
		}
		go wait(5)
		synctest.Wait()
		go wait(2)
		synctest.Wait()
		require.False(t, a.try(1), "there is room for one, but somebody was here before")
		a.release(2)
		synctest.Wait()
		require.Empty(t, order)
		a.release(2)
		synctest.Wait()
		require.Equal(t, []int64{5}, order, "4 + 5 + 2 do not fit")
		a.release(1)
		synctest.Wait()
		require.Equal(t, []int64{5, 2}, order)
		require.EqualValues(t, 10, a.used.Load())
	})
}

func TestWhoGivesUpWaitingLetsThoseBehindIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{limit: 10}
		require.True(t, a.try(8))
		big := make(chan error, 1)
		small := make(chan error, 1)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		go func() { big <- a.wait(ctx, 5) }()
		synctest.Wait()
		go func() { small <- a.wait(bg, 2) }()
		require.ErrorIs(t, <-big, context.DeadlineExceeded)
		require.NoError(t, <-small)
		require.EqualValues(t, 10, a.used.Load())
	})
}

func TestAdmissionUnderStress(t *testing.T) {
	const limit, producers, rounds = 5, 16, 2_000
	a := &admission{limit: limit}
	var wg sync.WaitGroup
	over := make(chan int64, producers)
	for p := range producers {
		wg.Go(func() {
			n := int64(p%3 + 1)
			for range rounds {
				if !a.try(n) {
					if err := a.wait(bg, n); err != nil {
						over <- -1
						return
					}
				}
				if used := a.used.Load(); used > limit {
					over <- used
				}
				a.release(n)
			}
		})
	}
	wg.Wait()
	require.Empty(t, over)
	require.Zero(t, a.used.Load())
	require.Zero(t, a.queued.Load())
	a.close()
	require.ErrorIs(t, a.wait(bg, 1), ErrClosed)
}
