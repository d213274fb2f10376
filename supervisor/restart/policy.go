// Package restart decides what becomes of an actor that has failed: when it is restarted, whether it is given the message on
// which it failed again, and when it is given up.
//
// It is a pure kernel: the history of an actor goes in with the failure and the time, and comes out with a decision. The caller
// keeps the history, reads the clock and does what was decided; package supervisor is that caller.
package restart

import (
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/internal/backoff"
)

// What a zero field of Policy means, and its bounds.
const (
	DefaultMaxRestarts = 10
	DefaultWindow      = time.Hour
	DefaultQuiet       = 10 * time.Minute
	DefaultRedeliver   = 2
	LimitMaxRestarts   = 1000
)

// None is the MaxRestarts of a Policy that parks at the first failure, and the Redeliver of one that gives no message twice.
const None = -1

// Policy says how often and how fast an actor is restarted. The zero value is usable: a lasting fault is tried again after about
// 1, 2, 4 … 300 seconds and parked at the eleventh failure, some 13 minutes after the first.
type Policy struct {
	// Backoff is how long to wait before each restart.
	Backoff backoff.Policy
	// MaxRestarts is how many restarts within Window an actor is granted, at most 1000; the failure after that parks it. 0: 10;
	// None: it is parked at once. The more, the longer a fault that does not pass goes unreported.
	MaxRestarts int
	// Window is how far back restarts count against MaxRestarts. 0: 1 h. It must be longer than what MaxRestarts delays of
	// Backoff add up to, or an actor that always fails would never be parked.
	Window time.Duration
	// Quiet is how long an actor must have run since its last restart without failing for everything to be forgotten. 0: 10 min.
	Quiet time.Duration
	// Redeliver is how often a message on which the actor failed is delivered again, at most. 0: twice; None: never. It then goes
	// to dead letters, and the restart goes on without it.
	Redeliver int
}

// WithDefaults returns p with its zero fields filled in.
func (p Policy) WithDefaults() Policy {
	p.Backoff = p.Backoff.WithDefaults()
	if p.MaxRestarts == 0 {
		p.MaxRestarts = DefaultMaxRestarts
	}
	if p.Window == 0 {
		p.Window = DefaultWindow
	}
	if p.Quiet == 0 {
		p.Quiet = DefaultQuiet
	}
	if p.Redeliver == 0 {
		p.Redeliver = DefaultRedeliver
	}
	return p
}

// Validate returns an error that names the first field that is out of range, or the fields that contradict each other. Zero
// fields are in range.
func (p Policy) Validate() error {
	d := p.WithDefaults()
	if err := d.Backoff.Validate(); err != nil {
		return fmt.Errorf("restart: Backoff: %w", err)
	}
	switch {
	case d.MaxRestarts < None || d.MaxRestarts > LimitMaxRestarts:
		return fmt.Errorf("restart: MaxRestarts is %d, must be 1 to %d (0: %d) or None", p.MaxRestarts, LimitMaxRestarts, DefaultMaxRestarts)
	case d.Window < 0:
		return fmt.Errorf("restart: Window is %v, must be positive (0: %v)", p.Window, DefaultWindow)
	case d.Quiet < 0:
		return fmt.Errorf("restart: Quiet is %v, must be positive (0: %v)", p.Quiet, DefaultQuiet)
	case d.Redeliver < None:
		return fmt.Errorf("restart: Redeliver is %d, must be positive (0: %d) or None", p.Redeliver, DefaultRedeliver)
	}
	if !d.parks() {
		return fmt.Errorf("restart: Window is %v, must be longer than what MaxRestarts (%d) delays of Backoff may add up to, or nothing is ever parked",
			d.Window, d.MaxRestarts)
	}
	return nil
}

// parks reports whether an actor that always fails is parked even if jitter takes nothing off its delays.
func (p Policy) parks() bool {
	left := p.Window
	for attempt := 1; attempt <= p.MaxRestarts && left > 0; attempt++ {
		left -= min(left, p.Backoff.Delay(attempt, 0))
	}
	return left > 0
}
