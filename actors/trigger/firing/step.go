package firing

import (
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// step gathers what one Step does.
type step struct {
	m       *Machine
	now     time.Time
	permits int
	has     func(job string) bool
	reason  string // of slots that a misfire instruction leaves out

	ops     []claim.Op
	ranges  []claim.Range
	asked   []Asked
	emits   []Effect
	busy    bool // a run was in flight before this step started any
	retried bool // this step started something that had waited
	starved bool // something is due and has no permit
	more    bool // there is more to do at once
}

// overlapped gives a verdict to the slots that came due while a run was in flight, under Skip. They are looked at when
// the run ends and not each in its turn, so that they are one record.
func (s *step) overlapped() {
	m := s.m
	if m.def.Overlap != Skip || m.def.Misfire == Ignore || m.fresh || m.st.Paused || m.st.Retired || m.fixedDelay() || m.without ||
		len(m.running) == 0 && m.waiting.first == 0 {
		return
	}
	s.leaveOut(s.now.Add(-1), ReasonOverlap) // one that is due at this very instant may still run
}

// leaveOut skips every slot up to and including until.
func (s *step) leaveOut(until time.Time, reason string) {
	st := &s.m.st
	if n, last := st.Missed(until); n > 0 {
		s.ranges = append(s.ranges, st.skipped(&s.m.def, st.Next, last, n, reason, s.now))
		st.pass(n, last)
	}
}

// endings turns the ends of runs into their records.
func (s *step) endings() {
	m := s.m
	for _, e := range m.ended {
		m.notRunning(e.Key)
		over := true
		switch {
		case e.Committed:
		case e.Interrupted:
			s.ops = append(s.ops, claim.Op{Action: claim.Release, Key: e.Key, Fence: e.Fence, Reason: e.Reason})
			m.wait(waiting{key: e.Key, job: e.Job, due: s.now, slot: e.Slot, attempt: max(e.Attempt-1, 0)})
			over = false
		case !e.Failed:
			s.ops = append(s.ops, claim.Op{Action: claim.Complete, Key: e.Key, Fence: e.Fence, Result: e.Result})
		default:
			op := claim.Op{Action: claim.Fail, Key: e.Key, Fence: e.Fence, Reason: e.Reason, Result: e.Result}
			if op.Final = e.Drop || e.Attempt >= m.def.Attempts; !op.Final {
				op.Due = m.retryAt(e, s.now)
				m.wait(waiting{key: e.Key, job: e.Job, due: op.Due, slot: e.Slot, attempt: e.Attempt})
				over = false
			}
			s.ops = append(s.ops, op)
		}
		if n := len(s.ops) - 1; !e.Committed {
			s.ops[n].Alone = true // whoever was fenced meanwhile has lost only this key
		}
		if over && m.st.Awaiting && e.Key == m.st.ordinal(&m.def) {
			m.st.rest(e.At)
		}
	}
	m.ended = nil
}

// requests decides the runs that were asked for by hand.
func (s *step) requests() {
	m := s.m
	for _, a := range m.asks {
		due := a.Due
		if due.IsZero() {
			due = s.now
		}
		op := claim.Op{Key: a.Key.Canonical(), Slot: s.now, Job: m.def.Job, Payload: a.Payload, Due: due, New: true, Alone: true}
		s.asked = append(s.asked, Asked{ID: a.ID, Op: len(s.ops)})
		switch {
		case m.def.Overlap == Skip && (len(m.running) > 0 || m.waiting.first > 0):
			op.Action, op.Reason = claim.Skip, ReasonOverlap
			s.ops = append(s.ops, op)
		case due.After(s.now) || !s.start(op, 0):
			op.Action = claim.Decide
			s.ops = append(s.ops, op)
			m.wait(waiting{key: op.Key, job: op.Job, due: due, slot: s.now})
		}
	}
	m.asks = nil
}

// start claims a key and emits its run, if there is room and a permit, and its job is registered.
func (s *step) start(op claim.Op, missed int64) bool {
	m := s.m
	if len(m.running) >= m.limit() || !op.Stored && m.without {
		return false
	}
	if s.permits <= 0 {
		s.starved = true
		return false
	}
	s.permits--
	op.Action, op.Lease, op.Hold, op.Alone = claim.Claim, m.def.Lease, m.def.Hold, true
	m.running = append(m.running, op.Key)
	s.emits = append(s.emits, Emit{Op: len(s.ops), Missed: missed})
	s.ops = append(s.ops, op)
	return true
}

// retries starts what waits and is due, oldest first. What waits for a retired trigger will not run.
func (s *step) retries() {
	m := s.m
	for i := 0; i < len(m.waiting.list); {
		w := &m.waiting.list[i]
		switch {
		case m.st.Retired:
			s.ops = append(s.ops, claim.Op{Action: claim.Skip, Key: w.key, Slot: w.slot, Reason: ReasonRetired, Alone: true})
		case w.due.After(s.now) || len(m.running) >= m.limit():
			return
		case m.held(w, s.has):
			i++
			continue
		case !s.start(claim.Op{Key: w.key, Slot: w.slot, Stored: true}, w.missed):
			return
		default:
			s.retried = true
		}
		m.before.taken = append(m.before.taken, m.waiting.remove(i))
	}
}

// slots decides what the schedule has due.
func (s *step) slots() {
	m := s.m
	if m.st.Paused || m.st.Retired || m.fresh && s.stuck() {
		return // what came due while nothing of it ran is looked at when there is room
	}
	for n := 0; !m.st.Next.IsZero() && !m.st.Next.After(s.now) && !s.stuck(); n++ {
		if n == maxSlots {
			s.more = true
			return // with the same rule for the rest
		}
		slot, missed := m.st.Next, int64(0)
		if s.misfired() {
			var ok bool
			if slot, missed, ok = s.misfire(); !ok {
				continue
			}
		}
		op := claim.Op{Key: m.st.key(&m.def, slot), Slot: slot, Job: m.def.Job, Payload: m.def.Payload, Due: slot, Alone: true}
		switch {
		case s.start(op, missed):
		case s.room():
			op.Action = claim.Decide
			s.ops = append(s.ops, op)
			m.wait(waiting{key: op.Key, job: op.Job, due: slot, slot: slot, missed: missed})
		case m.def.Misfire == Ignore, slot.Equal(m.st.Next) && s.starved && len(m.running) < m.limit():
			return // it waits where it is until there is room, or a permit
		default:
			reason := ReasonOverlap
			switch {
			case m.resumed:
				reason = ReasonPaused
			case m.def.Overlap == BufferAll:
				reason = ReasonFull
			}
			if slot.Equal(m.st.Next) {
				s.leaveOut(s.now, reason)
				continue
			}
			s.ranges = append(s.ranges, m.st.skipped(&m.def, slot, slot, 1, reason, s.now)) // stood for a misfire
		}
		m.st.take(m.def.Schedule.Kind())
	}
	m.fresh, m.resumed = false, false
}

// stuck says that no slot can be decided in this step any more: those that are due are looked at when a run ends.
func (s *step) stuck() bool {
	m := s.m
	switch {
	case m.without:
		return m.waiting.first > 0
	case m.def.Misfire == Ignore:
		return len(m.running) >= m.limit() || m.waiting.first > 0
	case m.def.Overlap == Skip:
		return s.busy || m.waiting.first > 0
	}
	return false
}

// room says whether a slot that cannot start may wait.
func (s *step) room() bool {
	m := s.m
	switch {
	case m.def.Overlap == BufferAll:
		return m.waiting.first < max(m.def.Limit, 1)
	case len(m.running) < m.limit(), s.retried: // only the permit is missing, or older work went first
		return m.waiting.first == 0
	}
	return false
}

// misfired says whether the present slot is late enough to be a misfire. A fixed delay has no grid that it could miss:
// it is late, and runs.
func (s *step) misfired() bool {
	m := s.m
	return m.def.Misfire != Ignore && !m.fixedDelay() && s.now.Sub(m.st.Next) >= m.def.Threshold
}

// misfire applies the instruction to what was missed. ok: something is to be run now, for the given slot (the oldest
// that was missed), and stands for so many others. Otherwise the grid has moved on.
func (s *step) misfire() (slot time.Time, missed int64, ok bool) {
	m := s.m
	old := m.st
	n, last := old.Missed(s.now)
	if err := m.st.UpdateAfterMisfire(m.def.Misfire, s.now); err != nil {
		m.st.Next = time.Time{} // Quartz throws here: the count is used up, nothing is left to fire
	}
	first := old.Next
	if ok = !m.st.Next.IsZero() && !m.st.Next.After(s.now); ok {
		n--
		first = first.Add(old.Interval)
	}
	if n > 0 {
		s.ranges = append(s.ranges, old.skipped(&m.def, first, last, n, s.reason, s.now))
	}
	return old.Next, max(n, 0), ok
}
