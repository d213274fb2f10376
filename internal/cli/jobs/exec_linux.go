package jobs

import (
	"os"
	"syscall"
)

// awaitExit waits until a child of ours has exited, and leaves it to be reaped.
func awaitExit(pid int) error {
	const idIsPID = 1 // P_PID
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idIsPID, uintptr(pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno
		}
	}
}

// groupRuns says whether a process group has a member that runs. Members that are dead and were left to us, which
// happens where the node is a container's first process, are reaped on the way; the leader never is.
func groupRuns(group int) bool {
	if syscall.Kill(-group, 0) == syscall.ESRCH {
		return false
	}
	pids, err := pids()
	if err != nil {
		return true // without /proc: until the kernel forgets the group
	}
	runs, self := false, os.Getpid()
	for _, pid := range pids {
		p, ok := readProcess(pid)
		switch {
		case !ok || p.group != group:
		case !p.dead:
			runs = true
		case p.parent == self && pid != group:
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
	return runs
}
