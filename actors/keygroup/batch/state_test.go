package batch

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var perSecond = Rules{Delay: time.Second, Limit: 100, Attempts: 3, Timeout: time.Minute}

func TestDelayCountsFromTheFirstItemOfABatch(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1)
	require.Equal(t, noon.Add(time.Second), k.arm.Deadline)
	k.pass(900 * time.Millisecond)
	k.add(2)
	require.Equal(t, PhaseGathering, k.state.Phase())
	k.pass(100 * time.Millisecond)
	r := k.start()
	require.Equal(t, []int{1, 2}, r.Value)
	require.Equal(t, Time, r.Trigger)
	require.Equal(t, 1, r.Attempt)
	require.Equal(t, noon, r.First)
	require.Equal(t, noon.Add(900*time.Millisecond), r.Last)
	k.succeed(r)
	require.Equal(t, PhaseIdle, k.state.Phase())
	require.Equal(t, 1, k.idle)
}

func TestG17SteadyTrickleStillFlushes(t *testing.T) {
	k := newKey(t, perSecond)
	for i := range 100 {
		k.add(i)
		k.pass(100 * time.Millisecond)
		if k.state.Phase() == PhaseReady {
			k.succeed(k.start())
		}
	}
	require.Len(t, k.runs, 10)
	for _, r := range k.runs {
		require.Equal(t, 10, r.Items)
	}
}

func TestAFullBatchIsDueAtOnce(t *testing.T) {
	k := newKey(t, perSecond)
	k.addRange(1, 99)
	require.Equal(t, PhaseGathering, k.state.Phase())
	k.add(100)
	require.Equal(t, PhaseReady, k.state.Phase())
	require.Equal(t, Size, k.start().Trigger)
}

func TestDelayZeroIsDueAtOnceAndMergesWhileItWaitsForAWorker(t *testing.T) {
	k := newKey(t, Rules{Attempts: 1})
	k.add(1)
	require.Equal(t, PhaseReady, k.state.Phase())
	k.add(2, 3)
	require.Equal(t, []int{1, 2, 3}, k.start().Value)
}

func TestG1LateCompletionWithNothingLeft(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1)
	k.pass(time.Second)
	first := k.start()
	k.pass(2 * time.Minute) // its timeout is over, but it waits it out: nothing else starts
	k.add(2)
	k.do(k.state.Start(k.ready.Generation, k.now))
	require.Len(t, k.runs, 1)
	k.fail(first, Outcome{After: time.Second})
	require.Equal(t, 1, k.late)
	k.pass(time.Second)
	second := k.start()
	require.Equal(t, []int{1, 2}, second.Value)

	k.succeed(first) // generation 1 says once more that it is done
	require.Equal(t, PhaseRunning, k.state.Phase(), "the registration of generation 2 stands")
	require.Equal(t, 2, k.late)
	k.succeed(second)
	require.Equal(t, 1, k.idle)
	require.Equal(t, PhaseIdle, k.state.Phase())
}

func TestG2LateCompletionDoesNotSubtract(t *testing.T) {
	k := newKey(t, perSecond)
	k.addRange(1, 10)
	k.pass(time.Second)
	first := k.start()
	k.pass(2 * time.Minute)
	k.addRange(11, 15)
	k.succeed(first) // after its timeout: it is counted, and what it handled is handled
	require.Equal(t, 1, k.late)
	second := k.start()
	require.Equal(t, seq(11, 15), second.Value)
	k.succeed(first)
	require.Equal(t, 2, k.late)
	k.succeed(second)
	require.Equal(t, 0, k.state.Gathered())
	require.EqualValues(t, 15, k.state.Settled())
}

func TestG4OutgrownWhileInFlight(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(0)
	k.pass(time.Second)
	r := k.start()
	k.addRange(1, 350)
	for _, want := range [][]int{seq(1, 100), seq(101, 200), seq(201, 300), seq(301, 350)} {
		k.succeed(r)
		r = k.start()
		require.Equal(t, want, r.Value)
		require.Equal(t, len(want), r.Items)
		require.Equal(t, Follow, r.Trigger)
	}
	k.succeed(r)
	require.Equal(t, PhaseIdle, k.state.Phase())
}

// heavy are items that weigh what they are.
type heavy struct{ List[int] }

func (heavy) Weight(a []int) (w int) {
	for _, v := range a {
		w += v
	}
	return w
}

func (heavy) Take(a []int, limit int) (taken, rest []int) {
	if limit == 0 {
		return a, nil
	}
	n, w := 1, a[0]
	for n < len(a) && w+a[n] <= limit {
		w += a[n]
		n++
	}
	return a[:n:n], a[n:]
}

func TestG5UnevenWeights(t *testing.T) {
	for name, c := range map[string]struct {
		items []int
		want  [][]int
	}{
		"7, 7, 7 are three batches":  {[]int{7, 7, 7}, [][]int{{7}, {7}, {7}}},
		"a 9 goes alone":             {[]int{9}, [][]int{{9}}},
		"a 9 goes alone among small": {[]int{1, 9, 2}, [][]int{{1}, {9}, {2}}},
		"small ones share":           {[]int{2, 3, 3, 8}, [][]int{{2, 3, 3}, {8}}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKey(t, Rules{Delay: time.Second, Limit: 8, Attempts: 1})
			k.state.acc = heavy{}
			k.add(c.items...)
			k.do(k.state.Flush())
			var got [][]int
			for k.state.Phase() == PhaseReady {
				r := k.start()
				got = append(got, r.Value)
				k.succeed(r)
			}
			require.Equal(t, c.want, got)
			require.EqualValues(t, len(c.items), k.state.Settled())
			require.Equal(t, PhaseIdle, k.state.Phase())
		})
	}
}

func TestShareOfACutBatch(t *testing.T) {
	for name, c := range map[string]struct{ n, taken, rest, want int }{
		"items weigh 1":        {350, 100, 250, 100},
		"nothing rests":        {3, 100, 0, 3},
		"one item in parts":    {1, 100, 400, 0},
		"heavier than its own": {3, 7, 14, 1},
		"huge weights":         {1 << 40, 1 << 50, 1 << 50, 1 << 39},
		"a negative weight":    {3, -1, 4, 0},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, share(c.n, c.taken, c.rest)) })
	}
}

func TestG11AFailingHandlerBacksOff(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1, 2)
	k.pass(time.Second)
	r := k.start()
	k.add(3)
	k.fail(r, Outcome{After: 0})
	require.Equal(t, PhaseBackingOff, k.state.Phase())
	require.Equal(t, k.now.Add(MinBackoff), k.arm.Deadline, "never at delay zero")
	k.add(4)
	require.Equal(t, PhaseBackingOff, k.state.Phase(), "new items merge and cut no wait short")
	k.addRange(5, 200)
	require.Equal(t, PhaseBackingOff, k.state.Phase(), "nor does a full batch")
	k.pass(MinBackoff)
	r = k.start()
	require.Equal(t, seq(1, 100), r.Value, "one retry holds all, up to the limit, in order")
	require.Equal(t, 2, r.Attempt)
	require.Equal(t, Retry, r.Trigger)
	require.Equal(t, noon, r.First)
	k.succeed(r)
	r = k.start()
	require.Equal(t, seq(101, 200), r.Value)
	require.Equal(t, 1, r.Attempt, "success ends the count")
}

func TestAttemptsAreBounded(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1)
	k.pass(time.Second)
	for attempt := 1; attempt <= 3; attempt++ {
		r := k.start()
		require.Equal(t, attempt, r.Attempt)
		k.add(10 + attempt)
		k.fail(r, Outcome{After: time.Second})
		k.pass(time.Second)
	}
	require.Len(t, k.dead, 1)
	require.Equal(t, []int{1, 11, 12}, k.dead[0].Batch.Value)
	require.ErrorIs(t, k.dead[0].Err, errBoom)
	r := k.start()
	require.Equal(t, []int{13}, r.Value, "the key goes on")
	require.Equal(t, 1, r.Attempt)
}

func TestDropGivesUpAtOnce(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1)
	k.pass(time.Second)
	k.fail(k.start(), Outcome{Drop: true})
	require.Len(t, k.dead, 1)
	require.Equal(t, PhaseIdle, k.state.Phase())
}

func TestG15AStaleTickIsIgnored(t *testing.T) {
	k := newKey(t, perSecond)
	k.add(1)
	old := k.arm.Generation
	k.do(k.state.Flush())
	r := k.start()
	k.succeed(r)
	k.add(2)
	k.do(k.state.Tick(old))
	require.Equal(t, 1, k.stale)
	require.Equal(t, PhaseGathering, k.state.Phase())
	k.do(k.state.Start(k.ready.Generation, k.now)) // an old permit
	require.Equal(t, 2, k.stale)
	require.Len(t, k.runs, 1)
	k.do(k.state.Tick(k.arm.Generation))
	k.do(k.state.Tick(k.arm.Generation)) // the same tick twice
	require.Equal(t, 3, k.stale)
	require.Equal(t, PhaseReady, k.state.Phase())
}

func TestG16AMergeDuringARunIsNotVisibleInTheBatch(t *testing.T) {
	k := newKey(t, perSecond)
	k.addRange(1, 150)
	first := k.start() // cut from a longer list
	k.addRange(151, 300)
	require.Equal(t, seq(1, 100), first.Value)
	k.fail(first, Outcome{})
	k.pass(MinBackoff)
	again := k.start()
	before := slices.Clone(again.Value)
	k.addRange(301, 400)
	require.Equal(t, before, again.Value)
	require.Equal(t, seq(1, 100), again.Value)
}
