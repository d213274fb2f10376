// Package verdict reads what a handler's error wants to happen. Such an error is a stranger's code: its methods may panic, and
// a nil pointer in an error is not a nil error. Here that is caught, once for all who call handlers.
package verdict

import (
	"errors"
	"fmt"
	"time"
)

// Verdict is what a handler's error says. The zero Verdict is that of no error.
type Verdict struct {
	Drop       bool           // the work is to be given up now; then RetryAfter is nil
	RetryAfter *time.Duration // the work is to be tried again after so long, as the error says it; nil: by the policy
	Reason     string         // the error's text
}

// Of reads err, which may be nil: an error of its chain that has Drop() bool or RetryAfter() time.Duration decides, otherwise
// the policy does. If reading it panics, as with most nil pointers, Reason says so and Verdict wishes for nothing. It calls
// methods of err only while it runs; keep the Verdict, and [Guard] err where it must be kept too.
func Of(err error) Verdict {
	v, _ := read(err)
	return v
}

func read(err error) (v Verdict, sound bool) {
	if err == nil {
		return Verdict{}, true
	}
	defer func() {
		if r := recover(); r != nil {
			v, sound = Verdict{Reason: fmt.Sprintf("the handler's error panicked: %s (of a %T)", Text(r), err)}, false
		}
	}()
	v.Reason = err.Error()
	var drop interface{ Drop() bool }
	if errors.As(err, &drop) && drop.Drop() {
		v.Drop = true
		return v, true
	}
	var retry interface{ RetryAfter() time.Duration }
	if errors.As(err, &retry) {
		after := retry.RetryAfter()
		v.RetryAfter = &after
	}
	return v, true
}

// Text formats a stranger's value as fmt.Sprint does, or gives its type where its own methods prevent that: package fmt survives
// a method that panics, but not one that panics with its own receiver.
func Text(v any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("%T", v)
		}
	}()
	return fmt.Sprint(v)
}

// Guard wraps err so that anybody may hold it: its text is the Reason of err's Verdict, and errors.Is, errors.As and
// errors.AsType look into err, where a panic is a no. It hides err from errors.Unwrap, and from all if reading its Verdict panics. Of
// the guarded error the Verdict is the same. Guard(nil) is nil, and an error that is guarded already is returned as it is.
func Guard(err error) error {
	if err == nil {
		return nil
	}
	if g, ok := err.(*guarded); ok && g != nil { //nolint:errorlint // only err itself: looking into a stranger's chain may panic
		return g
	}
	v, sound := read(err)
	if !sound {
		err = nil
	}
	return &guarded{err: err, reason: v.Reason}
}

type guarded struct {
	err    error // nil: it is not to be touched
	reason string
}

// Error gives the text that the error had when it was guarded.
func (g *guarded) Error() string { return g.reason }

// Is looks for target in the error's chain.
func (g *guarded) Is(target error) (found bool) {
	defer no(&found)
	return errors.Is(g.err, target)
}

// As looks for an error of target's type in the error's chain.
func (g *guarded) As(target any) (found bool) {
	defer no(&found)
	return errors.As(g.err, target)
}

func no(found *bool) {
	if recover() != nil {
		*found = false
	}
}
