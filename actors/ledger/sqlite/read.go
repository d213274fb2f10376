package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// reads is the reading part, over connections that only read.
type reads struct{ db *sql.DB }

func openReads(path string) (reads, error) {
	db, err := sql.Open("sqlite", dsn(path, "ro"))
	if err != nil {
		return reads{}, err
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(1)
	db.SetConnMaxIdleTime(time.Minute)
	return reads{db}, nil
}

// Reader reads a store's file, also while another process has it open for writing.
type Reader struct{ reads }

var _ claim.Reader = (*Reader)(nil)

// OpenReader opens a file for reading only. It takes no lock and changes nothing. A file that is not there is an error
// that wraps fs.ErrNotExist and claim.ErrUnavailable; see the package for others.
func OpenReader(path string) (*Reader, error) {
	r, err := openReader(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %s: %w", path, err)
	}
	return r, nil
}

func openReader(ctx context.Context, path string) (*Reader, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", claim.ErrUnavailable, err)
	}
	if _, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no such file (has a node ever run here?): %w", claim.ErrUnavailable, fs.ErrNotExist)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", claim.ErrUnavailable, err)
	}
	r, err := openReads(abs)
	if err != nil {
		return nil, err
	}
	version, err := identify(ctx, r.db)
	if err == nil && version < schemaVersion {
		err = fmt.Errorf("%w: its schema has version %d, this program reads %d: open it for writing once", claim.ErrUnavailable, version, schemaVersion)
	}
	if err != nil {
		return nil, errors.Join(err, r.db.Close())
	}
	return &Reader{r}, nil
}

// Close ends the reading.
func (r *Reader) Close() error { return r.db.Close() }

// View runs fn over one state of the file, whatever is written meanwhile.
func (r *Reader) View(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	return r.view(ctx, fn)
}

// View runs fn over one state of the file, whatever is written meanwhile: for reading tables of yours together, and
// the ledger's. Read through tx only: there are few connections. It delays nobody, but what is written meanwhile cannot be
// tidied up before it returns.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	r, done, err := s.reads()
	if err != nil {
		return err
	}
	defer done()
	return r.view(ctx, fn)
}

// reads gives the reading part while the store is open; Close waits until done is called.
func (s *Store) reads() (r reads, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return reads{}, nil, claim.ErrClosed
	}
	s.open.users.Add(1)
	return s.open.r, s.open.users.Done, nil
}

// Rows gives rows by (Due, ID, Namespace, Kind), those without a due time last.
func (s *Store) Rows(ctx context.Context, q claim.RowQuery) ([]claim.Row, error) {
	r, done, err := s.reads()
	if err != nil {
		return nil, err
	}
	defer done()
	return r.Rows(ctx, q)
}

// Records gives records by (Slot, text of the key).
func (s *Store) Records(ctx context.Context, q claim.Query) ([]claim.Record, error) {
	r, done, err := s.reads()
	if err != nil {
		return nil, err
	}
	defer done()
	return r.Records(ctx, q)
}

// Ranges gives ranges by (First, Name).
func (s *Store) Ranges(ctx context.Context, q claim.Query) ([]claim.Range, error) {
	r, done, err := s.reads()
	if err != nil {
		return nil, err
	}
	defer done()
	return r.Ranges(ctx, q)
}

// readTx hides what ends a transaction.
type readTx struct{ tx *sql.Tx }

func (t readTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(ctx, query, args...)
}

func (t readTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, query, args...)
}

func (t readTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, query, args...)
}

func (r reads) view(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return classify(err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to be kept
	return classify(fn(ctx, readTx{tx}))
}

func (r reads) check(ctx context.Context) error {
	var found string
	if err := r.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return classify(err)
	}
	if found != "ok" {
		return fmt.Errorf("%w: integrity_check: %s", claim.ErrCorrupt, found)
	}
	return nil
}

// Records gives records by (Slot, text of the key).
func (r reads) Records(ctx context.Context, q claim.Query) ([]claim.Record, error) {
	return list(ctx, r.db, recordsQuery(&q), 1+numClaimColumns, (*decoder).keyed)
}

// Ranges gives ranges by (First, Name).
func (r reads) Ranges(ctx context.Context, q claim.Query) ([]claim.Range, error) {
	return list(ctx, r.db, rangesQuery(&q), strings.Count(rangeColumns, ",")+1, (*decoder).span)
}

// Rows gives rows by (Due, ID, Namespace, Kind), those without a due time last.
func (r reads) Rows(ctx context.Context, q claim.RowQuery) ([]claim.Row, error) {
	if q.Limit <= 0 {
		q.Limit = claim.DefaultPage
	}
	n := strings.Count(rowColumns, ",") + 1
	var rows []claim.Row
	if q.After == nil || !q.After.Due.IsZero() {
		var err error
		if rows, err = list(ctx, r.db, rowsQuery(&q, true), n, (*decoder).row); err != nil || len(rows) == q.Limit {
			return rows, err
		}
		q.After = nil
	}
	q.Limit -= len(rows)
	rest, err := list(ctx, r.db, rowsQuery(&q, false), n, (*decoder).row)
	return append(rows, rest...), err
}

// list runs a query of n columns and decodes all its rows.
func list[T any](ctx context.Context, db *sql.DB, q query, n int, decode func(*decoder) T) (all []T, err error) {
	rows, err := db.QueryContext(ctx, q.text.String(), q.args...)
	if err != nil {
		return nil, classify(err)
	}
	defer func() { err = errors.Join(err, classify(rows.Close())) }()
	values, into := make([]driver.Value, n), make([]any, n)
	for i := range into {
		into[i] = (*any)(&values[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		d := decoder{values: values}
		v := decode(&d)
		if d.err != nil {
			return nil, d.err
		}
		all = append(all, v)
	}
	return all, classify(rows.Err())
}
