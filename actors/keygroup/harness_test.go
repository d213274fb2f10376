package keygroup

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg      = context.Background()
	errBoom = errors.New("boom")
)

// call is one handler call as a test sees it.
type call struct {
	Key     string
	Value   []int
	Attempt int
	Trigger batch.Trigger
	At      time.Duration // since the test began
}

// world is a group of lists under test, with what came out of it.
type world struct {
	*Group[string, int, []int]
	t     *testing.T
	began time.Time

	mu    sync.Mutex
	calls []call
	dead  []DeadLetter
	inner func(ctx context.Context, b *Batch[string, []int]) error // nil: handled
}

// newWorld makes a group whose retries come after exactly 1 s, 2 s, 4 s and so on.
func newWorld(t *testing.T, e *engine.Engine, cfg Config, inner func(ctx context.Context, b *Batch[string, []int]) error) *world {
	w := &world{t: t, began: time.Now(), inner: inner}
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	if cfg.Backoff == (backoff.Policy{}) {
		cfg.Backoff = backoff.Policy{Initial: time.Second, Factor: 2, Jitter: backoff.NoJitter}
	}
	if cfg.OnDead == nil {
		cfg.OnDead = func(d DeadLetter) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dead = append(w.dead, d)
		}
	}
	var err error
	w.Group, err = New(Deps{Engine: e, Logger: actortest.Logger(t)}, cfg, batch.List[int]{}, w.handle)
	require.NoError(t, err)
	return w
}

func (w *world) handle(ctx context.Context, b *Batch[string, []int]) error {
	w.mu.Lock()
	w.calls = append(w.calls, call{b.Key, b.Value, b.Attempt, b.Trigger, time.Since(w.began)})
	w.mu.Unlock()
	if w.inner == nil {
		return nil
	}
	return w.inner(ctx, b)
}

func (w *world) add(k string, vs ...int) {
	w.t.Helper()
	require.NoError(w.t, w.AddMany(bg, k, vs))
}

// stop stops a key's actor from outside.
func (w *world) stop(k string) {
	w.t.Helper()
	s, err := w.place(k)
	require.NoError(w.t, err)
	s.find(k).ref.Stop()
}

// seen returns the calls so far.
func (w *world) seen() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]call(nil), w.calls...)
}

func (w *world) letters() []DeadLetter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]DeadLetter(nil), w.dead...)
}

// close closes the group, of which nothing may be left.
func (w *world) close() {
	w.t.Helper()
	left, err := w.Close(bg)
	require.NoError(w.t, err)
	require.Empty(w.t, left)
	w.balanced()
	require.Zero(w.t, w.Keys())
}

// balanced checks that every admitted item is accounted for.
func (w *world) balanced() {
	w.t.Helper()
	s := w.Stats()
	require.Zero(w.t, s.Pending)
	require.Equal(w.t, s.Adds, s.Handled+s.DeadItems+s.Left, "%+v", s)
}

func seq(from, to int) []int {
	s := make([]int, 0, max(0, to-from+1))
	for v := from; v <= to; v++ {
		s = append(s, v)
	}
	return s
}

// pass lets virtual time pass, and all that happens until then, and then, be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// within is a context of that many virtual seconds.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(bg, d)
	t.Cleanup(cancel)
	return ctx
}

func expired() context.Context {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	return ctx
}
