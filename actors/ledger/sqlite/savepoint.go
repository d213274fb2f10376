package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"modernc.org/sqlite"
)

// savepoint is the name under which a closure's SQL runs inside the transaction of a group.
const savepoint = "qj_closure"

// savepoints lets database/sql run a closure's transaction as a savepoint on the writer's connection. That gives
// closures the types that everybody knows, and gives us database/sql's care: when its transaction has ended, every
// statement of it has, its rows are closed, and later ones are refused.
type savepoints struct{ w *writer }

func (s savepoints) Connect(context.Context) (driver.Conn, error) {
	return savepointConn{s.w.conn, s.w}, nil
}
func (s savepoints) Driver() driver.Driver { return &sqlite.Driver{} }

// savepointConn is the writer's connection, which it neither closes nor gives up: an interrupted statement ends its
// closure and not the connection.
type savepointConn struct {
	conn
	w *writer
}

func (savepointConn) Close() error                       { return nil }
func (savepointConn) IsValid() bool                      { return true }
func (savepointConn) ResetSession(context.Context) error { return nil }

func (c savepointConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	if err := c.w.save.exec(); err != nil {
		return nil, err
	}
	c.w.foreign.Store(true)
	return savepointTx{c.w}, nil
}

type savepointTx struct{ w *writer }

// Commit makes what the closure did a part of the group's transaction.
func (t savepointTx) Commit() error {
	t.w.foreign.Store(false)
	if t.w.lost.Load() {
		return errLost
	}
	return t.w.release.exec()
}

// Rollback undoes what the closure did.
func (t savepointTx) Rollback() error {
	t.w.foreign.Store(false)
	if t.w.lost.Load() {
		return errLost
	}
	return errors.Join(t.w.back.exec(), t.w.release.exec())
}

// reading are the pragmas that a closure may use.
var reading = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true, "index_xinfo": true,
	"foreign_key_list": true, "foreign_key_check": true,
}

// allow is asked about each part of a statement when it is prepared. A closure may not end our transaction, reach other
// files, change the connection's settings, write the ledger's own tables, or make temporary objects: those would outlive
// it on the connection, a table hiding one of ours and a trigger minding what we write.
func (w *writer) allow(action sqlite.AuthorizerActionCode, arg1, arg2, database, _ string) sqlite.AuthorizerReturnCode {
	if !w.foreign.Load() {
		return sqlite.AuthorizerOK
	}
	denied := false
	switch action { //nolint:exhaustive // what is not named is allowed
	case sqlite.AuthTransaction, sqlite.AuthAttach, sqlite.AuthDetach,
		sqlite.AuthCreateTempTable, sqlite.AuthCreateTempView, sqlite.AuthCreateTempIndex, sqlite.AuthCreateTempTrigger:
		denied = true
	case sqlite.AuthSavepoint:
		denied = strings.EqualFold(arg2, savepoint)
	case sqlite.AuthPragma:
		denied = !reading[strings.ToLower(arg1)]
	case sqlite.AuthInsert:
		// CREATE TABLE temp.x and CREATE TRIGGER temp.x come under the codes of lasting ones: what tells them is that
		// they are entered in the temporary schema.
		denied = ours(arg1) || strings.EqualFold(database, "temp")
	case sqlite.AuthUpdate, sqlite.AuthDelete, sqlite.AuthDropTable, sqlite.AuthCreateTable, sqlite.AuthCreateView, sqlite.AuthCreateVTable:
		denied = ours(arg1)
	case sqlite.AuthAlterTable, sqlite.AuthCreateIndex, sqlite.AuthDropIndex, sqlite.AuthCreateTrigger, sqlite.AuthDropTrigger:
		denied = ours(arg2)
	}
	if denied {
		return sqlite.AuthorizerDeny
	}
	return sqlite.AuthorizerOK
}

// ours says whether a table is the ledger's.
func ours(table string) bool {
	const prefix = "qj_"
	return len(table) >= len(prefix) && strings.EqualFold(table[:len(prefix)], prefix)
}
