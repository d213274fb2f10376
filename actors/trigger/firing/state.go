package firing

import (
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/backoff"
)

// Overlap says what happens to a slot that comes due while a run of the same trigger is still in flight. The zero
// value is Skip.
type Overlap uint8

// The overlap policies.
const (
	Skip      Overlap = iota // the slot is not run; its verdict is skipped(overlap)
	BufferAll                // the slot waits its turn, up to Definition.Limit of them; beyond that it is skipped
	Allow                    // the slot runs beside the others, up to Definition.Limit runs; beyond that it is skipped
)

var overlapNames = [...]string{"skip", "buffer_all", "allow"}

// String gives the policy's name, as files show it.
func (o Overlap) String() string {
	if int(o) < len(overlapNames) {
		return overlapNames[o]
	}
	return fmt.Sprintf("overlap(%d)", uint8(o))
}

// MarshalText gives String.
func (o Overlap) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// ParseOverlap reads what String gives. Any other text is an error that lists what is allowed.
func ParseOverlap(s string) (Overlap, error) {
	for i, name := range overlapNames {
		if s == name {
			return Overlap(i), nil
		}
	}
	return 0, fmt.Errorf("overlap is %q: want one of %q", s, overlapNames)
}

// Reasons of skipped slots.
const (
	ReasonMisfire = "misfire"         // the misfire instruction left it out
	ReasonPaused  = "paused"          // it came due while the trigger was paused, and its instruction left it out
	ReasonOverlap = "overlap"         // a run was in flight
	ReasonFull    = "overlap_full"    // too many slots were waiting already
	ReasonRetired = "trigger_retired" // its trigger was retired while it waited
)

// Definition is what the user wrote. It never changes; an edited trigger has a new one with a higher version.
type Definition struct {
	Namespace, Trigger string
	Job                string
	Payload            []byte
	Schedule           schedule.Schedule
	Misfire            Misfire
	Threshold          time.Duration // a slot late by this much or more is a misfire
	Overlap            Overlap
	Limit              int // of BufferAll: slots that may wait; of Allow: runs at a time
	Attempts           int // runs of one slot before it is dead
	Backoff            backoff.Policy
	Lease              time.Duration // of each claim; heartbeats extend it
	Hold               time.Duration // for so long at most; 0: until the run ends
}

// State is where a trigger stands. It is stored with each step; the definition is stored beside it and stays as the
// user wrote it, whatever the misfire instructions do to Start and Repeat here.
type State struct {
	Incarnation, Version, Epoch uint32
	Simple                      // the grid, its count, and the next and previous slot
	// Awaiting: a run of a fixed-delay schedule is in flight; the next instant is known when it ends.
	Awaiting bool
	Paused   bool
	Note     string // who paused it and why, in the pauser's words
	Retired  bool   // its owner no longer declares it: nothing is due, the history stays
}

// Begin gives the state of a trigger that is created (or edited) now. A schedule without a start begins now.
func Begin(def Definition, now time.Time, incarnation, version uint32) State {
	s := def.Schedule
	st := State{Incarnation: incarnation, Version: version}
	if s.Kind() == schedule.None {
		return st
	}
	st.Start, st.End, st.Interval, st.Repeat = s.Start(), s.End(), s.Period(), s.Count()
	if st.Start.IsZero() {
		st.Start = schedule.Instant(now)
	}
	if st.Repeat != schedule.Forever {
		st.Repeat-- // Quartz counts the repeats after the first
	}
	st.Next = st.Start
	if !st.End.IsZero() && !st.Next.Before(st.End) {
		st.Next = time.Time{}
	}
	return st
}

// BeginVersion gives the state of a definition that replaces another one now: a new version. Where the schedule is the
// same, it goes on as it was, grid and count and all. Where it is another one, its first slot is not before now, since
// what came earlier was the older version's business. A pause stays.
func BeginVersion(def, oldDef Definition, now time.Time, old State) State {
	if def.Schedule == oldDef.Schedule {
		old.Version++
		return old
	}
	st := Begin(def, now, old.Incarnation, old.Version+1)
	st.Paused, st.Note = old.Paused, old.Note
	if now = schedule.Instant(now); !st.Next.IsZero() && st.Next.Before(now) {
		switch def.Schedule.Kind() {
		case schedule.FixedRate:
			n, last := st.Missed(now.Add(-1))
			st.pass(n, last)
		case schedule.FixedDelay:
			st.Start, st.Next = now, now
		default:
			st.Next = time.Time{}
		}
	}
	return st
}

// pass moves the grid beyond n slots, the last of which is given, as if each had been triggered.
func (st *State) pass(n int64, last time.Time) {
	if n == 0 {
		return
	}
	st.Triggered += n
	st.Prev = last
	st.Next = st.FireTimeAfter(last)
}

// take is the present slot being handed out: the grid moves on, or a fixed delay waits for the run's end.
func (st *State) take(k schedule.Kind) {
	if k != schedule.FixedDelay {
		st.Fire()
		return
	}
	st.Triggered++
	st.Prev, st.Next, st.Awaiting = st.Next, time.Time{}, true
}

// rest is the end of a fixed delay's run: the next one is due after the pause.
func (st *State) rest(ended time.Time) {
	st.Awaiting = false
	next := schedule.Instant(ended).Add(st.Interval)
	if st.Repeat != schedule.Forever && st.Triggered > st.Repeat || next.After(schedule.Latest) ||
		!st.End.IsZero() && !next.Before(st.End) {
		return
	}
	st.Next = next
}

// key names what is due now.
func (st *State) key(def *Definition, slot time.Time) claim.Key {
	k := claim.Key{Namespace: def.Namespace, Trigger: def.Trigger, Incarnation: st.Incarnation, Version: st.Version, Epoch: st.Epoch}
	if def.Schedule.Kind() == schedule.FixedDelay {
		k.Kind, k.Ordinal = claim.KindOrdinal, st.Triggered+1
	} else {
		k.Kind, k.Slot = claim.KindSlot, slot
	}
	return k.Canonical()
}

// ordinal names the run that a fixed delay has handed out last.
func (st *State) ordinal(def *Definition) claim.Key {
	return claim.Key{Namespace: def.Namespace, Trigger: def.Trigger, Incarnation: st.Incarnation, Version: st.Version, Epoch: st.Epoch,
		Kind: claim.KindOrdinal, Ordinal: st.Triggered}.Canonical()
}

// skipped makes the record of n slots that are left out.
func (st *State) skipped(def *Definition, first, last time.Time, n int64, reason string, now time.Time) claim.Range {
	return claim.Range{Namespace: def.Namespace, Trigger: def.Trigger, Incarnation: st.Incarnation, Version: st.Version,
		Epoch: st.Epoch, First: first, Last: last, Count: n, Reason: reason, At: now}
}
