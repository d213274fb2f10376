package firing

import (
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
)

// Misfire is a Quartz misfire instruction for simple triggers: what to do about a slot that could not be fired within
// the threshold. The zero value is Smart. Quartz's own numbers are given by Code.
type Misfire uint8

// The instructions.
const (
	// Smart chooses as Quartz does: FireNow for a one-shot, NowExisting for a bounded count, NextRemaining for an
	// endless one.
	Smart Misfire = iota
	// Ignore fires every missed slot, one after the other, as soon as it can.
	Ignore
	// FireNow runs a one-shot now. On a repeating trigger it means NowRemaining.
	FireNow
	// NowExisting fires now and goes on from there with the repeat count as it was: missed slots do not count.
	NowExisting
	// NowRemaining fires now and goes on from there with what is left of the repeat count: missed slots count.
	NowRemaining
	// NextRemaining waits for the next slot of the grid; missed slots count as triggered.
	NextRemaining
	// NextExisting waits for the next slot of the grid; missed slots do not count as triggered. Both end at the
	// same final time.
	NextExisting
)

// Instructions lists all instructions in the order of their declaration.
var Instructions = []Misfire{Smart, Ignore, FireNow, NowExisting, NowRemaining, NextRemaining, NextExisting}

var misfireNames = [...]string{"smart", "ignore", "fire_now", "now_existing", "now_remaining", "next_remaining", "next_existing"}
var misfireCodes = [...]int{0, -1, 1, 2, 3, 4, 5}

// String gives the instruction's name, as files and the history show it.
func (m Misfire) String() string {
	if int(m) < len(misfireNames) {
		return misfireNames[m]
	}
	return fmt.Sprintf("misfire(%d)", uint8(m))
}

// MarshalText gives String.
func (m Misfire) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Code gives Quartz's number: -1 to 5.
func (m Misfire) Code() int {
	if int(m) < len(misfireCodes) {
		return misfireCodes[m]
	}
	return 0
}

// ParseMisfire reads what String gives. Any other text is an error that lists what is allowed.
func ParseMisfire(s string) (Misfire, error) {
	for i, name := range misfireNames {
		if s == name {
			return Misfire(i), nil
		}
	}
	return 0, fmt.Errorf("misfire is %q: want one of %q", s, misfireNames)
}

// Simple is the running state of a Quartz simple trigger. Times are instants to the millisecond or finer; a zero
// time is Quartz's null.
type Simple struct {
	Start, End, Next, Prev time.Time
	Interval               time.Duration
	Repeat                 int64 // repeats after the first; schedule.Forever: endless
	Triggered              int64
}

func (s *Simple) grid() schedule.Grid { return schedule.Grid{Start: s.Start, Period: s.Interval} }

// FireTimeAfter is Quartz's getFireTimeAfter: the first slot strictly after the given time, or zero.
func (s *Simple) FireTimeAfter(after time.Time) time.Time {
	switch {
	case s.Triggered > s.Repeat && s.Repeat != schedule.Forever,
		s.Repeat == 0 && !after.Before(s.Start),
		!s.End.IsZero() && !s.End.After(after):
		return time.Time{}
	case after.Before(s.Start):
		return s.Start
	}
	k := s.grid().Index(after) + 1
	if k > s.Repeat && s.Repeat != schedule.Forever {
		return time.Time{}
	}
	t, ok := s.grid().At(k)
	if !ok || !s.End.IsZero() && !s.End.After(t) {
		return time.Time{}
	}
	return t
}

// Fire is Quartz's triggered: the present slot has been fired, the next one is found.
func (s *Simple) Fire() {
	s.Triggered++
	s.Prev = s.Next
	s.Next = s.FireTimeAfter(s.Next)
}

// Missed counts the slots of the grid from Next up to and including until that are left to fire, and gives the last
// of them.
func (s *Simple) Missed(until time.Time) (n int64, last time.Time) {
	if s.Next.IsZero() || s.Next.After(until) {
		return 0, time.Time{}
	}
	if s.Repeat == 0 || s.Interval <= 0 {
		return 1, s.Next
	}
	g := schedule.Grid{Start: s.Next, Period: s.Interval}
	k := g.Index(until)
	if !s.End.IsZero() && !s.End.After(until) {
		k = g.Index(s.End.Add(-1))
	}
	if s.Repeat != schedule.Forever {
		k = max(min(k, s.Repeat-s.grid().Index(s.Next), s.Repeat-s.Triggered), 0)
	}
	last, _ = g.At(k)
	return k + 1, last
}

// UpdateAfterMisfire is Quartz's updateAfterMisfire with the given instruction at the given time. The error is
// Quartz's IllegalArgumentException: NowExisting where more has been triggered than the repeat count allows.
func (s *Simple) UpdateAfterMisfire(m Misfire, now time.Time) error {
	switch m = m.resolve(s.Repeat); m {
	case Smart, Ignore: // Smart is resolved
	case FireNow:
		s.Next = now
	case NextExisting:
		s.Next = s.FireTimeAfter(now)
	case NextRemaining:
		next := s.FireTimeAfter(now)
		if !next.IsZero() {
			s.Triggered += s.between(s.Next, next)
		}
		s.Next = next
	case NowExisting:
		if s.Repeat != 0 && s.Repeat != schedule.Forever {
			if s.Triggered > s.Repeat {
				return fmt.Errorf("triggered %d times of %d repeats: the remaining count would be negative", s.Triggered, s.Repeat)
			}
			s.Repeat -= s.Triggered
			s.Triggered = 0
		}
		s.restartAt(now)
	case NowRemaining:
		if s.Repeat != 0 && s.Repeat != schedule.Forever {
			s.Repeat = max(s.Repeat-(s.Triggered+s.between(s.Next, now)), 0)
			s.Triggered = 0
		}
		s.restartAt(now)
	}
	return nil
}

// resolve turns Smart, and FireNow on a repeating trigger, into what Quartz makes of them.
func (m Misfire) resolve(repeat int64) Misfire {
	switch {
	case m == Smart && repeat == 0:
		return FireNow
	case m == Smart && repeat == schedule.Forever:
		return NextRemaining
	case m == Smart:
		return NowExisting
	case m == FireNow && repeat != 0:
		return NowRemaining
	}
	return m
}

// restartAt begins the grid anew at now, unless the end time is past.
func (s *Simple) restartAt(now time.Time) {
	if !s.End.IsZero() && s.End.Before(now) {
		s.Next = time.Time{}
		return
	}
	s.Start, s.Next = now, now
}

// between is Quartz's computeNumTimesFiredBetween: whole intervals from one instant to the other, negative if the
// second is the earlier one.
func (s *Simple) between(from, to time.Time) int64 {
	if s.Interval < 1 {
		return 0
	}
	if to.Before(from) {
		return -s.between(to, from)
	}
	return schedule.Grid{Start: from, Period: s.Interval}.Index(to)
}
