package batch

import (
	"fmt"
	"math/bits"
	"time"
)

// MinBackoff is the shortest wait before a retry, whatever the caller asks for: nothing is ever retried in a tight loop.
const MinBackoff = time.Millisecond

// Rules are the same for all keys of a group.
type Rules struct {
	Delay    time.Duration // from a batch's first item until it is due; 0: at once
	Limit    int           // items or weight at which a batch is due at once, and weight at which it is cut; 0: none
	Attempts int           // starts of a batch before it is given up, the first included; below 1 counts as 1
	Timeout  time.Duration // after which a result counts as late; 0: never
}

// Phase is where a key is.
type Phase uint8

// The phases.
const (
	PhaseIdle       Phase = iota // nothing is gathered, running or awaited
	PhaseGathering               // items merge until the deadline, the limit or a flush
	PhaseReady                   // the batch is due and waits for Start; items go on merging into it
	PhaseRunning                 // a handler has a batch; items merge into the next one
	PhaseBackingOff              // the batch failed and waits for its retry; items go on merging into it
)

var phaseNames = [...]string{"idle", "gathering", "ready", "running", "backing off"}

// String gives the phase's name.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// stage is how far a state is on its way to its end. It only grows.
type stage uint8

const (
	open      stage = iota
	closing         // batches are due at once, retries wait as before
	returning       // what no handler has is given back as soon as no handler has any
	ended           // it was given back; a handler may still have the last batch
)

var stageNames = [...]string{"open", "closing", "returning", "ended"}

// State is what one key has gathered and where it is. Its methods are called one at a time and return the effects to
// perform, in order. A method that panics because the accumulator does leaves the state as it was.
//
// Invariants, checked by valid at the end of each transition:
//  1. Idle has nothing gathered, no failure counted and no trigger.
//  2. Gathering has items, a deadline at its first item plus the delay, and no failure counted.
//  3. Ready has items and a trigger.
//  4. A batch is out in Running and in no other phase, under the present generation.
//  5. BackingOff has items, at least one failure counted, and a deadline.
//  6. Every accepted item is settled, gathered or running.
//  7. An ended state is idle, or running with nothing gathered.
type State[V, A any] struct {
	acc   Accumulator[V, A]
	rules *Rules

	phase      Phase
	stage      stage
	trigger    Trigger // of the batch that is ready
	failed     int     // attempts in a row that failed
	excused    int     // of these, those that do not count
	generation uint64
	deadline   time.Time

	gathered    A
	items       int // merged into gathered
	first, last time.Time
	running     *Run[A]

	accepted uint64 // items that were added
	settled  uint64 // of them: handled, given up or given back
	flush    uint64 // all accepted up to here are wanted at once
}

// New returns the state of a key that has nothing. The rules are shared and must not change.
func New[V, A any](acc Accumulator[V, A], rules *Rules) State[V, A] {
	return State[V, A]{acc: acc, rules: rules}
}

// Phase says where the key is.
func (s *State[V, A]) Phase() Phase { return s.phase }

// Gathered is the number of items that wait for a handler.
func (s *State[V, A]) Gathered() int { return s.items }

// Accepted counts all items ever added.
func (s *State[V, A]) Accepted() uint64 { return s.accepted }

// Settled counts the items that were handled, given up or given back. Items settle in the order in which they were
// added.
func (s *State[V, A]) Settled() uint64 { return s.settled }

// Add merges one item, which arrived at now. It must not be called after Surrender or Abandon.
func (s *State[V, A]) Add(v V, now time.Time) []Effect {
	if s.stage >= returning {
		panic(s.illegal("Add"))
	}
	merged := s.acc.Merge(s.gathered, v)
	limit := s.rules.Limit
	full := limit > 0 && (s.items+1 >= limit || s.acc.Weight(merged) >= limit)
	s.gathered = merged
	if s.items == 0 {
		s.first = now
	}
	s.items++
	s.last = now
	s.accepted++
	switch {
	case s.phase != PhaseIdle && s.phase != PhaseGathering:
		return nil
	case full:
		return s.becomeReady(Size)
	case s.stage == closing:
		return s.becomeReady(Close)
	case s.rules.Delay <= 0:
		return s.becomeReady(Time)
	case s.phase == PhaseIdle:
		return s.becomeGathering()
	}
	return nil
}

// Tick says that the deadline of that generation is over.
func (s *State[V, A]) Tick(generation uint64) []Effect {
	switch {
	case generation != s.generation:
		return []Effect{Stale{}}
	case s.phase == PhaseGathering:
		return s.becomeReady(Time)
	case s.phase == PhaseBackingOff:
		return s.becomeReady(Retry)
	}
	return []Effect{Stale{}}
}

// Start says that the batch of that generation may run now. It returns the batch as [*Run], or Stale if there is none.
func (s *State[V, A]) Start(generation uint64, now time.Time) []Effect {
	if generation != s.generation || s.phase != PhaseReady {
		return []Effect{Stale{}}
	}
	limit := 0
	if s.rules.Limit > 0 && s.acc.Weight(s.gathered) > s.rules.Limit {
		limit = s.rules.Limit
	}
	taken, rest := s.acc.Take(s.gathered, limit)
	n := s.items
	if limit > 0 {
		n = share(s.items, s.acc.Weight(taken), s.acc.Weight(rest))
	}
	return s.becomeRunning(taken, rest, n, now)
}

// share is how many of n items are in the taken part: exact where an item weighs 1, else in proportion, and such that
// the last item settles with the last part.
func share(n, taken, rest int) int {
	if rest <= 0 {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(max(taken, 0)))
	part, _ := bits.Div64(hi, lo, uint64(max(taken, 0))+uint64(rest))
	return int(part) // below n, since rest is above 0
}

// Outcome is what became of a run.
type Outcome struct {
	Err   error         // nil: all of the batch is handled
	Drop  bool          // with Err: give the batch up without another attempt
	After time.Duration // with Err: wait before the next attempt; below MinBackoff counts as MinBackoff
	// Excused: with Err: the attempt does not count against Attempts; it was no fault of the batch.
	Excused bool
}

// Finished says how the run of that generation ended. A result for another generation changes nothing.
func (s *State[V, A]) Finished(generation uint64, o Outcome, now time.Time) []Effect {
	run := s.running
	if run == nil || run.Generation != generation {
		return []Effect{Late{}}
	}
	var effects []Effect
	if s.rules.Timeout > 0 && now.Sub(run.Started) > s.rules.Timeout {
		effects = append(effects, Late{})
	}
	switch {
	case o.Err == nil:
		return append(effects, s.settle(run)...)
	case s.stage == returning && !o.Drop: // also after the last attempt, which the end may have cut short
		s.restore(run)
		return append(effects, s.becomeEnded()...)
	case o.Drop || run.Attempt-s.excused >= s.rules.Attempts && !o.Excused || s.stage == ended:
		effects = append(effects, &DeadLetter[A]{Batch: run, Err: o.Err})
		return append(effects, s.settle(run)...)
	}
	if o.Excused {
		s.excused++
	}
	s.restore(run)
	return append(effects, s.becomeBackingOff(s.failed+1, now.Add(max(o.After, MinBackoff)))...)
}

// restore merges a failed batch back in front of what was gathered meanwhile.
func (s *State[V, A]) restore(run *Run[A]) {
	if s.items == 0 {
		s.gathered, s.last = run.Value, run.Last
	} else {
		s.gathered = s.acc.Restore(run.Value, s.gathered)
	}
	s.items += run.Items
	s.first = run.First
	s.running = nil
}

// settle goes on after a batch that is handled or given up.
func (s *State[V, A]) settle(run *Run[A]) []Effect {
	s.settled += uint64(run.Items)
	s.running, s.failed, s.excused = nil, 0, 0
	switch {
	case s.stage == returning:
		return s.becomeEnded()
	case s.items == 0:
		return s.becomeIdle()
	case s.stage == closing:
		return s.becomeReady(Close)
	case s.settled < s.flush:
		return s.becomeReady(Flush)
	}
	return s.becomeReady(Follow)
}

// Flush makes everything that is gathered due at once, and what a running batch leaves of it too. It is through when
// Settled reaches the Accepted of now. A retry still waits for its time.
func (s *State[V, A]) Flush() []Effect {
	s.flush = s.accepted
	if s.phase == PhaseGathering {
		return s.becomeReady(Flush)
	}
	return nil
}

// Close is a flush after which everything is due at once. A key that has nothing answers with Idle.
func (s *State[V, A]) Close() []Effect {
	s.stage = max(s.stage, closing)
	switch s.phase {
	case PhaseIdle:
		return []Effect{Idle{}}
	case PhaseGathering:
		return s.becomeReady(Close)
	case PhaseReady, PhaseRunning, PhaseBackingOff: // goes on by itself
	}
	return nil
}

// Surrender asks for what no handler has, which comes as [*Left]: at once, or when the handler that has a batch is done with
// it. If that one fails, its batch is part of what is given back.
func (s *State[V, A]) Surrender() []Effect {
	if s.stage >= returning {
		return nil
	}
	s.stage = returning
	if s.phase == PhaseRunning {
		return nil
	}
	return s.becomeEnded()
}

// Abandon is a Surrender that waits for no handler: if the batch that one has fails afterwards, it is a dead letter.
func (s *State[V, A]) Abandon() []Effect {
	if s.stage == ended {
		return nil
	}
	return s.becomeEnded()
}

// Resume asks again for what the state waits for, for an owner that has lost its timer or its permit.
func (s *State[V, A]) Resume() []Effect {
	switch s.phase {
	case PhaseGathering:
		return s.becomeGathering()
	case PhaseReady:
		return s.becomeReady(s.trigger)
	case PhaseBackingOff:
		return s.becomeBackingOff(s.failed, s.deadline)
	case PhaseIdle, PhaseRunning: // awaits nothing that could be lost
	}
	return nil
}

// GiveUp makes all that is gathered a dead letter, for an accumulator that cannot take it any more.
func (s *State[V, A]) GiveUp(err error, now time.Time) []Effect {
	if s.items == 0 {
		return nil
	}
	dead := &Run[A]{
		Value: s.gathered, Items: s.items, First: s.first, Last: s.last,
		Attempt: s.failed, Generation: s.generation, Trigger: s.trigger, Started: now,
	}
	var none A
	s.gathered, s.items = none, 0
	s.settled += uint64(dead.Items)
	effects := []Effect{&DeadLetter[A]{Batch: dead, Err: err}}
	if s.phase == PhaseRunning {
		return effects
	}
	return append(effects, s.becomeIdle()...)
}
