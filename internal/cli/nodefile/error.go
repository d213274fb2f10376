package nodefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrBad says that a file is not a node file as it should be. Each *Error is one.
var ErrBad = errors.New("bad node file")

// Error is one thing that is wrong with a file.
type Error struct {
	File      string
	Line, Col int    // counted from 1; 0 where the whole file is meant
	Field     string // "triggers[2].schedule.every"; empty where no field is meant
	Given     string // never a secret
	Allowed   string // may be empty
	cause     error
}

// Error reads "file:line:col: field: given: allowed".
func (e *Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text = position(e.File, e.Line, e.Col)
	}
	for _, part := range []string{e.Field, e.Given, e.Allowed} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// Unwrap gives ErrBad, and the error of the schedule where one is at fault.
func (e *Error) Unwrap() []error {
	if e.cause != nil {
		return []error{ErrBad, e.cause}
	}
	return []error{ErrBad}
}

func position(file string, line, col int) string { return fmt.Sprintf("%s:%d:%d", file, line, col) }

// join puts errors into the order of the file.
func join(all []*Error) error {
	slices.SortStableFunc(all, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	errs := make([]error, len(all))
	for i, e := range all {
		errs[i] = e
	}
	return errors.Join(errs...)
}
