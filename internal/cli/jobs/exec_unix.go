//go:build linux || darwin

package jobs

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

const canExec = true

var errNoExec error

// groupPoll is how often a group is looked at that is told to end.
const groupPoll = 5 * time.Millisecond

// runGroup runs a command as the leader of a new process group, and returns when no member of the group runs any
// more, with the command's own end. When ctx ends the group has the grace to end by itself.
func runGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	group := cmd.Process.Pid
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		awaitExit(group)
	}()

	select {
	case <-exited:
	case <-ctx.Done():
		_ = syscall.Kill(-group, syscall.SIGTERM)
		patience := time.NewTimer(grace)
		defer patience.Stop()
		awaitGroup(group, exited, patience.C)
	}

	// The leader has not been reaped, so its number is nobody else's yet: this cannot hit a stranger.
	_ = syscall.Kill(-group, syscall.SIGKILL)
	<-exited
	err := cmd.Wait()
	awaitGroup(group, exited, nil)
	return err
}

// awaitGroup waits until the leader has exited and no other member runs, or until giveUp. A member that cannot be
// killed (it waits in the kernel, or it became another user) is waited for: the caller must not start the next
// attempt beside it.
func awaitGroup(group int, exited <-chan struct{}, giveUp <-chan time.Time) {
	select {
	case <-exited:
	case <-giveUp:
		return
	}
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for groupRuns(group) {
		select {
		case <-tick.C:
		case <-giveUp:
			return
		}
	}
}
