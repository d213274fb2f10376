package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitCodes(t *testing.T) {
	corrupt := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(corrupt, "quarterjack.db"), []byte(strings.Repeat("no database ", 1000)), 0o600))
	bad := file(t, "node.yaml", "store: {kind: memory}\ntriggers:\n  - id: a\n    schedule: {every: 5 parsecs}\n    job: {log: {message: hi}}\n")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"version", ExitOK, "quarterjack"},
		{"help", ExitOK, "history"},
		{"demo -h", ExitOK, "-dir"},
		{"histroy", ExitUsage, `unknown command "histroy"`},
		{"help demo", ExitOK, "-dir"},
		{"help bogus", ExitUsage, `unknown command "bogus"`},
		{"help demo bogus", ExitUsage, `unknown command "bogus"`},
		{"demo -bogus", ExitUsage, "unknown flag: --bogus"},
		{"run -grace -1s", ExitUsage, "want 0 or more"},
		{"history -dir " + t.TempDir() + " -trigger -xyz -verdict maybe", ExitUsage, "want done, skipped"},
		{"demo extra", ExitUsage, "takes no argument"},
		{"history -verdict maybe", ExitUsage, "want done, skipped"},
		{"history -dir " + t.TempDir(), ExitUsage, "-dir"},
		{"history -dir " + corrupt, ExitStore, "corrupt"},
		{"demo -json -dir " + corrupt, ExitStore, "corrupt"},
		{"demo -json -input /no/such/file -dir " + t.TempDir(), ExitUsage, "/no/such/file"},
		{"run -config /no/such/file", ExitUsage, "/no/such/file"},
		{"run -config " + bad, ExitUsage, "node.yaml:4:"},
		{"-log loud version", ExitUsage, "want debug"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errOut := call(t, strings.Fields(c.args)...)
			require.Equal(t, c.code, code, "%s%s", out, errOut)
			require.Contains(t, out+errOut, c.says)
		})
	}
}

func TestVersionForMachines(t *testing.T) {
	code, out, _ := call(t, "version", "-json")
	require.Equal(t, ExitOK, code)
	var v version
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	require.NotEmpty(t, v.Go)
}

func TestASecondProcessIsRefusedAndReadersAreNot(t *testing.T) {
	config := file(t, "node.yaml", "store: {kind: sqlite, dir: data}\ntriggers:\n  - id: a\n    schedule: {every: 10ms}\n    job: {log: {message: hi}}\n")
	dir := filepath.Join(filepath.Dir(config), "data")
	p := start(t, "run", "-config", config)
	p.until("msg=hi")
	p.until("msg=hi") // the second run is claimed in the commit that ends the first
	code, _, errOut := call(t, "run", "-config", config)
	require.Equal(t, ExitStore, code)
	require.Contains(t, errOut, fmt.Sprint(p.cmd.Process.Pid), "it says who")
	code, out, errOut := call(t, "history", "-dir", dir, "-json")
	require.Equal(t, ExitOK, code, errOut)
	require.Contains(t, out, `"verdict":"done"`)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, ExitOK, p.wait())
	code, out, _ = call(t, "history", "-dir", dir, "-json")
	require.Equal(t, ExitOK, code)
	require.NotContains(t, out, `"verdict":"claimed"`, "it stopped gracefully")
}

func TestAGroupFromStandardInput(t *testing.T) {
	config := file(t, "node.yaml", `
store: {kind: memory}
groups:
  - name: counts
    merge: sum
    delay: 1h
    input: {path: "-", key: k, value: v}
    job: {log: {message: batch}}
`)
	p := start(t, "run", "-config", config, "-json")
	for i := range 100 {
		_, err := fmt.Fprintf(p.in, `{"k":"a","v":%d}`+"\n", i)
		require.NoError(t, err)
	}
	_, err := fmt.Fprintln(p.in, `{"k":"a","v":1.5}`)
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Contains(t, p.until("left out"), "whole numbers")
	require.Contains(t, p.until(`"msg":"batch"`), `\"value\":4950,\"items\":100`)
	require.Equal(t, ExitOK, p.wait(), "a node without triggers ends with its inputs")
}
