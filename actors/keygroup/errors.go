package keygroup

import (
	"errors"
	"fmt"

	"github.com/quarterjack/quarterjack/internal/verdict"
)

// Errors of the callers of a group.
var (
	// ErrFull says that the item was not admitted: as many as Config.MaxItems allows are admitted and unhandled.
	// Nothing of the call is left behind.
	ErrFull = errors.New("the group is full")
	// ErrClosed says that the group has been closed and takes nothing more.
	ErrClosed = errors.New("the group is closed")
	// ErrReentrant says that a handler would wait for its own group, and so perhaps for itself: Flush and Close, and
	// an Add to a full group that blocks.
	ErrReentrant = errors.New("a handler must not wait for its own group")
	// ErrKey says that a value cannot be a key: it is not equal to itself (a NaN), or cannot be compared (a slice in a
	// key whose type is an interface).
	ErrKey = errors.New("not a key")
	// ErrNoLedger says that the group was made without a ledger to commit to.
	ErrNoLedger = errors.New("the group has no ledger")
	// ErrConfig says that a Config or Deps is refused. The message names field, value and what is allowed.
	ErrConfig = errors.New("bad group configuration")
)

// Errors of a batch, as dead letters and counters see them.
var (
	// ErrTimeout is the cause with which a handler's context ends after Config.Timeout.
	ErrTimeout = errors.New("the handler's time is over")
	// ErrGoexit says that a handler or an accumulator ended its goroutine, as testing.T.FailNow does.
	ErrGoexit = errors.New("runtime.Goexit")
	// ErrStopped says that the key's actor was stopped from outside while it held items. To an Add it says that this was
	// so and that the handler has not returned: until then the key takes nothing.
	ErrStopped = errors.New("the key's actor was stopped")
)

// PanicError is the error of a batch whose handler, or of an item whose accumulator, panicked or ended its goroutine.
type PanicError struct {
	Value any    // what was given to panic; ErrGoexit
	Stack []byte // of the goroutine, from where it happened
}

// Error gives value and stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %s\n%s", verdict.Text(e.Value), e.Stack)
}

// Unwrap gives the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// panicked makes the error of a function that did not return. reason is what recover gave: nil after a Goexit.
func panicked(reason any, stack []byte) error {
	if reason == nil {
		reason = ErrGoexit
	}
	return verdict.Guard(&PanicError{Value: reason, Stack: stack})
}
