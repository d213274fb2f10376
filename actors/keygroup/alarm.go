package keygroup

import (
	"sync"
	"sync/atomic"
	"time"
)

// sleeper is who an alarm rings for.
type sleeper interface {
	// awaited is the token of the entry that it waits for; 0: none. Whoever sets it to 0 has taken the entry: the
	// alarm, which then rings, or the sleeper, which then tells the alarm that it was dropped.
	awaited() *atomic.Uint64
	ring(token uint64)
}

// alarm rings for the keys of a group. It is one timer over a heap, so that a million keys that are due at once cost one
// goroutine and not a million. What nobody waits for any more stays in the heap until its time, or until half of the heap
// is like that.
type alarm[T sleeper] struct {
	now   func() time.Time
	epoch time.Time // what the heap counts from

	mu    sync.Mutex
	heap  []entry[T]
	stale int // entries that nobody waits for
	timer *time.Timer
	next  time.Duration // when the timer is set to ring; 0: it is not
}

type entry[T sleeper] struct {
	at    time.Duration
	token uint64
	who   T
}

// set has who rung with token, which is not 0, at that time, instead of what it waited for.
func (a *alarm[T]) set(at time.Time, who T, token uint64) {
	a.drop(who)
	who.awaited().Store(token)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.push(entry[T]{at.Sub(a.epoch), token, who})
	a.wind()
}

// drop has who rung no more. Calls of set and drop for one sleeper do not overlap.
func (a *alarm[T]) drop(who T) {
	if who.awaited().Swap(0) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale++
	if a.stale > 64 && a.stale > len(a.heap)/2 {
		a.compact()
	}
}

// wind, under mu, sets the timer to the first entry.
func (a *alarm[T]) wind() {
	if len(a.heap) == 0 || (a.next != 0 && a.next <= a.heap[0].at) {
		return
	}
	a.next = max(a.heap[0].at, 1)
	// 1 ns and not 0: in a synctest bubble Go 1.26 may crash under -race on a timer that is due as it is set.
	wait := max(a.heap[0].at-a.now().Sub(a.epoch), 1)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.fire)
	} else {
		a.timer.Reset(wait)
	}
}

// fire rings all who are due, in chunks.
func (a *alarm[T]) fire() {
	var due [256]entry[T]
	for {
		n := 0
		a.mu.Lock()
		now := a.now().Sub(a.epoch)
		for n < len(due) && len(a.heap) > 0 && a.heap[0].at <= now {
			e := a.pop()
			if e.who.awaited().CompareAndSwap(e.token, 0) {
				due[n] = e
				n++
			} else {
				a.stale--
			}
		}
		if n < len(due) {
			a.next = 0
			a.wind()
		}
		a.mu.Unlock()
		for _, e := range due[:n] {
			e.who.ring(e.token)
		}
		if n < len(due) {
			return
		}
	}
}

// compact, under mu, throws out what nobody waits for.
func (a *alarm[T]) compact() {
	kept := a.heap[:0]
	for _, e := range a.heap {
		if e.who.awaited().Load() == e.token {
			kept = append(kept, e)
		}
	}
	clear(a.heap[len(kept):])
	a.heap, a.stale = kept, 0
	if len(kept) == 0 {
		a.heap = nil
	}
	for i := len(kept)/2 - 1; i >= 0; i-- {
		a.down(i)
	}
}

func (a *alarm[T]) push(e entry[T]) {
	a.heap = append(a.heap, e)
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if a.heap[up].at <= a.heap[i].at {
			return
		}
		a.heap[up], a.heap[i] = a.heap[i], a.heap[up]
		i = up
	}
}

// pop takes the first entry. An empty heap lets go of its memory.
func (a *alarm[T]) pop() entry[T] {
	first, last := a.heap[0], len(a.heap)-1
	a.heap[0] = a.heap[last]
	a.heap[last] = entry[T]{}
	a.heap = a.heap[:last]
	if last == 0 {
		a.heap = nil
	}
	a.down(0)
	return first
}

func (a *alarm[T]) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(a.heap) {
			return
		}
		if right := least + 1; right < len(a.heap) && a.heap[right].at < a.heap[least].at {
			least = right
		}
		if a.heap[i].at <= a.heap[least].at {
			return
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}
