package batch

import (
	"testing"

	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestKernelImportsNoActorNoStoreNoWire(t *testing.T) {
	deptest.Deps(t, ".", deptest.Kernel)
}
