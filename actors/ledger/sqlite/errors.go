package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// errLost says that SQLite itself rolled the whole transaction back while a closure ran: it was interrupted in a write,
// the disk is full, or the closure asked for it (INSERT OR ROLLBACK).
var errLost = errors.New("the transaction was rolled back by SQLite")

// classify adds to an error of SQLite the sentinel that says what it means for the ledger. An error that the SQL itself
// brought about (a constraint, a syntax error) stays as it is.
func classify(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", claim.ErrCorrupt, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM,
		sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS:
		return fmt.Errorf("%w: %w", claim.ErrUnavailable, err)
	}
	return err
}
