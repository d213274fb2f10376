// Command idle prints what an idle runtime costs: goroutines and heap, with the store in memory and in SQLite.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
)

func main() {
	dir, err := os.MkdirTemp("", "idle-")
	check(err)
	fmt.Printf("%-8s %10s %10s\n", "store", "goroutines", "heap KiB")
	for _, s := range []struct {
		name  string
		store claim.Store
	}{{"memory", memory.New()}, {"sqlite", sqlite.New(sqlite.Config{Path: filepath.Join(dir, "quarterjack.db")})}} {
		goroutines, heap := measure()
		rt, err := qj.Open(context.Background(), qj.Config{Store: s.store})
		check(err)
		check(rt.Start(context.Background()))
		g, h := measure()
		fmt.Printf("%-8s %10d %10d\n", s.name, g-goroutines, (h-heap)/1024)
		check(rt.Close(context.Background()))
	}
	check(os.RemoveAll(dir))
}

func measure() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
