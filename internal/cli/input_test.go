package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestNextLinePassesOverALongOne(t *testing.T) {
	broken := errors.New("broken")
	long := strings.Repeat("x", 40)
	r := bufio.NewReaderSize(io.MultiReader(strings.NewReader("a\n"+long+"\n\nb\n"+long+"\n"+strings.Repeat("y", 15)+"\nend"), iotest.ErrReader(broken)), 16)
	for _, want := range []string{"a\n", "long", "\n", "b\n", "long", strings.Repeat("y", 15) + "\n"} {
		line, err := nextLine(r)
		if want == "long" {
			require.ErrorIs(t, err, errLine)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, string(line))
	}
	_, err := nextLine(r)
	require.ErrorIs(t, err, broken, "half a line is none")

	r = bufio.NewReaderSize(strings.NewReader("end"), 16)
	line, err := nextLine(r)
	require.NoError(t, err)
	require.Equal(t, "end", string(line))
	_, err = nextLine(r)
	require.Equal(t, io.EOF, err)
	r = bufio.NewReaderSize(strings.NewReader(long), 16)
	_, err = nextLine(r)
	require.ErrorIs(t, err, errLine)
	_, err = nextLine(r)
	require.Equal(t, io.EOF, err)
}

func TestKeys(t *testing.T) {
	for raw, want := range map[string]string{`"a"`: "a", `"\u0061\n"`: "a\n", `5`: "5", `-1.50`: "-1.50", `"5"`: "5",
		`""`: "", `null`: "", `true`: "", `false`: "", `{"a":1}`: "", `["a"]`: ""} {
		key, ok := keyOf([]byte(raw))
		require.Equal(t, want, key, raw)
		require.Equal(t, want != "", ok, raw)
	}
}

func TestInputsLeaveOutWhatIsNoItem(t *testing.T) {
	input := file(t, "in.ndjson", strings.Join([]string{
		`{"k":"a","v":1}`, `{"k":null,"v":1}`, `{"k":{},"v":1}`, `{"k":[],"v":1}`, `{"k":true,"v":1}`, `{"k":"","v":1}`,
		`{"k":"a","v":null}`, `{"k":"a","v":"` + strings.Repeat("x", 2<<20) + `"}`, `{"k":"a","v":2}`,
	}, "\n"))
	config := file(t, "node.yaml", "store: {kind: memory}\ngroups:\n- {name: g, merge: sum, input: {path: "+input+", key: k, value: v}, job: {log: {message: batch}}}\n")
	code, _, log := call(t, "run", "-config", config)
	require.Equal(t, ExitOK, code, log)
	require.Equal(t, 7, strings.Count(log, "left out"), log)
	require.Contains(t, log, `lines=9 left_out=7`)
	require.Contains(t, log, `\"value\":3,\"items\":2`)
}

func TestAnInputThatFailsEndsNoNodeThatHasTriggers(t *testing.T) {
	groups := "store: {kind: memory}\ngroups:\n- {name: g, merge: sum, input: {path: /no/such/file, key: k}, job: {log: {message: batch}}}\n"
	code, _, log := call(t, "run", "-config", file(t, "node.yaml", groups))
	require.Equal(t, ExitFailed, code)
	require.Contains(t, log, "is given up")
	require.NotContains(t, log, "the input has ended")

	p := start(t, "run", "-config", file(t, "node.yaml", groups+"triggers:\n- {id: a, schedule: {every: 50ms}, job: {log: {message: tick}}}\n"))
	require.Contains(t, p.until("is given up"), "level=ERROR")
	p.until("tick")
	p.until("tick")
}

func TestABatchThatIsGivenUpFailsTheNode(t *testing.T) {
	config := file(t, "node.yaml", `
store: {kind: memory}
groups:
  - name: g
    merge: sum
    delay: 1ms
    attempts: 1
    input: {path: "-", key: k}
    job: {exec: {argv: [sh, -c, 'echo "$QJ_GROUP $QJ_GROUP_KEY has no room, ${QJ_KEY-none}"; exit 3']}}
`)
	p := start(t, "run", "-config", config)
	_, err := fmt.Fprintln(p.in, `{"k":"a"}`)
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	line := p.until("a batch has failed")
	require.Contains(t, line, "level=WARN")
	require.Contains(t, line, `output="g a has no room, none\n"`)
	require.Contains(t, p.until("a batch is given up"), "level=ERROR")
	require.Equal(t, ExitFailed, p.wait())
}

func TestEnd(t *testing.T) {
	require.Equal(t, "abc", end([]byte("abc"), 3))
	require.Equal(t, "bc", end([]byte("abc"), 2))
	require.Equal(t, "c", end([]byte("äc"), 2), "it starts with a whole character")
}
