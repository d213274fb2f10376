package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// summary is what the demo's last line says.
type summary struct {
	Run, Events, Keys, Batches, Added, Deleted int
	Executed                                   int    `json:"executed_once"`
	Suppressed                                 int    `json:"suppressed"`
	Fence                                      uint64 `json:"fence_after_crash"`
}

func lastLine(t *testing.T, out string) (s summary) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &s), out)
	return s
}

// TestTheDemoMayBeKilled kills the demo while the real stream is being applied, and runs it again in the same directory.
func TestTheDemoMayBeKilled(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "demo", "-json", "-dir", dir)
	p.until(`"applied":`)
	p.until(`"applied":`)
	require.NoError(t, p.cmd.Process.Kill())
	require.Equal(t, -1, p.wait())

	code, out, errOut := call(t, "demo", "-json", "-dir", dir)
	require.Equal(t, ExitOK, code, errOut)
	s := lastLine(t, out)
	require.Equal(t, 2, s.Run)
	require.Equal(t, [4]int{101078, 9999, 2946061, 1502209}, [4]int{s.Events, s.Keys, s.Added, s.Deleted}, "as the stream's README says")
	require.Equal(t, 2, s.Executed)
	require.Equal(t, 3, s.Suppressed)
	require.EqualValues(t, 2, s.Fence)

	code, out, errOut = call(t, "history", "-dir", dir, "-json")
	require.Equal(t, ExitOK, code, errOut)
	done := map[string]int{}
	for line := range strings.Lines(out) {
		var e entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Contains(t, []string{"done", "skipped", "dead"}, e.Verdict, "every key has its verdict: %s", line)
		if e.Verdict == "done" {
			done[e.Key]++
		}
	}
	for key, n := range done {
		require.Equal(t, 1, n, key)
	}
	_, table, _ := call(t, "history", "-dir", dir, "-verdict", "skipped")
	require.Contains(t, table, "misfire")

	code, _, errOut = call(t, "demo", "-json", "-dir", dir, "-input", file(t, "other.ndjson", `{"key":"a","added":1,"deleted":0}`))
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errOut, "another input")
}

// TestTheDemoTellsItsProgressUnderAHotKey: all events are of one key, so batches are as large as they get.
func TestTheDemoTellsItsProgressUnderAHotKey(t *testing.T) {
	const events = 60_000
	p := start(t, "demo", "-json", "-dir", t.TempDir(), "-input", file(t, "in.ndjson", strings.Repeat(`{"key":"a","added":1,"deleted":0}`+"\n", events)))
	for last := 0; last < events; {
		var said struct{ Applied int }
		require.NoError(t, json.Unmarshal([]byte(p.until(`"applied":`)), &said))
		require.LessOrEqual(t, said.Applied-last, 5000)
		last = said.Applied
	}
	require.NoError(t, p.cmd.Process.Kill())
}

func TestTheDemoNamesABadLine(t *testing.T) {
	for line, says := range map[string]string{
		`{"key":"a","added":1}`:                      "line 2",
		`{"key":"a","added":"one","deleted":0}`:      "line 2",
		`no json`:                                    "line 2",
		`{"key":"","added":1,"deleted":0}`:           "want an object with key",
		`{"key":"a","added":1e300,"deleted":0}`:      "line 2",
		strings.Repeat("x", 2<<20):                   "line 2",
		`{"key":"a","added":1,"deleted":0}` + "\x00": "line 2",
	} {
		input := file(t, "in.ndjson", `{"key":"a","added":1,"deleted":0}`+"\n"+line+"\n")
		code, _, errOut := call(t, "demo", "-json", "-dir", t.TempDir(), "-input", input)
		require.Equal(t, ExitUsage, code, errOut)
		require.Contains(t, errOut, says)
	}
}
