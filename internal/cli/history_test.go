package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVisible(t *testing.T) {
	require.Equal(t, `Grüße \x1b[2J\x0d\x09\x07\x9b\u202eab\xff`, visible("Grüße \x1b[2J\r\t\a\u009b\u202eab\xff"))
}

func TestHistorySendsNoControlsToTheTerminal(t *testing.T) {
	var out strings.Builder
	p := newTable(&out, true)
	require.NoError(t, p.print(&entry{Trigger: "a\x1b[2Jb", Reason: "\x1b]0;x\a\nsecond", Verdict: "dead", Kind: "slot", Output: "one\t\x1b[31m\ntwo\r\n"}))
	require.NoError(t, p.end())
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\r")
	require.Contains(t, out.String(), `a\x1b[2Jb`)
	require.True(t, strings.HasSuffix(out.String(), "\n    one\\x09\\x1b[31m\n    two\n"), out.String())
}
