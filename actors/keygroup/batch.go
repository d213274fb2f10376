package keygroup

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/verdict"
)

// Batch is what a handler is given: all that was gathered for one key, or as much as a batch may hold.
//
// Value is the handler's until it returns. A handler that may fail must leave it as it is: it is merged back.
type Batch[K comparable, A any] struct {
	Key         K
	Value       A
	Items       int           // merged into Value
	First, Last time.Time     // arrivals of the first and the last item; Last is at most a turn of the actor late
	Attempt     int           // from 1
	Generation  uint64        // grows with each batch of the key for as long as the key lives
	Trigger     batch.Trigger // why it runs now

	ledger *engine.Ref
	tx     sync.Mutex // held while a commit is under way
	done   bool       // committed; under tx
	over   bool       // the handler has returned; under tx
}

var _ claim.Transactor = (*Batch[string, int])(nil)

// CommitTx runs fn in the ledger's next transaction. Use it through the Commit function of your store, which gives fn a
// transaction of the right type. When it returns nil, the batch is handled: it counts as that even if the handler returns
// an error afterwards.
//
// fn must be short, may run more than once, and must not call the ledger: from inside it CommitTx is claim.ErrInTx. When
// ctx ends before fn has begun, nothing is committed and the error wraps ctx's cause; from then on CommitTx waits for the
// outcome, which the store bounds. A second commit, and one after the handler has returned, is claim.ErrIllegal. ErrNoLedger:
// the group was made without one.
func (b *Batch[K, A]) CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error {
	if b.ledger == nil {
		return ErrNoLedger
	}
	if err := claim.InTx(ctx); err != nil {
		return err
	}
	if !b.tx.TryLock() {
		return claim.ErrInTx
	}
	defer b.tx.Unlock()
	if b.done || b.over {
		return fmt.Errorf("%w: commit of batch %v/%d, which is committed or whose handler has returned", claim.ErrIllegal, b.Key, b.Generation)
	}
	if err := commit(ctx, b.ledger, fn); err != nil {
		return err
	}
	b.done = true
	return nil
}

// finish is called when the handler is done. It waits for a commit that the handler left under way, and refuses later ones.
func (b *Batch[K, A]) finish() (committed bool) {
	b.tx.Lock()
	defer b.tx.Unlock()
	b.over = true
	return b.done
}

// commit has the ledger run fn in a transaction, and returns its error or the ledger's.
func commit(ctx context.Context, ledger *engine.Ref, fn func(ctx context.Context, tx any) error) error {
	const (
		waiting int32 = iota
		begun
		givenUp
	)
	var state atomic.Int32
	run := func(ctx context.Context, tx any) (err error) {
		if !state.CompareAndSwap(waiting, begun) && state.Load() == givenUp {
			return context.Canceled
		}
		defer func() {
			if r := recover(); r != nil {
				err = panicked(r, debug.Stack())
			}
			err = verdict.Guard(err) // the store reads it too
		}()
		return fn(claim.EnterTx(ctx), tx)
	}
	outcome := make(chan claim.Outcome, 1)
	ledger.Tell(&claim.Commit{
		Request: claim.Request{Tx: run},
		Reply:   func(o claim.Outcome) { outcome <- o },
	})
	select {
	case o := <-outcome:
		return o.Err
	case <-ctx.Done():
		if state.CompareAndSwap(waiting, givenUp) {
			return fmt.Errorf("keygroup: not committed: %w", context.Cause(ctx))
		}
		return (<-outcome).Err
	}
}
