package sqlite

import (
	"fmt"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// view is the writer as a plan reads it, in the transaction. It remembers which keys it was asked for, and whether
// they are there.
type view struct {
	w    *writer
	seen []seen
}

type seen struct {
	key    claim.Key
	text   string
	exists bool
}

// Record reads what is stored of a key.
func (v *view) Record(k claim.Key) (*claim.Record, error) {
	text := k.String()
	row, err := v.w.claim.row(numClaimColumns, text)
	if err != nil {
		return nil, err
	}
	v.seen = append(v.seen, seen{k, text, row != nil})
	if row == nil {
		return nil, nil
	}
	d := decoder{values: row}
	r := d.record(k)
	return &r, d.err
}

// Row reads a row's revision, which is all that a plan looks at.
func (v *view) Row(k claim.RowKey) (*claim.Row, error) {
	row, err := v.w.revision.row(1, k.Kind, k.Namespace, k.ID)
	if err != nil || row == nil {
		return nil, err
	}
	d := decoder{values: row}
	r := claim.Row{Kind: k.Kind, Namespace: k.Namespace, ID: k.ID, Revision: uint64(d.int())}
	return &r, d.err
}

// write stores what a plan says.
func (v *view) write(p *claim.Planned) error {
	for i := range p.Records {
		if err := v.writeRecord(&p.Records[i]); err != nil {
			return err
		}
	}
	for i := range p.Rows {
		if err := v.w.writeRow(&p.Rows[i]); err != nil {
			return err
		}
	}
	for _, k := range p.Drop {
		if err := v.w.dropRow.exec(k.Kind, k.Namespace, k.ID); err != nil {
			return err
		}
	}
	for _, r := range p.Ranges {
		err := v.w.addRange.one(r.Name(), r.Namespace, r.Trigger, int64(r.Incarnation), int64(r.Version), int64(r.Epoch),
			r.First.UnixMicro(), r.Last.UnixMicro(), r.Count, r.Reason, instant(r.At))
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *view) writeRecord(r *claim.Record) error {
	var at *seen
	for i := range v.seen {
		if v.seen[i].key == r.Key {
			at = &v.seen[i]
			break
		}
	}
	if at == nil {
		return fmt.Errorf("sqlite: %s was planned without being read", r.Key)
	}
	if at.exists {
		return v.w.setClaim.one(int64(r.State), int64(r.Session), int64(r.Lease), int64(r.Fence), int64(r.Attempt), int64(r.Interruptions),
			instant(r.Due), instant(r.FiredAt), instant(r.EndedAt), bytesOrNull(r.Result), r.Reason, at.text)
	}
	at.exists = true
	return v.w.addClaim.one(at.text, int64(r.State), int64(r.Session), int64(r.Lease), int64(r.Fence), int64(r.Attempt), int64(r.Interruptions),
		r.Slot.UnixMicro(), instant(r.Due), instant(r.FiredAt), instant(r.EndedAt), r.Job, bytesOrNull(r.Payload), int64(r.Fingerprint), bytesOrNull(r.Result), r.Reason)
}

func (w *writer) writeRow(r *claim.Row) error {
	if r.Revision == 1 {
		return w.addRow.one(r.Kind, r.Namespace, r.ID, r.Owner, int64(1), instant(r.Due), bytesOrNull(r.Blob))
	}
	return w.setRow.one(r.Owner, int64(r.Revision), instant(r.Due), bytesOrNull(r.Blob), r.Kind, r.Namespace, r.ID)
}
