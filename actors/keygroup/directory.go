package keygroup

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/quarterjack/quarterjack/internal/verdict"
)

// shards of a directory: enough that adders of different keys seldom meet, each a map under its lock.
const shards = 64

// directory finds a key's actor. A key that is found may be gone by the time that it is locked: who sees that removes it
// and looks again. No lock of a shard is taken under the lock of a key, nor the other way round.
type directory[K comparable, V, A any] struct {
	seed   maphash.Seed
	live   atomic.Int64
	shards [shards]shard[K, V, A]
}

type shard[K comparable, V, A any] struct {
	mu   sync.RWMutex
	keys map[K]*key[K, V, A]
	_    [64]byte // no two locks in one cache line
}

// place returns the shard of k, which every other method takes from it. Errors are ErrKey: with an interface for K not all that
// the compiler lets through can be compared, and what is not equal to itself would never be found again.
func (d *directory[K, V, A]) place(k K) (s *shard[K, V, A], err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: a %T: %v", ErrKey, k, r)
		}
	}()
	if !equal(k, k) {
		return nil, fmt.Errorf("%w: %s is not equal to itself", ErrKey, verdict.Text(k))
	}
	return &d.shards[maphash.Comparable(d.seed, k)%shards], nil
}

func equal[K comparable](a, b K) bool { return a == b }

func (s *shard[K, V, A]) find(k K) *key[K, V, A] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys[k]
}

// insert adds n unless its key is there, or refuse says no under the shard's lock.
func (d *directory[K, V, A]) insert(n *key[K, V, A], refuse func() error) (bool, error) {
	s := n.home
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := refuse(); err != nil {
		return false, err
	}
	if s.keys[n.key] != nil {
		return false, nil
	}
	if s.keys == nil {
		s.keys = make(map[K]*key[K, V, A])
	}
	s.keys[n.key] = n
	d.live.Add(1)
	return true, nil
}

// remove forgets n, if it is still the one under its key. A shard that is empty lets go of its table: a map does not shrink.
func (d *directory[K, V, A]) remove(n *key[K, V, A]) {
	s := n.home
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[n.key] != n {
		return
	}
	delete(s.keys, n.key)
	if len(s.keys) == 0 {
		s.keys = nil
	}
	d.live.Add(-1)
}

// each calls visit for the keys that are there, shard by shard, outside of the locks.
func (d *directory[K, V, A]) each(visit func(*key[K, V, A])) {
	var found []*key[K, V, A]
	for i := range d.shards {
		s := &d.shards[i]
		s.mu.RLock()
		for _, k := range s.keys {
			found = append(found, k)
		}
		s.mu.RUnlock()
		for _, k := range found {
			visit(k)
		}
		clear(found)
		found = found[:0]
	}
}
