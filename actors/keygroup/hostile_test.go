package keygroup

import (
	"context"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/actors/ledger"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// What strangers hand in: errors and keys whose methods panic, keys that are none, names that look like others.

// forgotten is an error that is meant to be nil when its pointer is.
type forgotten struct{ text string }

func (f *forgotten) Error() string { return f.text }

// bitter panics with itself, which package fmt does not survive.
type bitter struct{ name string }

func (b bitter) Error() string  { panic(b) }
func (b bitter) String() string { panic(b) }

// sour is an error whose wishes panic.
type sour struct{ error }

func (sour) Drop() bool { panic("no wish") }

// liar is an error that cannot be compared with another.
type liar struct{ error }

func (liar) Is(error) bool { panic("no likeness") }

func TestAnErrorWhoseMethodsPanicIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		end  func() error
		want string
	}{
		"a nil pointer":               {func() error { return (*forgotten)(nil) }, "the handler's error panicked: runtime error: invalid memory address"},
		"Error panics with itself":    {func() error { return bitter{} }, "the handler's error panicked: keygroup.bitter"},
		"a panic that panics as well": {func() error { panic(bitter{}) }, "panic: keygroup.bitter\n"},
		"Drop panics":                 {func() error { return sour{io.EOF} }, "the handler's error panicked: no wish"},
		"Is panics when it is asked":  {func() error { return liar{io.EOF} }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
				w := newWorld(t, e, Config{Attempts: 2}, func(context.Context, *Batch[string, []int]) error { return c.end() })
				w.add("a", 1)
				pass(time.Minute)
				require.Len(t, w.seen(), 2, "it wishes for nothing: the policy decides")
				require.Len(t, w.letters(), 1)
				require.ErrorContains(t, w.letters()[0].Err, c.want)
				require.NotErrorIs(t, w.letters()[0].Err, io.ErrUnexpectedEOF)
				w.close()
			})
		})
	}
}

func TestADeadLetterOfABitterKeyIsLogged(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		g, err := New(Deps{Engine: e, Logger: actortest.Logger(t)}, Config{Name: "test", Attempts: 1}, batch.Sum[int]{},
			func(context.Context, *Batch[bitter, int]) error { return bitter{} })
		require.NoError(t, err)
		require.NoError(t, g.Add(bg, bitter{"key"}, 1))
		pass(time.Minute)
		require.EqualValues(t, 1, g.Stats().Dead)
		_, err = g.Close(bg)
		require.NoError(t, err)
	})
}

func TestAnErrorOfAClosureThatPanicsReachesTheHandlerOnly(t *testing.T) {
	var got error
	s, dead := commits(t, &fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
		got = b.CommitTx(ctx, func(context.Context, any) error { return (*forgotten)(nil) })
		return nil
	})
	require.Empty(t, dead)
	require.EqualValues(t, 1, s.Batches)
	require.ErrorContains(t, got, "the handler's error panicked")
}

func TestWhatCannotBeAKeyIsRefusedAndLeavesNothing(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		g, err := New(Deps{Engine: e, Logger: actortest.Logger(t)}, Config{Name: "any", MaxItems: 2}, batch.Sum[int]{},
			func(context.Context, *Batch[any, int]) error { return nil })
		require.NoError(t, err)
		for name, c := range map[string]struct {
			key  any
			want string
		}{
			"a slice":           {[]int{1}, `group "any": not a key: a []int: runtime error: `},
			"a slice inside":    {[1]any{[]int{1}}, `group "any": not a key: a [1]interface {}: runtime error: `},
			"a NaN":             {math.NaN(), `group "any": not a key: NaN is not equal to itself`},
			"a NaN in a struct": {struct{ x, y float64 }{1, math.NaN()}, `group "any": not a key: {1 NaN} is not equal to itself`},
		} {
			for range 3 { // more than there is room for
				err := g.Add(bg, c.key, 1)
				require.ErrorIs(t, err, ErrKey, name)
				require.ErrorContains(t, err, c.want, name)
				require.ErrorIs(t, g.AddMany(bg, c.key, []int{1, 2}), ErrKey, name)
				require.ErrorIs(t, g.FlushKey(bg, c.key), ErrKey, name)
			}
			require.Zero(t, g.Pending(), name)
			require.Zero(t, g.Keys(), name)
		}
		require.NoError(t, g.Add(bg, nil, 1), "nil is as good a key as any")
		require.NoError(t, g.Add(bg, math.Inf(1), 1))
		left, err := g.Close(bg)
		require.NoError(t, err)
		require.Empty(t, left)
		require.EqualValues(t, 2, g.Stats().Handled)
	})
}

func TestGroupsWhoseNamesHaveSlashesDoNotCollide(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		a := newWorld(t, e, Config{Name: "a"}, nil)
		ab := newWorld(t, e, Config{Name: "a/b"}, nil)
		escaped := newWorld(t, e, Config{Name: "a%2Fb"}, nil)
		a.add("b/x", 1)
		ab.add("x", 2)
		escaped.add("x", 3)
		for _, w := range []*world{a, ab, escaped} {
			w.close()
			require.Len(t, w.seen(), 1)
		}
	})
}

func TestOnlyAStoppedEngineIsAClosedGroup(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		w, twin := newWorld(t, e, Config{}, nil), newWorld(t, e, Config{}, nil)
		w.add("a", 1)
		err := twin.Add(bg, "a", 1)
		require.ErrorIs(t, err, engine.ErrNameTaken)
		require.NotErrorIs(t, err, ErrClosed)
		require.Zero(t, twin.Pending())
		require.Zero(t, twin.Keys())
		w.close()
		twin.close()
	})
}

func TestAClosureIsMarkedWithARealLedger(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		store := memory.New()
		session, err := store.Open(bg)
		require.NoError(t, err)
		l, err := ledger.Spawn(e, ledger.Config{Store: store, Session: session, Logger: actortest.Logger(t)})
		require.NoError(t, err)

		var marked, again, outside error
		g, err := New(Deps{Engine: e, Ledger: l.Ref(), Logger: actortest.Logger(t)}, Config{Name: "test"}, batch.Sum[int]{},
			func(ctx context.Context, b *Batch[string, int]) error {
				outside = claim.InTx(ctx)
				return memory.Commit(ctx, b, func(inner context.Context) error {
					marked = claim.InTx(inner)
					other := &Batch[string, int]{ledger: l.Ref()}
					again = memory.Commit(inner, other, func(context.Context) error { return nil })
					return nil
				})
			})
		require.NoError(t, err)
		require.NoError(t, g.Add(bg, "a", 1))
		require.NoError(t, g.Flush(bg))
		require.NoError(t, outside)
		require.ErrorIs(t, marked, claim.ErrInTx)
		require.ErrorIs(t, again, claim.ErrInTx, "another batch's commit would wait for this one")
		require.EqualValues(t, 1, g.Stats().Handled)
		_, err = g.Close(bg)
		require.NoError(t, err)
		require.NoError(t, l.Close(bg))
		require.NoError(t, store.Close())
	})
}
