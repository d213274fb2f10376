package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stubborn is a node whose program, and its child, do not heed SIGTERM. It gives the node, once they run, and their pids.
func stubborn(t *testing.T, grace string, args ...string) (*process, []int) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	config := file(t, "node.yaml", strings.NewReplacer("FIFO", fifo, "GRACE", grace).Replace(`
store: {kind: memory}
triggers:
  - id: stubborn
    schedule: {at: 2026-01-01T00:00:00Z}
    job: {exec: {argv: [sh, -c, 'trap "" TERM; sleep 1000 & echo "$$ $!" >"$OUT"; wait'], env: {OUT: FIFO}, grace: GRACE}}
`))
	p := start(t, append([]string{"run", "-config", config}, args...)...)
	line, err := bufio.NewReader(f).ReadString('\n')
	require.NoError(t, err)
	pids := make([]int, 2)
	_, err = fmt.Sscan(line, &pids[0], &pids[1])
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(-pids[0], syscall.SIGKILL) }) // where the test fails
	return p, pids
}

func TestNoProgramOutlivesAnOrderlyStop(t *testing.T) {
	// The grace is longer than what Close gives a run that it has cancelled.
	p, pids := stubborn(t, "3s", "-grace", "10ms")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, ExitUnclosed, p.wait())
	for _, pid := range pids {
		require.False(t, alive(pid))
	}
}

func TestASecondSignalKillsPrograms(t *testing.T) {
	p, pids := stubborn(t, "1h", "-grace", "1h")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.until("stopping")
	// One that comes at once is taken for the first: so it is sent until the program listens.
	said := make(chan string, 1)
	go func() { said <- p.until("at a second signal, with 1 programs killed") }()
	tick := time.NewTicker(patience / 4)
	defer tick.Stop()
	for begun := time.Now(); ; {
		select {
		case <-said:
			require.GreaterOrEqual(t, time.Since(begun), patience/2)
			require.Equal(t, ExitUnclosed, p.wait())
			for _, pid := range pids {
				require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, time.Millisecond)
			}
			return
		case <-tick.C:
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	}
}

func TestASignalStopsTheDemo(t *testing.T) {
	p := start(t, "demo", "-json", "-dir", t.TempDir())
	p.until(`"applied":`)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, ExitUnclosed, p.wait())
}
