package engine

import "sync"

// task is what a pool runs. It asks to be run again by its result.
type task interface {
	turn() (again bool)
}

// pool runs tasks in the order in which they were added, on at most limit goroutines.
//
// Goroutines are started on demand and end when the queue is empty, so an idle pool owns none. Adding never blocks on a task
// and never drops one. A task that ends its goroutine (runtime.Goexit) costs the pool nothing: a successor takes its place.
type pool struct {
	limit int
	depot depot

	mu      sync.Mutex
	queue   queue
	running int // goroutines; at limit, or each of them will look at the queue again before it ends
}

func (p *pool) add(t task) {
	p.mu.Lock()
	p.queue.push(&p.depot, t)
	start := p.running < p.limit
	if start {
		p.running++
	}
	p.mu.Unlock()
	if start {
		go p.work()
	}
}

// work runs tasks until there are none.
func (p *pool) work() {
	ended := false
	defer func() {
		if !ended {
			go p.work()
		}
	}()
	for t := p.next(nil); t != nil; {
		if t.turn() {
			t = p.next(t)
		} else {
			t = p.next(nil)
		}
	}
	ended = true
}

// next adds again, if given, at the end of the queue and takes the first. It returns nil, with the calling goroutine no longer
// counted, if there is none.
func (p *pool) next(again task) task {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again != nil {
		p.queue.push(&p.depot, again)
	}
	if p.queue.empty() {
		p.running--
		p.queue.release(&p.depot)
		return nil
	}
	return p.queue.pop(&p.depot).(task)
}
