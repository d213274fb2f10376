package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
)

// schema of the demo's own tables, beside the ledger's. line is the number of the last input line that is in the sums.
const schema = `
CREATE TABLE IF NOT EXISTS demo_changes (
	path TEXT PRIMARY KEY, events INTEGER NOT NULL, added INTEGER NOT NULL, deleted INTEGER NOT NULL, line INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS demo_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`

func store(o Options) *sqlite.Store {
	return sqlite.New(sqlite.Config{Path: filepath.Join(o.Dir, File), Logger: o.Log})
}

// prepare makes the tables, counts this run of the directory, and gives a verdict to what an earlier, killed run left.
func (s *show) prepare(ctx context.Context) error {
	rt, err := s.open(ctx, "demo")
	if err != nil {
		return err
	}
	err = s.store.Update(ctx, func(ctx context.Context, tx sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `INSERT INTO demo_meta (name, value) VALUES ('runs', '1')
			ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1 RETURNING CAST(value AS INTEGER)`).Scan(&s.sum.Run)
	})
	if err := errors.Join(err, rt.Close(ctx)); err != nil {
		return err
	}
	s.namespace = fmt.Sprintf("demo-%d", s.sum.Run)
	for run := 1; run < s.sum.Run; run++ {
		if err := s.abandon(ctx, fmt.Sprintf("demo-%d", run)); err != nil {
			return err
		}
	}
	return nil
}

// abandon ends what is unfinished in the namespace of an earlier run.
func (s *show) abandon(ctx context.Context, namespace string) error {
	var free []string
	unfinished := claim.Query{Namespace: namespace, States: []claim.State{claim.Pending, claim.Claimed}}
	left := 0
	err := s.records(ctx, unfinished, func(r *claim.Record) error {
		left++
		if r.Key.Kind == claim.KindFree {
			free = append(free, r.Key.ID)
		}
		return nil
	})
	if err != nil || left == 0 {
		return err
	}
	rt, err := s.open(ctx, namespace)
	if err != nil {
		return err
	}
	abandoned := errors.New("abandoned: its run of the demo was killed")
	for _, key := range free {
		if _, err := rt.Do(ctx, key, func(context.Context, *qj.Run) error { return qj.Drop(abandoned) }); err != nil && !errors.Is(err, abandoned) {
			return errors.Join(err, rt.Close(ctx))
		}
	}
	// Nobody declares its triggers any more: they are retired, and what waits is skipped.
	return errors.Join(rt.Declare(ctx, driftOwner), rt.Declare(ctx, downtimeOwner), rt.Close(ctx))
}

// records reads the ledger beside whoever has it open.
func (s *show) records(ctx context.Context, q claim.Query, fn func(*claim.Record) error) error {
	return s.reader(func(r claim.Reader) error { return claim.EachRecord(ctx, r, q, fn) })
}

func (s *show) ranges(ctx context.Context, q claim.Query, fn func(*claim.Range) error) error {
	return s.reader(func(r claim.Reader) error { return claim.EachRange(ctx, r, q, fn) })
}

func (s *show) reader(do func(claim.Reader) error) error {
	r, err := sqlite.OpenReader(filepath.Join(s.Dir, File))
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}

// meta keeps a value under a name once and for all, and gives what is kept.
func meta(ctx context.Context, tx sqlite.Tx, name, value string) (kept string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT value FROM demo_meta WHERE name = ?`, name).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, `INSERT INTO demo_meta (name, value) VALUES (?, ?)`, name, value)
		kept = value
	}
	return kept, err
}
