// Command idle prints what an idle runtime costs: goroutines and heap, with the store in memory and in SQLite.
package main

import (
	"context"
	"errors"
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
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "idle-")
	if err != nil {
		return err
	}
	fmt.Printf("%-8s %10s %10s\n", "store", "goroutines", "heap KiB")
	for _, s := range []struct {
		name  string
		store claim.Store
	}{{"memory", memory.New()}, {"sqlite", sqlite.New(sqlite.Config{Path: filepath.Join(dir, "quarterjack.db")})}} {
		if err := idle(s.name, s.store); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

func idle(name string, store claim.Store) error {
	goroutines, heap := measure()
	rt, err := qj.Open(context.Background(), qj.Config{Store: store})
	if err != nil {
		return err
	}
	if err := rt.Start(context.Background()); err != nil {
		return errors.Join(err, rt.Close(context.Background()))
	}
	g, h := measure()
	fmt.Printf("%-8s %10d %10d\n", name, g-goroutines, (h-heap)/1024)
	return rt.Close(context.Background())
}

func measure() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}
