package deptest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

// verdict is a test that only notes what it is told.
type verdict struct {
	testing.TB
	errors []string
	fatal  string
}

func (v *verdict) Helper() {}

func (v *verdict) Errorf(format string, args ...any) {
	v.errors = append(v.errors, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.fatal = fmt.Sprintf(format, args...)
	panic(v)
}

const module = "github.com/quarterjack/quarterjack/"

func TestDeps(t *testing.T) {
	for _, c := range []struct {
		name      string
		pkg       string
		forbidden map[string]string
		want      []string
	}{
		{"nothing forbidden", module + "internal/backoff", nil, nil},
		{"not imported", module + "internal/backoff", deptest.Kernel, nil},
		{"the calling package", ".", map[string]string{"os/exec": "no processes"}, []string{
			module + "internal/deptest must not import os/exec: no processes (" + module + "internal/deptest -> os/exec)"}},
		{"indirect, with the chain", module + "supervisor/restart", map[string]string{"hash/fnv": "no hashes"}, []string{
			module + "supervisor/restart must not import hash/fnv: no hashes (" +
				module + "supervisor/restart -> " + module + "internal/backoff -> hash/fnv)"}},
		{"the longest prefix has the reason", module + "internal/backoff", map[string]string{"hash": "no hashes", "hash/fnv": "no FNV"}, []string{
			module + "internal/backoff must not import hash: no hashes (", module + "internal/backoff must not import hash/fnv: no FNV ("}},
		{"a prefix ends at a slash", module + "internal/backoff", map[string]string{"ma": "not math", "hash/fn": "not hash/fnv"}, nil},
		{"exactly one package", module + "internal/backoff", map[string]string{"hash$": "no hashes"}, []string{
			module + "internal/backoff must not import hash: no hashes ("}},
		{"none beneath it", module + "internal/backoff", map[string]string{"math/internal$": "x", "hash/fnv/x$": "x", "mat$": "x"}, nil},
		{"exactly wins over beneath", module + "internal/backoff", map[string]string{"hash": "no hashes", "hash$": "not hash itself"}, []string{
			module + "internal/backoff must not import hash: not hash itself (", module + "internal/backoff must not import hash: no hashes ("}},
		{"a kernel beneath a shell", module + "actors/keygroup", deptest.Shells, nil},
		{"itself does not count", module + "internal/backoff", map[string]string{module + "internal": "no internals"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &verdict{TB: t}
			deptest.Deps(v, c.pkg, c.forbidden)
			require.Len(t, v.errors, len(c.want), strings.Join(v.errors, "\n"))
			for i, want := range c.want {
				require.Contains(t, v.errors[i], want)
			}
		})
	}
}

// TestShells has the root, which puts all of it together, break the rules of a shell.
func TestShells(t *testing.T) {
	v := &verdict{TB: t}
	deptest.Deps(v, strings.TrimSuffix(module, "/"), deptest.Shells)
	for _, shell := range []string{"actors/trigger", "actors/trigger/clock", "actors/keygroup", "actors/ledger", "supervisor"} {
		want := "must not import " + module + shell + ": shells do not import each other ("
		require.Equal(t, 1, strings.Count(strings.Join(v.errors, "\n"), want), shell)
	}
	require.NotContains(t, strings.Join(v.errors, "\n"), "import "+module+"actors/ledger/claim:")
}

func TestDepsOfWhatIsNotThere(t *testing.T) {
	v := &verdict{TB: t}
	require.Panics(t, func() { deptest.Deps(v, "./nowhere", nil) })
	require.Contains(t, v.fatal, "deptest: go list -deps ./nowhere: exit status 1\n")
}
