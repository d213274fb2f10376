package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/internal/bounded"
)

// Tx is a transaction as a function of yours sees it. It is good until the function returns, or its bound is over:
// after that every statement fails (sql.ErrTxDone). It cannot be committed or rolled back by SQL, change settings or reach
// other files, make temporary tables, views or triggers, nor write tables whose names begin with qj_ ("not authorized").
//
// What a context given to a statement does while the statement runs is not looked at, only whether it is over before: a
// write that is interrupted would take all requests of the transaction with it.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Commit ends a run, or a batch, in tx mode: what fn writes and the run's completion are one transaction. It is kept if
// the caller still holds the key and fn returns nil, and otherwise nothing is: the effect happens exactly once.
//
// Fn does SQL and nothing else. It runs on the one connection that writes, so all other commits wait for it: after the
// store's bound (100 ms by default) its Tx is dead, what it wrote is undone, and the error is [claim.ErrTxBound]. A
// single row that SQLite has begun to look for, behind the first one of a query, is waited for. Fn may run more than
// once, and only the last time counts: do not keep what an earlier time left in variables. It may not call the ledger
// (ErrInTx). A panic in it is an error.
//
// ErrFenced: somebody else has the key. ErrIllegal: it is done already. ErrWrongStore: the runtime keeps its ledger
// elsewhere. ErrUnavailable: the disk is full or does not work.
func Commit(ctx context.Context, t claim.Transactor, fn func(ctx context.Context, tx Tx) error) error {
	return t.CommitTx(ctx, func(ctx context.Context, tx any) error {
		own, ok := tx.(*closureTx)
		if !ok {
			return fmt.Errorf("sqlite.Commit: %w (%T)", claim.ErrWrongStore, tx)
		}
		return fn(ctx, own)
	})
}

// closureTx is the Tx of a closure. Its statements are bound to the closure's own context.
type closureTx struct {
	*sql.Tx
	bound context.Context //nolint:containedctx // it is the transaction's, whatever context a statement is given
	w     *writer
}

// context is the one for a statement that is given ctx.
func (t *closureTx) context(ctx context.Context) (context.Context, error) {
	if ctx.Err() != nil {
		return ctx, context.Cause(ctx)
	}
	if t.bound.Err() != nil {
		return ctx, sql.ErrTxDone
	}
	if t.w.lost.Load() {
		return ctx, errLost
	}
	return t.bound, nil
}

func (t *closureTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, err := t.context(ctx)
	if err != nil {
		return nil, err
	}
	return t.Tx.ExecContext(ctx, query, args...)
}

func (t *closureTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, err := t.context(ctx)
	if err != nil {
		return nil, err
	}
	return t.Tx.QueryContext(ctx, query, args...)
}

func (t *closureTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	ctx, err := t.context(ctx)
	if err != nil {
		over, cancel := context.WithCancelCause(ctx)
		cancel(err)
		ctx = over
	}
	return t.Tx.QueryRowContext(ctx, query, args...)
}

// closure runs fn under a savepoint of the transaction that is open. Where fn failed, the transaction is as it was
// before, and refused says why; err says that the transaction itself can go on no more, errLost that this was fn's doing.
func (w *writer) closure(ctx context.Context, bound time.Duration, fn func(ctx context.Context, tx *closureTx) error) (refused, err error) {
	tx, err := w.closures.BeginTx(context.Background(), nil)
	if err != nil {
		return nil, classify(err)
	}
	refused = bounded.Call(ctx, bound, func(ctx context.Context) error { return fn(ctx, &closureTx{tx, ctx, w}) })
	end := tx.Rollback
	if refused == nil {
		end = tx.Commit
	}
	// Ending waits for what is under way: the closure's context is over, which interrupts it.
	err = end()
	if w.lost.Load() {
		return nil, errors.Join(errLost, refused)
	}
	return classify(refused), classify(err)
}
