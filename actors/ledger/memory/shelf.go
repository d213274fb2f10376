package memory

import "github.com/quarterjack/quarterjack/actors/ledger/claim"

// owner is whose records share a shelf: a trigger, or all free keys of a namespace.
type owner struct{ namespace, trigger string }

func keyOwner(k claim.Key) owner { return owner{k.Namespace, k.Trigger} }

// shelf holds what is kept of one owner.
type shelf struct {
	records map[claim.Key]claim.Record
	ranges  map[string]claim.Range
	ended   queue[claim.Key] // terminal records of a trigger, oldest verdict first
	named   queue[string]    // ranges, oldest first
}

// shelf gives an owner's shelf, a new one where there is none.
func (s *Store) shelf(o owner) *shelf {
	sh := s.shelves[o]
	if sh == nil {
		sh = &shelf{records: map[claim.Key]claim.Record{}, ranges: map[string]claim.Range{}}
		s.shelves[o] = sh
	}
	return sh
}

// put keeps r, and forgets the oldest verdict where there are more than history of them. A verdict is final, so a key
// comes into the queue once.
func (sh *shelf) put(r claim.Record, history int) {
	sh.records[r.Key] = r
	if !r.State.Terminal() || r.Key.Kind == claim.KindFree {
		return
	}
	if sh.ended.push(r.Key) > history {
		delete(sh.records, sh.ended.pop())
	}
}

// putRange keeps r in the same way.
func (sh *shelf) putRange(r claim.Range, history int) {
	name := r.Name()
	_, again := sh.ranges[name]
	sh.ranges[name] = r
	if !again && sh.named.push(name) > history {
		delete(sh.ranges, sh.named.pop())
	}
}

// queue is first in, first out. The zero value is empty.
type queue[T any] struct {
	items []T
	from  int
}

// push adds v and returns how many there are.
func (q *queue[T]) push(v T) int {
	q.items = append(q.items, v)
	return len(q.items) - q.from
}

// pop takes the oldest. There must be one.
func (q *queue[T]) pop() T {
	v := q.items[q.from]
	var none T
	q.items[q.from] = none
	q.from++
	if q.from > len(q.items)/2 {
		q.items, q.from = append(q.items[:0], q.items[q.from:]...), 0
	}
	return v
}
