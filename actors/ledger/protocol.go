package ledger

import (
	"context"
	"fmt"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// closing tells the actor to commit what was sent before, and to take nothing more.
type closing struct{ line *line }

// Undelivered does the same for an actor that is gone.
func (m closing) Undelivered(error) { m.line.close() }

// front is the actor: it lets requests in, in the order in which they were sent. What it lets in is not its own, so a
// restart loses nothing.
type front struct{ line *line }

var _ engine.BatchEnder = front{}

func (f front) Receive(c *engine.Context, msg any) {
	switch m := msg.(type) {
	case *claim.Commit:
		f.line.add(item{commit: m})
	case *claim.Read:
		f.line.add(item{read: m})
	case closing:
		f.line.close()
		c.Stop()
	case engine.Stopping:
		f.line.close()
	}
}

// EndBatch starts a transaction where none is in flight.
func (f front) EndBatch(*engine.Context) { f.line.kick() }

// Apply commits one request and waits for its outcome. It is for goroutines outside actors: an actor tells
// [claim.Commit] to [Ledger.Ref]. When ctx ends first, the request is decided all the same, and nobody is told. The
// context of a Commit closure is refused with ErrInTx.
func (l *Ledger) Apply(ctx context.Context, req claim.Request) claim.Outcome {
	if err := claim.InTx(ctx); err != nil {
		return claim.Outcome{Err: err}
	}
	answer := make(chan claim.Outcome, 1)
	l.ref.Tell(&claim.Commit{Request: req, Reply: func(o claim.Outcome) { answer <- o }})
	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
		return claim.Outcome{Err: fmt.Errorf("ledger: no answer yet: %w", context.Cause(ctx))}
	}
}

// Read runs do with the store's reading part after every commit that was sent before, and waits for it. It is for
// goroutines outside actors, as Apply is. Do runs on the ledger's worker: what it takes delays the next transaction.
func (l *Ledger) Read(ctx context.Context, do func(ctx context.Context, r claim.Reader) error) error {
	if err := claim.InTx(ctx); err != nil {
		return err
	}
	answer := make(chan error, 1)
	l.ref.Tell(&claim.Read{
		Do: func(own context.Context, r claim.Reader) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(own, r)
		},
		Reply: func(err error) { answer <- err },
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("ledger: no answer yet: %w", context.Cause(ctx))
	}
}
