//go:build !linux

package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// SweepOrphans ends what the exec jobs of a killed node left running. It needs Linux's /proc: here it answers
// errors.ErrUnsupported.
func SweepOrphans(context.Context, string) (killed int, err error) {
	return 0, fmt.Errorf("what a killed node left running cannot be found on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
