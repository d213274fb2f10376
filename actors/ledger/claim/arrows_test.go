package claim

import (
	"maps"
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestArrows(t *testing.T) {
	forbidden := maps.Clone(deptest.Kernel)
	forbidden["log/slog"] = "a kernel says nothing, it decides"
	deptest.Deps(t, ".", forbidden)
}
