package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram makes the test's binary be the program: tests that kill it need a process of its own.
const asProgram = "QUARTERJACK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// call runs the program in this process.
func call(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv(asProgram, "1") // for what it starts in turn
	var o, e bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &o, err: &e}
	code = p.run(t.Context(), args)
	return code, o.String(), e.String()
}

// process is the program in a process of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // of standard output and standard error; closed at their end
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.CommandContext(context.WithoutCancel(t.Context()), self, args...), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended by itself where all went well
		for range p.lines {      // what it still says
		}
		_ = r.Close()
	})
	go func() {
		defer close(p.lines)
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			p.lines <- sc.Text()
		}
	}()
	return p
}

// until returns the first line that holds the text.
func (p *process) until(text string) string {
	p.t.Helper()
	var seen []string
	for line := range p.lines {
		if seen = append(seen, line); strings.Contains(line, text) {
			return line
		}
	}
	require.Fail(p.t, "the program ended and never said "+text, "%s", strings.Join(seen, "\n"))
	return ""
}

// wait returns the exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	for range p.lines { // it must not block on a full pipe
	}
	_ = p.cmd.Wait() // the code says it
	return p.cmd.ProcessState.ExitCode()
}

// file writes a file into a fresh directory and gives its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
