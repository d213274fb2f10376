package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
	"github.com/quarterjack/quarterjack/actors/ledger/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(t *testing.T, dir string) claim.Store {
	return sqlite.New(sqlite.Config{Path: filepath.Join(dir, "quarterjack.db")})
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) claim.Store { return at(t, t.TempDir()) })
}

func TestDurableStore(t *testing.T) {
	storetest.RunDurable(t, at)
}
