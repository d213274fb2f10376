package supervisor_test

import (
	"maps"
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestArrows(t *testing.T) {
	forbidden := maps.Clone(deptest.Shells)
	forbidden["github.com/quarterjack/quarterjack/actors"] = "the supervisor knows no actor of ours"
	deptest.Deps(t, "github.com/quarterjack/quarterjack/supervisor", forbidden)
}
