package batch

import (
	"fmt"
	"time"
)

// Each function here sets all of a phase. Nothing else assigns phase, generation, deadline or trigger.

// becomeIdle: nothing is left to do.
func (s *State[V, A]) becomeIdle() []Effect {
	s.phase, s.trigger, s.failed, s.excused, s.deadline = PhaseIdle, 0, 0, 0, time.Time{}
	s.first, s.last = time.Time{}, time.Time{}
	s.check()
	return []Effect{Idle{}}
}

// becomeGathering: the first item of a batch is here; the delay counts from it.
func (s *State[V, A]) becomeGathering() []Effect {
	s.phase, s.trigger, s.deadline = PhaseGathering, 0, s.first.Add(s.rules.Delay)
	s.generation++
	s.check()
	return []Effect{Arm{Deadline: s.deadline, Generation: s.generation}}
}

// becomeReady: the batch is due and waits for a worker.
func (s *State[V, A]) becomeReady(why Trigger) []Effect {
	s.phase, s.trigger, s.deadline = PhaseReady, why, time.Time{}
	s.generation++
	s.check()
	return []Effect{Ready{Generation: s.generation}}
}

// becomeRunning: taken is in a handler's hands, rest goes on gathering.
func (s *State[V, A]) becomeRunning(taken, rest A, n int, now time.Time) []Effect {
	s.generation++
	s.running = &Run[A]{
		Value: taken, Items: n, First: s.first, Last: s.last,
		Attempt: s.failed + 1, Generation: s.generation, Trigger: s.trigger, Started: now,
	}
	s.gathered = rest
	s.items -= n
	s.phase, s.trigger = PhaseRunning, 0
	s.check()
	return []Effect{s.running}
}

// becomeBackingOff: the batch failed so many times in a row, is merged back, and waits for its next attempt.
func (s *State[V, A]) becomeBackingOff(failed int, until time.Time) []Effect {
	s.phase, s.trigger, s.failed, s.deadline = PhaseBackingOff, 0, failed, until
	s.generation++
	s.check()
	return []Effect{Arm{Deadline: until, Generation: s.generation}}
}

// becomeEnded: what is gathered is the caller's again. A batch that a handler has stays with it.
func (s *State[V, A]) becomeEnded() []Effect {
	left := &Left[A]{Value: s.gathered, Items: s.items}
	var none A
	s.gathered, s.items = none, 0
	s.settled += uint64(left.Items)
	s.stage, s.trigger, s.failed, s.excused, s.deadline = ended, 0, 0, 0, time.Time{}
	if s.running == nil {
		s.phase = PhaseIdle
		s.generation++
	}
	s.check()
	return []Effect{left}
}

func (s *State[V, A]) check() {
	if err := s.valid(); err != nil {
		panic(err)
	}
}

// valid checks the invariants and names the first that is broken.
func (s *State[V, A]) valid() error {
	broken := func(n int, why string) error {
		return fmt.Errorf("batch: %s (%s): invariant %d: %s", s.phase, stageNames[s.stage], n, why)
	}
	var out uint64
	if s.running != nil {
		out = uint64(s.running.Items)
	}
	switch {
	case s.phase == PhaseIdle && (s.items != 0 || s.failed != 0 || s.trigger != 0):
		return broken(1, "idle with items, failures or a trigger")
	case s.phase == PhaseGathering && (s.items == 0 || s.failed != 0 || !s.deadline.Equal(s.first.Add(s.rules.Delay))):
		return broken(2, "gathering without items, with failures, or with another deadline")
	case s.phase == PhaseReady && (s.items == 0 || s.trigger == 0):
		return broken(3, "ready without items or trigger")
	case (s.phase == PhaseRunning) != (s.running != nil) || (s.running != nil && s.running.Generation != s.generation):
		return broken(4, "a batch out in another phase or generation")
	case s.phase == PhaseBackingOff && (s.items == 0 || s.failed == 0 || s.deadline.IsZero()):
		return broken(5, "backing off without items, failures or deadline")
	case s.accepted != s.settled+uint64(s.items)+out:
		return broken(6, fmt.Sprintf("%d accepted, but %d settled, %d gathered, %d running", s.accepted, s.settled, s.items, out))
	case s.stage == ended && (s.items != 0 || (s.phase != PhaseIdle && s.phase != PhaseRunning)):
		return broken(7, "ended with items or awaiting something")
	}
	return nil
}

func (s *State[V, A]) illegal(event string) string {
	return fmt.Sprintf("batch: %s of a state that is %s (%s), generation %d", event, s.phase, stageNames[s.stage], s.generation)
}
