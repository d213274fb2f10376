package verdict_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/deptest"
	"github.com/quarterjack/quarterjack/internal/verdict"
)

func TestArrows(t *testing.T) { deptest.Deps(t, ".", deptest.Kernel) }

type drop struct {
	error
	yes bool
}

func (d drop) Drop() bool    { return d.yes }
func (d drop) Unwrap() error { return d.error }

type retry struct {
	error
	after time.Duration
}

func (r retry) RetryAfter() time.Duration { return r.after }
func (r retry) Unwrap() error             { return r.error }

// pointer is an error that most often is meant when a nil one is returned.
type pointer struct{ text string }

func (p *pointer) Error() string { return p.text }

// mine is an error of which one method is a mine.
type mine struct{ on string }

func (m mine) step(on string) {
	if m.on == on {
		panic("boom in " + on)
	}
}

func (m mine) Error() string             { m.step("Error"); return "mine" }
func (m mine) Unwrap() error             { m.step("Unwrap"); return nil }
func (m mine) Is(error) bool             { m.step("Is"); return false }
func (m mine) As(any) bool               { m.step("As"); return false }
func (m mine) Drop() bool                { m.step("Drop"); return false }
func (m mine) RetryAfter() time.Duration { m.step("RetryAfter"); return time.Minute }

// ouroboros panics with itself, which package fmt does not survive.
type ouroboros struct{}

func (o ouroboros) Error() string { panic(o) }

func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want verdict.Verdict
	}{
		"no error":             {nil, verdict.Verdict{}},
		"any error":            {io.EOF, verdict.Verdict{Reason: "EOF"}},
		"drop":                 {fmt.Errorf("wrapped: %w", drop{io.EOF, true}), verdict.Verdict{Drop: true, Reason: "wrapped: EOF"}},
		"no drop":              {drop{io.EOF, false}, verdict.Verdict{Reason: "EOF"}},
		"retry":                {fmt.Errorf("wrapped: %w", retry{io.EOF, time.Minute}), verdict.Verdict{RetryAfter: new(time.Minute), Reason: "wrapped: EOF"}},
		"retry at once":        {retry{io.EOF, 0}, verdict.Verdict{RetryAfter: new(time.Duration(0)), Reason: "EOF"}},
		"drop wins over retry": {retry{drop{io.EOF, true}, time.Minute}, verdict.Verdict{Drop: true, Reason: "EOF"}},
		"no drop but a retry":  {drop{retry{io.EOF, time.Minute}, false}, verdict.Verdict{RetryAfter: new(time.Minute), Reason: "EOF"}},
		"one of many":          {errors.Join(errors.New("first"), drop{io.EOF, true}), verdict.Verdict{Drop: true, Reason: "first\nEOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, verdict.Of(c.err))
			require.Equal(t, c.want, verdict.Of(verdict.Guard(c.err)))
		})
	}
}

func TestAnErrorThatPanicsIsOnlyThat(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil pointer":        {(*pointer)(nil), "runtime error: invalid memory address or nil pointer dereference (of a *verdict_test.pointer)"},
		"nil inside":         {drop{nil, true}, "runtime error: invalid memory address or nil pointer dereference (of a verdict_test.drop)"},
		"Error":              {mine{"Error"}, "boom in Error (of a verdict_test.mine)"},
		"Unwrap":             {wishlessError{mine{"Unwrap"}}, "boom in Unwrap (of a verdict_test.wishlessError)"},
		"As":                 {wishlessError{mine{"As"}}, "boom in As (of a verdict_test.wishlessError)"},
		"Drop":               {mine{"Drop"}, "boom in Drop (of a verdict_test.mine)"},
		"RetryAfter":         {mine{"RetryAfter"}, "boom in RetryAfter (of a verdict_test.mine)"},
		"panics with itself": {ouroboros{}, "verdict_test.ouroboros (of a verdict_test.ouroboros)"},
	} {
		t.Run(name, func(t *testing.T) {
			want := verdict.Verdict{Reason: "the handler's error panicked: " + c.want}
			require.Equal(t, want, verdict.Of(c.err))
			require.Equal(t, want, verdict.Of(verdict.Guard(c.err)))
			require.EqualError(t, verdict.Guard(c.err), want.Reason)
		})
	}
}

// wishlessError hides the wishes of a mine, so that its chain is followed.
type wishlessError struct{ m mine }

func (n wishlessError) Error() string { return n.m.Error() }
func (n wishlessError) Unwrap() error { return n.m.Unwrap() }
func (n wishlessError) As(target any) bool {
	return n.m.As(target)
}

func TestText(t *testing.T) {
	require.Equal(t, "[1 2]", verdict.Text([]int{1, 2}))
	require.Contains(t, verdict.Text(mine{"Error"}), "boom in Error")
	require.Equal(t, "verdict_test.ouroboros", verdict.Text(ouroboros{}))
}

func TestGuard(t *testing.T) {
	require.NoError(t, verdict.Guard(nil))

	g := verdict.Guard(fmt.Errorf("reading: %w", &fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}))
	require.EqualError(t, g, "reading: open a: file does not exist")
	require.ErrorIs(t, g, fs.ErrNotExist)
	require.NotErrorIs(t, g, fs.ErrExist)
	path, ok := errors.AsType[*fs.PathError](g)
	require.True(t, ok)
	require.Equal(t, "a", path.Path)
	require.Same(t, g, verdict.Guard(g))

	require.NotErrorIs(t, verdict.Guard(mine{"Is"}), io.EOF, "a panic is a no")
	var p *pointer
	require.NotErrorAs(t, verdict.Guard(mine{"As"}), &p, "a panic is a no")
}
