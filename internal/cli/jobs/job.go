// Package jobs holds the kinds of job that need no Go code: a program ([Exec]), a web request ([HTTP]), a log line
// ([Log]).
//
// What a job answers decides what becomes of its run: nil is done; an error made by quarterjack.Retry or
// quarterjack.Drop says so itself; any other error follows the trigger's or the group's policy. Secrets are read
// when they are used and appear nowhere else: not in String, not in errors, and masked in output.
package jobs

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"
)

// MaxOutput is how much of a job's output is kept: its end, in bytes.
const MaxOutput = 64 << 10

// Work is one run of a job, or one batch of a key group.
type Work struct {
	Trigger string    // the trigger's id; empty for a group's batch
	Group   string    // the group's name; empty for a trigger's run
	Slot    time.Time // what time the run is for; zero where there is none
	Key     string    // the ledger's key of the run; for a batch the key that its items share, which names no attempt
	Fence   uint64    // grows with every claim of Key: a callee that has seen a higher one refuses this; 0 for a batch
	Attempt int       // counts from 1
	Data    []byte    // standard input, or the request's body
}

// Job does work. It is safe for concurrent use.
type Job interface {
	// Do performs the work and returns when it is over, at the latest soon after ctx ends. The output, of at most
	// MaxOutput bytes, is for people: it is given with and without an error.
	Do(ctx context.Context, w Work) (output []byte, err error)
	// String says in a few words what the job does, without any secret.
	String() string
}

// FieldError says what is wrong with one field of a job's configuration. Constructors join all they find.
type FieldError struct {
	Field   string // as in node.yaml, relative to the job: "argv", "env.TOKEN", "retry_codes[2]"
	Given   string // what was given; never a secret
	Allowed string
}

// Error reads "field: given: allowed".
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Field, e.Given, e.Allowed) }

// Quote shows a text that was given, shortened so that a message stays a line.
func Quote(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q…", s[:cut])
}
