package keygroup

import "sync/atomic"

// Stats are counters since the group was made, and gauges of the moment. They are read one by one, so sums hold exactly only
// while nothing happens; then Adds = Handled + DeadItems + Left + Pending.
type Stats struct {
	Adds     uint64 // items that were admitted and have reached their key's actor
	Merged   uint64 // of them: merged into something that was there
	Rejected uint64 // items that were refused with ErrFull

	Batches   uint64 // handler calls that succeeded
	Handled   uint64 // items in them
	Failures  uint64 // handler calls that failed
	Dead      uint64 // dead letters
	DeadItems uint64 // items in them
	Left      uint64 // items that Close returned

	Late  uint64 // results that came after their timeout
	Stale uint64 // ticks that came for a generation that was over

	Keys    int // live ones
	Pending int // items admitted and not yet handled
	Running int // workers in use
	Waiting int // keys that are due and wait for a worker
}

type counters struct {
	adds, merged, rejected                  atomic.Uint64
	batches, handled, failures, late, stale atomic.Uint64
	dead, deadItems, left                   atomic.Uint64
}

// Stats returns the counters and gauges.
func (g *Group[K, V, A]) Stats() Stats {
	c := &g.counts
	return Stats{
		Adds: c.adds.Load(), Merged: c.merged.Load(), Rejected: c.rejected.Load(),
		Batches: c.batches.Load(), Handled: c.handled.Load(), Failures: c.failures.Load(),
		Dead: c.dead.Load(), DeadItems: c.deadItems.Load(), Left: c.left.Load(),
		Late: c.late.Load(), Stale: c.stale.Load(),
		Keys: g.Keys(), Pending: g.Pending(), Running: g.pool.InUse(), Waiting: g.pool.Waiting(),
	}
}

// Pending is the number of items that are admitted and not yet handled, given up or given back.
func (g *Group[K, V, A]) Pending() int { return int(g.room.used.Load()) }

// Keys is the number of live keys: those that hold something, and idle ones that are not yet forgotten.
func (g *Group[K, V, A]) Keys() int { return int(g.keys.live.Load()) }
