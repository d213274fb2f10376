package quarterjack

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup"
	"github.com/quarterjack/quarterjack/internal/backoff"
)

// TestTheTableOfDefaultsIsTrue holds the table of the package comment against the code.
func TestTheTableOfDefaultsIsTrue(t *testing.T) {
	src, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	s, err := Trigger{ID: "a", Job: "j"}.stored("n")
	require.NoError(t, err)
	d := s.Definition
	cfg, err := Config{}.withDefaults()
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Config.Namespace":       cfg.Namespace,
		"Config.Workers":         fmt.Sprintf("%d handlers", cfg.Workers),
		"Trigger.Misfire":        d.Misfire.String(),
		"Trigger.Threshold":      d.Threshold.String(),
		"Trigger.Overlap":        d.Overlap.String(),
		"Trigger.Limit":          fmt.Sprintf("%d waiting slots (BufferAll), %d runs (Allow)", Trigger{Overlap: BufferAll}.limit(), Trigger{Overlap: Allow}.limit()),
		"Trigger.Timeout":        s.Timeout.String(),
		"Trigger.Attempts":       fmt.Sprint(d.Attempts),
		"Trigger.Backoff":        fmt.Sprintf("%v to %v, doubled each time, a fifth random", d.Backoff.Initial, d.Backoff.Max),
		"lease of a claim":       DefaultLease.String() + ",",
		"GroupConfig.Delay":      keygroup.DefaultDelay.String(),
		"GroupConfig.BatchItems": fmt.Sprint(keygroup.DefaultBatchItems),
		"GroupConfig.MaxItems":   fmt.Sprint(keygroup.DefaultMaxItems),
		"GroupConfig.OnFull":     GroupConfig{}.OnFull.String(),
		"GroupConfig.Workers":    fmt.Sprint(keygroup.DefaultWorkers),
		"GroupConfig.Timeout":    keygroup.DefaultTimeout.String(),
		"GroupConfig.Attempts":   fmt.Sprint(keygroup.DefaultAttempts),
		"GroupConfig.IdleAfter":  keygroup.DefaultIdleAfter.String(),
		"Run.Result, Data":       fmt.Sprintf("at most %d bytes", MaxData),
	} {
		found := false
		for line := range strings.Lines(string(src)) {
			if rest, ok := strings.CutPrefix(line, "//\t"+name); ok && strings.HasPrefix(rest, " ") {
				found = true
				require.True(t, strings.HasPrefix(strings.TrimSpace(rest), value),
					"%s: the table says %q, the code %q", name, strings.TrimSpace(rest), value)
			}
		}
		require.True(t, found, "the table lacks %s", name)
	}
	require.InDelta(t, 2.0, backoff.DefaultFactor, 0, "doubled each time")
	require.InDelta(t, 0.2, backoff.DefaultJitter, 0, "a fifth random")
}
