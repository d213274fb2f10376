package storetest

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// commit is a request that completes what r claims, with an effect.
func commit(r claim.Record, tx func(ctx context.Context, tx any) error) claim.Request {
	return claim.Request{Ops: []claim.Op{completeOp(r)}, Tx: tx}
}

// txRules are about functions that run in a request's transaction.
var txRules = map[string]func(t *testing.T, s claim.Store){
	"an effect runs with its op": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		r := f.claimed(claim.Free("n", "k"))
		ran := 0
		require.NoError(t, f.apply(commit(r, func(context.Context, any) error { ran++; return nil }))[0].Err)
		require.Equal(t, 1, ran)
		require.Equal(t, claim.Done, f.record(r.Key).State)

		o := f.apply(commit(r, func(context.Context, any) error { ran++; return nil }))[0]
		require.ErrorIs(t, o.Err, claim.ErrIllegal, "a key that is done has had its effect")
		require.Equal(t, 1, ran, "an effect never runs twice")
	},
	"an effect without a claim does not run": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		first := f.claimed(claim.Free("n", "k"))
		f.now.Mono += first.Lease
		f.claimed(first.Key)
		o := f.apply(commit(first, func(context.Context, any) error { t.Error("it ran"); return nil }))[0]
		require.ErrorIs(t, o.Err, claim.ErrFenced)
	},
	"an effect that fails keeps nothing of its request and all of the others": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		own := errors.New("no such invoice")
		for name, fail := range map[string]func(context.Context, any) error{
			"error":  func(context.Context, any) error { return own },
			"panic":  func(context.Context, any) error { panic("boom") },
			"goexit": func(context.Context, any) error { runtime.Goexit(); return nil },
		} {
			bad, good := f.claimed(claim.Free("n", name)), f.claimed(claim.Free("n", name+" beside"))
			out := f.apply(commit(bad, fail), commit(good, func(context.Context, any) error { return nil }), claim.Request{Ops: []claim.Op{claimOp(claim.Free("n", name+" new"))}})
			require.Error(t, out[0].Err, name)
			if name == "error" {
				require.ErrorIs(t, out[0].Err, own)
			}
			require.Equal(t, claim.Claimed, f.record(bad.Key).State, name)
			require.NoError(t, out[1].Err, name)
			require.Equal(t, claim.Done, f.record(good.Key).State, name)
			require.NoError(t, out[2].Err, name)
		}
	},
	"an effect that takes too long is given up": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		bad, good := f.claimed(claim.Free("n", "bad")), f.claimed(claim.Free("n", "good"))
		over, testEnds := make(chan error, 1), make(chan struct{})
		defer close(testEnds)
		out := f.apply(
			commit(bad, func(ctx context.Context, _ any) error {
				<-ctx.Done()
				over <- context.Cause(ctx)
				<-testEnds // it ignores that
				return nil
			}),
			commit(good, func(context.Context, any) error { return nil }),
		)
		require.ErrorIs(t, <-over, claim.ErrTxBound, "its context says why")
		require.ErrorIs(t, out[0].Err, claim.ErrTxBound)
		require.Equal(t, claim.Claimed, f.record(bad.Key).State)
		require.NoError(t, out[1].Err, "nobody else pays for it")
		require.Equal(t, claim.Done, f.record(good.Key).State)
	},
	"an effect knows that it is one": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		r := f.claimed(claim.Free("n", "k"))
		o := f.apply(commit(r, func(ctx context.Context, _ any) error { return claim.InTx(ctx) }))[0]
		require.ErrorIs(t, o.Err, claim.ErrInTx)
	},
	"an effect may read the store": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		r := f.claimed(claim.Free("n", "k"))
		var state claim.State
		o := f.apply(commit(r, func(ctx context.Context, _ any) error {
			got, err := s.Records(ctx, claim.Query{Namespace: "n"})
			if err == nil {
				state = got[0].State
			}
			return err
		}))[0]
		require.NoError(t, o.Err)
		require.Equal(t, claim.Claimed, state, "what is not committed is not read")
	},
}
