package batch

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

func TestReadyMadeAccumulators(t *testing.T) {
	t.Run("sum", func(t *testing.T) {
		var a Accumulator[int64, int64] = Sum[int64]{}
		v := a.Merge(a.Merge(0, 1), 2)
		taken, rest := a.Take(v, 1)
		require.EqualValues(t, 3, taken, "it cannot be cut")
		require.Zero(t, rest)
		require.EqualValues(t, 4, a.Restore(taken, 1))
		require.Equal(t, 1, a.Weight(v))
	})
	t.Run("last", func(t *testing.T) {
		var a Accumulator[string, string] = Last[string]{}
		v := a.Merge(a.Merge("", "old"), "new")
		taken, rest := a.Take(v, 1)
		require.Equal(t, "new", taken)
		require.Empty(t, rest)
		require.Equal(t, "newer", a.Restore(taken, "newer"))
		require.Equal(t, 1, a.Weight(v))
	})
	t.Run("list", func(t *testing.T) {
		var a Accumulator[int, []int] = List[int]{}
		var v []int
		for i := range 5 {
			v = a.Merge(v, i)
		}
		require.Equal(t, 5, a.Weight(v))
		taken, rest := a.Take(v, 2)
		require.Equal(t, []int{0, 1}, taken)
		require.Equal(t, []int{2, 3, 4}, rest)
		_ = append(taken, 99)
		require.Equal(t, []int{2, 3, 4}, rest, "they share nothing that append could change")
		require.Equal(t, []int{0, 1, 2, 3, 4}, a.Restore(taken, rest))
		taken, rest = a.Take(v, 0)
		require.Equal(t, v, taken)
		require.Nil(t, rest)
	})
}

func TestAResultRestoredIntoAnEmptyLastIsKept(t *testing.T) {
	rules := Rules{Limit: 10, Attempts: 2}
	s := New(Last[string]{}, &rules)
	ready := s.Add("only", noon)[0].(Ready)
	run := s.Start(ready.Generation, noon)[0].(*Run[string])
	arm := s.Finished(run.Generation, Outcome{Err: errBoom}, noon)[0].(Arm)
	ready = s.Tick(arm.Generation)[0].(Ready)
	run = s.Start(ready.Generation, noon)[0].(*Run[string])
	require.Equal(t, "only", run.Value)
}

func TestNames(t *testing.T) {
	require.Equal(t, "size", Size.String())
	require.Equal(t, "follow", Follow.String())
	require.Equal(t, "trigger(0)", Trigger(0).String())
	require.Equal(t, "backing off", PhaseBackingOff.String())
	require.Equal(t, "phase(9)", Phase(9).String())
}
