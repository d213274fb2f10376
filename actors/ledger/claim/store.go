package claim

import (
	"context"
	"time"
)

// Store keeps records, rows and ranges. It is opened once and used by one ledger; Apply is never called
// concurrently with itself, reads may be concurrent with anything.
type Store interface {
	// Open makes the store ready for this process and begins a session, whose number is above that of every
	// earlier one. Errors: ErrLocked, ErrNewer, ErrCorrupt, ErrUnavailable.
	Open(ctx context.Context) (Session, error)
	// Apply decides the requests in order, each by [Plan], and commits all that were not refused in one
	// transaction. Each request has its own outcome; an error of Apply itself means that nothing was kept.
	Apply(ctx context.Context, now Hand, reqs []Request) ([]Outcome, error)
	Reader
	// Close ends the session and gives the store free. It may be called twice.
	Close() error
}

// Session is what opening a store gives.
type Session struct {
	ID   uint64
	Sole bool // no other process can be using the store: all earlier sessions are dead
}

// Reader is the part of a store that only reads.
type Reader interface {
	// Rows gives rows by (Due, ID), those without a due time last.
	Rows(ctx context.Context, q RowQuery) ([]Row, error)
	// Records gives records by (Slot, Key).
	Records(ctx context.Context, q Query) ([]Record, error)
	// Ranges gives ranges by (First, Trigger).
	Ranges(ctx context.Context, q Query) ([]Range, error)
}

// RowQuery selects rows. Zero fields select all.
type RowQuery struct {
	Kind, Namespace, ID string
	// Owner selects rows of that owner only where OfOwner is set.
	Owner   string
	OfOwner bool
	After   *Row // continue behind this row
	Limit   int  // 0: 1,000
}

// Query selects records or ranges. Zero fields select all.
type Query struct {
	Namespace string
	Trigger   string
	Kind      Kind    // of records
	Job       string  // of records
	States    []State // of records
	From, To  time.Time
	// After continues behind the last of the page before: its (Slot, Key), or (First, Trigger) and Skip of a range.
	After *Cursor
	Limit int // 0: 1,000
}

// Cursor is a place in a listing: the (Slot, key text) of the last record, or (First, Trigger) of the last range.
type Cursor struct {
	At   time.Time
	Name string
}

// DefaultPage is how many rows a query without a limit gives.
const DefaultPage = 1000

// Messages by which other actors reach the ledger. Replies are called on the ledger's side and must not block:
// an actor's reply tells the actor.

// Commit asks the ledger for one request. Many actors' requests share a transaction.
type Commit struct {
	Request Request
	Reply   func(Outcome) // exactly once
}

// Undelivered answers a commit that could not reach the ledger.
func (c *Commit) Undelivered(err error) { c.Reply(Outcome{Err: err}) }

// Read runs Do with the store's reading part, after every commit that was sent before it. Do may do I/O: it runs
// on the ledger's worker, not in a mailbox.
type Read struct {
	Do    func(ctx context.Context, r Reader) error
	Reply func(error) // exactly once
}

// Undelivered answers a read that could not reach the ledger.
func (r *Read) Undelivered(err error) { r.Reply(err) }

// Transactor is a run or a batch as the Commit function of a store sees it.
type Transactor interface {
	// CommitTx runs fn in the store's next transaction together with what ends the run. See a store's Commit.
	CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error
}
