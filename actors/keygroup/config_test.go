package keygroup

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestConfigIsRefusedWithFieldValueAndWhatIsAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no name":             {Config{}, "Name is empty, must be given"},
		"negative delay":      {Config{Name: "g", Delay: -time.Second}, `group "g": Delay is -1s, must be positive (0: 1s)`},
		"negative timeout":    {Config{Name: "g", Timeout: -1}, "Timeout is -1ns, must be positive (0: 1m0s)"},
		"negative idle after": {Config{Name: "g", IdleAfter: -1}, "IdleAfter is -1ns"},
		"negative grace":      {Config{Name: "g", Grace: -1}, "Grace is -1ns"},
		"negative batch":      {Config{Name: "g", BatchItems: -5}, "BatchItems is -5, must be 1 to 2147483647 (0: 10000)"},
		"too many items":      {Config{Name: "g", MaxItems: 1 << 40}, "MaxItems is 1099511627776, must be 1 to 2147483647 (0: 1000000)"},
		"negative workers":    {Config{Name: "g", Workers: -1}, "Workers is -1, must be 1 to 2147483647 (0: 16)"},
		"negative attempts":   {Config{Name: "g", Attempts: -1}, "Attempts is -1, must be 1 to 2147483647 (0: 5)"},
		"unknown policy":      {Config{Name: "g", OnFull: 7}, "OnFull is onfull(7), must be Block or Reject"},
		"bad back-off":        {Config{Name: "g", Backoff: backoff.Policy{Factor: 0.5}}, "Factor is 0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.cfg.Validate()
			require.ErrorIs(t, err, ErrConfig)
			require.ErrorContains(t, err, c.want)
		})
	}
	require.NoError(t, Config{Name: "g", Delay: AtOnce, OnFull: Reject}.Validate())
	require.Equal(t, "block", Block.String())
	require.Equal(t, "reject", Reject.String())
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ok := func(context.Context, *Batch[string, int]) error { return nil }
		_, err := New[string](Deps{}, Config{Name: "g"}, batch.Sum[int]{}, ok)
		require.ErrorContains(t, err, "Deps.Engine is nil")
		_, err = New[string](Deps{Engine: e}, Config{Name: "g"}, batch.Accumulator[int, int](nil), ok)
		require.ErrorContains(t, err, "accumulator is nil")
		_, err = New[string](Deps{Engine: e}, Config{Name: "g"}, batch.Sum[int]{}, (func(context.Context, *Batch[string, int]) error)(nil))
		require.ErrorContains(t, err, "handler is nil")
		_, err = New[string](Deps{Engine: e}, Config{}, batch.Sum[int]{}, ok)
		require.ErrorIs(t, err, ErrConfig)
		g, err := New[string](Deps{Engine: e}, Config{Name: "g"}, batch.Sum[int]{}, ok)
		require.NoError(t, err)
		require.Equal(t, "g", g.Name())
	})
}

func TestZeroValuesAreBounded(t *testing.T) {
	c := Config{Name: "g"}.withDefaults(nil)
	require.Equal(t, []any{time.Second, 10_000, 1_000_000, 16, time.Minute, 5, time.Minute, time.Second},
		[]any{c.Delay, c.BatchItems, c.MaxItems, c.Workers, c.Timeout, c.Attempts, c.IdleAfter, c.Grace})
}
