package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// endless is a query that never ends by itself; it writes where it is the source of an INSERT.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i FROM n"

func TestAnEffectIsKeptWithItsCompletion(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a", "b")
	own := errors.New("no such loan")
	out := f.apply(
		commit("a", fine("loan 1")),
		commit("b", func(ctx context.Context, tx Tx) error {
			if err := fine("loan 2")(ctx, tx); err != nil {
				return err
			}
			return own
		}),
	)
	require.NoError(t, out[0].Err)
	require.ErrorIs(t, out[1].Err, own)
	assert.Equal(t, map[string]int{"loan 1": 1}, f.fines())
	assert.Equal(t, claim.Done, f.state("a"))
	assert.Equal(t, claim.Claimed, f.state("b"))
}

func TestWhatAClosureMayNotDo(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("bad", "good")
	for name, query := range map[string]string{
		"commit":                      "COMMIT",
		"end":                         "END",
		"roll back":                   "ROLLBACK",
		"begin":                       "BEGIN",
		"release our savepoint":       "RELEASE QJ_closure",
		"roll back to our savepoint":  "ROLLBACK TO qj_closure",
		"nest our savepoint":          "SAVEPOINT qj_closure",
		"reach other files":           "ATTACH ':memory:' AS other",
		"detach":                      "DETACH main",
		"change settings":             "PRAGMA synchronous = OFF",
		"read settings":               "PRAGMA journal_mode",
		"write claims":                "UPDATE qj_claims SET state = 3",
		"write claims by another way": "REPLACE INTO QJ_CLAIMS SELECT * FROM qj_claims",
		"delete sessions":             "DELETE FROM qj_sessions",
		"drop claims":                 "DROP TABLE qj_claims",
		"alter claims":                "ALTER TABLE qj_claims ADD COLUMN x",
		"index claims":                "CREATE INDEX mine ON qj_claims (job)",
		"watch claims":                "CREATE TRIGGER mine AFTER UPDATE ON qj_claims BEGIN DELETE FROM fines; END",
		"watch claims for a while":    "CREATE TEMP TRIGGER mine AFTER UPDATE ON qj_claims BEGIN DELETE FROM fines; END",
		"take a name of ours":         "CREATE TABLE qj_mine (x)",
		"mind claims":                 "CREATE TEMP TRIGGER mine BEFORE UPDATE ON main.qj_claims BEGIN SELECT RAISE(IGNORE); END",
		"mind claims by another name": "CREATE TRIGGER temp.mine BEFORE UPDATE ON main.qj_claims BEGIN SELECT RAISE(IGNORE); END",
		"hide a table of ours":        "CREATE TEMP TABLE qj_claims (x)",
		"hide one by another name":    "CREATE TABLE temp.qj_claims (x)",
		"hide one behind a view":      "CREATE TEMP VIEW qj_claims AS SELECT 1",
		"hide one behind a module":    "CREATE VIRTUAL TABLE temp.qj_claims USING fts5(x)",
		"take a name for a module":    "CREATE VIRTUAL TABLE qj_mine USING fts5(x)",
		"leave a table":               "CREATE TEMP TABLE other (x)",
		"leave a table by its schema": "CREATE TABLE temp.other (x)",
		"leave a table with rows":     "CREATE TEMP TABLE other AS SELECT 1",
		"leave a view":                "CREATE TEMP VIEW other AS SELECT 1",
		"leave a trigger":             "CREATE TEMP TRIGGER mine AFTER INSERT ON fines BEGIN DELETE FROM fines; END",
		"leave a trigger by a schema": "CREATE TRIGGER temp.mine AFTER INSERT ON main.fines BEGIN DELETE FROM fines; END",
		"leave a module":              "CREATE VIRTUAL TABLE temp.other USING fts5(x)",
		"do it in a script":           "DELETE FROM fines; COMMIT; DELETE FROM fines",
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			out := f.apply(
				commit("bad", func(ctx context.Context, tx Tx) error {
					_, err = tx.ExecContext(ctx, query)
					return err
				}),
				claim.Request{Ops: []claim.Op{claimOp(name)}},
			)
			require.ErrorContains(t, err, "not authorized")
			require.ErrorContains(t, f.Update(t.Context(), func(ctx context.Context, tx Tx) error {
				_, err := tx.ExecContext(ctx, query)
				return err
			}), "not authorized")
			require.Error(t, out[0].Err)
			require.NoError(t, out[1].Err, "nobody else pays for it")
			assert.Equal(t, claim.Claimed, f.state("bad"))
		})
	}
	for _, query := range []string{
		"SAVEPOINT mine", "RELEASE mine", "CREATE TABLE more (id)", "CREATE INDEX loans_id ON loans (id)", "DROP TABLE loans", "PRAGMA table_info(qj_claims)",
		"SELECT count(*) FROM qj_claims", "CREATE VIRTUAL TABLE notes USING fts5(x)", "ALTER TABLE loans ADD COLUMN x",
	} {
		o := f.apply(commit("good", func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS loans (id); SAVEPOINT mine;")
			if err == nil {
				_, err = tx.ExecContext(ctx, query)
			}
			if err == nil {
				err = errors.New("as planned")
			}
			return err
		}))[0]
		require.ErrorContains(t, o.Err, "as planned", query)
	}
}

func TestATriggerOnTheLedger(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	row := func(revision uint64) claim.Request {
		return claim.Request{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "r", Revision: revision}}}
	}
	require.NoError(t, f.apply(row(0))[0].Err)
	another := func(query string) { // another program, which should only read
		t.Helper()
		require.NoError(t, with(dsn(f.path, "rw"), func(db *sql.DB) error {
			_, err := db.ExecContext(t.Context(), query)
			return err
		}))
	}
	for _, test := range []struct {
		on  string
		req claim.Request
	}{
		{"UPDATE ON qj_claims", commit("a", fine("loan 1"))},
		{"INSERT ON qj_claims", claim.Request{Ops: []claim.Op{claimOp("b")}}},
		{"UPDATE ON qj_rows", row(1)},
		{"INSERT ON qj_rows", claim.Request{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "s"}}}},
	} {
		t.Run(test.on, func(t *testing.T) {
			another("CREATE TRIGGER mind BEFORE " + test.on + " BEGIN SELECT RAISE(IGNORE); END")
			_, err := f.Apply(t.Context(), f.now, []claim.Request{test.req})
			require.ErrorIs(t, err, claim.ErrCorrupt)
			require.ErrorContains(t, err, "0 rows were written instead of 1")
			assert.Empty(t, f.fines(), "nothing of it is kept")
			assert.Equal(t, claim.Claimed, f.state("a"))
			another("DROP TRIGGER mind")
		})
	}
	require.NoError(t, f.apply(commit("a", fine("loan 1")))[0].Err, "without it all is well")
	assert.Equal(t, claim.Done, f.state("a"))
	assert.Equal(t, map[string]int{"loan 1": 1}, f.fines())
}

func TestAClosureThatTakesTooLong(t *testing.T) {
	for name, slow := range map[string]func(ctx context.Context, tx Tx) error{
		"in an endless write": func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO fines "+endless)
			return err
		},
		"in an endless write, with a context of its own": func(_ context.Context, tx Tx) error {
			_, err := tx.ExecContext(context.Background(), "INSERT INTO fines "+endless)
			return err
		},
		"in an endless read": func(ctx context.Context, tx Tx) error {
			var n int
			return tx.QueryRowContext(ctx, "SELECT count(*) FROM ("+endless+")").Scan(&n)
		},
		"in endless rows": func(ctx context.Context, tx Tx) error {
			rows, err := tx.QueryContext(ctx, endless) //nolint:sqlclosecheck // the transaction's end closes them
			for err == nil && rows.Next() {
				err = rows.Err()
			}
			return errors.Join(err, ctx.Err())
		},
		"in endless statements": func(ctx context.Context, tx Tx) error {
			for {
				if err := fine("loan")(ctx, tx); err != nil {
					return err
				}
			}
		},
		"and says nothing": func(ctx context.Context, tx Tx) error {
			_, _ = tx.ExecContext(ctx, "INSERT INTO fines "+endless)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := openStore(t, Config{TxBound: 500 * time.Millisecond})
			f.claimed("bad", "good", "better")
			ended := make(chan struct{}, 2)
			began := time.Now()
			out := f.apply(
				commit("good", fine("loan 1")),
				commit("bad", func(ctx context.Context, tx Tx) error {
					defer func() { ended <- struct{}{} }()
					return slow(ctx, tx)
				}),
				commit("better", fine("loan 2")),
			)
			assert.Less(t, time.Since(began), time.Minute)
			require.ErrorIs(t, out[1].Err, claim.ErrTxBound)
			require.NoError(t, out[0].Err)
			require.NoError(t, out[2].Err)
			<-ended
			assert.Equal(t, map[string]int{"loan 1": 1, "loan 2": 1}, f.fines())
			assert.Equal(t, claim.Claimed, f.state("bad"))
			assert.Equal(t, claim.Done, f.state("good"))
			assert.Equal(t, claim.Done, f.state("better"))
		})
	}
}

func TestAClosureThatCallsTheLedger(t *testing.T) {
	f := openStore(t, Config{TxBound: 500 * time.Millisecond})
	e, err := engine.New(engine.Config{})
	require.NoError(t, err)
	l, err := ledger.Spawn(e, ledger.Config{Store: f.Store, Session: claim.Session{ID: f.now.Session, Sole: true}})
	require.NoError(t, err)
	do := func(req claim.Request) claim.Outcome { return l.Apply(t.Context(), req) }
	for _, id := range []string{"own context", "another context", "update"} {
		require.NoError(t, do(claim.Request{Ops: []claim.Op{claimOp(id)}}).Err)
	}
	inner := make(chan claim.Outcome, 1)
	claimMore := claim.Request{Ops: []claim.Op{claimOp("more")}}

	require.ErrorIs(t, do(commit("own context", func(ctx context.Context, _ Tx) error { return l.Apply(ctx, claimMore).Err })).Err, claim.ErrInTx)
	require.ErrorIs(t, do(commit("update", func(ctx context.Context, _ Tx) error { return f.Update(ctx, fine("loan 1")) })).Err, claim.ErrInTx)
	for name, call := range map[string]func(ctx context.Context) error{
		"apply":  func(ctx context.Context) error { return l.Apply(ctx, claimMore).Err },
		"read":   func(ctx context.Context) error { return l.Read(ctx, nil) },
		"update": func(ctx context.Context) error { return f.Update(ctx, fine("loan 1")) },
	} {
		require.ErrorIs(t, f.Update(t.Context(), func(ctx context.Context, _ Tx) error { return call(ctx) }), claim.ErrInTx, name)
	}
	require.ErrorIs(t, do(commit("another context", func(context.Context, Tx) error {
		inner <- l.Apply(context.Background(), claimMore) // which waits for the writer, which waits for this
		return nil
	})).Err, claim.ErrTxBound)
	require.NoError(t, (<-inner).Err, "once the closure has been given up, it is answered")
	assert.Equal(t, claim.Claimed, f.state("another context"))
	assert.Equal(t, claim.Claimed, f.state("more"))
	require.NoError(t, l.Close(t.Context()))
	require.NoError(t, e.Stop(t.Context()))
}

func TestAClosureThatLosesTheTransaction(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("bad", "good", "better")
	var runs atomic.Int32
	out := f.apply(
		commit("good", func(ctx context.Context, tx Tx) error { runs.Add(1); return fine("loan 1")(ctx, tx) }),
		commit("bad", func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO fines VALUES ('loan 9', 1)")
			if err == nil {
				_, err = tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO fines VALUES ('loan 9', 1)")
			}
			if err == nil {
				return errors.New("it was no conflict")
			}
			_, err = tx.ExecContext(ctx, "INSERT INTO fines VALUES ('loan 8', 1)")
			if !errors.Is(err, errLost) {
				return fmt.Errorf("a later statement: %w", err)
			}
			return nil // as if nothing had happened
		}),
		commit("better", fine("loan 2")),
		claim.Request{Ops: []claim.Op{claimOp("new")}},
	)
	require.ErrorIs(t, out[1].Err, errLost)
	require.NoError(t, out[0].Err)
	require.NoError(t, out[2].Err)
	require.NoError(t, out[3].Err)
	assert.EqualValues(t, 2, runs.Load(), "closures may run more than once")
	assert.Equal(t, map[string]int{"loan 1": 1, "loan 2": 1}, f.fines())
	assert.Equal(t, claim.Claimed, f.state("bad"))
	assert.Equal(t, claim.Claimed, f.state("new"))
}

//nolint:rowserrcheck,sqlclosecheck,gocritic // what is left open is the point
func TestWhatAClosureLeavesOpen(t *testing.T) {
	f := openStore(t, Config{})
	for name, leave := range map[string]func(ctx context.Context, tx Tx) error{
		"rows": func(ctx context.Context, tx Tx) error {
			rows, err := tx.QueryContext(ctx, endless)
			rows.Next()
			return err
		},
		"a row": func(ctx context.Context, tx Tx) error { tx.QueryRowContext(ctx, endless); return nil },
		"a row of what it wrote": func(ctx context.Context, tx Tx) error {
			tx.QueryRowContext(ctx, "INSERT INTO fines VALUES ('loan 3', 1) RETURNING units")
			return nil
		},
		"a savepoint of its own": func(ctx context.Context, tx Tx) error { _, err := tx.ExecContext(ctx, "SAVEPOINT mine"); return err },
		"rows, and has no success": func(ctx context.Context, tx Tx) error {
			_, err := tx.QueryContext(ctx, endless)
			return errors.Join(err, errors.New("no"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.claimed("leaves "+name, "next "+name)
			out := f.apply(commit("leaves "+name, leave), commit("next "+name, fine(name)))
			if name != "rows, and has no success" {
				require.NoError(t, out[0].Err)
			}
			require.NoError(t, out[1].Err)
			assert.Equal(t, 1, f.fines()[name])
		})
	}
	assert.Equal(t, 1, f.fines()["loan 3"])
}

func TestATxIsDeadAfterwards(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	var kept Tx
	require.NoError(t, f.apply(commit("a", func(_ context.Context, tx Tx) error { kept = tx; return nil }))[0].Err)
	_, err := kept.ExecContext(t.Context(), "DELETE FROM fines")
	require.ErrorIs(t, err, sql.ErrTxDone)
	_, err = kept.QueryContext(t.Context(), "SELECT 1") //nolint:gocritic,rowserrcheck,sqlclosecheck // there are no rows
	require.ErrorIs(t, err, sql.ErrTxDone)
	var n int
	require.Error(t, kept.QueryRowContext(t.Context(), "SELECT 1").Scan(&n))
}

func TestAStatementWhoseContextIsOver(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	over, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller went home")
	cancel(why)
	require.NoError(t, f.apply(commit("a", func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(over, "DELETE FROM fines")
		assert.ErrorIs(t, err, why)
		_, err = tx.QueryContext(over, "SELECT 1") //nolint:gocritic,rowserrcheck,sqlclosecheck // there are no rows
		assert.ErrorIs(t, err, why)
		var n int
		assert.ErrorIs(t, tx.QueryRowContext(over, "SELECT 1").Scan(&n), context.Canceled)
		return fine("loan 1")(ctx, tx)
	}))[0].Err, "it is no reason to give up the transaction")
	assert.Equal(t, map[string]int{"loan 1": 1}, f.fines())
}

// ending is a run that passes its function straight to a store.
type ending struct{ tx any }

func (e ending) CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error {
	return fn(ctx, e.tx)
}

func TestCommitOfAnotherStore(t *testing.T) {
	err := Commit(t.Context(), ending{42}, func(context.Context, Tx) error { t.Error("it ran"); return nil })
	require.ErrorIs(t, err, claim.ErrWrongStore)
	require.ErrorContains(t, err, "int")
	ran := false
	require.NoError(t, Commit(t.Context(), ending{&closureTx{}}, func(context.Context, Tx) error { ran = true; return nil }))
	assert.True(t, ran)
}

func TestUpdate(t *testing.T) {
	f := openStore(t, Config{})
	own := errors.New("no")
	require.ErrorIs(t, f.Update(t.Context(), func(ctx context.Context, tx Tx) error {
		return errors.Join(fine("loan 1")(ctx, tx), own)
	}), own)
	require.ErrorContains(t, f.Update(t.Context(), func(context.Context, Tx) error { panic("boom") }), "boom")
	require.ErrorIs(t, f.Update(t.Context(), func(ctx context.Context, _ Tx) error {
		return f.Update(ctx, func(context.Context, Tx) error { return nil })
	}), claim.ErrInTx)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.Update(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO fines "+endless)
		return err
	}), context.DeadlineExceeded)
	assert.Empty(t, f.fines())
	require.NoError(t, f.Update(t.Context(), fine("loan 1")))
	assert.Equal(t, map[string]int{"loan 1": 1}, f.fines())
}

func TestUpdateBesideTheLedger(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	inside, updated := make(chan struct{}), make(chan error, 1)
	go func() {
		<-inside
		updated <- f.Update(context.Background(), fine("by update"))
	}()
	require.NoError(t, f.apply(commit("a", func(ctx context.Context, tx Tx) error {
		close(inside)
		assert.Empty(t, updated, "one after the other")
		return fine("by commit")(ctx, tx)
	}))[0].Err)
	require.NoError(t, <-updated)
	assert.Equal(t, map[string]int{"by commit": 1, "by update": 1}, f.fines())
}
