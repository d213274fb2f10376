package batch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlushWantsAllThatWasIn(t *testing.T) {
	k := newKey(t, perSecond)
	k.do(k.state.Flush())
	require.Equal(t, PhaseIdle, k.state.Phase(), "nothing to flush")
	k.add(1)
	k.do(k.state.Flush())
	r := k.start()
	require.Equal(t, Flush, r.Trigger)
	k.add(2)
	k.do(k.state.Flush())
	k.succeed(r)
	r = k.start()
	require.Equal(t, Flush, r.Trigger)
	k.succeed(r)
	require.Equal(t, k.state.Accepted(), k.state.Settled())
}

func TestG14AFlushedBatchStillWaitsForItsRetry(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1)
	k.do(k.state.Flush())
	k.fail(k.start(), Outcome{After: 10 * time.Second})
	k.do(k.state.Flush())
	require.Equal(t, PhaseBackingOff, k.state.Phase())
	require.Less(t, k.state.Settled(), k.state.Accepted())
	k.pass(10 * time.Second)
	k.succeed(k.start())
	require.Equal(t, k.state.Accepted(), k.state.Settled())
}

func TestG6CloseWithAPartBatch(t *testing.T) {
	k := newKey(t, Rules{Delay: time.Hour, Limit: 100, Attempts: 3})
	k.add(1, 2, 3)
	k.do(k.state.Close())
	r := k.start()
	require.Equal(t, []int{1, 2, 3}, r.Value)
	require.Equal(t, Close, r.Trigger)
	k.add(4) // was accepted before the close, and merged after it
	k.succeed(r)
	r = k.start()
	require.Equal(t, Close, r.Trigger)
	k.succeed(r)
	k.add(5)
	require.Equal(t, PhaseReady, k.state.Phase(), "a closing key waits for no delay")
	k.succeed(k.start())
	k.do(k.state.Close())
	require.Equal(t, 3, k.idle, "an idle key says so when it is closed")
}

func TestSurrenderGivesBackWhatNoHandlerHas(t *testing.T) {
	setup := map[string]struct {
		make func(k *key)
		end  func(k *key)
		left []int
		dead int
	}{
		"idle":        {make: func(*key) {}},
		"gathering":   {make: func(k *key) { k.add(1, 2) }, left: []int{1, 2}},
		"ready":       {make: func(k *key) { k.add(1, 2); k.do(k.state.Flush()) }, left: []int{1, 2}},
		"backing off": {make: func(k *key) { k.add(1); k.do(k.state.Flush()); k.fail(k.start(), Outcome{}); k.add(2) }, left: []int{1, 2}},
		"running, then handled": {
			make: func(k *key) { k.add(1); k.do(k.state.Flush()); k.start(); k.add(2) },
			end:  func(k *key) { k.succeed(k.runs[0]) },
			left: []int{2},
		},
		"running, then failed": {
			make: func(k *key) { k.add(1); k.do(k.state.Flush()); k.start(); k.add(2) },
			end:  func(k *key) { k.fail(k.runs[0], Outcome{}) },
			left: []int{1, 2},
		},
		"running, then dropped": {
			make: func(k *key) { k.add(1); k.do(k.state.Flush()); k.start(); k.add(2) },
			end:  func(k *key) { k.fail(k.runs[0], Outcome{Drop: true}) },
			left: []int{2}, dead: 1,
		},
		"running, abandoned, then failed": {
			make: func(k *key) { k.add(1); k.do(k.state.Flush()); k.start(); k.add(2) },
			end:  func(k *key) { k.do(k.state.Abandon()); k.do(k.state.Abandon()); k.fail(k.runs[0], Outcome{}) },
			left: []int{2}, dead: 1,
		},
		"running, abandoned, then handled": {
			make: func(k *key) { k.add(1); k.do(k.state.Flush()); k.start(); k.add(2) },
			end:  func(k *key) { k.do(k.state.Abandon()); k.succeed(k.runs[0]) },
			left: []int{2},
		},
	}
	for name, c := range setup {
		t.Run(name, func(t *testing.T) {
			k := newKey(t, perSecond)
			c.make(k)
			k.do(k.state.Surrender())
			k.do(k.state.Surrender())
			if c.end != nil {
				require.Empty(t, k.left)
				c.end(k)
			}
			require.Len(t, k.left, 1)
			require.Equal(t, c.left, k.left[0].Value)
			require.Equal(t, len(c.left), k.left[0].Items)
			require.Len(t, k.dead, c.dead)
			require.Equal(t, k.state.Accepted(), k.state.Settled())
			require.Equal(t, PhaseIdle, k.state.Phase())
			k.do(k.state.Tick(k.arm.Generation))
			k.do(k.state.Start(k.ready.Generation, k.now))
			require.Equal(t, 2, k.stale, "old ticks and permits change nothing")
			require.PanicsWithValue(t, "batch: Add of a state that is idle (ended), generation "+itoa(k.state.generation),
				func() { k.state.Add(1, k.now) })
		})
	}
}

func TestResumeAsksAgainForWhatIsAwaited(t *testing.T) {
	k := newKey(t, perSecond)
	k.do(k.state.Resume())
	require.Equal(t, PhaseIdle, k.state.Phase())

	k.add(1)
	old := k.arm
	k.do(k.state.Resume())
	require.Equal(t, old.Deadline, k.arm.Deadline)
	k.do(k.state.Tick(old.Generation))
	require.Equal(t, 1, k.stale, "the tick that was lost may still come")

	k.pass(time.Second)
	k.do(k.state.Resume())
	r := k.start()
	require.Equal(t, Time, r.Trigger)
	k.do(k.state.Resume())
	require.Equal(t, PhaseRunning, k.state.Phase())

	k.fail(r, Outcome{After: time.Second})
	old = k.arm
	k.do(k.state.Resume())
	require.Equal(t, old.Deadline, k.arm.Deadline)
	k.pass(time.Second)
	require.Equal(t, 2, k.start().Attempt)
}

func TestGiveUpMakesADeadLetterOfWhatIsGathered(t *testing.T) {
	k := newKey(t, perSecond)
	k.do(k.state.GiveUp(errBoom, k.now))
	require.Empty(t, k.dead)
	k.add(1, 2)
	k.do(k.state.Flush())
	k.do(k.state.GiveUp(errBoom, k.now))
	require.Equal(t, []int{1, 2}, k.dead[0].Batch.Value)
	require.Equal(t, PhaseIdle, k.state.Phase())
	k.add(3)
	k.do(k.state.Flush())
	r := k.start()
	k.add(4)
	k.do(k.state.GiveUp(errBoom, k.now))
	require.Equal(t, []int{4}, k.dead[1].Batch.Value)
	require.Equal(t, PhaseRunning, k.state.Phase(), "the batch out there is untouched")
	k.succeed(r)
	require.Equal(t, PhaseIdle, k.state.Phase())
}

// touchy panics where it is told to.
type touchy struct {
	List[int]
	in *string
}

func (a touchy) Merge(l []int, v int) []int { a.maybe("merge"); return a.List.Merge(l, v) }
func (a touchy) Take(l []int, n int) ([]int, []int) {
	a.maybe("take")
	return a.List.Take(l, n)
}
func (a touchy) Restore(t, r []int) []int { a.maybe("restore"); return a.List.Restore(t, r) }
func (a touchy) maybe(where string) {
	if *a.in == where {
		panic(where)
	}
}

func TestAPanicInTheAccumulatorLeavesTheStateAsItWas(t *testing.T) {
	in := ""
	k := newKey(t, perSecond)
	k.state.acc = touchy{in: &in}
	k.add(1)

	in = "merge"
	require.PanicsWithValue(t, "merge", func() { k.state.Add(2, k.now) })
	require.NoError(t, k.state.valid())

	k.do(k.state.Flush())
	in = "take"
	require.PanicsWithValue(t, "take", func() { k.state.Start(k.ready.Generation, k.now) })
	require.NoError(t, k.state.valid())

	in = ""
	r := k.start()
	k.add(3)
	in = "restore"
	require.PanicsWithValue(t, "restore", func() { k.state.Finished(r.Generation, Outcome{Err: errBoom}, k.now) })
	require.NoError(t, k.state.valid())
	require.Equal(t, PhaseRunning, k.state.Phase())
	k.fail(r, Outcome{Drop: true})
	require.Equal(t, []int{1}, k.dead[0].Batch.Value)
	require.Equal(t, []int{3}, k.start().Value)
}
