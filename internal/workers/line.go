package workers

// line is a first-in, first-out list of functions. The zero value is empty. Its ring doubles when it is full and is let go
// when it is empty, so that a long line leaves nothing behind.
type line struct {
	ring  []func()
	first int
	n     int
}

func (l *line) push(fn func()) {
	if l.n == len(l.ring) {
		ring := make([]func(), max(8, 2*l.n))
		copied := copy(ring, l.ring[l.first:])
		copy(ring[copied:], l.ring[:l.first])
		l.ring, l.first = ring, 0
	}
	l.ring[(l.first+l.n)%len(l.ring)] = fn
	l.n++
}

// pop returns nil if the line is empty.
func (l *line) pop() func() {
	if l.n == 0 {
		return nil
	}
	fn := l.ring[l.first]
	l.ring[l.first] = nil
	l.first = (l.first + 1) % len(l.ring)
	l.n--
	if l.n == 0 {
		*l = line{}
	}
	return fn
}
