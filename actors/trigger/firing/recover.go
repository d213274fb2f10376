package firing

import (
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// New makes the machine of a trigger from what is stored, its definition, its state and its unfinished records, and
// from what this process knows of its own runs: live has those that it has started, nil while in flight, and how they
// ended where that is not known to be recorded.
//
// A claim of this session that is not live was never started (its actor failed in between): it is released. A claim of
// a session before was cut short: it is claimable.
func New(def Definition, st State, unfinished []claim.Record, session uint64, live map[claim.Key]*Ended, now time.Time) *Machine {
	m := &Machine{def: def, st: st}
	open := map[claim.Key]*claim.Record{}
	for i := range unfinished {
		open[unfinished[i].Key] = &unfinished[i]
	}
	for k, e := range live {
		r := open[k]
		switch {
		case e == nil: // in flight, also where it has committed its completion itself
			m.running = append(m.running, k)
		case e.Committed, r != nil && r.State == claim.Claimed && r.Fence == e.Fence: // the end is still to be recorded
			m.running = append(m.running, k)
			m.Ended(*e)
		}
	}
	for i := range unfinished {
		m.recover(&unfinished[i], session, now)
	}
	m.fresh = len(m.running) == 0
	if k := st.ordinal(&def); st.Awaiting && open[k] == nil && !m.Holds(k) {
		m.st.rest(now) // its run ended, and the crash came before the pause was written
		m.dirty = true
	}
	return m
}

func (m *Machine) recover(r *claim.Record, session uint64, now time.Time) {
	w := waiting{key: r.Key, job: r.Job, due: r.Due, slot: r.Slot, attempt: int(r.Attempt)}
	switch {
	case m.Holds(r.Key):
	case r.State == claim.Pending:
		m.wait(w)
	case r.State == claim.Claimed && r.Session == session:
		m.Ended(Ended{Key: r.Key, Job: r.Job, Slot: r.Slot, Fence: r.Fence, Attempt: int(r.Attempt), At: now, Interrupted: true, Reason: "never started"})
	case r.State == claim.Claimed:
		w.due, w.attempt = now, w.attempt-1
		m.wait(w)
	}
}
