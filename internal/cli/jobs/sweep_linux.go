package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// SweepOrphans ends, with SIGKILL, every process that an exec job of the given node has started and that carries
// QJ_NODE since, and returns how many it has killed when none of them runs any more. It is for a node that starts,
// while it holds the lock of its store and before anything fires: then what carries its name was left by a node
// that was killed, and would run beside the next attempt.
//
// The calling process is spared. So is a process whose environment it may not read, one of another user. It costs a
// walk over /proc. If ctx ends first, the error names the processes that still run.
//
// A job that means to leave a service behind starts it without QJ_NODE (env -u QJ_NODE).
//
// Nothing slips through between fork and exec: until the program is loaded, Go's child shares the node's memory and
// its lock, which is not free before.
func SweepOrphans(ctx context.Context, node string) (killed int, err error) {
	if node == "" {
		return 0, errors.New("sweep orphans: the node's id is empty: want what LoadID gives")
	}
	seen := map[orphan]bool{}
	for {
		found, err := orphans(nodeVar + "=" + node)
		if err != nil {
			return len(seen), fmt.Errorf("sweep orphans: %w", err)
		}
		if len(found) == 0 {
			return len(seen), nil
		}
		for _, o := range found {
			if o.kill() {
				seen[o] = true
			}
		}
		// One that forked before it died is found in the next walk.
		if err := awaitDead(ctx, found); err != nil {
			return len(seen), fmt.Errorf("sweep orphans: %w", err)
		}
	}
}

// orphan names a process for good: a pid alone may be another's a moment later.
type orphan struct {
	pid   int
	start uint64
}

// orphans lists the processes that run and have the given variable in their environment, but for this one.
func orphans(variable string) ([]orphan, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	var found []orphan
	for _, pid := range all {
		p, ok := readProcess(pid)
		if !ok || p.dead || pid == os.Getpid() || !hasVar(pid, variable) {
			continue
		}
		if o := (orphan{pid, p.start}); o.runs() {
			found = append(found, o)
		}
	}
	return found, nil
}

func hasVar(pid int, variable string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // it is gone, or another user's
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == variable {
			return true
		}
	}
	return false
}

func (o orphan) runs() bool {
	p, ok := readProcess(o.pid)
	return ok && !p.dead && p.start == o.start
}

// kill sends SIGKILL. The handle is taken first and the name checked after: from then on the signal reaches this
// process or nobody (pidfd, where the kernel has it).
func (o orphan) kill() bool {
	h, err := os.FindProcess(o.pid)
	if err != nil {
		return false
	}
	defer func() { _ = h.Release() }()
	return o.runs() && h.Signal(syscall.SIGKILL) == nil
}

func awaitDead(ctx context.Context, all []orphan) error {
	for wait := pollFirst; ; wait = pollNext(wait) {
		var left []int
		for _, o := range all {
			if o.runs() {
				left = append(left, o.pid)
			}
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("still running: %v: %w", left, context.Cause(ctx))
		}
	}
}
