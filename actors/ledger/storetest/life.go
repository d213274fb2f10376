package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// lifeRules are about opening and closing.
var lifeRules = map[string]func(t *testing.T, s claim.Store){
	"a store that is not open is closed": func(t *testing.T, s claim.Store) {
		closed := func(when string) {
			_, err := s.Apply(t.Context(), claim.Hand{Wall: noon, Session: 1}, []claim.Request{{Ops: []claim.Op{claimOp(claim.Free("n", "k"))}}})
			require.ErrorIs(t, err, claim.ErrClosed, when)
			_, err = s.Records(t.Context(), claim.Query{})
			require.ErrorIs(t, err, claim.ErrClosed, when)
			_, err = s.Ranges(t.Context(), claim.Query{})
			require.ErrorIs(t, err, claim.ErrClosed, when)
			_, err = s.Rows(t.Context(), claim.RowQuery{})
			require.ErrorIs(t, err, claim.ErrClosed, when)
		}
		closed("before it was opened")
		require.NoError(t, s.Close(), "closing what was never opened")
		_, err := s.Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "closing twice")
		closed("after it was closed")
	},
	"a store that is open is locked": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		_, err := s.Open(t.Context())
		require.ErrorIs(t, err, claim.ErrLocked)
		f.claimed(claim.Free("n", "k")) // and goes on working
	},
	"sessions grow and earlier ones hold nothing": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		require.True(t, f.now.Sole, "a store of one process says so")
		key := claim.Free("n", "k")
		first := f.claimed(key)
		f.reopen(s)
		stored := f.record(key)
		require.NotNil(t, stored, "what was stored is still there")
		require.Equal(t, first, *stored)

		second := f.claimed(key)
		require.Equal(t, first.Fence+1, second.Fence, "a take-over raises the fence")
		require.Equal(t, first.Attempt, second.Attempt, "a take-over spends no attempt")
		o := f.apply(claim.Request{Ops: []claim.Op{completeOp(first)}})[0]
		require.ErrorIs(t, o.Err, claim.ErrFenced, "the earlier holder is refused")
		f.do(completeOp(second))
	},
	"reads run beside writes": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		read := make(chan error, 1)
		go func() {
			for {
				got, err := s.Records(ctx, claim.Query{Namespace: "n", Limit: 3})
				for i := range got {
					if err == nil {
						err = got[i].Valid()
					}
				}
				if ctx.Err() != nil || err != nil {
					read <- err
					return
				}
			}
		}()
		for range 20 {
			key := claim.Free("n", "k"+f.now.Wall.String())
			f.do(completeOp(f.claimed(key)))
			f.after(time.Second)
		}
		cancel()
		if err := <-read; err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	},
	"a context that is over reads nothing": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		f.claimed(claim.Free("n", "k"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Records(ctx, claim.Query{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Ranges(ctx, claim.Query{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Rows(ctx, claim.RowQuery{})
		require.ErrorIs(t, err, context.Canceled)
	},
}

// durableRules are about what outlives the process.
var durableRules = map[string]func(t *testing.T, at func() claim.Store){
	"everything is still there": func(t *testing.T, at func() claim.Store) {
		f := open(t, at())
		slot := slotKey("t", noon)
		claimedRec := f.claimed(slot)
		f.do(completeOp(f.claimed(claim.Free("n", "done"))))
		f.do(claim.Op{Action: claim.Decide, Key: claim.Free("n", "later"), Slot: noon, Due: noon.Add(time.Hour), Job: "mail", Payload: []byte{0, 1, 255}})
		f.apply(claim.Request{Rows: []claim.Row{{Kind: "trigger", Namespace: "n", ID: "t", Owner: "o", Due: noon, Blob: []byte("b")}}, Ranges: []claim.Range{rangeOf("t", noon, 3)}})
		records, rows, ranges := f.records(claim.Query{}), f.rows(claim.RowQuery{}), f.ranges(claim.Query{})
		require.Len(t, records, 3)

		f.reopen(at())
		require.Equal(t, records, f.records(claim.Query{}))
		require.Equal(t, rows, f.rows(claim.RowQuery{}))
		require.Equal(t, ranges, f.ranges(claim.Query{}))
		o := f.apply(claim.Request{Ops: []claim.Op{completeOp(claimedRec)}})[0]
		require.ErrorIs(t, o.Err, claim.ErrFenced, "claims of earlier sessions are over")
		require.Equal(t, claim.Recorded, f.do(claimOp(slot))[0].Answer, "and can be taken over at once")
	},
	"sessions grow over many openings": func(t *testing.T, at func() claim.Store) {
		f := open(t, at())
		for range 5 {
			f.reopen(at())
		}
	},
	"two stores over one state are not open at once": func(t *testing.T, at func() claim.Store) {
		f := open(t, at())
		other := at()
		_, err := other.Open(t.Context())
		require.ErrorIs(t, err, claim.ErrLocked)
		require.NoError(t, other.Close())
		f.claimed(claim.Free("n", "k"))
	},
}
