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

// runGroup runs a command as the leader of a new process group, and returns when no member of the group runs any
// more, with the command's own end. When ctx ends the group has the grace to end by itself. await returns when a child
// has exited, and leaves it to be reaped.
func runGroup(ctx context.Context, n *Node, cmd *exec.Cmd, grace time.Duration, await func(pid int) error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g, err := n.begin(grace, func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return err
	}
	defer g.end()

	var ended error // of the command, once it is reaped
	reaped := false
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		if await(g.pid) != nil {
			// The system cannot tell it without reaping. Then the number is free before the rest of the group is
			// killed, a moment later: it would have to be given away in between to hit a stranger.
			ended, reaped = cmd.Wait(), true
		}
	}()

	select {
	case <-exited:
	case <-ctx.Done():
		_ = syscall.Kill(-g.pid, syscall.SIGTERM)
		patience := time.NewTimer(grace)
		defer patience.Stop()
		awaitGroup(g.pid, exited, patience.C)
	}

	// The leader has not been reaped, so its number is nobody else's yet: this cannot hit a stranger.
	killGroup(g.pid)
	<-exited
	g.reap()
	if !reaped {
		ended = cmd.Wait()
	}
	awaitGroup(g.pid, exited, nil)
	return ended
}

// killGroup ends every member of a group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// awaitGroup waits until the leader has exited and no other member runs, or until giveUp. A member that cannot be
// killed (it waits in the kernel, or it became another user) is waited for: the caller must not start the next
// attempt beside it.
func awaitGroup(group int, exited <-chan struct{}, giveUp <-chan time.Time) {
	select {
	case <-exited:
	case <-giveUp:
		return
	}
	for wait := pollFirst; groupRuns(group); wait = pollNext(wait) {
		select {
		case <-time.After(wait):
		case <-giveUp:
			return
		}
	}
}
