// Package schedule is the kernel that answers one question: when next?
//
// A [Schedule] is a value: asking it changes nothing, and two schedules are equal when their String is. It is pure:
// time is an argument, and nothing here reads a clock or the host's time zone.
package schedule

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Kind of a schedule.
type Kind uint8

// The kinds.
const (
	None       Kind = iota // the zero Schedule: never by itself (a trigger that is only fired by hand)
	OneShot                // once, at an instant
	FixedRate              // on a grid: start + k*period, whatever the runs take (Quartz: SimpleTrigger)
	FixedDelay             // a pause between the end of one run and the start of the next; there is no grid
	CronKind               // a Quartz cron expression in a time zone
)

// Limits of what a schedule takes.
const (
	// MinPeriod is the shortest period or delay. Shorter ones are refused: no clock here is finer.
	MinPeriod = time.Millisecond
	// Forever is the count of a schedule that does not end by itself. It is also what a zero count means.
	Forever int64 = -1
)

// Errors of schedules.
var (
	// ErrBad says that a schedule cannot be. The message names the field, the value and what is allowed.
	ErrBad = errors.New("bad schedule")
	// ErrCron says that cron expressions are not part of this release.
	ErrCron = errors.New("cron schedules come with the next release")
)

// Resolution is that of instants: finer parts are cut off.
const Resolution = time.Microsecond

// Instant gives an instant as schedules keep it: in UTC, without a monotonic reading, cut to Resolution.
func Instant(t time.Time) time.Time { return t.Round(0).UTC().Truncate(Resolution) }

// Earliest and Latest bound every instant that a schedule takes or gives.
var (
	Earliest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	Latest   = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// Schedule says when a trigger is due. Make one with Once, Every, Delay or Cron; the zero value is never due.
type Schedule struct {
	kind       Kind
	start, end time.Time     // end: zero: none; exclusive, as Quartz has it for simple triggers
	period     time.Duration // of FixedRate; the pause of FixedDelay
	count      int64         // how many slots in all; Forever
	expr, zone string        // of CronKind
}

// Once is due one time, at the given instant. An instant that is past is late, not lost: the misfire rule decides.
func Once(at time.Time) Schedule {
	return Schedule{kind: OneShot, start: Instant(at), count: 1}
}

// Every is due at start, start+period, start+2*period and so on: a grid, which neither slow runs nor restarts move.
// The start is the moment of creation unless From gives one. period is at least MinPeriod.
func Every(period time.Duration) Schedule {
	return Schedule{kind: FixedRate, period: period, count: Forever}
}

// Delay is due at once (or at From), and then each time the given pause after the run before has ended.
func Delay(pause time.Duration) Schedule {
	return Schedule{kind: FixedDelay, period: pause, count: Forever}
}

// Cron is due as a Quartz cron expression says, in a time zone of the IANA database. In this release Validate answers
// ErrCron.
func Cron(expr, zone string) Schedule {
	return Schedule{kind: CronKind, expr: expr, zone: zone, count: Forever}
}

// From gives the schedule its first instant.
func (s Schedule) From(start time.Time) Schedule { s.start = Instant(start); return s }

// Until ends the schedule: a slot at or after this instant is never due (Quartz: the end time of a simple trigger is
// exclusive).
func (s Schedule) Until(end time.Time) Schedule { s.end = Instant(end); return s }

// Times bounds how many slots there are in all: at least 1. Quartz counts repeats, which are one fewer.
func (s Schedule) Times(n int64) Schedule { s.count = n; return s }

// Kind tells what kind of schedule it is.
func (s Schedule) Kind() Kind { return s.kind }

// Start is the first instant as given; zero: the moment of creation.
func (s Schedule) Start() time.Time { return s.start }

// End is the exclusive end; zero: none.
func (s Schedule) End() time.Time { return s.end }

// Period is the grid's step, or the pause of a fixed delay.
func (s Schedule) Period() time.Duration { return s.period }

// Count is how many slots there are in all, or Forever.
func (s Schedule) Count() int64 { return s.count }

// Validate says what is wrong with the schedule: ErrBad with the field, the value and what is allowed; or ErrCron.
func (s Schedule) Validate() error {
	bad := func(field string, value any, allowed string) error {
		return fmt.Errorf("%w: %s is %v, %s", ErrBad, field, value, allowed)
	}
	if s.period%Resolution != 0 {
		return bad("period", s.period, "want whole microseconds")
	}
	switch s.kind {
	case None:
		if s != (Schedule{}) {
			return bad("kind", "missing", "use Once, Every, Delay or Cron")
		}
		return nil
	case CronKind:
		return fmt.Errorf("%w: %q", ErrCron, s.expr)
	case OneShot, FixedRate, FixedDelay:
	default:
		return bad("kind", uint8(s.kind), "use Once, Every, Delay or Cron")
	}
	if s.kind == OneShot {
		if s.start.IsZero() {
			return bad("at", "the zero time", "want an instant")
		}
		if s.count != 1 {
			return bad("count", s.count, "a one-shot is due once")
		}
	} else {
		if s.period < MinPeriod {
			return bad("period", s.period, "want at least "+MinPeriod.String())
		}
		if s.count != Forever && s.count < 1 {
			return bad("count", s.count, "want at least 1")
		}
	}
	for field, t := range map[string]time.Time{"start": s.start, "end": s.end} {
		if !t.IsZero() && (t.Before(Earliest) || t.After(Latest)) {
			return bad(field, t, "want an instant within the years 1 to 9999")
		}
	}
	if !s.start.IsZero() && !s.end.IsZero() && !s.start.Before(s.end) {
		return bad("end", s.end.Format(time.RFC3339Nano), "want it after the start, "+s.start.Format(time.RFC3339Nano))
	}
	return nil
}

// Grid is the arithmetic of an evenly spaced schedule: Start, Start+Period, ... It never overflows: instants beyond
// Latest do not exist.
type Grid struct {
	Start  time.Time
	Period time.Duration
}

// At gives the k-th instant, counted from 0; ok is false for one beyond Latest.
func (g Grid) At(k int64) (t time.Time, ok bool) {
	if k < 0 {
		return time.Time{}, false
	}
	if k == 0 {
		return g.Start, !g.Start.After(Latest)
	}
	// time.Duration holds 292 years; a grid may be longer. Seconds and nanoseconds apart hold it all.
	sec, nsec := int64(g.Period/time.Second), int64(g.Period%time.Second)
	if sec > 0 && k > math.MaxInt64/4/sec || nsec > 0 && k/int64(time.Second) > math.MaxInt64/4/nsec {
		return time.Time{}, false
	}
	// k*nsec may not fit: split k at a thousand million.
	hi, lo := k/int64(time.Second), k%int64(time.Second)
	s := k*sec + hi*nsec
	s += lo * nsec / int64(time.Second)
	ns := lo * nsec % int64(time.Second)
	if s > 400_000*366*24*3600 {
		return time.Time{}, false
	}
	t = addSeconds(g.Start, s).Add(time.Duration(ns))
	return t, !t.After(Latest)
}

// Index gives the number of the last instant that is not after t: -1 if t is before Start.
func (g Grid) Index(t time.Time) int64 {
	if t.Before(g.Start) {
		return -1
	}
	sec, nsec := t.Unix()-g.Start.Unix(), int64(t.Nanosecond()-g.Start.Nanosecond())
	if sec < math.MaxInt64/int64(time.Second)-1 {
		return (sec*int64(time.Second) + nsec) / int64(g.Period)
	}
	// More than 292 years apart: find it by halving.
	lo, hi := int64(0), int64(math.MaxInt64/4)
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if at, ok := g.At(mid); ok && !at.After(t) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

func addSeconds(t time.Time, s int64) time.Time {
	return time.Unix(t.Unix()+s, int64(t.Nanosecond())).UTC()
}

// CronText gives the expression and the zone of a cron schedule.
func (s Schedule) CronText() (expr, zone string) { return s.expr, s.zone }

// String writes the schedule as people say it: "every 5s from 2026-03-02T10:00:00Z times 10". Equal schedules have
// equal texts.
func (s Schedule) String() string {
	var b strings.Builder
	at := func(word string, t time.Time) {
		if !t.IsZero() {
			b.WriteString(word + t.Format(time.RFC3339Nano))
		}
	}
	switch s.kind {
	case OneShot:
		at("once at ", s.start)
		return b.String()
	case FixedRate:
		b.WriteString("every " + s.period.String())
	case FixedDelay:
		b.WriteString("delay " + s.period.String())
	case CronKind:
		fmt.Fprintf(&b, "cron %q in %s", s.expr, s.zone)
	case None:
		return "never by itself"
	}
	at(" from ", s.start)
	at(" until ", s.end)
	if s.count != Forever {
		fmt.Fprintf(&b, " times %d", s.count)
	}
	return b.String()
}

// MarshalText gives String, so that a schedule reads well in JSON and logs.
func (s Schedule) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
