package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireVerdict checks what an error says about its run: "" done, "plain", "drop", or "retry" after a time.
func requireVerdict(t *testing.T, want string, after time.Duration, err error) {
	t.Helper()
	var again interface{ RetryAfter() time.Duration }
	var never interface{ Drop() bool }
	got := "plain"
	switch {
	case err == nil:
		got = ""
	case errors.As(err, &again):
		got = "retry"
		require.Equal(t, after, again.RetryAfter())
	case errors.As(err, &never) && never.Drop():
		got = "drop"
	}
	require.Equal(t, want, got, "error: %v", err)
}

// fieldsOf lists the fields that a joined error is about, sorted.
func fieldsOf(t *testing.T, err error) []string {
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	fields := map[string]bool{}
	for _, err := range joined.Unwrap() {
		var field *FieldError
		require.ErrorAs(t, err, &field)
		fields[field.Field] = true
	}
	return sortedKeys(fields)
}
