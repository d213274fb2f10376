package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pipe is how a process of a test tells that it has come to a point.
type pipe struct {
	path string
	f    *os.File
}

func newPipe(t *testing.T) pipe {
	p := pipe{path: filepath.Join(t.TempDir(), "pipe")}
	require.NoError(t, syscall.Mkfifo(p.path, 0o600))
	var err error
	p.f, err = os.OpenFile(p.path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.f.Close() })
	return p
}

// pids waits for a line of pids.
func (p pipe) pids(t *testing.T) []int {
	require.NoError(t, p.f.SetReadDeadline(time.Now().Add(time.Minute)))
	b := make([]byte, 4096)
	n, err := p.f.Read(b)
	require.NoError(t, err)
	var all []int
	for field := range strings.FieldsSeq(string(b[:n])) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		all = append(all, pid)
	}
	require.NotEmpty(t, all)
	return all
}

func runs(pid int) bool {
	p, ok := readProcess(pid)
	return ok && !p.dead
}

func shell(script string) ExecConfig { return ExecConfig{Argv: []string{"sh", "-c", script}} }

// named makes a node of the given id.
func named(id string) *Node {
	n := new(Node)
	n.SetID(id)
	return n
}

func newExec(t *testing.T, c ExecConfig) *Exec {
	e, err := NewExec(c)
	require.NoError(t, err)
	return e
}

func TestExecGivesDataAndTakesBothOutputs(t *testing.T) {
	e := newExec(t, shell("cat; echo err >&2; echo out"))
	out, err := e.Do(t.Context(), Work{Data: []byte("in\n")})
	require.NoError(t, err)
	require.Equal(t, "in\nerr\nout\n", string(out))
}

func TestExecWithoutDataReadsNothing(t *testing.T) {
	out, err := newExec(t, shell("cat")).Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Empty(t, out)
}

func TestExecMayLeaveItsInputUnread(t *testing.T) {
	out, err := newExec(t, shell("echo done")).Do(t.Context(), Work{Data: make([]byte, 1<<20)})
	require.NoError(t, err)
	require.Equal(t, "done\n", string(out))
}

func TestExecEnvironmentIsClean(t *testing.T) {
	t.Setenv("SECRET_OF_THE_NODE", "x")
	work := Work{
		Trigger: "nightly", Slot: time.Date(2026, 1, 2, 3, 4, 5, 60_000_000, time.FixedZone("", 3600)),
		Key: "billing/nightly/1.1.0/slot/2026", Fence: 7, Attempt: 2,
	}
	c := ExecConfig{Argv: []string{"env"}, Env: map[string]Value{"LANG": {Literal: "C"}, "EMPTY": {}}, Node: named("abc")}
	out, err := newExec(t, c).Do(t.Context(), work)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"PATH=" + DefaultPath, "LANG=C", "EMPTY=", "QJ_SLOT=2026-01-02T02:04:05.06Z",
		"QJ_KEY=billing/nightly/1.1.0/slot/2026", "QJ_FENCE=7", "QJ_ATTEMPT=2", "QJ_NODE=abc",
	}, strings.Split(strings.TrimSpace(string(out)), "\n"))

	c = ExecConfig{Argv: []string{"env"}, Env: map[string]Value{"PATH": {Literal: "/usr/bin:/bin"}}}
	out, err = newExec(t, c).Do(t.Context(), Work{Group: "g", Key: "k", Attempt: 1})
	require.NoError(t, err)
	require.Equal(t, "PATH=/usr/bin:/bin\nQJ_GROUP=g\nQJ_GROUP_KEY=k\nQJ_ATTEMPT=1\n", string(out), "a batch has no key that is its own")
}

func TestExecSecretsAreGivenAndNeverShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	t.Setenv("THE_TOKEN", "tok-123")
	e := newExec(t, ExecConfig{
		Argv: []string{"sh", "-c", `printf %s "$TOKEN|$PASSWORD" | tr a-z A-Z; echo " $TOKEN, $PASSWORD"`},
		Env:  map[string]Value{"TOKEN": {Env: "THE_TOKEN"}, "PASSWORD": {File: file}},
	})

	_, err := e.Do(t.Context(), Work{})
	require.ErrorIs(t, err, ErrSecret)
	require.ErrorContains(t, err, "env.PASSWORD")
	require.ErrorContains(t, err, file)

	for _, password := range []string{"first", "second"} { // changed between two runs
		require.NoError(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
		out, err := e.Do(t.Context(), Work{})
		require.NoError(t, err)
		require.Equal(t, "TOK-123|"+strings.ToUpper(password)+" ***, ***\n", string(out))
	}
	require.NotContains(t, e.String(), "TOKEN")

	require.NoError(t, os.WriteFile(file, []byte("a\x00b"), 0o600))
	_, err = e.Do(t.Context(), Work{})
	require.ErrorContains(t, err, "env.PASSWORD: {file: "+file+"} holds NUL")
}

func TestExecExitCodes(t *testing.T) {
	c := shell(`exit "$CODE"`)
	c.RetryCodes, c.DropCodes, c.RetryAfter = []int{75, 111}, []int{65}, 3*time.Second
	for code, want := range map[int]string{0: "", 1: "plain", 75: "retry", 111: "retry", 65: "drop", 255: "plain"} {
		c.Env = map[string]Value{"CODE": {Literal: strconv.Itoa(code)}}
		_, err := newExec(t, c).Do(t.Context(), Work{})
		requireVerdict(t, want, 3*time.Second, err)
		if want != "" {
			require.EqualError(t, err, "exec sh: exit status "+strconv.Itoa(code))
		}
	}
	_, err := newExec(t, shell("kill -KILL $$")).Do(t.Context(), Work{})
	requireVerdict(t, "plain", 0, err)
	require.EqualError(t, err, "exec sh: signal: killed")
}

func TestExecEndsWhatTheProgramLeftBehind(t *testing.T) {
	p := newPipe(t)
	c := shell(`sleep 1000 & echo $! >"$PIPE"; echo over`)
	c.Env = map[string]Value{"PIPE": {Literal: p.path}}
	out, err := newExec(t, c).Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Equal(t, "over\n", string(out))
	require.False(t, runs(p.pids(t)[0]))
}

func TestExecReapsWhatFallsToTheNode(t *testing.T) {
	out, err := helper(t, "first").Output()
	require.NoError(t, err)
	require.Equal(t, "0", string(out))
}

// stop runs a job, ends its context once the program's $SLEEPER has told its parent's pid and its own, and requires
// that neither runs when Do has returned.
func stop(t *testing.T, c ExecConfig) ([]byte, error) {
	p := newPipe(t)
	c.Env = map[string]Value{
		"PIPE": {Literal: p.path},
		// A program of its own: a signal that comes between a shell's fork and its exec would be lost.
		"SLEEPER": {Literal: `echo $PPID $$ >"$PIPE"; exec sleep 1000`},
	}
	e := newExec(t, c)
	ctx, cancel := context.WithCancelCause(t.Context())
	type result struct {
		out []byte
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := e.Do(ctx, Work{})
		ended <- result{out, err}
	}()
	pids := p.pids(t)
	cancel(errStopped)
	r := <-ended
	for _, pid := range pids {
		require.False(t, runs(pid), "pid %d", pid)
	}
	return r.out, r.err
}

var errStopped = errors.New("the node stops")

func TestExecThatEndsWellWhenAsked(t *testing.T) {
	out, err := stop(t, shell(`trap 'echo bye; exit 0' TERM; sh -c "$SLEEPER" & wait`))
	require.NoError(t, err)
	require.Equal(t, "bye\n", string(out))
}

func TestExecThatIsStoppedFailsWithTheReason(t *testing.T) {
	c := shell(`trap 'exit 65' TERM; sh -c "$SLEEPER" & wait`)
	c.DropCodes = []int{65}
	_, err := stop(t, c)
	requireVerdict(t, "plain", 0, err)
	require.ErrorIs(t, err, errStopped)
	require.EqualError(t, err, "exec sh: exit status 65 (stopped: the node stops)")
}

func TestExecThatIgnoresTermIsKilledAfterTheGrace(t *testing.T) {
	c := shell(`trap '' TERM; sh -c "$SLEEPER" & wait`)
	c.Grace = 30 * time.Millisecond
	_, err := stop(t, c)
	require.ErrorIs(t, err, errStopped)
	require.ErrorContains(t, err, "signal: killed")
}

func TestExecGivesTheGraceToTheWholeGroup(t *testing.T) {
	// The leader dies of SIGTERM at once; its child has something to save.
	saved := filepath.Join(t.TempDir(), "saved")
	c := ExecConfig{Argv: []string{"sh", "-c",
		`sh -c 'trap "echo all >$0; exit" TERM; sh -c "$SLEEPER" & wait' "$0" & wait`, saved}}
	_, err := stop(t, c)
	require.ErrorIs(t, err, errStopped)
	b, err := os.ReadFile(saved)
	require.NoError(t, err)
	require.Equal(t, "all\n", string(b))
}

func TestExecGraceIsOverForTheWholeGroup(t *testing.T) {
	c := shell(`sh -c 'trap "" TERM; sh -c "$SLEEPER" & wait' & wait`)
	c.Grace = 30 * time.Millisecond
	_, err := stop(t, c)
	require.ErrorIs(t, err, errStopped)
}

func TestExecDoesNotStartWhenItIsTooLate(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	file := filepath.Join(t.TempDir(), "file")
	_, err := newExec(t, ExecConfig{Argv: []string{"touch", file}}).Do(ctx, Work{})
	require.ErrorIs(t, err, errStopped)
	require.NoFileExists(t, file)
}

func TestExecEndlessOutputIsBounded(t *testing.T) {
	out, err := newExec(t, shell(`i=0; while [ $i -lt 200 ]; do printf '%01000d\n' $i; i=$((i+1)); done; echo end`)).Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Len(t, out, MaxOutput)
	require.True(t, strings.HasSuffix(string(out), "0199\nend\n"))
}

func TestExecReturnsThoughTheOutputIsHeldByAProcessThatLeft(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	p := newPipe(t)
	c := ExecConfig{
		Argv: []string{self},
		Env:  map[string]Value{"PIPE": {Literal: p.path}, helperVar: {Literal: "leave"}, "GORACE": noExitSleep},
		Node: named("test-" + filepath.Base(t.TempDir()) + strconv.Itoa(os.Getpid())),
	}
	_, err = newExec(t, c).Do(t.Context(), Work{})
	require.NoError(t, err)
	left := p.pids(t)[0]
	require.True(t, runs(left), "what leaves the group is on its own")
	killed, err := SweepOrphans(t.Context(), c.Node.ID())
	require.NoError(t, err)
	require.Equal(t, 1, killed)
	require.False(t, runs(left))
}

func TestExecFindsItsProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "tool")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\npwd\n"), 0o700)) //nolint:gosec // a program must be executable
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))

	for name, c := range map[string]ExecConfig{
		"by its path":           {Argv: []string{program}, Dir: dir},
		"relative to directory": {Argv: []string{"./tool"}, Dir: dir},
		"in the job's PATH":     {Argv: []string{"tool"}, Dir: dir, Env: map[string]Value{"PATH": {Literal: "/nowhere:" + dir}}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := newExec(t, c).Do(t.Context(), Work{})
			require.NoError(t, err)
			require.Equal(t, dir+"\n", string(out))
		})
	}
	for name, program := range map[string]string{"missing": "no-such-program", "not executable": "data", "a directory": ".."} {
		t.Run(name, func(t *testing.T) {
			c := ExecConfig{Argv: []string{program}, Env: map[string]Value{"PATH": {Literal: dir + ":."}}}
			_, err := newExec(t, c).Do(t.Context(), Work{})
			requireVerdict(t, "plain", 0, err)
			require.ErrorIs(t, err, os.ErrNotExist)
			require.ErrorContains(t, err, dir)
		})
	}
	_, err := newExec(t, ExecConfig{Argv: []string{"sh"}, Dir: filepath.Join(dir, "gone")}).Do(t.Context(), Work{})
	requireVerdict(t, "plain", 0, err)
}

func TestExecRefusesAKeyThatNoEnvironmentHolds(t *testing.T) {
	_, err := newExec(t, shell("exit 0")).Do(t.Context(), Work{Group: "g", Key: "a\x00b"})
	requireVerdict(t, "drop", 0, err)
}

func TestExecConfigIsCheckedWhole(t *testing.T) {
	_, err := NewExec(ExecConfig{
		Argv: []string{"", "a\x00"},
		Env: map[string]Value{
			"QJ_KEY": {Literal: "x"}, "A=B": {}, "N": {Literal: "\x00"}, "TWO": {Literal: "sesame", Env: "X"},
			"E": {Env: "A=B"}, "F": {File: "\x00"},
		},
		Grace: -1, RetryAfter: -1, RetryCodes: []int{0, 75}, DropCodes: []int{256, 75},
	})
	require.Equal(t, []string{
		"argv", "argv[1]", "drop_codes[0]", "drop_codes[1]", "env.A=B", "env.E.env", "env.F.file", "env.N", "env.QJ_KEY",
		"env.TWO", "grace", "retry_after", "retry_codes[0]",
	}, fieldsOf(t, err))
	require.NotContains(t, err.Error(), "sesame")
}
