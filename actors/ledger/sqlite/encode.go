package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// How values rest in a column: instants as microseconds since 1970 (which order as they do, and hold the years 1 to
// 9999), numbers without a sign by their bits, and NULL for the zero time and for no bytes. A slot is never NULL, since
// it is part of an order: the zero time is the first instant of the year 1.

// claimColumns are the columns of a record, in the order in which decodeRecord takes them. The key is not among them.
const claimColumns = "state, session, lease, fence, attempt, interruptions, slot, due, fired_at, ended_at, job, payload, fingerprint, result, reason"

const numClaimColumns = 15

func instant(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func bytesOrNull(b []byte) driver.Value {
	if len(b) == 0 {
		return nil
	}
	return b
}

// decoder takes values off a row. The first that has not the type of its column is the error of all of them.
type decoder struct {
	values []driver.Value
	err    error
}

func take[T any](d *decoder) (v T) {
	have := d.values[0]
	d.values = d.values[1:]
	v, ok := have.(T)
	if !ok && d.err == nil {
		d.err = fmt.Errorf("%w: a column holds %T (%.40v), want %T", claim.ErrCorrupt, have, have, v)
	}
	return v
}

func (d *decoder) int() int64   { return take[int64](d) }
func (d *decoder) text() string { return take[string](d) }

// instant takes one that may be NULL.
func (d *decoder) instant() time.Time {
	if d.values[0] == nil {
		d.values = d.values[1:]
		return time.Time{}
	}
	return time.UnixMicro(d.int()).UTC()
}

// bytes takes some that may be NULL.
func (d *decoder) bytes() []byte {
	if d.values[0] == nil {
		d.values = d.values[1:]
		return nil
	}
	return take[[]byte](d)
}

// record takes claimColumns.
func (d *decoder) record(k claim.Key) claim.Record {
	return claim.Record{
		Key: k, State: claim.State(d.int()), Session: uint64(d.int()), Lease: time.Duration(d.int()), Fence: uint64(d.int()),
		Attempt: uint32(d.int()), Interruptions: uint32(d.int()),
		Slot: d.instant(), Due: d.instant(), FiredAt: d.instant(), EndedAt: d.instant(),
		Job: d.text(), Payload: d.bytes(), Fingerprint: uint64(d.int()), Result: d.bytes(), Reason: d.text(),
	}
}

// keyed takes a key and claimColumns, as a listing gives them.
func (d *decoder) keyed() claim.Record {
	text := d.text()
	k, err := claim.ParseKey(text)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("%w: key %q: %w", claim.ErrCorrupt, text, err)
	}
	return d.record(k)
}

const rowColumns = "kind, namespace, id, owner, revision, due, blob"

func (d *decoder) row() claim.Row {
	return claim.Row{Kind: d.text(), Namespace: d.text(), ID: d.text(), Owner: d.text(), Revision: uint64(d.int()), Due: d.instant(), Blob: d.bytes()}
}

const rangeColumns = "namespace, trigger, incarnation, version, epoch, first, last, slots, reason, decided_at"

func (d *decoder) span() claim.Range {
	return claim.Range{
		Namespace: d.text(), Trigger: d.text(), Incarnation: uint32(d.int()), Version: uint32(d.int()), Epoch: uint32(d.int()),
		First: d.instant(), Last: d.instant(), Count: d.int(), Reason: d.text(), At: d.instant(),
	}
}

// ceil gives the first instant that can be stored and is not before t.
func ceil(t time.Time) int64 {
	if u := time.UnixMicro(t.UnixMicro()); u.Before(t) {
		return t.UnixMicro() + 1
	}
	return t.UnixMicro()
}
