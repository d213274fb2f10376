package claim

import (
	"context"
	"fmt"
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
	// Rows gives rows by (Due, ID, Namespace, Kind), those without a due time last.
	Rows(ctx context.Context, q RowQuery) ([]Row, error)
	// Records gives records by (Slot, text of the key).
	Records(ctx context.Context, q Query) ([]Record, error)
	// Ranges gives ranges by (First, Name).
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
	Kind      Kind      // of records
	Job       string    // of records
	States    []State   // of records
	From, To  time.Time // of Slot, or of First: From <= t < To
	// After continues behind the last of the page before: its Cursor.
	After *Cursor
	Limit int // 0: 1,000
}

// Cursor is a place in a listing: the (Slot, key text) of the last record, or the (First, Name) of the last range.
type Cursor struct {
	At   time.Time
	Name string
}

// Cursor gives the place of r in a listing.
func (r Record) Cursor() *Cursor { return &Cursor{At: r.Slot, Name: r.Key.String()} }

// Cursor gives the place of r in a listing.
func (r Range) Cursor() *Cursor { return &Cursor{At: r.First, Name: r.Name()} }

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
func (c *Commit) Undelivered(err error) { c.Reply(Outcome{Err: fmt.Errorf("%w: %w", ErrClosed, err)}) }

// Read runs Do with the store's reading part, after every commit that was sent before it. Do may do I/O: it runs
// on the ledger's worker, not in a mailbox.
type Read struct {
	Do    func(ctx context.Context, r Reader) error
	Reply func(error) // exactly once
}

// Undelivered answers a read that could not reach the ledger.
func (r *Read) Undelivered(err error) { r.Reply(fmt.Errorf("%w: %w", ErrClosed, err)) }

// Transactor is a run or a batch as the Commit function of a store sees it.
type Transactor interface {
	// CommitTx runs fn in the store's next transaction together with what ends the run. See a store's Commit.
	CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error
}

type inTx struct{}

// EnterTx marks the context that a store gives to a Tx function.
func EnterTx(ctx context.Context) context.Context { return context.WithValue(ctx, inTx{}, true) }

// InTx is ErrInTx where ctx is that of a Tx function, or made from it: what would wait for the store's writer, which is
// busy with this very function, refuses such a context. It is nil otherwise.
func InTx(ctx context.Context) error {
	if ctx.Value(inTx{}) == nil {
		return nil
	}
	return ErrInTx
}
