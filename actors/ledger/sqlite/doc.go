// Package sqlite keeps the ledger in one SQLite file, without cgo and without a server.
//
//	store := sqlite.New(sqlite.Config{Path: "data/quarterjack.db"})
//	rt, err := quarterjack.Open(ctx, quarterjack.Config{Store: store})
//
// Guaranteed: what was acknowledged is on the disk (WAL, synchronous=FULL: each transaction is one fsync, shared by all
// requests that gathered meanwhile). A crash, of the process or of the machine, leaves each request kept whole or not at
// all, and each claim of the dead process can be taken over at once when the file is opened again.
//
// One process writes. A lock file beside the database (its path with ".lock") says who; a second process gets
// [claim.ErrLocked] with that text. Reading beside it is free: [OpenReader], or any SQLite program that only reads.
//
// Your own tables may live in the same file: make them in [Store.Update], write them in [Commit], where they are
// committed together with the run that they belong to, and read them in [Store.View]. Names that begin with qj_ are the
// ledger's; they may be read and not written. Temporary objects cannot be made.
//
// The file must lie on a file system of this machine: network file systems do not lock as SQLite needs it.
//
// Costs: a lone commit is one fsync (some 1 to 3 ms on an SSD), a thousand at once share it. A slot that is done takes
// about 200 bytes for as long as it is kept, indexes included, plus its payload and result. Readers never wait for the
// writer. The file does not shrink by itself.
//
// Files are made with mode 0600 and missing directories with 0700. The schema is versioned; a file from a newer version
// is refused with [claim.ErrNewer], one that is damaged or no such store with [claim.ErrCorrupt]. A full disk and an
// I/O error are [claim.ErrUnavailable]: nothing of the transaction is kept, and the next one may succeed.
package sqlite
