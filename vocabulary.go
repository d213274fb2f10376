package quarterjack

import (
	"errors"
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// Errors of a call. They are wrapped with what was given and what is allowed; check them with errors.Is.
var (
	ErrConfig     = errors.New("bad configuration")
	ErrExists     = errors.New("it exists already")
	ErrNotFound   = errors.New("not found")
	ErrNotStarted = errors.New("the runtime has not been started")
	ErrStarted    = errors.New("the runtime has been started already")
	ErrClosed     = errors.New("the runtime is closed")
	// ErrInFlight says that somebody holds the key. The message says since when, or that it is in this process.
	ErrInFlight = errors.New("the key is in flight")
	// ErrDead says that the key's work was given up by whoever did it first. The message says why.
	ErrDead = errors.New("the key is dead")
	// ErrNotCommitted says that a handler of a job in tx mode returned nil without Commit: nothing was done.
	ErrNotCommitted = errors.New("the handler returned without Commit")
)

// Errors of the ledger and its store. See package claim for each.
var (
	ErrFenced      = claim.ErrFenced
	ErrKeyConflict = claim.ErrKeyConflict
	ErrInTx        = claim.ErrInTx
	ErrBadKey      = claim.ErrBadKey
	ErrUnavailable = claim.ErrUnavailable
	ErrLocked      = claim.ErrLocked
	ErrNewer       = claim.ErrNewer
	ErrCorrupt     = claim.ErrCorrupt
	ErrTxBound     = claim.ErrTxBound
	ErrWrongStore  = claim.ErrWrongStore
	ErrIllegal     = claim.ErrIllegal
)

// Retry makes an error by which a handler says: run this again, not before the given time has passed. It spends an
// attempt, as every failure does; below 0 counts as 0. A nil err says "not yet".
func Retry(after time.Duration, err error) error { return &retryError{after, err} }

// Drop makes an error by which a handler says: this will never work, do not run it again. The slot is dead, with err
// as its reason.
func Drop(err error) error { return &dropError{err} }

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("retry after %v", e.after)
	}
	return e.err.Error()
}
func (e *retryError) Unwrap() error { return e.err }

// RetryAfter is how runs and key groups recognise the error.
func (e *retryError) RetryAfter() time.Duration { return max(e.after, 0) }

type dropError struct{ err error }

func (e *dropError) Error() string {
	if e.err == nil {
		return "dropped by its handler"
	}
	return e.err.Error()
}
func (e *dropError) Unwrap() error { return e.err }

// Drop is how runs and key groups recognise the error.
func (e *dropError) Drop() bool { return true }
