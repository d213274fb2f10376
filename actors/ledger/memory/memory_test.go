package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/actors/ledger/storetest"
	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) claim.Store { return memory.New(memory.TxBound(time.Second)) })
}

func TestArrows(t *testing.T) {
	deptest.Deps(t, "github.com/quarterjack/quarterjack/actors/ledger/memory", deptest.Kernel)
}

var noon = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

// filled is a store of which a trigger and the free keys have had n verdicts each, one a minute, and the trigger as many
// skipped ranges; one slot before all of them is still pending.
func filled(t *testing.T, s *memory.Store, n int) {
	t.Helper()
	session, err := s.Open(t.Context())
	require.NoError(t, err)
	now := claim.Hand{Wall: noon, Session: session.ID, Sole: true}
	apply := func(req claim.Request) {
		out, err := s.Apply(t.Context(), now, []claim.Request{req})
		require.NoError(t, err)
		require.NoError(t, out[0].Err)
	}
	slot := func(at time.Time) claim.Key {
		return claim.Key{Namespace: "n", Trigger: "t", Incarnation: 1, Kind: claim.KindSlot, Slot: at}
	}
	old := noon.Add(-time.Hour)
	apply(claim.Request{Ops: []claim.Op{{Action: claim.Decide, Key: slot(old), Slot: old}}})
	for i := range n {
		at := noon.Add(time.Duration(i) * time.Minute)
		apply(claim.Request{
			Ops: []claim.Op{
				{Action: claim.Skip, Key: slot(at), Slot: at, Reason: "paused"},
				{Action: claim.Skip, Key: claim.Free("n", fmt.Sprint(i)), Slot: at, Reason: "paused"},
			},
			Ranges: []claim.Range{{Namespace: "n", Trigger: "t", First: at, Last: at, Count: 1, Reason: "paused"}},
		})
	}
}

func TestHistoryIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name     string
		store    *memory.Store
		n, keeps int
	}{
		{"by default to 1,000 a trigger", memory.New(), 2500, 1000},
		{"as the option says", memory.New(memory.History(3)), 25, 3},
		{"never to nothing", memory.New(memory.History(-1)), 5, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			filled(t, tt.store, tt.n)
			records, err := tt.store.Records(t.Context(), claim.Query{Namespace: "n", Trigger: "t", Limit: 10_000})
			require.NoError(t, err)
			require.Len(t, records, tt.keeps+1)
			assert.Equal(t, claim.Pending, records[0].State, "what has no verdict is kept, however old")
			newest := noon.Add(time.Duration(tt.n-tt.keeps) * time.Minute)
			assert.Equal(t, newest, records[1].Slot, "the newest verdicts are kept")

			ranges, err := tt.store.Ranges(t.Context(), claim.Query{Namespace: "n", Trigger: "t", Limit: 10_000})
			require.NoError(t, err)
			require.Len(t, ranges, tt.keeps)
			assert.Equal(t, newest, ranges[0].First)

			free, err := tt.store.Records(t.Context(), claim.Query{Kind: claim.KindFree, Limit: 10_000})
			require.NoError(t, err)
			assert.Len(t, free, tt.n, "free keys are kept for ever")
		})
	}
}

// ending is a run that claims nothing: CommitTx passes its function straight to a store.
type ending struct{ tx any }

func (e ending) CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error {
	return fn(ctx, e.tx)
}

func TestCommitOfAnotherStore(t *testing.T) {
	err := memory.Commit(t.Context(), ending{tx: 42}, func(context.Context) error { t.Error("it ran"); return nil })
	require.ErrorIs(t, err, claim.ErrWrongStore)
	assert.ErrorContains(t, err, "int")
}

// storeRun is a run whose end the store decides.
type storeRun struct {
	store *memory.Store
	now   claim.Hand
	op    claim.Op
}

func (r storeRun) CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error {
	out, err := r.store.Apply(ctx, r.now, []claim.Request{{Ops: []claim.Op{r.op}, Tx: fn}})
	if err != nil {
		return err
	}
	return out[0].Err
}

func TestCommit(t *testing.T) {
	s := memory.New(memory.TxBound(time.Minute))
	session, err := s.Open(t.Context())
	require.NoError(t, err)
	now := claim.Hand{Wall: noon, Session: session.ID, Sole: true}
	key := claim.Free("fines", "daily-fine@12")
	out, err := s.Apply(t.Context(), now, []claim.Request{{Ops: []claim.Op{{Action: claim.Claim, Key: key, Lease: time.Minute}}}})
	require.NoError(t, err)
	require.NoError(t, out[0].Err)
	run := storeRun{s, now, claim.Op{Action: claim.Complete, Key: key, Fence: 1}}

	fines := 0
	fine := func(ctx context.Context) error {
		assert.ErrorIs(t, claim.InTx(ctx), claim.ErrInTx)
		fines++
		return nil
	}
	require.NoError(t, memory.Commit(t.Context(), run, fine))
	require.ErrorIs(t, memory.Commit(t.Context(), run, fine), claim.ErrIllegal)
	assert.Equal(t, 1, fines)
}
