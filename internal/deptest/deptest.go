// Package deptest proves the arrows of the house: which package may import what. The arrows are drawn in docs/architecture.md.
package deptest

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	noActors = "kernels know no actors"
	noWire   = "kernels know no wire"
	noStore  = "kernels know no store"
	noIO     = "kernels do no I/O"
	noShell  = "shells do not import each other"
	noDriver = "stores are values that the user passes in"
	noRoof   = "shells do not know who puts them together"
)

// Kernel is what no kernel may import, with the reason: give it to Deps in a test of each.
var Kernel = map[string]string{
	"github.com/asynkron/protoactor-go":                  noActors,
	"github.com/quarterjack/quarterjack/internal/engine": noActors,
	"google.golang.org/protobuf":                         noWire,
	"google.golang.org/grpc":                             noWire,
	"github.com/quarterjack/quarterjack/messages":        noWire,
	"database/sql": noStore,
	"github.com/quarterjack/quarterjack/actors/ledger/memory":   noStore,
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite":   noStore,
	"github.com/quarterjack/quarterjack/actors/ledger/postgres": noStore,
	"net": noIO,
}

// Shells is what no shell may import, with the reason: give it to Deps in a test of each, with what else that shell may not. A
// shell may import kernels that lie beneath another, such as actors/ledger/claim.
var Shells = map[string]string{
	"github.com/quarterjack/quarterjack/actors/trigger$":        noShell,
	"github.com/quarterjack/quarterjack/actors/trigger/clock$":  noShell, // is the trigger's own
	"github.com/quarterjack/quarterjack/actors/keygroup$":       noShell,
	"github.com/quarterjack/quarterjack/actors/ledger$":         noShell,
	"github.com/quarterjack/quarterjack/supervisor$":            noShell,
	"github.com/quarterjack/quarterjack/actors/ledger/memory":   noDriver,
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite":   noDriver,
	"github.com/quarterjack/quarterjack/actors/ledger/postgres": noDriver,
	"database/sql$":                                   noDriver,
	"modernc.org/sqlite":                              noDriver,
	"github.com/jackc/pgx":                            noDriver,
	"github.com/quarterjack/quarterjack$":             noRoof,
	"github.com/quarterjack/quarterjack/internal/cli": noRoof,
}

// Deps fails t for each package that pkg depends on, directly or not, whose import path is a key of forbidden or lies beneath
// one, and says the reason and how pkg comes to depend on it. A key that ends in "$" stands for that
// package alone, and for none beneath it. Tests' imports do not count. Pkg is an import path, or "." for
// the calling test's own package. It runs the go command, for some tenths of a second.
func Deps(t testing.TB, pkg string, forbidden map[string]string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", pkg).Output()
	if err != nil {
		t.Fatalf("deptest: go list -deps %s: %v%s", pkg, err, stderr(err))
	}
	imports := map[string][]string{}
	var order []string // dependencies come before those that import them; pkg is the last
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			order = append(order, fields[0])
			imports[fields[0]] = fields[1:]
		}
	}
	if len(order) == 0 {
		t.Fatalf("deptest: go list -deps %s: no packages", pkg)
	}
	self := order[len(order)-1]
	for _, dep := range order[:len(order)-1] {
		if prefix, reason, bad := beneath(dep, forbidden); bad {
			t.Errorf("%s must not import %s: %s (%s)", self, prefix, reason, strings.Join(path(imports, self, dep), " -> "))
		}
	}
}

// beneath finds the longest key of forbidden that dep is, or lies beneath; prefix is that key without its "$".
func beneath(dep string, forbidden map[string]string) (prefix, reason string, bad bool) {
	longest := ""
	for p, r := range forbidden {
		name, exact := strings.CutSuffix(p, "$")
		if (dep == name || !exact && strings.HasPrefix(dep, name+"/")) && len(p) > len(longest) {
			longest, prefix, reason, bad = p, name, r, true
		}
	}
	return prefix, reason, bad
}

// path returns a shortest chain of imports.
func path(imports map[string][]string, from, to string) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			break
		}
		for _, next := range imports[queue[0]] {
			if _, seen := came[next]; !seen {
				came[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	var chain []string
	for at := to; at != ""; at = came[at] {
		chain = append(chain, at)
	}
	slices.Reverse(chain)
	return chain
}

func stderr(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "\n" + string(exit.Stderr)
	}
	return ""
}
