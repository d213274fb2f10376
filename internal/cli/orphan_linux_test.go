package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoOrphanRunsBesideANewAttempt(t *testing.T) {
	config := file(t, "node.yaml", `
store: {kind: sqlite, dir: data}
triggers:
  - id: slow
    schedule: {at: 2026-01-01T00:00:00Z}
    job: {exec: {argv: [sh, -c, 'echo "$$ $QJ_FENCE" >>"$OUT"; exec sleep 1000'], env: {PATH: /usr/bin:/bin, OUT: OUTFILE}, grace: 100ms}}
`)
	// The programs say who they are through a FIFO: reading it waits for them.
	out := filepath.Join(filepath.Dir(config), "out")
	require.NoError(t, syscall.Mkfifo(out, 0o600))
	fifo, err := os.OpenFile(out, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, fifo.Close()) }()
	said := bufio.NewReader(fifo)
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "OUTFILE", out)), 0o600))
	var last int
	t.Cleanup(func() {
		if last != 0 {
			_ = syscall.Kill(last, syscall.SIGKILL) // where the test failed in between
		}
	})
	for fence := 1; fence <= 3; fence++ {
		p := start(t, "run", "-config", config)
		pid := started(t, said, fence)
		if last != 0 {
			require.False(t, alive(last), "the program of fence %d is gone when that of fence %d runs", fence-1, fence)
		}
		last = pid
		require.NoError(t, p.cmd.Process.Kill())
		require.Equal(t, -1, p.wait())
		require.True(t, alive(last), "an orphan, for now")
	}
	p := start(t, "run", "-config", config, "-grace", "100ms")
	started(t, said, 4)
	require.False(t, alive(last))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, ExitUnclosed, p.wait())
	require.FileExists(t, filepath.Join(filepath.Dir(config), "data", "node.id"))
	_, history, _ := call(t, "history", "-dir", filepath.Join(filepath.Dir(config), "data"), "-json")
	require.Contains(t, history, `"verdict":"pending"`, "what was interrupted runs again")
}

// started waits for a program to say that it runs, and gives its process.
func started(t *testing.T, said *bufio.Reader, fence int) (pid int) {
	t.Helper()
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	var got int
	_, err = fmt.Sscan(line, &pid, &got)
	require.NoError(t, err)
	require.Equal(t, fence, got)
	return pid
}

// alive says whether a process runs; one that is dead and not yet fetched by its parent does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
