package ledger

import (
	"maps"
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestArrows(t *testing.T) {
	forbidden := maps.Clone(deptest.Shells)
	forbidden["github.com/quarterjack/quarterjack/messages"] = "the ledger speaks no wire"
	forbidden["google.golang.org/grpc"] = "the ledger speaks no wire"
	deptest.Deps(t, ".", forbidden)
}
