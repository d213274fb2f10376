package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// stmt is a prepared statement of the writer with room for its arguments.
type stmt struct {
	stmt  driver.Stmt
	query string
	exc   driver.StmtExecContext
	qry   driver.StmtQueryContext
	args  []driver.NamedValue
	dest  []driver.Value
}

func newStmt(c conn, query string) (*stmt, error) {
	p, err := c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s := &stmt{stmt: p, query: query, args: make([]driver.NamedValue, strings.Count(query, "?"))}
	for i := range s.args {
		s.args[i].Ordinal = i + 1
	}
	var execs, queries bool
	s.exc, execs = p.(driver.StmtExecContext)
	s.qry, queries = p.(driver.StmtQueryContext)
	if !execs || !queries {
		return nil, errors.Join(fmt.Errorf("the driver's statement (%T) lacks methods", p), p.Close())
	}
	return s, nil
}

// bind sets the arguments: int64, string, []byte or nil.
func (s *stmt) bind(values ...driver.Value) {
	for i, v := range values {
		s.args[i].Value = v
	}
}

// free lets go of the arguments, which may be large.
func (s *stmt) free() {
	for i := range s.args {
		s.args[i].Value = nil
	}
}

// exec runs the statement. It is never interrupted: an interrupted write would take the whole transaction with it.
func (s *stmt) exec(values ...driver.Value) error {
	_, err := s.run(values)
	return err
}

// one runs the statement, which must write one row. Where it wrote none or more, something else has a hand in our
// tables, such as a trigger that another program made: that is [claim.ErrCorrupt], and the transaction must not be kept.
func (s *stmt) one(values ...driver.Value) error {
	result, err := s.run(values)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: %d rows were written instead of 1 by %s", claim.ErrCorrupt, n, s.query)
	}
	return err
}

func (s *stmt) run(values []driver.Value) (driver.Result, error) {
	s.bind(values...)
	defer s.free()
	return s.exc.ExecContext(context.Background(), s.args)
}

// row runs the statement, of n columns, and gives its first row, good until the next call; nil: there is none.
func (s *stmt) row(n int, values ...driver.Value) ([]driver.Value, error) {
	s.bind(values...)
	rows, err := s.qry.QueryContext(context.Background(), s.args)
	s.free()
	if err != nil {
		return nil, err
	}
	if s.dest == nil {
		s.dest = make([]driver.Value, n)
	}
	err = rows.Next(s.dest)
	if err := rows.Close(); err != nil {
		return nil, err
	}
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return s.dest, err
}
