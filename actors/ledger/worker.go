package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

var (
	// errGoexit is what a function came to that ended its goroutine.
	errGoexit = errors.New("runtime.Goexit")
	// errBroken says that a store does not keep its contract.
	errBroken = errors.New("ledger: the store is broken")
)

// work serves a batch: all its commits in one transaction, then its reads.
func (l *Ledger) work(batch []item) {
	reqs := make([]claim.Request, 0, len(batch))
	for i := range batch {
		if c := batch[i].commit; c != nil {
			reqs = append(reqs, c.Request)
		}
	}
	var out []claim.Outcome
	if len(reqs) > 0 {
		out = l.commit(reqs)
		l.counts.batch(len(reqs))
	}
	n := 0
	l.each(batch, func(it item) {
		if it.commit != nil {
			n++
			it.commit.Reply(out[n-1])
		}
	})
	l.each(batch, func(it item) {
		if it.read != nil {
			it.read.Reply(guarded(func() error { return it.read.Do(context.Background(), l.cfg.Store) }))
		}
	})
}

// each visits all items, whatever a Reply does: a panic in it is its owner's, and nobody else's answer is lost by it.
func (l *Ledger) each(batch []item, visit func(item)) {
	for next := 0; next < len(batch); {
		err := guarded(func() error {
			for next < len(batch) {
				next++
				visit(batch[next-1])
			}
			return nil
		})
		if err != nil {
			l.cfg.Logger.Error("ledger: a request's Reply failed", "error", err)
		}
	}
}

// commit decides the requests in one transaction, or, where that fails and may be one request's fault, in two.
func (l *Ledger) commit(reqs []claim.Request) []claim.Outcome {
	now := l.hand()
	var out []claim.Outcome
	err := guarded(func() (err error) {
		if out, err = l.cfg.Store.Apply(context.Background(), now, reqs); err != nil {
			return err
		}
		return complete(reqs, out)
	})
	l.noteAvailable(err)
	if err == nil {
		l.held.note(now, reqs, out)
		return out
	}
	if len(reqs) > 1 && !ofTheStore(err) {
		l.counts.splits.Add(1)
		l.cfg.Logger.Warn("ledger: a transaction failed and is split", "requests", len(reqs), "error", err)
		half := len(reqs) / 2
		return append(l.commit(reqs[:half:half]), l.commit(reqs[half:])...)
	}
	out = make([]claim.Outcome, len(reqs))
	for i := range out {
		out[i].Err = err
	}
	l.held.note(now, reqs, out)
	return out
}

// complete checks that a store has answered everything.
func complete(reqs []claim.Request, out []claim.Outcome) error {
	if len(out) != len(reqs) {
		return fmt.Errorf("%w: it gave %d outcomes for %d requests", errBroken, len(out), len(reqs))
	}
	for i := range out {
		if out[i].Err == nil && len(out[i].Results) != len(reqs[i].Ops) {
			return fmt.Errorf("%w: it gave %d results for %d ops", errBroken, len(out[i].Results), len(reqs[i].Ops))
		}
	}
	return nil
}

// ofTheStore says whether err would meet each of the requests in the same way.
func ofTheStore(err error) bool {
	for _, s := range []error{claim.ErrUnavailable, claim.ErrClosed, claim.ErrCorrupt, errBroken} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// noteAvailable logs when the store goes away, and when it is back; not each request in between.
func (l *Ledger) noteAvailable(err error) {
	switch {
	case errors.Is(err, claim.ErrUnavailable):
		if !l.unavailable.Swap(true) {
			l.cfg.Logger.Error("ledger: the store is unavailable; nothing is claimed until it is back", "error", err)
		}
	case err == nil && l.unavailable.Load():
		l.unavailable.Store(false)
		l.cfg.Logger.Info("ledger: the store is back")
	}
}

// guarded calls fn, and makes an error of a panic and of a Goexit.
func guarded(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
			done <- err
		}()
		err = fn()
	}()
	return <-done
}
