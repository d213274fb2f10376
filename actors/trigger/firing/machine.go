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
	def Definition
	st  State
	// Without is set while nobody has registered the job: what is due is decided and waits, nothing starts, and
	// nothing further is decided.
	without bool
	drained bool // only ends are recorded any more
	gen     uint64

	waiting []waiting   // decided, not running, by (Due, Slot)
	running []claim.Key // emitted and not ended
	ended   []Ended     // not yet persisted
	asks    []Ask       // not yet persisted
	dirty   bool        // the state was changed between steps
	resumed bool        // slots that are due came due while it was paused

	before *snapshot // what to go back to if the outstanding Persist is refused
}

// waiting is a key that is decided and waits for its (next) attempt.
type waiting struct {
	key     claim.Key
	due     time.Time
	slot    time.Time
	attempt int // attempts spent
}

type snapshot struct {
	st      State
	waiting []waiting
	running []claim.Key
	ended   []Ended
	asks    []Ask
	dirty   bool
	resumed bool
	ops     []claim.Op
}

// New makes the machine of a trigger from what is stored: its definition, its state and its unfinished records. Of
// those that are claimed, live tells which this process is running now; one that this session claimed and never
// started (its actor failed in between) is released, and one of a session before was cut short and is claimable.
func New(def Definition, st State, unfinished []claim.Record, session uint64, live func(claim.Key) bool, now time.Time) *Machine {
	m := &Machine{def: def, st: st}
	for i := range unfinished {
		r := &unfinished[i]
		switch {
		case r.State == claim.Claimed && live(r.Key):
			m.running = append(m.running, r.Key)
		case r.State == claim.Claimed && r.Session == session:
			m.Ended(Ended{Key: r.Key, Fence: r.Fence, Attempt: int(r.Attempt), At: now, Interrupted: true, Reason: "never started"})
		case r.State == claim.Claimed:
			m.wait(waiting{key: r.Key, due: now, slot: r.Slot, attempt: int(r.Attempt) - 1})
		case r.State == claim.Pending:
			m.wait(waiting{key: r.Key, due: r.Due, slot: r.Slot, attempt: int(r.Attempt)})
		}
	}
	if st.Awaiting && len(unfinished) == 0 { // its run ended, and the crash came before the pause was written
		m.st.rest(now)
		m.dirty = true
	}
	return m
}

// Definition is what the user wrote.
func (m *Machine) Definition() Definition { return m.def }

// State is where the trigger stands.
func (m *Machine) State() State { return m.st }

// Running and Waiting count the runs in flight and the keys that wait for an attempt.
func (m *Machine) Running() int { return len(m.running) }

// Waiting counts the keys that are decided and wait for their (next) attempt.
func (m *Machine) Waiting() int { return len(m.waiting) + len(m.asks) }

// Finished says that nothing will ever be due by itself, and nothing waits or runs.
func (m *Machine) Finished() bool {
	return m.st.Next.IsZero() && !m.st.Awaiting && m.Waiting() == 0 && len(m.running) == 0 && len(m.ended) == 0
}

// Generation is that of the wake that counts.
func (m *Machine) Generation() uint64 { return m.gen }

// Without says whether the job is missing; Step takes it into account.
func (m *Machine) Without(missing bool) { m.without = missing }

// Drain ends all but the recording of ends: nothing is started or decided any more.
func (m *Machine) Drain() { m.drained = true }

// Ended notes the end of a run for the next step.
func (m *Machine) Ended(e Ended) { m.ended = append(m.ended, e) }

// Ask notes a run by hand for the next step.
func (m *Machine) Ask(a Ask) { m.asks = append(m.asks, a) }

// Pause stops the schedule: slots that come due meanwhile are dealt with at Resume. It says whether it changed
// anything.
func (m *Machine) Pause(note string) bool {
	if m.st.Paused {
		return false
	}
	m.st.Paused, m.st.Note, m.dirty = true, note, true
	return true
}

// Resume goes on; slots that came due while paused are missed slots, with the reason paused. It says whether it
// changed anything.
func (m *Machine) Resume() bool {
	if !m.st.Paused {
		return false
	}
	m.st.Paused, m.st.Note, m.dirty, m.resumed = false, "", true, true
	return true
}

// Step is what is to be done at now, with at most permits runs started. The list is at most one Persist, then the
// Emits that stand on it, then a Permit if one is missing, then one Wake.
func (m *Machine) Step(now time.Time, permits int) []Effect {
	now = schedule.Instant(now)
	m.before = &snapshot{st: m.st, waiting: slices.Clone(m.waiting), running: slices.Clone(m.running),
		ended: m.ended, asks: m.asks, dirty: m.dirty, resumed: m.resumed}
	s := step{m: m, now: now, permits: permits, reason: ReasonMisfire}
	if m.resumed {
		s.reason = ReasonPaused
	}
	if m.without {
		s.permits = 0
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
	if !s.more {
		m.resumed = false
	}
	var out []Effect
	changed := m.dirty || m.st != m.before.st
	if changed || len(s.ops) > 0 || len(s.ranges) > 0 {
		p := Persist{Ops: s.ops, Ranges: s.ranges}
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
	if s.starved && !m.without {
		out = append(out, Permit{})
	}
	m.gen++
	return append(out, Wake{At: m.wakeAt(now, s.more), Generation: m.gen})
}

// Persisted takes the results of the outstanding Persist, in the order of its Ops.
func (m *Machine) Persisted(results []claim.Result) {
	if m.before == nil {
		return
	}
	for i, op := range m.before.ops {
		if op.Action == claim.Claim && results[i].Answer != claim.Recorded {
			// Not ours to run: it has its verdict already, or somebody else holds it.
			m.notRunning(op.Key)
		}
	}
	m.before = nil
}

// notRunning takes one run of a key off the list of those in flight.
func (m *Machine) notRunning(k claim.Key) {
	if i := slices.Index(m.running, k); i >= 0 {
		m.running = slices.Delete(m.running, i, i+1)
	}
}

// Refused undoes the outstanding Persist: nothing of it was kept. What was noted is noted again for the next step.
func (m *Machine) Refused() {
	if m.before == nil {
		return
	}
	late, asked := m.ended, m.asks
	b := m.before
	paused, note, changed, resumed := m.st.Paused, m.st.Note, m.dirty, m.resumed
	m.st, m.waiting, m.running, m.dirty, m.resumed = b.st, b.waiting, b.running, b.dirty, b.resumed
	if changed { // Pause or Resume since the step
		m.st.Paused, m.st.Note, m.dirty, m.resumed = paused, note, true, resumed || b.resumed
	}
	m.ended, m.asks, m.before = slices.Concat(b.ended, late), slices.Concat(b.asks, asked), nil
}

// limit is how many runs may be in flight at once.
func (m *Machine) limit() int {
	if m.def.Overlap == Allow {
		return max(m.def.Limit, 1)
	}
	return 1
}

// queued counts the keys that wait for their first attempt.
func (m *Machine) queued() (n int) {
	for i := range m.waiting {
		if m.waiting[i].attempt == 0 {
			n++
		}
	}
	return n
}

func (m *Machine) wait(w waiting) {
	w.due = schedule.Instant(w.due) // as the store keeps it, and as Step compares it
	i, _ := slices.BinarySearchFunc(m.waiting, w, func(a, b waiting) int {
		if c := a.due.Compare(b.due); c != 0 {
			return c
		}
		return a.slot.Compare(b.slot)
	})
	m.waiting = slices.Insert(m.waiting, i, w)
}

// blocked says that the next slot cannot be decided before a run has ended or started: nothing is gained by waking
// for it.
func (m *Machine) blocked() bool {
	switch {
	case m.without:
		return len(m.waiting) > 0
	case m.def.Overlap == Skip:
		return len(m.running) > 0 || m.queued() > 0
	case m.def.Overlap == Allow || m.def.Misfire == Ignore:
		return len(m.running) >= m.limit()
	}
	return false
}

// held says whether a waiting key stays where it is for now: while the schedule is paused, only what was asked for by
// hand is started.
func (m *Machine) held(w *waiting) bool {
	return m.st.Paused && w.key.Kind != claim.KindManual && w.key.Kind != claim.KindFree
}

func (m *Machine) wakeAt(now time.Time, more bool) time.Time {
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
	if m.without || len(m.running) >= m.limit() {
		return at
	}
	for i := range m.waiting { // sorted: the first that is not held is the earliest
		if w := &m.waiting[i]; w.due.After(now) && !m.held(w) {
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
		return schedule.Instant(now.Add(*e.RetryAfter))
	}
	wait := m.def.Backoff.Delay(e.Attempt, backoff.Hash(e.Key.String(), e.Attempt))
	return schedule.Instant(now.Add(wait))
}

func (m *Machine) fixedDelay() bool { return m.def.Schedule.Kind() == schedule.FixedDelay }

// Want is how many permits the next step can use at most: the shell holds so many ready, and takes back what the step
// leaves.
func (m *Machine) Want(now time.Time) int {
	if m.drained {
		return 0
	}
	n := len(m.asks)
	for i := range m.waiting {
		if !m.waiting[i].due.After(now) {
			n++
		}
	}
	if !m.st.Next.IsZero() && !m.st.Next.After(now) && !m.st.Paused && !m.st.Retired {
		n++
	}
	return max(min(n, m.limit()-len(m.running)+len(m.ended)), 0)
}
