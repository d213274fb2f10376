package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestQuerySelects(t *testing.T) {
	r := ended(Done)
	g := skippedRange() // from 02:00
	for _, tt := range []struct {
		name           string
		q              Query
		record, ranges bool
	}{
		{"all", Query{}, true, true},
		{"its namespace", Query{Namespace: "billing"}, true, true},
		{"another namespace", Query{Namespace: "mail"}, false, false},
		{"its trigger", Query{Trigger: "invoice"}, true, true},
		{"another trigger", Query{Trigger: "report"}, false, false},
		{"its kind", Query{Kind: KindSlot}, true, true},
		{"another kind", Query{Kind: KindManual}, false, true},
		{"its job", Query{Job: "bill"}, true, true},
		{"another job", Query{Job: "mail"}, false, true},
		{"its state", Query{States: []State{Dead, Done}}, true, true},
		{"other states", Query{States: []State{Pending, Claimed}}, false, true},
		{"from its instant", Query{From: at("03-08 02:30:00")}, true, false},
		{"from later", Query{From: at("03-08 02:30:01")}, false, false},
		{"to later", Query{To: at("03-08 02:30:01")}, true, true},
		{"to its instant", Query{To: at("03-08 02:30:00")}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.record, tt.q.HasRecord(r))
			assert.Equal(t, tt.ranges, tt.q.HasRange(&g))
		})
	}
	row := invoiceRow(1)
	for name, tt := range map[string]struct {
		q   RowQuery
		has bool
	}{
		"all":           {RowQuery{}, true},
		"its kind":      {RowQuery{Kind: "trigger"}, true},
		"another kind":  {RowQuery{Kind: "mark"}, false},
		"another place": {RowQuery{Namespace: "mail"}, false},
		"another id":    {RowQuery{ID: "report"}, false},
		"its owner":     {RowQuery{OfOwner: true, Owner: "ops"}, true},
		"no owner":      {RowQuery{OfOwner: true}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.has, tt.q.HasRow(&row)) })
	}
}

func TestPages(t *testing.T) {
	record := func(slot, id string) Record { return Record{Key: Free("n", id), Slot: at(slot)} }
	want := []Record{record("03-08 01:00:00", "z"), record("03-08 02:00:00", "a"), record("03-08 02:00:00", "b"), record("03-08 03:00:00", "a")}
	for limit := range 6 {
		var got []Record
		for q := (Query{Limit: limit}); ; {
			p := q.PageRecords([]Record{want[2], want[0], want[3], want[1]})
			if len(p) == 0 {
				break
			}
			got = append(got, p...)
			q.After = p[len(p)-1].Cursor()
		}
		assert.Equal(t, want, got, "pages of %d", limit)
	}

	row := func(due, id, ns string) Row {
		r := Row{Kind: "k", Namespace: ns, ID: id}
		if due != "" {
			r.Due = at(due)
		}
		return r
	}
	rows := []Row{row("03-08 01:00:00", "z", "n"), row("03-08 02:00:00", "a", "n"), row("03-08 02:00:00", "b", "m"), row("03-08 02:00:00", "b", "n"), row("", "a", "n"), row("", "b", "n")}
	for limit := range 8 {
		var got []Row
		for q := (RowQuery{Limit: limit}); ; {
			p := q.PageRows([]Row{rows[5], rows[3], rows[0], rows[4], rows[2], rows[1]})
			if len(p) == 0 {
				break
			}
			got = append(got, p...)
			q.After = &p[len(p)-1]
		}
		assert.Equal(t, rows, got, "pages of %d", limit)
	}
}

func TestRangesOfOneFirstSlotKeepApart(t *testing.T) {
	a, b := skippedRange(), skippedRange()
	b.Last = b.Last.Add(time.Minute)
	assert.Equal(t, "billing/invoice/1.1.0/2026-03-08T02:00:00Z/2026-03-08T02:20:00Z", a.Name())
	q := Query{Limit: 1}
	assert.Equal(t, []Range{a}, q.PageRanges([]Range{b, a}))
	q.After = a.Cursor()
	assert.Equal(t, []Range{b}, q.PageRanges([]Range{b, a}))
}
