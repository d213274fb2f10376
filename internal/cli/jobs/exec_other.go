//go:build !linux && !darwin

package jobs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

const canExec = false

var errNoExec = fmt.Errorf("exec jobs run on Linux and macOS, not on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func runGroup(context.Context, *Node, *exec.Cmd, time.Duration, func(int) error) error {
	return errNoExec
}

func awaitExit(int) error { return errNoExec }

func killGroup(int) {}
