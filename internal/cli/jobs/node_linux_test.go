package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	qj "github.com/quarterjack/quarterjack"
)

func TestLoadIDMakesItOnce(t *testing.T) {
	dir := t.TempDir()
	id, err := LoadID(dir)
	require.NoError(t, err)
	require.Len(t, id, 2*idBytes)
	again, err := LoadID(dir)
	require.NoError(t, err)
	require.Equal(t, id, again)
	other, err := LoadID(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, id, other)

	file := filepath.Join(dir, IDFile)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")

	for _, text := range []string{"", "abc\n", id + id, "not hexadecimal digits at all, 32"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := LoadID(dir)
		require.ErrorIs(t, err, qj.ErrCorrupt, "%q", text)
		require.ErrorContains(t, err, file)
	}
	_, err = LoadID(filepath.Join(dir, "gone"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// running starts a job whose program and its child ignore SIGTERM, and gives their pids, the end of its context and
// its own.
func running(t *testing.T, n *Node, grace time.Duration) ([]int, func(), <-chan error) {
	p := newPipe(t)
	e := newExec(t, ExecConfig{
		Argv: []string{"sh", "-c", `trap "" TERM; sleep 1000 & echo $$ $! >"$PIPE"; wait`},
		Env:  map[string]Value{"PIPE": {Literal: p.path}}, Node: n, Grace: grace,
	})
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := e.Do(ctx, Work{})
		ended <- err
	}()
	return p.pids(t), func() { stop(errStopped) }, ended
}

func TestNodeStopWaitsForTheGrace(t *testing.T) {
	n := new(Node)
	require.Zero(t, n.Stop(), "there was nothing")
	n = new(Node)
	pids, cancel, ended := running(t, n, 50*time.Millisecond)
	cancel()
	require.LessOrEqual(t, n.Stop(), 1) // the job's own grace ends first, or in the same moment
	for _, pid := range pids {
		require.False(t, runs(pid))
	}
	require.ErrorIs(t, <-ended, errStopped)
	_, err := newExec(t, ExecConfig{Argv: []string{"sh"}, Node: n}).Do(t.Context(), Work{})
	require.ErrorIs(t, err, errStopping)
}

func TestNodeStopKillsWhatNobodyHasTold(t *testing.T) {
	n := new(Node)
	pids, _, ended := running(t, n, 50*time.Millisecond)
	require.Equal(t, 1, n.Stop())
	for _, pid := range pids {
		require.False(t, runs(pid))
	}
	require.ErrorContains(t, <-ended, "signal: killed")
}

func TestNodeKillEndsAGrace(t *testing.T) {
	n := new(Node)
	_, cancel, ended := running(t, n, time.Hour)
	cancel()
	require.Equal(t, 1, n.Kill())
	require.ErrorIs(t, <-ended, errStopped)
	require.Zero(t, n.Kill())
}

func TestExecWhoseExitCannotBeWatchedEndsByItself(t *testing.T) {
	e := newExec(t, shell("sleep 0.05; echo over"))
	e.await = func(int) error { return errors.New("no watcher") }
	out, err := e.Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Equal(t, "over\n", string(out))

	p := newPipe(t)
	c := shell(`sleep 1000 >/dev/null 2>&1 & echo $! >"$PIPE"; exit 7`)
	c.Env = map[string]Value{"PIPE": {Literal: p.path}}
	e = newExec(t, c)
	e.await = func(int) error { return errors.New("no watcher") }
	_, err = e.Do(t.Context(), Work{})
	require.EqualError(t, err, "exec sh: exit status 7")
	require.False(t, runs(p.pids(t)[0]), "what it left is killed all the same")
}
