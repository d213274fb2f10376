package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

	"modernc.org/sqlite"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
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
	return classify(errors.Join(err, w.conn.Close()))
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

// stmt is a prepared statement of the writer with room for its arguments.
type stmt struct {
	stmt driver.Stmt
	exc  driver.StmtExecContext
	qry  driver.StmtQueryContext
	args []driver.NamedValue
	dest []driver.Value
}

func newStmt(c conn, query string) (*stmt, error) {
	p, err := c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s := &stmt{stmt: p, args: make([]driver.NamedValue, strings.Count(query, "?"))}
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
	s.bind(values...)
	_, err := s.exc.ExecContext(context.Background(), s.args)
	s.free()
	return err
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

// view is the writer as a plan reads it, in the transaction. It remembers which keys it was asked for, and whether
// they are there.
type view struct {
	w    *writer
	seen []seen
}

type seen struct {
	key    claim.Key
	text   string
	exists bool
}

// Record reads what is stored of a key.
func (v *view) Record(k claim.Key) (*claim.Record, error) {
	text := k.String()
	row, err := v.w.claim.row(numClaimColumns, text)
	if err != nil {
		return nil, err
	}
	v.seen = append(v.seen, seen{k, text, row != nil})
	if row == nil {
		return nil, nil
	}
	d := decoder{values: row}
	r := d.record(k)
	return &r, d.err
}

// Row reads a row's revision, which is all that a plan looks at.
func (v *view) Row(k claim.RowKey) (*claim.Row, error) {
	row, err := v.w.revision.row(1, k.Kind, k.Namespace, k.ID)
	if err != nil || row == nil {
		return nil, err
	}
	d := decoder{values: row}
	r := claim.Row{Kind: k.Kind, Namespace: k.Namespace, ID: k.ID, Revision: uint64(d.int())}
	return &r, d.err
}

// write stores what a plan says.
func (v *view) write(p *claim.Planned) error {
	for i := range p.Records {
		if err := v.writeRecord(&p.Records[i]); err != nil {
			return err
		}
	}
	for i := range p.Rows {
		if err := v.w.writeRow(&p.Rows[i]); err != nil {
			return err
		}
	}
	for _, k := range p.Drop {
		if err := v.w.dropRow.exec(k.Kind, k.Namespace, k.ID); err != nil {
			return err
		}
	}
	for _, r := range p.Ranges {
		err := v.w.addRange.exec(r.Name(), r.Namespace, r.Trigger, int64(r.Incarnation), int64(r.Version), int64(r.Epoch),
			r.First.UnixMicro(), r.Last.UnixMicro(), r.Count, r.Reason, instant(r.At))
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *view) writeRecord(r *claim.Record) error {
	var at *seen
	for i := range v.seen {
		if v.seen[i].key == r.Key {
			at = &v.seen[i]
			break
		}
	}
	if at == nil {
		return fmt.Errorf("sqlite: %s was planned without being read", r.Key)
	}
	if at.exists {
		return v.w.setClaim.exec(int64(r.State), int64(r.Session), int64(r.Lease), int64(r.Fence), int64(r.Attempt), int64(r.Interruptions),
			instant(r.Due), instant(r.FiredAt), instant(r.EndedAt), bytesOrNull(r.Result), r.Reason, at.text)
	}
	at.exists = true
	return v.w.addClaim.exec(at.text, int64(r.State), int64(r.Session), int64(r.Lease), int64(r.Fence), int64(r.Attempt), int64(r.Interruptions),
		r.Slot.UnixMicro(), instant(r.Due), instant(r.FiredAt), instant(r.EndedAt), r.Job, bytesOrNull(r.Payload), int64(r.Fingerprint), bytesOrNull(r.Result), r.Reason)
}

func (w *writer) writeRow(r *claim.Row) error {
	if r.Revision == 1 {
		return w.addRow.exec(r.Kind, r.Namespace, r.ID, r.Owner, int64(1), instant(r.Due), bytesOrNull(r.Blob))
	}
	return w.setRow.exec(r.Owner, int64(r.Revision), instant(r.Due), bytesOrNull(r.Blob), r.Kind, r.Namespace, r.ID)
}
