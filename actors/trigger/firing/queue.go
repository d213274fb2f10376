package firing

import (
	"slices"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// waiting is a key that is decided and waits for its (next) attempt.
type waiting struct {
	key     claim.Key
	job     string
	own     bool // its job is the definition's; another one is that of an older version
	due     time.Time
	slot    time.Time
	attempt int   // attempts spent
	missed  int64 // further slots that it stands for
}

// queue holds what waits, each key once, by (due, slot). The zero value is empty.
type queue struct {
	list  []waiting
	keys  map[claim.Key]struct{}
	first int // of them wait for their first attempt at the definition's own job
}

func order(a, b waiting) int {
	if c := a.due.Compare(b.due); c != 0 {
		return c
	}
	return a.slot.Compare(b.slot)
}

// put says whether the key was not there.
func (q *queue) put(w waiting) bool {
	if _, ok := q.keys[w.key]; ok {
		return false
	}
	if q.keys == nil {
		q.keys = map[claim.Key]struct{}{}
	}
	q.keys[w.key] = struct{}{}
	i, _ := slices.BinarySearchFunc(q.list, w, func(a, b waiting) int {
		if order(a, b) <= 0 { // behind its equals
			return -1
		}
		return 1
	})
	q.list = slices.Insert(q.list, i, w)
	q.count(&w, 1)
	return true
}

// drop takes a key out, if it is there.
func (q *queue) drop(k claim.Key) {
	if _, ok := q.keys[k]; !ok {
		return
	}
	i := slices.IndexFunc(q.list, func(w waiting) bool { return w.key == k })
	q.remove(i)
}

// remove takes out the i-th and gives it.
func (q *queue) remove(i int) waiting {
	w := q.list[i]
	delete(q.keys, w.key)
	q.count(&w, -1)
	if i == 0 {
		q.list = q.list[1:]
	} else {
		q.list = slices.Delete(q.list, i, i+1)
	}
	if len(q.list) == 0 {
		*q = queue{}
	}
	return w
}

func (q *queue) count(w *waiting, n int) {
	if w.own && w.attempt == 0 {
		q.first += n
	}
}
