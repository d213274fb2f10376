package keygroup

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// fakeLedger runs each commit some time after it was asked to, like a store behind a group commit, and perhaps twice.
type fakeLedger struct {
	after  time.Duration
	times  int
	commit error // what the store says in the end
}

func (l *fakeLedger) Receive(_ *engine.Context, msg any) {
	c, ok := msg.(*claim.Commit)
	if !ok {
		return
	}
	time.AfterFunc(max(l.after, 1), func() {
		var err error
		for range max(l.times, 1) {
			if err = c.Request.Tx(bg, "the transaction"); err != nil {
				break
			}
		}
		if err == nil {
			err = l.commit
		}
		c.Reply(claim.Outcome{Err: err})
	})
}

// commits is a group of sums, one attempt each, with a ledger, whose handler is the test.
func commits(t *testing.T, l *fakeLedger, handler func(ctx context.Context, b *Batch[string, int]) error) (s Stats, dead []DeadLetter) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		deps := Deps{Engine: e, Logger: actortest.Logger(t)}
		if l != nil {
			ref, err := e.Spawn("ledger", func() engine.Actor { return l })
			require.NoError(t, err)
			deps.Ledger = ref
		}
		g, err := New(deps, Config{Name: "tx", Delay: AtOnce, Attempts: 1, Timeout: time.Hour, OnDead: func(d DeadLetter) { dead = append(dead, d) }},
			batch.Sum[int]{}, handler)
		require.NoError(t, err)
		require.NoError(t, g.Add(bg, "a", 1))
		synctest.Wait()
		left, err := g.Close(bg)
		require.NoError(t, err)
		require.Empty(t, left)
		pass(time.Minute)
		s = g.Stats()
	})
	return s, dead
}

func TestCommitRunsInTheLedgersTransaction(t *testing.T) {
	ran := 0
	s, _ := commits(t, &fakeLedger{after: time.Second, times: 2}, func(ctx context.Context, b *Batch[string, int]) error {
		return b.CommitTx(ctx, func(_ context.Context, tx any) error {
			ran++
			if tx != "the transaction" {
				return errBoom
			}
			return nil
		})
	})
	require.Equal(t, 2, ran)
	require.EqualValues(t, 1, s.Batches)
}

func TestACommittedBatchIsHandledWhateverItsHandlerReturns(t *testing.T) {
	s, dead := commits(t, &fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
		err := b.CommitTx(ctx, func(context.Context, any) error { return nil })
		if err == nil {
			err = errBoom
		}
		return err
	})
	require.Empty(t, dead)
	require.EqualValues(t, 1, s.Handled)
	require.Zero(t, s.Failures)
}

func TestCommitErrors(t *testing.T) {
	ok := func(context.Context, any) error { return nil }
	for name, c := range map[string]struct {
		ledger *fakeLedger
		do     func(ctx context.Context, b *Batch[string, int]) error
		want   error
	}{
		"the closure's own": {&fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
			return b.CommitTx(ctx, func(context.Context, any) error { return errBoom })
		}, errBoom},
		"a panic in the closure": {&fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
			return b.CommitTx(ctx, func(context.Context, any) error { panic(errBoom) })
		}, errBoom},
		"the store's": {&fakeLedger{commit: claim.ErrCorrupt}, func(ctx context.Context, b *Batch[string, int]) error {
			return b.CommitTx(ctx, ok)
		}, claim.ErrCorrupt},
		"a call of the ledger inside the closure": {&fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
			return b.CommitTx(ctx, func(ctx context.Context, _ any) error { return b.CommitTx(ctx, ok) })
		}, claim.ErrInTx},
		"a second commit": {&fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
			if err := b.CommitTx(ctx, ok); err != nil {
				return err
			}
			if err := b.CommitTx(ctx, ok); err != nil {
				panic(err) // the first one counts, so this is no dead letter
			}
			return nil
		}, nil},
		"no ledger": {nil, func(ctx context.Context, b *Batch[string, int]) error {
			return b.CommitTx(ctx, ok)
		}, ErrNoLedger},
		"the context ends before the transaction begins": {&fakeLedger{after: time.Second}, func(ctx context.Context, b *Batch[string, int]) error {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			return b.CommitTx(ctx, func(context.Context, any) error { panic("must not run") })
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			s, dead := commits(t, c.ledger, c.do)
			if c.want == nil {
				require.Empty(t, dead)
				require.EqualValues(t, 1, s.Batches)
				return
			}
			require.Len(t, dead, 1)
			require.ErrorIs(t, dead[0].Err, c.want)
		})
	}
}

func TestACommitThatHasBegunIsWaitedForThoughItsContextEnds(t *testing.T) {
	s, dead := commits(t, &fakeLedger{}, func(ctx context.Context, b *Batch[string, int]) error {
		ctx, cancel := context.WithCancel(ctx)
		return b.CommitTx(ctx, func(context.Context, any) error {
			cancel()
			time.Sleep(time.Second)
			return nil
		})
	})
	require.Empty(t, dead)
	require.EqualValues(t, 1, s.Batches)
}

func TestACommitAfterTheHandlerHasReturnedIsRefused(t *testing.T) {
	var late error
	commits(t, &fakeLedger{}, func(_ context.Context, b *Batch[string, int]) error {
		time.AfterFunc(time.Second, func() {
			late = b.CommitTx(bg, func(context.Context, any) error { return nil })
		})
		return nil
	})
	require.ErrorIs(t, late, claim.ErrIllegal)
}

func TestALedgerThatIsGoneIsAnError(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		ref, err := e.Spawn("ledger", func() engine.Actor { return &fakeLedger{} })
		require.NoError(t, err)
		ref.Stop()
		synctest.Wait()
		err = commit(bg, ref, func(context.Context, any) error { return nil })
		require.ErrorIs(t, err, engine.ErrGone)
	})
}
