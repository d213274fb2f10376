package ledger

import (
	"sync"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// item is a request that was let in: one of the two.
type item struct {
	commit *claim.Commit
	read   *claim.Read
}

// line is the queue in front of the store, and the one worker that serves it. It belongs to the ledger and not to its
// actor, which may be restarted, or stopped while a transaction is in flight.
type line struct {
	max     int
	work    func([]item)  // serves a batch; never panics
	end     func()        // called once, when the line is closed and everything in it is served
	drained chan struct{} // closed after that

	mu      sync.Mutex
	waiting []item
	serving int  // items that the worker has
	busy    bool // a worker runs
	closed  bool // nothing more is let in
}

func (l *line) init(maxBatch int, work func([]item), end func()) {
	l.max, l.work, l.end, l.drained = maxBatch, work, end, make(chan struct{})
}

// add lets an item in, or answers it with ErrClosed. It is served after the next kick.
func (l *line) add(it item) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.waiting = append(l.waiting, it)
	}
	l.mu.Unlock()
	if closed {
		it.fail(claim.ErrClosed)
	}
}

// addOwn lets in what the ledger asks of itself, and serves it; also while the line is being drained.
func (l *line) addOwn(items []item) {
	l.mu.Lock()
	if !l.closed || l.busy {
		l.waiting = append(l.waiting, items...)
	}
	l.mu.Unlock()
	l.kick()
}

// kick starts the worker if there is something to do and none runs.
func (l *line) kick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || len(l.waiting) == 0 {
		return
	}
	l.busy = true
	go l.serve()
}

// serve is the worker: batch after batch, until nothing waits.
func (l *line) serve() {
	for {
		batch := l.take()
		if batch == nil {
			return
		}
		l.work(batch)
	}
}

// take gives the next batch: as much as a transaction may hold, and the reads between. Nil: the worker ends.
func (l *line) take() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy, l.serving = false, 0
		l.settle()
		return nil
	}
	n, commits := 0, 0
	for n < len(l.waiting) && commits < l.max {
		if l.waiting[n].commit != nil {
			commits++
		}
		n++
	}
	batch := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
	l.serving = n
	return batch
}

// close lets nothing more in. What is in is still served.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	if len(l.waiting) > 0 && !l.busy {
		l.busy = true
		go l.serve()
	}
	l.settle()
}

// settle, under mu, ends a line that is closed and empty.
func (l *line) settle() {
	if !l.closed || l.busy {
		return
	}
	select {
	case <-l.drained:
	default:
		l.end()
		close(l.drained)
	}
}

// len is how many items wait or are being served.
func (l *line) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) + l.serving
}

// fail answers with an error.
func (it item) fail(err error) {
	if it.commit != nil {
		it.commit.Reply(claim.Outcome{Err: err})
		return
	}
	it.read.Reply(err)
}
