package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperVar makes the test binary play a part in a test, instead of running the tests.
const helperVar = "JOBS_TEST_HELPER"

// noExitSleep keeps a helper under the race detector from sleeping before it exits.
var noExitSleep = Value{Literal: "atexit_sleep_ms=0"}

func TestMain(m *testing.M) {
	switch os.Getenv(helperVar) {
	case "":
		goleak.VerifyTestMain(m)
	case "node":
		helperNode()
	case "leave":
		helperLeave()
	case "sweeper":
		helperSweeper()
	case "first":
		helperFirst()
	}
}

// helperNode is a node that runs one exec job: a shell that has a child and starts what leaves the group, and tells
// their pids through a pipe.
func helperNode() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	job, err := NewExec(ExecConfig{
		Argv: []string{"sh", "-c", `sleep 1000 & "$1"; echo $$ $! >"$PIPE"; wait`, "sh", self},
		Env:  map[string]Value{"PIPE": {Literal: os.Getenv("PIPE")}, helperVar: {Literal: "leave"}, "GORACE": noExitSleep},
		Node: named(os.Getenv("NODE")),
	})
	if err != nil {
		panic(err)
	}
	_, err = job.Do(context.Background(), Work{Key: "k", Attempt: 1})
	panic(fmt.Sprint("the job ended: ", err))
}

// helperLeave starts a process that is in a session of its own and holds the standard output open.
func helperLeave() {
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", `echo $$ >"$PIPE"; exec sleep 1000`)
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// helperSweeper sweeps for a node whose mark it carries itself.
func helperSweeper() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	killed, err := SweepOrphans(ctx, os.Getenv(nodeVar))
	if err != nil {
		panic(errors.Join(err, ctx.Err()))
	}
	fmt.Print(killed)
}

// helperFirst is a node to which orphans fall, as they do to a container's first process. It runs a job that leaves
// one, and tells how many dead children it has.
func helperFirst() {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		panic(errno)
	}
	job, err := NewExec(ExecConfig{Argv: []string{"sh", "-c", "sleep 1000 & sleep 1000 & exit 0"}})
	if err != nil {
		panic(err)
	}
	if _, err := job.Do(context.Background(), Work{}); err != nil {
		panic(err)
	}
	children := 0
	all, err := pids()
	if err != nil {
		panic(err)
	}
	for _, pid := range all {
		if p, ok := readProcess(pid); ok && p.parent == os.Getpid() {
			children++
		}
	}
	fmt.Print(children)
}
