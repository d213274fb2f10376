package jobs

import "syscall"

// awaitExit waits until a child of ours has exited, and leaves it to be reaped.
func awaitExit(pid int) error {
	queue, err := syscall.Kqueue()
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(queue) }()
	var change, event [1]syscall.Kevent_t
	syscall.SetKevent(&change[0], pid, syscall.EVFILT_PROC, syscall.EV_ADD|syscall.EV_ONESHOT)
	change[0].Fflags = syscall.NOTE_EXIT
	for {
		n, err := syscall.Kevent(queue, change[:], event[:], nil)
		if err == nil && n > 0 && event[0].Flags&syscall.EV_ERROR != 0 {
			err = syscall.Errno(event[0].Data) // what became of the change
		}
		switch err {
		case nil, syscall.ESRCH: // ESRCH: it has exited already
			return nil
		case syscall.EINTR:
		default:
			return err
		}
	}
}

// groupRuns says whether a process group has a member that runs: a group of which all are dead answers EPERM.
func groupRuns(group int) bool { return syscall.Kill(-group, 0) == nil }
