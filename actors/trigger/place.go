package trigger

import (
	"context"
	"slices"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/clock"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
)

// place is what outlives the restarts of a trigger's actor. Only the actor touches it.
type place struct {
	deps          *Deps
	namespace, id string
	queue         *Stored

	alarm *clock.Alarm
	// live are the runs that were emitted: nil while in flight, then how they ended, until that is recorded.
	live    map[claim.Key]*firing.Ended
	permits int          // held, not yet used
	wanting bool         // a permit has been asked for
	out     *outstanding // the commit that the ledger has not answered
	serial  uint64       // of the last commit
	notes   []*note      // what was asked for and is not committed yet
	lastAsk uint64

	draining bool     // nothing is started or decided any more
	stopping bool     // nor recorded
	settled  []func() // told when a draining trigger has nothing left to record
	frozen   bool     // somebody edits the row: no step until it is read again

	lastDrift  time.Duration
	fired      int64
	failed     int64 // attempts
	dead       int64 // keys
	staleTicks int64
}

// outstanding is a step whose Persist is with the ledger: its other effects wait for it.
type outstanding struct {
	serial  uint64
	persist firing.Persist
	rest    []firing.Effect
	ended   []claim.Key // runs whose end is in it
}

// note is something that was asked of the trigger. It is kept until it is committed, over reloads and restarts: what
// it does to a machine may be done again.
type note struct {
	apply  func(m *firing.Machine)
	done   func(r *claim.Result, err error) // r: what an Ask came to
	ask    uint64                           // of an Ask: its ID
	serial uint64                           // of the commit that it is part of; 0: none yet
}

// read fetches the row and the unfinished records. It runs on the ledger's worker.
func (p *place) read(ctx context.Context, r claim.Reader, got *loaded) error {
	q := claim.Query{Namespace: p.namespace, Trigger: p.id, States: []claim.State{claim.Pending, claim.Claimed}}
	if p.queue != nil {
		q.Kind, q.Job = claim.KindFree, p.queue.Definition.Job
	} else {
		rows, err := r.Rows(ctx, claim.RowQuery{Kind: RowKind, Namespace: p.namespace, ID: p.id, Limit: 1})
		if err != nil {
			return err
		}
		if len(rows) == 1 {
			got.row = &rows[0]
		}
	}
	got.unfinished = nil
	return claim.EachRecord(ctx, r, q, func(rec *claim.Record) error {
		rec.Payload, rec.Result = nil, nil // the claim brings them when it is their turn
		got.unfinished = append(got.unfinished, *rec)
		return nil
	})
}

// add keeps a note and applies it, if there is something to apply it to.
func (a *Actor) add(n *note) {
	a.notes = append(a.notes, n)
	if a.m != nil {
		n.apply(a.m)
	}
}

// answer gives the notes of a commit their answers, and forgets them. serial 0: those that needed none.
func (p *place) answer(serial uint64, answer func(n *note) (*claim.Result, error)) {
	var keep []*note
	for _, n := range p.notes {
		if n.serial != serial {
			keep = append(keep, n)
			continue
		}
		n.done(answer(n))
	}
	p.notes = keep
}

// disown makes the notes of a commit that came to nothing part of the next one.
func (p *place) disown() {
	for _, n := range p.notes {
		n.serial = 0
	}
}

// fail answers every note with an error.
func (p *place) fail(err error) {
	for _, n := range p.notes {
		n.done(nil, err)
	}
	p.notes = nil
}

func (p *place) giveBack() {
	for ; p.permits > 0; p.permits-- {
		p.deps.Permits.Release()
	}
}

// settle records the ends of runs that no step will: they must not be lost with the actor.
func (p *place) settle() {
	for k, e := range p.live {
		if e == nil {
			continue
		}
		delete(p.live, k)
		if p.out == nil || !slices.Contains(p.out.ended, k) {
			ended{p, *e}.Undelivered(nil)
		}
	}
}
