package keygroup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// model is the dumb map that judges a group: what was admitted, and where each item went.
type model struct {
	mu       sync.Mutex
	admitted map[string][]int
	handled  map[string][]int // in the order of handling
	dead     map[string][]int
	busy     map[string]bool
	faults   []string
}

func newModel() *model {
	return &model{admitted: map[string][]int{}, handled: map[string][]int{}, dead: map[string][]int{}, busy: map[string]bool{}}
}

func (m *model) enter(k string, items, limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[k] {
		m.faults = append(m.faults, "two handlers at once for "+k)
	}
	if items > limit {
		m.faults = append(m.faults, fmt.Sprintf("%d items in a batch of at most %d", items, limit))
	}
	m.busy[k] = true
}

func (m *model) leave(k string, vs []int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[k] = false
	if ok {
		m.handled[k] = append(m.handled[k], vs...)
	}
}

func (m *model) bury(d DeadLetter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := d.Key.(string)
	m.dead[k] = append(m.dead[k], d.Value.([]int)...)
}

// judge checks that each admitted item went to one place, and that handled ones came in order.
func (m *model) judge(t *testing.T, left map[string][]int) {
	t.Helper()
	require.Empty(t, m.faults)
	for k, in := range m.admitted {
		require.True(t, slices.IsSorted(m.handled[k]), "%s: handled out of order: %v", k, m.handled[k])
		require.True(t, slices.IsSorted(left[k]), "%s: left out of order: %v", k, left[k])
		out := slices.Concat(m.handled[k], m.dead[k], left[k])
		slices.Sort(out)
		require.Equal(t, in, out, "%s: handled %v, dead %v, left %v", k, m.handled[k], m.dead[k], left[k])
	}
	for k := range left {
		require.Contains(t, m.admitted, k)
	}
}

// TestModel drives a group at random, in virtual time: adds, pauses, flushes, handlers that are slow, fail, drop, panic or
// overstay their time, keys that are forgotten, and a close that may be too short.
func TestModel(t *testing.T) {
	for round := range 80 {
		seed := uint64(round)
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) { modelRound(t, e, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func modelRound(t *testing.T, e *engine.Engine, rnd *rand.Rand) {
	cfg := Config{
		Name:       "model",
		Delay:      []time.Duration{AtOnce, time.Millisecond, time.Second}[rnd.IntN(3)],
		BatchItems: 1 + rnd.IntN(20),
		MaxItems:   5 + rnd.IntN(100),
		OnFull:     OnFull(rnd.IntN(2)),
		Workers:    1 + rnd.IntN(4),
		Timeout:    2 * time.Second,
		Attempts:   1 + rnd.IntN(4),
		IdleAfter:  time.Duration(1+rnd.IntN(3000)) * time.Millisecond,
		Backoff:    backoff.Policy{Initial: time.Second, Max: 4 * time.Second},
	}
	m := newModel()
	cfg.OnDead = m.bury
	fates := rand.New(rand.NewPCG(rnd.Uint64(), 2))
	handler := func(ctx context.Context, b *Batch[string, []int]) error {
		m.enter(b.Key, b.Items, cfg.BatchItems)
		ok := false
		defer func() { m.leave(b.Key, b.Value, ok) }()
		m.mu.Lock()
		fate, nap := fates.IntN(10), time.Duration(fates.IntN(1000))*time.Millisecond
		m.mu.Unlock()
		time.Sleep(nap)
		switch fate {
		case 0:
			return errBoom
		case 1:
			return dropped{errBoom}
		case 2:
			return later{errBoom, 500 * time.Millisecond}
		case 3:
			panic("fate")
		case 4:
			<-ctx.Done()
			return ctx.Err()
		}
		ok = true
		return nil
	}
	g, err := New(Deps{Engine: e, Logger: actortest.Logger(t)}, cfg, batch.List[int]{}, handler)
	require.NoError(t, err)

	next := 0
	for range 200 {
		k := fmt.Sprint("k", rnd.IntN(4))
		switch rnd.IntN(12) {
		case 0:
			pass(time.Duration(rnd.IntN(5_000)) * time.Millisecond)
		case 1:
			_ = g.FlushKey(within(t, time.Duration(rnd.IntN(3_000))*time.Millisecond), k)
		case 2:
			if rnd.IntN(4) == 0 {
				_ = g.Flush(within(t, time.Duration(rnd.IntN(20_000))*time.Millisecond))
			}
		default:
			vs := seq(next, next+rnd.IntN(5)-1)
			ctx := within(t, time.Duration(1+rnd.IntN(2_000))*time.Millisecond)
			if err := g.AddMany(ctx, k, vs); err == nil && len(vs) > 0 {
				next += len(vs)
				m.admitted[k] = append(m.admitted[k], vs...)
			} else if err != nil {
				require.ErrorIs(t, err, ErrFull)
			}
		}
	}
	ctx := within(t, time.Duration(rnd.IntN(10_000))*time.Millisecond)
	if rnd.IntN(2) == 0 {
		ctx = bg
	}
	left, err := g.Close(ctx)
	require.Equal(t, len(left) > 0, err != nil, "%v", err)
	m.judge(t, left)
	s := g.Stats()
	require.Equal(t, s.Adds, s.Handled+s.DeadItems+s.Left, "%+v", s)
	require.EqualValues(t, next, s.Adds)
	require.Zero(t, s.Pending)
	require.Zero(t, s.Keys)
}
