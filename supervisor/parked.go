package supervisor

import (
	"slices"
	"time"
)

// Parked is an actor that has been given up.
type Parked struct {
	Name        string
	Incarnation uint64 // the one that failed last
	Reason      any    // of the last failure, as given to panic
	Stack       []byte // of the last failure
	Since       time.Time
	Restarts    int    // that had been granted within the policy's window
	Why         string // one line, for people
}

// records remembers parked actors, in the order in which they were parked, at most limit of them and one per name. Parking is
// rare, so it searches.
type records struct {
	limit   int
	entries []Parked
}

// add remembers p in place of an earlier record of the same name, if need be in place of the oldest of all.
func (r *records) add(p Parked) {
	if !r.remove(p.Name) && len(r.entries) == r.limit {
		r.entries = slices.Delete(r.entries, 0, 1)
	}
	r.entries = append(r.entries, p)
}

func (r *records) remove(name string) bool {
	i := slices.IndexFunc(r.entries, func(p Parked) bool { return p.Name == name })
	if i < 0 {
		return false
	}
	r.entries = slices.Delete(r.entries, i, i+1)
	return true
}

func (r *records) list() []Parked { return slices.Clone(r.entries) }
