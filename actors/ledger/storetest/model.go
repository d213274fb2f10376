package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// seedVar names the environment variable that repeats one walk of the model test.
const seedVar = "QUARTERJACK_SEED"

// walks is how many walks the model test takes, and steps how long one is.
const walks, steps = 12, 40

// model walks at random: batches of requests go to the store and to a map that the kernel alone drives. Every outcome,
// and every listing, must be the same.
func model(t *testing.T, empty func(t *testing.T) claim.Store) {
	first, n := rand.Uint64N(1e9), uint64(walks)
	if s := os.Getenv(seedVar); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, seedVar)
		first, n = seed, 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := &walk{
				fixture: open(t, empty(t)),
				rand:    rand.New(rand.NewPCG(seed, 0)),
				dumb:    dumb{records: map[claim.Key]claim.Record{}, rows: map[claim.RowKey]claim.Row{}, ranges: map[string]claim.Range{}},
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to see it again: %s=%d", seedVar, seed)
				}
			})
			for range steps {
				w.step()
			}
			w.compare(claim.Query{Limit: 7}, claim.RowQuery{Limit: 3})
		})
	}
}

// dumb is the model: what a store is, without any cleverness.
type dumb struct {
	records map[claim.Key]claim.Record
	rows    map[claim.RowKey]claim.Row
	ranges  map[string]claim.Range
}

func (d *dumb) Record(k claim.Key) (*claim.Record, error) {
	if r, ok := d.records[k]; ok {
		return &r, nil
	}
	return nil, nil
}

func (d *dumb) Row(k claim.RowKey) (*claim.Row, error) {
	if r, ok := d.rows[k]; ok {
		return &r, nil
	}
	return nil, nil
}

func (d *dumb) apply(now claim.Hand, req claim.Request) claim.Outcome {
	p, err := claim.Plan(d, req, now)
	if err != nil {
		return claim.Outcome{Err: err}
	}
	for _, r := range p.Records {
		d.records[r.Key] = r
	}
	for _, r := range p.Rows {
		d.rows[r.Key()] = r
	}
	for _, k := range p.Drop {
		delete(d.rows, k)
	}
	for _, r := range p.Ranges {
		d.ranges[r.Name()] = r
	}
	return claim.Outcome{Results: p.Results}
}

// walk is one walk of the model test.
type walk struct {
	*fixture
	rand *rand.Rand
	dumb dumb
}

// step commits a batch, lets time pass, and sometimes opens the store anew or compares a listing.
func (w *walk) step() {
	w.after(time.Duration(w.rand.IntN(40)) * time.Second)
	reqs := make([]claim.Request, 1+w.rand.IntN(6))
	for i := range reqs {
		reqs[i] = w.request()
	}
	for i, got := range w.apply(reqs...) {
		want := w.dumb.apply(w.now, reqs[i])
		rule := fmt.Sprintf("request %+v at %v/%v is decided as the kernel says", reqs[i], w.now.Wall, w.now.Mono)
		if want.Err != nil {
			require.EqualError(w.t, got.Err, want.Err.Error(), rule)
			continue
		}
		require.NoError(w.t, got.Err, rule)
		require.Len(w.t, got.Results, len(want.Results), rule)
		for j := range want.Results {
			require.Equal(w.t, want.Results[j], got.Results[j], rule)
		}
	}
	switch w.rand.IntN(8) {
	case 0:
		w.reopen(w.store)
	case 1, 2:
		w.compare(w.query())
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (w *walk) key() claim.Key {
	ns, trigger := pick(w.rand, "n", "m"), pick(w.rand, "t", "t/u", "é")
	switch w.rand.IntN(5) {
	case 0:
		return claim.Free(ns, pick(w.rand, "a", "b", "a/b", ""))
	case 1:
		return claim.Key{Namespace: ns, Trigger: trigger, Kind: claim.KindOrdinal, Ordinal: w.rand.Int64N(3)}
	case 2:
		return claim.Key{Namespace: ns, Trigger: trigger, Incarnation: 1, Kind: claim.KindManual, ID: pick(w.rand, "r", "s")}
	}
	return claim.Key{Namespace: ns, Trigger: trigger, Incarnation: 1, Version: 1, Kind: claim.KindSlot, Slot: w.instant()}
}

func (w *walk) instant() time.Time {
	return noon.Add(time.Duration(w.rand.IntN(4))*time.Minute + time.Duration(w.rand.IntN(2))*time.Microsecond)
}

func (w *walk) request() claim.Request {
	var req claim.Request
	for range w.rand.IntN(4) {
		req.Ops = append(req.Ops, w.op())
	}
	if w.rand.IntN(3) == 0 {
		row := claim.Row{Kind: pick(w.rand, "trigger", "mark"), Namespace: pick(w.rand, "n", "m"), ID: pick(w.rand, "t", "u"), Owner: pick(w.rand, "", "o"), Blob: []byte(fmt.Sprint(w.rand.Int()))}
		if w.rand.IntN(3) > 0 {
			row.Due = w.instant()
		}
		if have, ok := w.dumb.rows[row.Key()]; ok && w.rand.IntN(8) > 0 {
			row.Revision = have.Revision
		}
		if w.rand.IntN(4) == 0 {
			req.Drop = append(req.Drop, row)
		} else {
			req.Rows = append(req.Rows, row)
		}
	}
	if w.rand.IntN(6) == 0 {
		r := rangeOf(pick(w.rand, "t", "t/u"), w.instant(), 1+w.rand.Int64N(2))
		r.Namespace, r.At = pick(w.rand, "n", "m"), w.now.Wall
		req.Ranges = append(req.Ranges, r)
	}
	return req
}

func (w *walk) op() claim.Op {
	op := claim.Op{
		Action: claim.Action(1 + w.rand.IntN(int(claim.Skip))),
		Key:    w.key(),
		Slot:   w.instant(),
		Job:    "j",
		Lease:  time.Duration(1+w.rand.IntN(90)) * time.Second,
		Due:    w.instant(),
		Final:  w.rand.IntN(3) == 0,
		Reason: pick(w.rand, "", "because"),
		Alone:  w.rand.IntN(2) == 0,
		Stored: w.rand.IntN(3) == 0,
	}
	if w.rand.IntN(4) == 0 {
		op.Payload = []byte("p")
	}
	if w.rand.IntN(2) == 0 {
		op.Result = []byte(fmt.Sprint(w.rand.Int()))
	}
	if have, ok := w.dumb.records[op.Key.Canonical()]; ok && w.rand.IntN(6) > 0 {
		op.Fence = have.Fence
	}
	return op
}

func (w *walk) query() (claim.Query, claim.RowQuery) {
	q := claim.Query{
		Namespace: pick(w.rand, "", "n", "m"), Trigger: pick(w.rand, "", "", "t", "t/u", "é"), Kind: pick(w.rand, 0, 0, claim.KindSlot, claim.KindFree),
		Job: pick(w.rand, "", "", "j", "k"), Limit: w.rand.IntN(6),
		States: pick(w.rand, nil, nil, []claim.State{claim.Pending, claim.Claimed}, []claim.State{claim.Done, claim.Dead, claim.Skipped}, []claim.State{claim.Claimed, claim.Done}),
	}
	if w.rand.IntN(3) == 0 {
		q.From = w.instant()
	}
	if w.rand.IntN(3) == 0 {
		q.To = w.instant()
	}
	return q, claim.RowQuery{
		Kind: pick(w.rand, "", "trigger"), Namespace: pick(w.rand, "", "n"), ID: pick(w.rand, "", "", "t"), OfOwner: w.rand.IntN(3) == 0,
		Owner: pick(w.rand, "", "o"), Limit: w.rand.IntN(4),
	}
}

// compare asks the store and the model for the same listings.
func (w *walk) compare(q claim.Query, rq claim.RowQuery) {
	all := q
	all.Limit = 1 << 30
	var records []claim.Record
	for _, r := range w.dumb.records {
		if q.HasRecord(&r) {
			records = append(records, r)
		}
	}
	var ranges []claim.Range
	for _, r := range w.dumb.ranges {
		if q.HasRange(&r) {
			ranges = append(ranges, r)
		}
	}
	var rows []claim.Row
	for _, r := range w.dumb.rows {
		if rq.HasRow(&r) {
			rows = append(rows, r)
		}
	}
	rule := fmt.Sprintf("a listing is what the kernel says: %+v, %+v", q, rq)
	require.Equal(w.t, all.PageRecords(records), w.records(q), rule)
	require.Equal(w.t, all.PageRanges(ranges), w.ranges(q), rule)
	allRows := rq
	allRows.Limit = 1 << 30
	require.Equal(w.t, allRows.PageRows(rows), w.rows(rq), rule)
}
