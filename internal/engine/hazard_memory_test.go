package engine_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// B: rings never shrink, so an actor that once had a backlog keeps its memory.
func TestHazardMailboxKeepsMemoryAfterBurst(t *testing.T) {
	e, err := engine.New(engine.Config{Logger: actortest.Logger(t)})
	require.NoError(t, err)
	const actors, burst = 20, 20_000
	refs := make([]*engine.Ref, actors)
	for i := range refs {
		refs[i], _ = spawn(t, e, fmt.Sprint(i))
	}
	before := heapInUse()
	var blocked, handled sync.WaitGroup
	for _, r := range refs {
		blocked.Add(1)
		handled.Add(1)
		r.Tell(do(func(*engine.Context) { blocked.Wait() }))
		nothing := do(func(*engine.Context) {})
		for range burst {
			r.Tell(nothing)
		}
		r.Tell(do(func(*engine.Context) { handled.Done() }))
		full := heapInUse()
		require.Greater(t, full, before+burst*16)
		blocked.Done()
		handled.Wait()
	}
	require.Less(t, heapInUse(), before+burst*16, "less than one of them would keep")
	require.NoError(t, e.Stop(t.Context()))
}

// heapInUse returns the bytes in use when nothing more can be collected.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // a sync.Pool lets go in the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
