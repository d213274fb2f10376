package trigger

import (
	"maps"
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestArrows(t *testing.T) {
	forbidden := maps.Clone(deptest.Shells)
	delete(forbidden, "github.com/quarterjack/quarterjack/actors/trigger/clock$") // its own
	deptest.Deps(t, ".", forbidden)
}

func TestArrowsOfTheClock(t *testing.T) {
	deptest.Deps(t, "github.com/quarterjack/quarterjack/actors/trigger/clock", deptest.Shells)
}
