package batch

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	noon    = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	errBoom = errors.New("boom")
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// key drives one state of lists by hand: it keeps the clock, hands out permits when told to, and notes what came out.
type key struct {
	t     tester
	state State[int, []int]
	now   time.Time

	arm   Arm   // the last one
	ready Ready // the last one
	runs  []*Run[[]int]
	dead  []*DeadLetter[[]int]
	left  []*Left[[]int]
	idle  int
	late  int
	stale int
}

func newKey(t tester, rules Rules) *key {
	return &key{t: t, state: New(List[int]{}, &rules), now: noon}
}

// do notes effects and checks the invariants.
func (k *key) do(effects []Effect) {
	k.t.Helper()
	require.NoError(k.t, k.state.valid())
	for _, e := range effects {
		switch e := e.(type) {
		case Arm:
			k.arm = e
		case Ready:
			k.ready = e
		case *Run[[]int]:
			k.runs = append(k.runs, e)
		case *DeadLetter[[]int]:
			k.dead = append(k.dead, e)
		case *Left[[]int]:
			k.left = append(k.left, e)
		case Idle:
			k.idle++
		case Late:
			k.late++
		case Stale:
			k.stale++
		default:
			k.t.Fatalf("unknown effect %T", e)
		}
	}
}

func (k *key) add(vs ...int) {
	k.t.Helper()
	for _, v := range vs {
		k.do(k.state.Add(v, k.now))
	}
}

// addRange adds from, from+1, …, to.
func (k *key) addRange(from, to int) {
	k.t.Helper()
	for v := from; v <= to; v++ {
		k.add(v)
	}
}

// pass lets time pass, and the armed timer ring if that is due and its state still waits for it.
func (k *key) pass(d time.Duration) {
	k.t.Helper()
	k.now = k.now.Add(d)
	waits := k.state.phase == PhaseGathering || k.state.phase == PhaseBackingOff
	if waits && !k.now.Before(k.arm.Deadline) {
		k.do(k.state.Tick(k.arm.Generation))
	}
}

// start gives the ready batch its permit and returns it.
func (k *key) start() *Run[[]int] {
	k.t.Helper()
	n := len(k.runs)
	k.do(k.state.Start(k.ready.Generation, k.now))
	require.Len(k.t, k.runs, n+1, "no batch was ready: %s", k.state.phase)
	return k.runs[n]
}

func (k *key) succeed(r *Run[[]int]) {
	k.t.Helper()
	k.do(k.state.Finished(r.Generation, Outcome{}, k.now))
}

func (k *key) fail(r *Run[[]int], o Outcome) {
	k.t.Helper()
	if o.Err == nil {
		o.Err = errBoom
	}
	k.do(k.state.Finished(r.Generation, o, k.now))
}

func seq(from, to int) []int {
	s := make([]int, 0, to-from+1)
	for v := from; v <= to; v++ {
		s = append(s, v)
	}
	return s
}
