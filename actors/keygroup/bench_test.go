package keygroup

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
)

// adder is what is measured: a group, or the lock that people write by hand.
type adder interface {
	add(k int) error
	drain() error
}

// byHand is a mutex over a map of sums that a flush swaps out.
type byHand struct {
	mu   sync.Mutex
	sums map[int]int64
}

func (m *byHand) add(k int) error {
	m.mu.Lock()
	m.sums[k]++
	m.mu.Unlock()
	return nil
}

func (m *byHand) drain() error {
	m.mu.Lock()
	clear(m.sums)
	m.mu.Unlock()
	return nil
}

type sums struct{ *Group[int, int64, int64] }

func (s sums) add(k int) error { return s.Add(context.Background(), k, 1) }
func (s sums) drain() error    { return s.Flush(context.Background()) }

func newSums(b *testing.B, delay time.Duration) sums {
	e := newEngine(b)
	g, err := New(Deps{Engine: e}, Config{Name: "bench", Delay: delay, MaxItems: 1 << 30, BatchItems: 1 << 30}, batch.Sum[int64]{},
		func(context.Context, *Batch[int, int64]) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if _, err := g.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return sums{g}
}

// BenchmarkAdd adds to keys that exist, with all that it causes until it is handled.
func BenchmarkAdd(b *testing.B) {
	for _, keys := range []int{1, 1_000, 100_000} {
		for _, c := range []struct {
			name string
			make func(b *testing.B) adder
		}{
			{"group", func(b *testing.B) adder { return newSums(b, time.Second) }},
			{"mutex-map", func(*testing.B) adder { return &byHand{sums: map[int]int64{}} }},
		} {
			b.Run(fmt.Sprintf("keys=%d/%s", keys, c.name), func(b *testing.B) {
				a := c.make(b)
				for k := range keys {
					if err := a.add(k); err != nil {
						b.Fatal(err)
					}
				}
				k := 0
				b.ReportAllocs()
				for b.Loop() {
					if err := a.add(k % keys); err != nil {
						b.Fatal(err)
					}
					k += 7919
				}
				if err := a.drain(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkNewKey gives each item a key of its own, and waits until all are handled.
func BenchmarkNewKey(b *testing.B) {
	a := newSums(b, time.Second)
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		if err := a.add(k); err != nil {
			b.Fatal(err)
		}
		k++
	}
	if err := a.drain(); err != nil {
		b.Fatal(err)
	}
}
