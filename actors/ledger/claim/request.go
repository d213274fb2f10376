package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Row is a record that the ledger keeps for somebody else (a trigger's definition and state) so that it commits
// together with claims. What Blob holds is its owner's business.
type Row struct {
	Kind      string // what it is, such as "trigger"
	Namespace string
	ID        string
	Owner     string    // who declared it; empty: nobody
	Revision  uint64    // raised by each write; 0: not stored yet
	Due       time.Time // when it next wants attention; zero: not by itself
	Blob      []byte
}

// RowKey names a row.
type RowKey struct{ Kind, Namespace, ID string }

// Key names the row.
func (r Row) Key() RowKey { return RowKey{r.Kind, r.Namespace, r.ID} }

// Range is a stretch of slots of one trigger that were skipped without ever being keyed: one record for all of them.
type Range struct {
	Namespace, Trigger          string
	Incarnation, Version, Epoch uint32
	First, Last                 time.Time // both were skipped
	Count                       int64     // at least 1
	Reason                      string
	At                          time.Time // when it was decided
}

// Name is the range's one canonical text, as a store keeps it: namespace/trigger/incarnation.version.epoch/first/last. A
// range that is recorded again under the same name replaces the earlier one.
func (r Range) Name() string {
	k := Key{Namespace: r.Namespace, Trigger: r.Trigger, Incarnation: r.Incarnation, Version: r.Version, Epoch: r.Epoch}
	b := append(k.appendOwner(make([]byte, 0, 112)), '/')
	b = append(instant(r.First).AppendFormat(b, time.RFC3339Nano), '/')
	return string(instant(r.Last).AppendFormat(b, time.RFC3339Nano))
}

func (r *Range) check() error {
	switch {
	case r.Count < 1, r.Last.Before(r.First), r.Namespace == "", r.Trigger == "", r.Reason == "", r.First.IsZero():
		return fmt.Errorf("%w: range of %q/%q: %d slots from %v to %v, reason %q", ErrIllegal, r.Namespace, r.Trigger, r.Count, r.First, r.Last, r.Reason)
	case !storable(r.First), !storable(r.Last), !storable(r.At):
		return fmt.Errorf("%w: range of %q/%q from %v to %v at %v: want the years 1 to 9999", ErrIllegal, r.Namespace, r.Trigger, r.First, r.Last, r.At)
	}
	first := Key{Namespace: r.Namespace, Trigger: r.Trigger, Incarnation: r.Incarnation, Version: r.Version, Epoch: r.Epoch, Kind: KindSlot, Slot: r.First}
	return first.Validate()
}

// Request is what is committed together or not at all.
type Request struct {
	// Rows are written by compare-and-set: Revision is the one that the caller read (0: the row must not exist
	// yet); it is stored with the next one. A mismatch is ErrStale.
	Rows []Row
	// Drop removes rows by compare-and-set in the same way.
	Drop   []Row
	Ops    []Op
	Ranges []Range
	// Tx runs in the same transaction, with the store's own transaction value (sqlite.Tx, ...), and only where every
	// Op was recorded: one that was not (a key that is done already) refuses a request with a Tx as ErrIllegal, so that
	// an effect cannot be committed twice. It is short (the store bounds it) and may run more than once; its error
	// refuses the whole request.
	Tx func(ctx context.Context, tx any) error
}

// Result of one Op: the answer, and the record as it stands afterwards (of a refused op: only its key).
type Result struct {
	Answer Answer
	Record Record
	Err    error // of Refused
}

// Outcome of one request. Err not nil: nothing of it was kept. Results are in the order of Request.Ops.
type Outcome struct {
	Err     error
	Results []Result
}

// View is what a plan reads: the records and rows as they stand in the store's transaction. Absent is (nil, nil).
type View interface {
	Record(k Key) (*Record, error)
	Row(k RowKey) (*Row, error)
}

// Planned is what a store writes for one request.
type Planned struct {
	Records []Record // to be stored, each key once, as it stands at the end
	Rows    []Row    // to be stored, with their new revisions
	Drop    []RowKey
	Ranges  []Range
	Results []Result
}

// Plan decides a whole request against the store's present state without changing anything: what it refuses leaves
// no trace. Errors of the view come back as they are; refusals are the sentinels of this package.
func Plan(v View, req Request, now Hand) (Planned, error) {
	var p Planned
	if len(req.Ops) > 0 {
		p.Results = make([]Result, 0, len(req.Ops))
	}
	for _, row := range req.Rows {
		row.Due = instant(row.Due)
		if err := p.expect(v, row); err != nil {
			return Planned{}, err
		}
		row.Revision++
		p.Rows = append(p.Rows, row)
	}
	for _, row := range req.Drop {
		if err := p.expect(v, row); err != nil {
			return Planned{}, err
		}
		p.Drop = append(p.Drop, row.Key())
	}
	for _, op := range req.Ops {
		op.Key = op.Key.Canonical()
		rec, at, err := p.find(v, op.Key)
		if err != nil {
			return Planned{}, err
		}
		r, answer, err := Next(rec, op, now)
		if err == nil && answer != Recorded && req.Tx != nil {
			err = fmt.Errorf("%w: %s of %s in one transaction with its effect: it is %s already", ErrIllegal, op.Action, op.Key, r.State)
		}
		if err != nil && op.Alone && req.Tx == nil {
			p.Results = append(p.Results, Result{Answer: Refused, Record: Record{Key: op.Key}, Err: err})
			continue
		}
		if err != nil {
			return Planned{}, err
		}
		p.Results = append(p.Results, Result{Answer: answer, Record: r})
		switch {
		case answer != Recorded:
		case at >= 0:
			p.Records[at] = r
		default:
			p.Records = append(p.Records, r)
		}
	}
	for _, r := range req.Ranges {
		r.First, r.Last, r.At, r.Reason = instant(r.First), instant(r.Last), instant(r.At), clean(r.Reason)
		if err := r.check(); err != nil {
			return Planned{}, err
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p, nil
}

// find gives the record of k as the earlier ops of this plan left it, and its place in p.Records or -1.
func (p *Planned) find(v View, k Key) (*Record, int, error) {
	for i := range p.Records {
		if p.Records[i].Key == k {
			return &p.Records[i], i, nil
		}
	}
	rec, err := v.Record(k)
	return rec, -1, err
}

// expect checks that the row can be kept, is written once in this plan, and stands as its writer read it.
func (p *Planned) expect(v View, row Row) error {
	k := row.Key()
	switch {
	case k.Kind == "" || k.Namespace == "" || k.ID == "":
		return fmt.Errorf("%w: a row needs kind, namespace and id, got %q, %q, %q", ErrIllegal, k.Kind, k.Namespace, k.ID)
	case !text(k.Kind) || !text(k.Namespace) || !text(k.ID) || !text(row.Owner):
		return fmt.Errorf("%w: row %.80q of %.80q: kind, namespace, id and owner are UTF-8 without NUL", ErrIllegal, k, row.Owner)
	case len(k.Kind)+len(k.Namespace)+len(k.ID) > MaxKey:
		return fmt.Errorf("%w: row %.80q: kind, namespace and id have more than %d bytes", ErrIllegal, k, MaxKey)
	case !storable(row.Due):
		return fmt.Errorf("%w: row %q due %v: want the years 1 to 9999", ErrIllegal, k, row.Due)
	}
	for i := range p.Rows {
		if p.Rows[i].Key() == k {
			return fmt.Errorf("%w: row %q twice in one request", ErrIllegal, k)
		}
	}
	if slices.Contains(p.Drop, k) {
		return fmt.Errorf("%w: row %q twice in one request", ErrIllegal, k)
	}
	have, err := v.Row(k)
	if err != nil {
		return err
	}
	var rev uint64
	if have != nil {
		rev = have.Revision
	}
	if rev != row.Revision {
		return fmt.Errorf("%w: %s %s/%s has revision %d, the writer read %d", ErrStale, k.Kind, k.Namespace, k.ID, rev, row.Revision)
	}
	return nil
}

// Refusal says whether err is a request's own fault (it would fail again, alone or not) rather than the store's.
func Refusal(err error) bool {
	for _, s := range []error{ErrFenced, ErrIllegal, ErrKeyConflict, ErrStale, ErrBadKey, ErrWrongStore, ErrTxBound} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}
