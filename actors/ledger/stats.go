package ledger

import "sync/atomic"

// Stats is what a ledger has done since it was made, and what it has to do.
type Stats struct {
	Commits  int64 // batches of requests that were given to the store, however they ended
	Requests int64 // in them, the ledger's own extensions of leases among them
	Largest  int64 // requests in the largest batch
	Splits   int64 // transactions that failed as a whole and were tried again in halves

	Held    int64 // claims that are not yet given back
	Stuck   int64 // of these, held for longer than their Hold, and extended no more
	Waiting int64 // requests that are not yet answered
}

// Mean is how many requests shared a commit, on average.
func (s Stats) Mean() float64 { return float64(s.Requests) / float64(max(s.Commits, 1)) }

// counts are written by the worker and read by anybody.
type counts struct {
	commits, requests, largest, splits atomic.Int64
}

// batch counts one. There is one worker, so the largest needs no loop.
func (c *counts) batch(n int) {
	c.commits.Add(1)
	c.requests.Add(int64(n))
	if int64(n) > c.largest.Load() {
		c.largest.Store(int64(n))
	}
}

// Stats may be called from any goroutine, at any time.
func (l *Ledger) Stats() Stats {
	all, stuck := l.held.len()
	return Stats{
		Commits: l.counts.commits.Load(), Requests: l.counts.requests.Load(), Largest: l.counts.largest.Load(), Splits: l.counts.splits.Load(),
		Held: int64(all), Stuck: int64(stuck), Waiting: int64(l.line.len()),
	}
}

// Len is how many requests are not yet answered.
func (l *Ledger) Len() int { return l.line.len() }
