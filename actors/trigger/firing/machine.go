package firing

import (
	"slices"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/backoff"
)

// maxSlots bounds how many slots one step keys, so that a long list of missed slots is worked off in bites.
const maxSlots = 64

// Machine is one trigger: its definition, where it stands, what waits and what runs.
//
// One Persist is outstanding at a time: between Step and Persisted or Refused no other step is made. What happens in
// between is noted (Ended, Ask, Pause, Resume) and is part of the next step.
type Machine struct {
	def     Definition
	st      State
	gen     uint64
	without bool // nobody has registered the job: what is due is decided and waits, and nothing further is decided
	drained bool // only ends are recorded any more

	waiting queue       // decided, not running
	running []claim.Key // emitted and not ended
	ended   []Ended     // not yet persisted
	asks    []Ask       // not yet persisted
	dirty   bool        // the state was changed between steps
	resumed bool        // slots that are due came due while it was paused
	// fresh: slots that are due came due while nothing of this machine ran (before it was made, while it was paused or
	// without a job). The misfire rule is theirs, not the overlap policy.
	fresh bool

	before *snapshot // what to go back to if the outstanding Persist is refused
}

// snapshot is what a step changes, and what came of it.
type snapshot struct {
	now                   time.Time
	st                    State
	running               []claim.Key
	ended                 []Ended
	asks                  []Ask
	dirty, resumed, fresh bool

	taken []waiting   // from the queue
	put   []claim.Key // into the queue
	ops   []claim.Op
}

// Definition is what the user wrote.
func (m *Machine) Definition() Definition { return m.def }

// State is where the trigger stands.
func (m *Machine) State() State { return m.st }

// Running counts the runs in flight.
func (m *Machine) Running() int { return len(m.running) }

// Waiting counts the keys that are decided and wait for their (next) attempt.
func (m *Machine) Waiting() int { return len(m.waiting.list) + len(m.asks) }

// Finished says that nothing will ever be due by itself, and nothing waits or runs.
func (m *Machine) Finished() bool {
	return m.st.Next.IsZero() && !m.st.Awaiting && m.Waiting() == 0 && len(m.running) == 0 && len(m.ended) == 0
}

// Generation is that of the wake that counts.
func (m *Machine) Generation() uint64 { return m.gen }

// Drain ends all but the recording of ends: nothing is started or decided any more.
func (m *Machine) Drain() { m.drained = true }

// Ended notes the end of a run for the next step.
func (m *Machine) Ended(e Ended) { m.ended = append(m.ended, e) }

// Ask notes a run by hand for the next step.
func (m *Machine) Ask(a Ask) { m.asks = append(m.asks, a) }

// Pause stops the schedule: slots that come due meanwhile are dealt with at Resume. Pausing twice changes nothing.
func (m *Machine) Pause(note string) {
	if !m.st.Paused {
		m.st.Paused, m.st.Note, m.dirty = true, note, true
	}
}

// Resume goes on; slots that came due while paused are missed slots, with the reason paused.
func (m *Machine) Resume() {
	if m.st.Paused {
		m.st.Paused, m.st.Note, m.dirty, m.resumed, m.fresh = false, "", true, true, true
	}
}

// Step is what is to be done at now, with at most permits runs started, of jobs that are registered (has). The list is
// at most one Persist, then the Emits that stand on it, then a Permit if one is missing, then one Wake.
func (m *Machine) Step(now time.Time, permits int, has func(job string) bool) []Effect {
	now = schedule.Instant(now)
	m.before = &snapshot{now: now, st: m.st, running: slices.Clone(m.running), ended: m.ended, asks: m.asks,
		dirty: m.dirty, resumed: m.resumed, fresh: m.fresh}
	if without := !has(m.def.Job); without != m.without {
		m.without, m.fresh = without, m.fresh || m.without
	}
	s := step{m: m, now: now, permits: permits, has: has, reason: ReasonMisfire}
	if m.resumed {
		s.reason = ReasonPaused
	}
	if !m.drained {
		s.overlapped()
	}
	s.endings()
	s.busy = len(m.running) > 0
	if !m.drained {
		s.requests()
		s.retries()
		s.slots()
	}
	var out []Effect
	changed := m.dirty || m.st != m.before.st
	if changed || len(s.ops) > 0 || len(s.ranges) > 0 {
		p := Persist{Ops: s.ops, Ranges: s.ranges, Asked: s.asked}
		if changed {
			st := m.st
			p.State = &st
		}
		out = append(out, p)
		m.dirty, m.before.ops = false, s.ops
	} else {
		m.before = nil
	}
	out = append(out, s.emits...)
	if s.starved {
		out = append(out, Permit{})
	}
	m.gen++
	return append(out, Wake{At: m.wakeAt(now, s.more, has), Generation: m.gen})
}

// Persisted takes the results of the outstanding Persist, in the order of its Ops. again says that they ask for
// another step.
func (m *Machine) Persisted(results []claim.Result) (again bool) {
	b := m.before
	if b == nil {
		return false
	}
	m.before = nil
	for i, op := range b.ops {
		r := &results[i]
		switch {
		case r.Answer == claim.Recorded:
		case op.Action == claim.Claim:
			// Not ours to run: it has its verdict already, or somebody else holds it.
			m.notRunning(op.Key)
			if m.st.Awaiting && op.Key == m.st.ordinal(&m.def) {
				m.st.rest(b.now)
				m.dirty, again = true, true
			}
		case op.Action == claim.Decide && slices.Contains(b.put, op.Key) && r.Record.State != claim.Pending:
			m.waiting.drop(op.Key)
		}
	}
	return again
}

// Refused undoes the outstanding Persist: nothing of it was kept. What was noted is noted again for the next step.
func (m *Machine) Refused() {
	b := m.before
	if b == nil {
		return
	}
	paused, note, changed, resumed := m.st.Paused, m.st.Note, m.dirty, m.resumed
	m.st, m.running, m.dirty, m.resumed, m.fresh = b.st, b.running, b.dirty, b.resumed, b.fresh
	if changed { // Pause or Resume since the step
		m.st.Paused, m.st.Note, m.dirty = paused, note, true
		m.resumed, m.fresh = resumed || b.resumed, resumed || b.fresh
	}
	for _, k := range b.put {
		m.waiting.drop(k)
	}
	for _, w := range b.taken {
		m.waiting.put(w)
	}
	m.ended, m.asks, m.before = slices.Concat(b.ended, m.ended), slices.Concat(b.asks, m.asks), nil
}

// Holds says whether the key counts as running: in flight, or ended and not yet recorded.
func (m *Machine) Holds(k claim.Key) bool { return slices.Contains(m.running, k) }

// notRunning takes one run of a key off the list of those in flight.
func (m *Machine) notRunning(k claim.Key) {
	if i := slices.Index(m.running, k); i >= 0 {
		m.running = slices.Delete(m.running, i, i+1)
	}
}

// limit is how many runs may be in flight at once.
func (m *Machine) limit() int {
	if m.def.Overlap == Allow {
		return max(m.def.Limit, 1)
	}
	return 1
}

// wait puts a key into the queue, if it is not there.
func (m *Machine) wait(w waiting) {
	w.due = schedule.Instant(w.due) // as the store keeps it, and as Step compares it
	w.own = w.job == m.def.Job
	if m.waiting.put(w) && m.before != nil {
		m.before.put = append(m.before.put, w.key)
	}
}

// blocked says that the next slot cannot be decided before a run has ended or started: nothing is gained by waking
// for it.
func (m *Machine) blocked() bool {
	switch {
	case m.without:
		return m.waiting.first > 0
	case m.def.Overlap == Skip:
		return len(m.running) > 0 || m.waiting.first > 0
	case m.def.Overlap == Allow || m.def.Misfire == Ignore:
		return len(m.running) >= m.limit()
	}
	return false
}

// held says whether a waiting key stays where it is for now: its job is missing, or the schedule is paused and nobody
// has asked for it by hand.
func (m *Machine) held(w *waiting, has func(job string) bool) bool {
	return m.st.Paused && w.key.Kind != claim.KindManual && w.key.Kind != claim.KindFree || !has(w.job)
}

func (m *Machine) wakeAt(now time.Time, more bool, has func(job string) bool) time.Time {
	if more {
		return now
	}
	var at time.Time
	if m.drained {
		return at
	}
	if !m.blocked() && !m.st.Paused && !m.st.Retired {
		at = m.st.Next
	}
	if !at.After(now) { // what is due already waits for a run's end, a permit or a job: each brings its own step
		at = time.Time{}
	}
	if len(m.running) >= m.limit() {
		return at
	}
	for i := range m.waiting.list { // sorted: the first that is not held is the earliest
		if w := &m.waiting.list[i]; w.due.After(now) && !m.held(w, has) {
			if at.IsZero() || w.due.Before(at) {
				at = w.due
			}
			break
		}
	}
	return at
}

func (m *Machine) retryAt(e Ended, now time.Time) time.Time {
	if e.RetryAfter != nil {
		return now.Add(*e.RetryAfter)
	}
	return now.Add(m.def.Backoff.Delay(e.Attempt, backoff.Hash(e.Key.String(), e.Attempt)))
}

func (m *Machine) fixedDelay() bool { return m.def.Schedule.Kind() == schedule.FixedDelay }

// Want is how many permits the next step can use at most: the shell holds so many ready, and takes back what the step
// leaves.
func (m *Machine) Want(now time.Time) int {
	if m.drained {
		return 0
	}
	room := m.limit() - len(m.running) + len(m.ended)
	n := len(m.asks)
	for i := 0; i < len(m.waiting.list) && n < room && !m.waiting.list[i].due.After(now); i++ {
		n++
	}
	if !m.st.Next.IsZero() && !m.st.Next.After(now) && !m.st.Paused && !m.st.Retired {
		n++
	}
	return max(min(n, room), 0)
}
