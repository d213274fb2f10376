package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/internal/cli/demo"
)

func TestExitCodesOfSignals(t *testing.T) {
	for _, c := range []struct {
		err       error
		signalled bool
		want      int
	}{
		{nil, true, ExitOK},
		{context.Canceled, true, ExitUnclosed},
		{context.Canceled, false, ExitFailed},
		{qj.ErrUnavailable, true, ExitUnclosed},
		{qj.ErrUnavailable, false, ExitStore},
		{qj.ErrLocked, true, ExitStore},
		{fmt.Errorf("%w: %w", errEarly, context.Canceled), true, ExitOK},
		{errors.Join(errEarly, errUnclosed), true, ExitUnclosed},
		{errors.Join(demo.ErrWrong, context.Canceled), true, ExitFailed},
		{errDead, true, ExitFailed},
	} {
		require.Equal(t, c.want, exitCode(c.err, c.signalled), "%v, signalled: %t", c.err, c.signalled)
	}
}

func TestASignalBeforeAnythingRan(t *testing.T) {
	config := file(t, "node.yaml", "store: {kind: sqlite, dir: data}\ntriggers:\n- {id: a, schedule: {every: 1s}, job: {log: {message: hi}}}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	p := &program{in: strings.NewReader(""), out: &out, err: &out}
	require.Equal(t, ExitOK, p.run(ctx, []string{"run", "-config", config}), out.String())
}

func TestDashes(t *testing.T) {
	p := &program{}
	for in, want := range map[string]string{
		"history -trigger -xyz -json":         "history --trigger -xyz --json",
		"history -trigger=-xyz -json -output": "history --trigger=-xyz --json --output",
		"history --trigger -xyz":              "history --trigger -xyz",
		"-log debug run -grace -1s -h":        "--log debug run --grace -1s -h",
		"demo -bogus -dir -x":                 "demo --bogus --dir -x",
		"demo -- -dir":                        "demo -- -dir",
		"history -trigger":                    "history --trigger",
	} {
		require.Equal(t, want, strings.Join(dashes(p.root(), strings.Fields(in)), " "))
	}
}
