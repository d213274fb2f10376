package engine

import "sync"

// The sizes of chunks, in messages. A queue starts with a small one (112 B), so that a hundred thousand actors with a message
// each are cheap, and goes on with large ones (4 KiB).
const (
	smallChunk = 4
	largeChunk = 252
)

// chunk is a piece of a queue: slots[r:w] hold messages.
type chunk struct {
	next  *chunk
	r, w  int32
	slots []any
}

// depot keeps emptied chunks for any queue of its engine, until the garbage collector takes them: that is how a queue gives
// memory back after a burst.
type depot struct {
	small, large sync.Pool
}

func (d *depot) getSmall() *chunk {
	if c, ok := d.small.Get().(*chunk); ok {
		return c
	}
	c := &struct {
		chunk
		array [smallChunk]any
	}{}
	c.slots = c.array[:]
	return &c.chunk
}

func (d *depot) getLarge() *chunk {
	if c, ok := d.large.Get().(*chunk); ok {
		return c
	}
	c := &struct {
		chunk
		array [largeChunk]any
	}{}
	c.slots = c.array[:]
	return &c.chunk
}

// put takes a chunk whose messages are all taken.
func (d *depot) put(c *chunk) {
	c.next, c.r, c.w = nil, 0, 0
	if len(c.slots) == smallChunk {
		d.small.Put(c)
	} else {
		d.large.Put(c)
	}
}

// queue is a first-in, first-out list of messages. The zero value is empty. It is not safe for concurrent use.
//
// Invariants: head is nil exactly if tail is; no chunk is without a message, unless it is the only one.
type queue struct {
	head, tail *chunk
}

func (q *queue) empty() bool {
	return q.head == nil || q.head.r == q.head.w
}

func (q *queue) len() int {
	n := 0
	for c := q.head; c != nil; c = c.next {
		n += int(c.w - c.r)
	}
	return n
}

func (q *queue) push(d *depot, msg any) {
	t := q.tail
	if t == nil || int(t.w) == len(t.slots) {
		t = q.grow(d)
	}
	t.slots[t.w] = msg
	t.w++
}

func (q *queue) grow(d *depot) *chunk {
	if q.tail == nil {
		q.head = d.getSmall()
		q.tail = q.head
		return q.tail
	}
	q.tail.next = d.getLarge()
	q.tail = q.tail.next
	return q.tail
}

// front returns the next message of a queue that is not empty, and leaves it there.
func (q *queue) front() any {
	return q.head.slots[q.head.r]
}

// pop takes the next message off a queue that is not empty. The last chunk stays, to be filled again; release gives it back.
func (q *queue) pop(d *depot) any {
	c := q.head
	msg := c.slots[c.r]
	c.slots[c.r] = nil
	c.r++
	switch {
	case c.r < c.w:
	case c.next != nil:
		q.head = c.next
		d.put(c)
	default:
		c.r, c.w = 0, 0
	}
	return msg
}

// prepend puts all messages of front before those of q, and leaves front empty.
func (q *queue) prepend(d *depot, front *queue) {
	if front.empty() {
		front.release(d)
		return
	}
	q.release(d)
	front.tail.next = q.head
	q.head = front.head
	if q.tail == nil {
		q.tail = front.tail
	}
	*front = queue{}
}

// release gives back the chunk of an empty queue.
func (q *queue) release(d *depot) {
	if q.head != nil && q.empty() {
		d.put(q.head)
		*q = queue{}
	}
}
