package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

var noon = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

// fixture is a store that is open, with a table of the user's.
type fixture struct {
	*Store
	t    *testing.T
	path string
	now  claim.Hand
}

func openStore(t *testing.T, cfg Config) *fixture {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "quarterjack.db")
	}
	if cfg.TxBound == 0 {
		cfg.TxBound = time.Minute // on a busy machine a closure that does nothing may take long
	}
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	f := &fixture{Store: New(cfg), t: t, path: cfg.Path}
	session, err := f.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	f.now = claim.Hand{Wall: noon, Session: session.ID, Sole: session.Sole}
	require.NoError(t, f.Update(t.Context(), func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS fines (loan TEXT PRIMARY KEY, units INTEGER NOT NULL)")
		return err
	}))
	return f
}

// apply commits requests in one transaction.
func (f *fixture) apply(reqs ...claim.Request) []claim.Outcome {
	f.t.Helper()
	out, err := f.Apply(f.t.Context(), f.now, reqs)
	require.NoError(f.t, err)
	return out
}

func free(id string) claim.Key { return claim.Free("n", id) }

func claimOp(id string) claim.Op {
	return claim.Op{Action: claim.Claim, Key: free(id), Slot: noon, Lease: time.Minute}
}

// claimed claims keys, which must be free.
func (f *fixture) claimed(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		o := f.apply(claim.Request{Ops: []claim.Op{claimOp(id)}})[0]
		require.NoError(f.t, o.Err)
		require.Equal(f.t, claim.Recorded, o.Results[0].Answer)
	}
}

// commit is a request that completes a key under its first fence, with an effect.
func commit(id string, fn func(ctx context.Context, tx Tx) error) claim.Request {
	return claim.Request{
		Ops: []claim.Op{{Action: claim.Complete, Key: free(id), Fence: 1}},
		Tx:  func(ctx context.Context, tx any) error { return fn(ctx, tx.(*closureTx)) },
	}
}

// fine is an effect: a unit on a loan.
func fine(loan string) func(ctx context.Context, tx Tx) error {
	return func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO fines (loan, units) VALUES (?, 1) ON CONFLICT (loan) DO UPDATE SET units = units + 1", loan)
		return err
	}
}

// state gives a key's state, 0 for none.
func (f *fixture) state(id string) claim.State {
	f.t.Helper()
	var state claim.State
	require.NoError(f.t, f.View(f.t.Context(), func(ctx context.Context, tx Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT state FROM qj_claims WHERE key = ?", free(id).String()).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}))
	return state
}

// fines reads the user's table.
func (f *fixture) fines() map[string]int {
	f.t.Helper()
	got := map[string]int{}
	require.NoError(f.t, f.View(f.t.Context(), func(ctx context.Context, tx Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT loan, units FROM fines")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var loan string
			var units int
			if err := rows.Scan(&loan, &units); err != nil {
				return err
			}
			got[loan] = units
		}
		return rows.Err()
	}))
	return got
}
