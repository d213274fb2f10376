// Package clock wakes triggers at their instants: any number of alarms over a few timers.
//
// Alarms are kept in ordered heaps, one a shard, and each shard arms one timer for its earliest alarm. Slots are wall
// time, so an alarm is due when the wall clock says so, and never earlier; timers run on the monotonic clock and are
// armed at most a minute ahead, so that a step of the wall clock or a machine's sleep is noticed within a minute. An
// idle clock owns no timer and no goroutine.
package clock

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// Ahead is how far ahead a timer is armed at most.
const Ahead = time.Minute

// Tolerance is how far the wall clock may drift from the monotonic one between two looks before it counts as a jump.
const Tolerance = 500 * time.Millisecond

// Hands are the two hands of a clock.
type Hands interface {
	Wall() time.Time     // what people see; it may step
	Mono() time.Duration // since some fixed moment; it never steps
}

// System returns the hands of the operating system's clocks.
func System() Hands { return systemHands{time.Now()} }

type systemHands struct{ base time.Time }

func (systemHands) Wall() time.Time       { return time.Now().Round(0).UTC() }
func (h systemHands) Mono() time.Duration { return time.Since(h.base) }

// Config of a clock. The zero value uses the system's hands and one shard.
type Config struct {
	Hands  Hands
	Shards int
	// OnJump is told how far the wall clock stepped (or the machine slept); it must not block.
	OnJump func(step time.Duration)
}

// Clock holds alarms. Make one with New.
type Clock struct {
	hands  Hands
	onJump func(time.Duration)
	shards []shard
	next   atomic.Uint32
	jumps  atomic.Int64

	look struct { // the last look at both hands
		sync.Mutex
		wall time.Time
		mono time.Duration
	}
}

type shard struct {
	sync.Mutex
	clock   *Clock
	alarms  alarms
	timer   *time.Timer
	armed   bool          // the timer is
	fires   time.Duration // when it does, on the monotonic hand: the wall may step meanwhile
	stopped bool
}

// New makes a clock.
func New(c Config) *Clock {
	if c.Hands == nil {
		c.Hands = System()
	}
	k := &Clock{hands: c.Hands, onJump: c.OnJump, shards: make([]shard, max(c.Shards, 1))}
	for i := range k.shards {
		k.shards[i].clock = k
	}
	k.look.wall, k.look.mono = k.hands.Wall(), k.hands.Mono()
	return k
}

// Now reads the wall hand.
func (c *Clock) Now() time.Time { return c.hands.Wall() }

// Jumps counts the steps of the wall clock that were noticed.
func (c *Clock) Jumps() int64 { return c.jumps.Load() }

// Stop disarms every timer. Alarms set later never ring.
func (c *Clock) Stop() {
	for i := range c.shards {
		s := &c.shards[i]
		s.Lock()
		s.stopped, s.alarms = true, nil
		if s.timer != nil {
			s.timer.Stop()
		}
		s.Unlock()
	}
}

// Alarm is one trigger's place in the clock: it is set to one instant at a time, so a trigger never owns two.
type Alarm struct {
	shard      *shard
	ring       func(generation uint64)
	at         time.Time
	generation uint64
	index      int // in the heap, or -1
}

// Alarm makes an alarm that is not set. ring must not block; it is called with the generation that the alarm was set
// with, and may be called for one that has been overtaken by a later Set: the generation tells.
func (c *Clock) Alarm(ring func(generation uint64)) *Alarm {
	s := &c.shards[int(c.next.Add(1))%len(c.shards)]
	return &Alarm{shard: s, ring: ring, index: -1}
}

// Set moves the alarm to an instant; a zero one clears it. An instant that is past rings at once, on another
// goroutine.
func (a *Alarm) Set(at time.Time, generation uint64) {
	s := a.shard
	s.Lock()
	defer s.Unlock()
	a.generation = generation
	switch {
	case s.stopped:
		return
	case at.IsZero():
		if a.index >= 0 {
			heap.Remove(&s.alarms, a.index)
		}
		return
	}
	a.at = at
	if a.index >= 0 {
		heap.Fix(&s.alarms, a.index)
	} else {
		heap.Push(&s.alarms, a)
	}
	s.arm(s.clock.hands.Wall())
}

// arm has the timer fire for the earliest alarm, where it does not do so sooner. The lock is held.
func (s *shard) arm(now time.Time) {
	if len(s.alarms) == 0 {
		return
	}
	// 1 ns and not 0: in a synctest bubble Go 1.26 may crash under -race on a timer that is due as it is set.
	d := min(max(s.alarms[0].at.Sub(now), 1), Ahead)
	fires := s.clock.hands.Mono() + d
	if s.armed && fires >= s.fires {
		return
	}
	s.armed, s.fires = true, fires
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.tick)
	} else {
		s.timer.Reset(d)
	}
}

// tick rings what is due.
func (s *shard) tick() {
	s.clock.check()
	s.Lock()
	s.armed = false
	now := s.clock.hands.Wall()
	type due struct {
		ring       func(uint64)
		generation uint64
	}
	var list []due
	for len(s.alarms) > 0 && !s.alarms[0].at.After(now) {
		a := heap.Pop(&s.alarms).(*Alarm)
		list = append(list, due{a.ring, a.generation})
	}
	if !s.stopped {
		s.arm(now)
	}
	s.Unlock()
	for _, d := range list {
		d.ring(d.generation)
	}
}

// check compares the hands and reports a jump.
func (c *Clock) check() {
	c.look.Lock()
	wall, mono := c.hands.Wall(), c.hands.Mono()
	step := wall.Sub(c.look.wall) - (mono - c.look.mono)
	c.look.wall, c.look.mono = wall, mono
	c.look.Unlock()
	if step.Abs() <= Tolerance {
		return
	}
	c.jumps.Add(1)
	if c.onJump != nil {
		c.onJump(step)
	}
}

// alarms is a heap by instant.
type alarms []*Alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *alarms) Push(x any) {
	a := x.(*Alarm)
	a.index = len(*h)
	*h = append(*h, a)
}
func (h *alarms) Pop() any {
	old := *h
	n := len(old) - 1
	a := old[n]
	old[n], *h, a.index = nil, old[:n], -1
	return a
}
