package restart

import (
	"fmt"
	"time"
)

// History is what is remembered of one actor's failures. The zero value is that of an actor that has not failed. It is a value:
// Decide returns a new one and leaves the old as it was.
//
// Invariants: restarts is at most MaxRestarts long; attempt is at least its length.
type History struct {
	restarts []time.Time // when the failures of the last Window were that were answered with a restart
	attempt  int         // restarts since the actor last was quiet, which is what Backoff counts
	back     time.Time   // when the last restart was due
}

// Restarts returns how many restarts count against MaxRestarts.
func (h History) Restarts() int { return len(h.restarts) }

// Failure is what is to be known of one failure.
type Failure struct {
	// Reason is what the actor failed with, for Decision.Why.
	Reason any
	// SameMessage is how often the message that it failed on has made it fail, this time included. 0: there was no message, or
	// none that could be delivered again.
	SameMessage int
}

// Decision is what becomes of the actor.
type Decision struct {
	Restart   bool          // false: park it
	After     time.Duration // how long to wait before the restart
	Redeliver bool          // deliver the message on which it failed again
	Why       string        // one line, for people
}

// Decide answers a failure at now. Rnd spreads the delay, as for backoff.Policy.Delay. A parked actor's history counts what
// was granted, and need not be kept.
//
// What seems to be later than now, because the clock was stepped back, counts as recent.
func Decide(h History, p Policy, f Failure, now time.Time, rnd uint64) (History, Decision) {
	p = p.WithDefaults()
	if h.attempt > 0 && now.Sub(h.back) >= p.Quiet {
		h = History{}
	}
	recent := h.within(p.Window, now)
	granted := max(p.MaxRestarts, 0) // None is none
	if len(recent) >= granted {
		return History{restarts: recent, attempt: h.attempt, back: h.back}, Decision{
			Why: fmt.Sprintf("parked after %d restarts within %v: %v", len(recent), p.Window, f.Reason),
		}
	}
	next := History{restarts: append(recent, now), attempt: h.attempt + 1}
	d := Decision{
		Restart:   true,
		After:     p.Backoff.Delay(next.attempt, rnd),
		Redeliver: f.SameMessage > 0 && f.SameMessage <= p.Redeliver,
	}
	next.back = now.Add(d.After)
	d.Why = fmt.Sprintf("restart %d of %d within %v, in %v%s: %v", len(next.restarts), granted, p.Window, d.After, messageFate(f, d), f.Reason)
	return next, d
}

// within returns the restarts that are less than window old, in a slice of its own.
func (h History) within(window time.Duration, now time.Time) []time.Time {
	recent := make([]time.Time, 0, len(h.restarts)+1)
	for _, at := range h.restarts {
		if now.Sub(at) < window {
			recent = append(recent, at)
		}
	}
	return recent
}

func messageFate(f Failure, d Decision) string {
	switch {
	case f.SameMessage == 0:
		return ""
	case d.Redeliver:
		return " with the same message again"
	default:
		return fmt.Sprintf(" without the message, which has made it fail %d times", f.SameMessage)
	}
}
