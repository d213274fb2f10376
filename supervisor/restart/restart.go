// Package restart decides what becomes of an actor that has failed.
package restart

import (
	"time"

	"github.com/quarterjack/quarterjack/internal/backoff"
)

// Policy says how often and how fast an actor is restarted.
type Policy struct {
	Backoff     backoff.Policy
	MaxRestarts int
	Window      time.Duration
	Quiet       time.Duration
	Redeliver   int
}

// Validate returns an error that names the first field that is out of range.
func (p Policy) Validate() error { panic("restart: coming") }

// History is what is remembered of one actor's failures.
type History struct{}

// Failure is what is known of one failure.
type Failure struct {
	Reason      any
	SameMessage int
}

// Decision is what becomes of the actor.
type Decision struct {
	Restart   bool
	After     time.Duration
	Redeliver bool
	Why       string
}

// Decide decides.
func Decide(h History, p Policy, f Failure, now time.Time, rnd uint64) (History, Decision) {
	panic("restart: coming")
}
