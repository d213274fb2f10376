package keygroup

import (
	"maps"
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestArrows(t *testing.T) {
	forbidden := maps.Clone(deptest.Shells)
	forbidden["github.com/quarterjack/quarterjack/messages"] = "groups speak no wire"
	forbidden["google.golang.org/grpc"] = "groups speak no wire"
	deptest.Deps(t, ".", forbidden)
}
