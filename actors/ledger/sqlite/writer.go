package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

	"modernc.org/sqlite"
)

// dsn names a database to the driver, with settings of its connections.
func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_pragma": append([]string{"busy_timeout(5000)", "foreign_keys(0)"}, pragmas...), "_dqs": {"0"}, "_defensive": {"1"}}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // C:/...
	}
	return u.String()
}

// durable are the settings of a connection that writes.
var durable = []string{"journal_mode(WAL)", "synchronous(FULL)", "cache_size(-16384)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)"}

// conn is what a connection of the driver can do.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	sqlite.HookRegisterer
	sqlite.AuthorizerRegisterer
}

// writer is the one connection that writes. The ledger's own statements run on the driver's connection itself, prepared
// once; what closures do goes through database/sql, on the same connection, inside a savepoint (see savepoints).
type writer struct {
	conn
	closures *sql.DB

	begin, commit, rollback           *stmt
	save, release, back               *stmt
	claim, addClaim, setClaim         *stmt
	revision, addRow, setRow, dropRow *stmt
	addRange                          *stmt

	foreign    atomic.Bool // a closure's SQL is running: see allow
	committing atomic.Bool // we commit; any other commit is turned into a rollback
	lost       atomic.Bool // the transaction has been rolled back
}

func openWriter(ctx context.Context, path string) (*writer, error) {
	connector, err := sqlite.NewConnector(dsn(path, "rw", durable...))
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, classify(err)
	}
	raw, ok := c.(conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("sqlite: the driver's connection (%T) lacks methods", c), c.Close())
	}
	w := &writer{conn: raw}
	w.closures = sql.OpenDB(savepoints{w})
	w.closures.SetMaxOpenConns(1)
	return w, nil
}

// prepare makes the statements, once there is a schema.
func (w *writer) prepare() error {
	w.RegisterCommitHook(func() int32 {
		if w.committing.Load() {
			return 0
		}
		return 1
	})
	w.RegisterRollbackHook(func() { w.lost.Store(true) })
	if err := w.RegisterAuthorizer(w.allow); err != nil {
		return err
	}
	for to, query := range map[**stmt]string{
		&w.begin:    "BEGIN IMMEDIATE",
		&w.commit:   "COMMIT",
		&w.rollback: "ROLLBACK",
		&w.save:     "SAVEPOINT " + savepoint,
		&w.release:  "RELEASE " + savepoint,
		&w.back:     "ROLLBACK TO " + savepoint,
		&w.claim:    "SELECT " + claimColumns + " FROM qj_claims WHERE key = ?",
		&w.addClaim: "INSERT INTO qj_claims (key, " + claimColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		&w.setClaim: "UPDATE qj_claims SET state = ?, session = ?, lease = ?, fence = ?, attempt = ?, interruptions = ?, due = ?, fired_at = ?, ended_at = ?, result = ?, reason = ? WHERE key = ?",
		&w.revision: "SELECT revision FROM qj_rows WHERE kind = ? AND namespace = ? AND id = ?",
		&w.addRow:   "INSERT INTO qj_rows (" + rowColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?)",
		&w.setRow:   "UPDATE qj_rows SET owner = ?, revision = ?, due = ?, blob = ? WHERE kind = ? AND namespace = ? AND id = ?",
		&w.dropRow:  "DELETE FROM qj_rows WHERE kind = ? AND namespace = ? AND id = ?",
		&w.addRange: "INSERT OR REPLACE INTO qj_ranges (name, " + rangeColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	} {
		s, err := newStmt(w.conn, query)
		if err != nil {
			return classify(fmt.Errorf("sqlite: %s: %w", query, err))
		}
		*to = s
	}
	return nil
}

// close gives the connection free. A database that nobody else has open is then one file again.
func (w *writer) close() error {
	err := w.closures.Close()
	for _, s := range []*stmt{w.begin, w.commit, w.rollback, w.save, w.release, w.back, w.claim, w.addClaim, w.setClaim, w.revision, w.addRow, w.setRow, w.dropRow, w.addRange} {
		if s != nil {
			err = errors.Join(err, s.stmt.Close())
		}
	}
	return classify(errors.Join(err, w.Close()))
}

// transaction runs fn between begin and commit. Where either fails, nothing is kept.
func (w *writer) transaction(fn func() error) error {
	if err := w.begin.exec(); err != nil {
		return classify(err)
	}
	w.lost.Store(false)
	done := false
	defer func() {
		if !done { // also where fn panics
			_ = w.rollback.exec() // SQLite may have done so already
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if w.lost.Load() {
		return errLost
	}
	w.committing.Store(true)
	err := w.commit.exec()
	w.committing.Store(false)
	if err != nil {
		return classify(err)
	}
	done = true
	return nil
}
