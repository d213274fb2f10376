package jobs

import "syscall"

// awaitExit waits until a child of ours has exited, and leaves it to be reaped.
func awaitExit(pid int) {
	queue, err := syscall.Kqueue()
	if err != nil {
		return // cmd.Wait waits instead
	}
	defer func() { _ = syscall.Close(queue) }()
	var change, event [1]syscall.Kevent_t
	syscall.SetKevent(&change[0], pid, syscall.EVFILT_PROC, syscall.EV_ADD|syscall.EV_ONESHOT)
	change[0].Fflags = syscall.NOTE_EXIT
	for {
		// ESRCH: it has exited already.
		if _, err := syscall.Kevent(queue, change[:], event[:], nil); err != syscall.EINTR {
			return
		}
	}
}

// groupRuns says whether a process group has a member that runs: a group of which all are dead answers EPERM.
func groupRuns(group int) bool { return syscall.Kill(-group, 0) == nil }
