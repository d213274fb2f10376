package jobs

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// helper makes the test binary play a part, with nothing else in its environment.
func helper(t *testing.T, part string, env ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = slices.Concat(env, []string{helperVar + "=" + part, "PATH=" + DefaultPath, "GORACE=" + noExitSleep.Literal})
	cmd.Stderr = os.Stderr
	return cmd
}

// killedNode starts a node whose exec job has children, kills it, and gives what it left: the program, its child, and
// a process that has left their group.
func killedNode(t *testing.T, id string) []int {
	p := newPipe(t)
	node := helper(t, "node", "NODE="+id, "PIPE="+p.path)
	require.NoError(t, node.Start())
	left := p.pids(t)
	for len(left) < 3 {
		left = append(left, p.pids(t)...)
	}
	require.NoError(t, node.Process.Signal(syscall.SIGKILL))
	require.Error(t, node.Wait())
	for _, pid := range left {
		require.True(t, runs(pid), "the test is about processes that outlive their node")
	}
	return left
}

func TestSweepOrphansEndsWhatAKilledNodeLeft(t *testing.T) {
	mine, err := LoadID(t.TempDir())
	require.NoError(t, err)
	other, err := LoadID(t.TempDir())
	require.NoError(t, err)
	orphans, strangers := killedNode(t, mine), killedNode(t, other)

	killed, err := SweepOrphans(t.Context(), mine)
	require.NoError(t, err)
	require.Equal(t, 3, killed)
	for _, pid := range orphans {
		require.False(t, runs(pid))
	}
	for _, pid := range strangers {
		require.True(t, runs(pid), "it is another node's")
	}
	killed, err = SweepOrphans(t.Context(), mine)
	require.NoError(t, err)
	require.Zero(t, killed, "a second sweep finds nothing")

	killed, err = SweepOrphans(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, 3, killed)
}

func TestSweepOrphansSparesItsOwnProcess(t *testing.T) {
	id, err := LoadID(t.TempDir())
	require.NoError(t, err)
	orphans := killedNode(t, id)
	out, err := helper(t, "sweeper", nodeVar+"="+id).Output() // a node that was started from a job of its own store
	require.NoError(t, err)
	require.Equal(t, "3", string(out))
	for _, pid := range orphans {
		require.False(t, runs(pid))
	}
}

func TestSweepOrphansSaysWhatStillRuns(t *testing.T) {
	id, err := LoadID(t.TempDir())
	require.NoError(t, err)
	killedNode(t, id)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	err = awaitDead(ctx, []orphan{{pid: os.Getpid(), start: mustStart(t, os.Getpid())}})
	require.ErrorIs(t, err, errStopped)
	killed, err := SweepOrphans(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 3, killed)
}

func TestSweepOrphansWantsANode(t *testing.T) {
	_, err := SweepOrphans(t.Context(), "")
	require.Error(t, err)
}

func mustStart(t *testing.T, pid int) uint64 {
	p, ok := readProcess(pid)
	require.True(t, ok)
	return p.start
}

func TestOrphanWhosePidIsAnothersNow(t *testing.T) {
	victim := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	require.NoError(t, victim.Start())
	defer func() {
		require.NoError(t, victim.Process.Kill())
		require.Error(t, victim.Wait())
	}()
	gone := orphan{pid: victim.Process.Pid, start: mustStart(t, victim.Process.Pid) - 1}
	require.False(t, gone.runs())
	require.False(t, gone.kill())
	require.True(t, runs(victim.Process.Pid), "the signal was not meant for it")
}

func TestParseStat(t *testing.T) {
	const rest = " 1 4242 4242 0 -1 4194304 93 0 0 0 0 0 0 0 20 0 1 0 987654321 2301952 200"
	for name, c := range map[string]struct {
		line string
		want process
		ok   bool
	}{
		"runs":                 {"77 (sleep) S" + rest, process{parent: 1, group: 4242, start: 987654321}, true},
		"dead":                 {"77 (sleep) Z" + rest, process{parent: 1, group: 4242, start: 987654321, dead: true}, true},
		"a name full of traps": {"77 (a) Z 9 9 (b c)) R" + rest, process{parent: 1, group: 4242, start: 987654321}, true},
		"cut short":            {"77 (sleep) S 1 4242", process{}, false},
		"empty":                {"", process{}, false},
		"no numbers":           {"77 (sleep) S" + strings.ReplaceAll(rest, "4242", "x"), process{parent: 1, start: 987654321}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseStat(c.line)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, c.want, got)
			}
		})
	}
}
