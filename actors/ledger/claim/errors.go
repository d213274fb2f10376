package claim

import "errors"

// Errors of a single request: the caller asked for something that the record does not allow.
var (
	// ErrFenced says that the key was claimed by somebody else, or released, since the caller claimed it: whatever
	// the caller did under its fence is no longer the key's work.
	ErrFenced = errors.New("fenced: the key is no longer held under this fence")
	// ErrIllegal says that no such transition exists from the record's state. The message names both.
	ErrIllegal = errors.New("illegal transition")
	// ErrKeyConflict says that the key is known with another payload. The message names both fingerprints.
	ErrKeyConflict = errors.New("key conflict: the key is known with another job or payload")
	// ErrStale says that a row was changed since the caller read it: reload it and decide again.
	ErrStale = errors.New("stale: the row has another revision")
	// ErrBadKey says that a key cannot be stored: it is empty, too long or not UTF-8.
	ErrBadKey = errors.New("bad key")
	// ErrInTx says that the ledger was called from inside a Commit closure of the same run. The closure runs on the
	// store's writer; a call that waits for that writer could never be answered.
	ErrInTx = errors.New("ledger call inside a Commit closure")
	// ErrWrongStore says that Commit of one store was used while the runtime keeps its ledger in another.
	ErrWrongStore = errors.New("the run's ledger is kept in another store")
	// ErrTxBound says that a Commit closure took longer than its bound and was rolled back.
	ErrTxBound = errors.New("the Commit closure was rolled back: it exceeded its bound")
)

// Errors of a store as a whole.
var (
	// ErrUnavailable says that the store could not do its work now (disk full, I/O error, connection lost). Nothing
	// of the request was kept; the same request may succeed later.
	ErrUnavailable = errors.New("the ledger's store is unavailable")
	// ErrClosed says that the store or the ledger has been closed.
	ErrClosed = errors.New("the ledger is closed")
	// ErrLocked says that another process has the store open for writing. The message says who.
	ErrLocked = errors.New("the store is in use by another process")
	// ErrNewer says that the store was written by a newer version with a schema that this one does not know.
	ErrNewer = errors.New("the store was written by a newer version")
	// ErrCorrupt says that the store's file is damaged or is no such store.
	ErrCorrupt = errors.New("the store is corrupt")
)
