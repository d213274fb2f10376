package batch

// Accumulator says how items V of one key become one value A. The zero A is the empty one. All methods are called by
// one goroutine at a time per key, must be quick, and must not keep their arguments. A method that panics must leave
// its arguments as they were.
//
// Most callers want [Sum], [List] or [Last].
type Accumulator[V, A any] interface {
	// Merge adds v behind what is in a. It may change a in place.
	Merge(a A, v V) A
	// Take cuts what one batch may hold off the front of a: at most limit by Weight, and at least one item however
	// heavy. limit 0 means all, and then rest is empty. taken and rest must share nothing that Merge or Restore on
	// the one could change in the other.
	Take(a A, limit int) (taken, rest A)
	// Restore puts taken back in front of rest, after its batch failed. Neither is empty.
	Restore(taken, rest A) A
	// Weight is what a uses of a batch's limit: 0 when Take left it empty, 1 if it cannot be cut, usually the number
	// of items. It is called for each item, and must not count them.
	Weight(a A) int
}

// Number is what [Sum] can add.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Sum adds items. It cannot be cut: a batch holds all there is. Integers wrap around as Go's do.
type Sum[V Number] struct{}

// Merge adds v.
func (Sum[V]) Merge(a, v V) V { return a + v }

// Take takes all.
func (Sum[V]) Take(a V, _ int) (taken, rest V) { return a, 0 }

// Restore adds them up again.
func (Sum[V]) Restore(taken, rest V) V { return taken + rest }

// Weight is 1.
func (Sum[V]) Weight(V) int { return 1 }

// List keeps every item, in the order in which they were added.
type List[V any] struct{}

// Merge appends v.
func (List[V]) Merge(a []V, v V) []V { return append(a, v) }

// Take takes the first limit items.
func (List[V]) Take(a []V, limit int) (taken, rest []V) {
	if limit <= 0 || limit >= len(a) {
		return a, nil
	}
	return a[:limit:limit], a[limit:]
}

// Restore puts taken in front.
func (List[V]) Restore(taken, rest []V) []V { return append(taken, rest...) }

// Weight is the number of items.
func (List[V]) Weight(a []V) int { return len(a) }

// Last keeps the item that was added last. It cannot be cut.
type Last[V any] struct{}

// Merge replaces a by v.
func (Last[V]) Merge(_, v V) V { return v }

// Take takes it.
func (Last[V]) Take(a V, _ int) (taken, rest V) { return a, rest }

// Restore keeps rest, which is newer.
func (Last[V]) Restore(_, rest V) V { return rest }

// Weight is 1.
func (Last[V]) Weight(V) int { return 1 }
