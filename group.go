package quarterjack

import (
	"context"
	"fmt"

	"github.com/quarterjack/quarterjack/actors/keygroup"
	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
)

// Group gathers items by key and hands each key's merged batch to a handler, never two of one key at once. See package
// keygroup for what it promises and what its methods do: Add, AddMany, Flush, FlushKey, Stats, Close.
type Group[K comparable, V, A any] = keygroup.Group[K, V, A]

// Batch is what a group's handler is given. sqlite.Commit and memory.Commit take it: what the handler writes and the
// batch's end are one transaction then.
type Batch[K comparable, A any] = keygroup.Batch[K, A]

// GroupConfig says how long a group gathers, how much it holds and how often it tries. The zero value is usable; the
// name is given beside it.
type GroupConfig = keygroup.Config

// Accumulator says how items become one value. Sum, List and Last are ready-made (NewSum, NewList, NewLast).
type Accumulator[V, A any] = batch.Accumulator[V, A]

// What an Add does when its group is full.
const (
	Block  = keygroup.Block  // wait until there is room, or until its context ends
	Reject = keygroup.Reject // ErrFull
)

// Errors of groups. See package keygroup for each.
var (
	ErrFull        = keygroup.ErrFull
	ErrGroupClosed = keygroup.ErrClosed
	ErrReentrant   = keygroup.ErrReentrant
)

// NewGroup makes a group whose items become one value as acc says. Most callers should use NewSum, NewList or NewLast.
// It works at once, also before Start. Its name is unique in the runtime; a second one is ErrExists. Close of the
// runtime closes it.
func NewGroup[K comparable, V, A any](rt *Runtime, name string, cfg GroupConfig, acc Accumulator[V, A],
	handler func(ctx context.Context, b *Batch[K, A]) error) (*Group[K, V, A], error) {
	if err := checkID("group", name); err != nil {
		return nil, err
	}
	cfg.Name = name
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.phase == closing {
		return nil, ErrClosed
	}
	if _, twice := rt.groups[name]; twice {
		return nil, fmt.Errorf("%w: group %q", ErrExists, name)
	}
	if handler == nil {
		return nil, fmt.Errorf("%w: group %q has no handler", ErrConfig, name)
	}
	g, err := keygroup.New(keygroup.Deps{Engine: rt.engine, Ledger: rt.ledger, Logger: rt.log}, cfg, acc,
		func(ctx context.Context, b *Batch[K, A]) error { return handler(inside(ctx), b) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	rt.groups[name] = member[K, V, A]{g}
	return g, nil
}

// NewSum makes a group that adds numbers up: a million increments of one key become one.
func NewSum[K comparable, N batch.Number](rt *Runtime, name string, cfg GroupConfig,
	handler func(ctx context.Context, b *Batch[K, N]) error) (*Group[K, N, N], error) {
	return NewGroup(rt, name, cfg, batch.Sum[N]{}, handler)
}

// NewList makes a group that keeps all items of a key, in the order in which each producer added them.
func NewList[K comparable, V any](rt *Runtime, name string, cfg GroupConfig,
	handler func(ctx context.Context, b *Batch[K, []V]) error) (*Group[K, V, []V], error) {
	return NewGroup(rt, name, cfg, batch.List[V]{}, handler)
}

// NewLast makes a group that keeps the latest item of a key: what a push to a connection or a cache needs.
func NewLast[K comparable, V any](rt *Runtime, name string, cfg GroupConfig,
	handler func(ctx context.Context, b *Batch[K, V]) error) (*Group[K, V, V], error) {
	return NewGroup(rt, name, cfg, batch.Last[V]{}, handler)
}

// member is a group as the runtime sees it.
type member[K comparable, V, A any] struct{ *keygroup.Group[K, V, A] }

func (m member[K, V, A]) keys() int    { return m.Stats().Keys }
func (m member[K, V, A]) pending() int { return m.Pending() }

func (m member[K, V, A]) end(ctx context.Context) (int, error) {
	left, err := m.Close(ctx)
	return len(left), err
}
