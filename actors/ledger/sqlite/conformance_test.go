package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/storetest"
	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(holdVar); path != "" {
		os.Exit(hold(path))
	}
	if path := os.Getenv(killVar); path != "" {
		os.Exit(toBeKilled(path))
	}
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) claim.Store { return at(t, t.TempDir()) })
}

func TestDurableStore(t *testing.T) { storetest.RunDurable(t, at) }

func at(_ *testing.T, dir string) claim.Store {
	return New(Config{Path: filepath.Join(dir, "quarterjack.db"), TxBound: time.Second})
}

func TestArrows(t *testing.T) {
	const store = "stores import claim and their driver only"
	deptest.Deps(t, ".", map[string]string{
		"github.com/asynkron/protoactor-go":                  store,
		"github.com/quarterjack/quarterjack/internal/engine": store,
		"google.golang.org/protobuf":                         store,
		"google.golang.org/grpc":                             store,
		"github.com/jackc/pgx":                               store,
	})
}
