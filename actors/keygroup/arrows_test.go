package keygroup

import (
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestShellImportsNoOtherShellNorDriver(t *testing.T) {
	const module = "github.com/quarterjack/quarterjack/"
	deptest.Deps(t, ".", map[string]string{
		module + "actors/trigger":         "shells do not import each other",
		module + "actors/ledger/memory":   "shells know no store",
		module + "actors/ledger/sqlite":   "shells know no store",
		module + "actors/ledger/postgres": "shells know no store",
		module + "messages":               "only wire.go names protobuf types",
		"modernc.org/sqlite":              "shells know no store",
	})
}
