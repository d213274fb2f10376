package memory

import (
	"context"
	"fmt"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// inTx is what a request's Tx is given: that the ledger is kept in memory.
type inTx struct{}

// Commit ends a run, or a batch, in tx mode: fn runs if the caller still holds the key, and nobody can claim it
// meanwhile; if fn returns nil the key is done, otherwise it is not.
//
// There is no transaction that could undo what fn did before it failed: Commit is for effects in this process that are
// made at the end of fn, and for tests. Fn is short: all other claims wait for it, and after the store's bound
// ([TxBound], 100 ms) the key is not done (ErrTxBound), whatever fn still does. It may not call the ledger (ErrInTx).
//
// ErrFenced: somebody else has the key. ErrWrongStore: the runtime keeps its ledger elsewhere.
func Commit(ctx context.Context, t claim.Transactor, fn func(ctx context.Context) error) error {
	return t.CommitTx(ctx, func(ctx context.Context, tx any) error {
		if _, ok := tx.(inTx); !ok {
			return fmt.Errorf("memory.Commit: %w (%T)", claim.ErrWrongStore, tx)
		}
		return fn(ctx)
	})
}
