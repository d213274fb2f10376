package claim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// table is a View of what it holds; broken, if set, is the error of every look.
type table struct {
	records map[Key]Record
	rows    map[RowKey]Row
	broken  error
}

func (v *table) Record(k Key) (*Record, error) {
	if r, ok := v.records[k]; ok {
		return &r, v.broken
	}
	return nil, v.broken
}

func (v *table) Row(k RowKey) (*Row, error) {
	if r, ok := v.rows[k]; ok {
		return &r, v.broken
	}
	return nil, v.broken
}

// keep writes a plan down.
func (v *table) keep(p Planned) {
	if v.records == nil {
		v.records, v.rows = map[Key]Record{}, map[RowKey]Row{}
	}
	for _, r := range p.Records {
		v.records[r.Key] = r
	}
	for _, r := range p.Rows {
		v.rows[r.Key()] = r
	}
	for _, k := range p.Drop {
		delete(v.rows, k)
	}
}

func invoiceRow(revision uint64) Row {
	return Row{Kind: "trigger", Namespace: "billing", ID: "invoice", Owner: "ops", Revision: revision, Due: at("03-08 02:30:00"), Blob: []byte("state")}
}

func skippedRange() Range {
	return Range{Namespace: "billing", Trigger: "invoice", Incarnation: 1, Version: 1, First: at("03-08 02:00:00"), Last: at("03-08 02:20:00"), Count: 3, Reason: "misfire", At: wall}
}

func TestPlan(t *testing.T) {
	other := Free("billing", "other")
	v := &table{}
	v.keep(Planned{Records: []Record{*heldRecord()}, Rows: []Row{invoiceRow(4)}})
	next := invoiceRow(4)
	next.Due = at("03-08 02:31:00.1234567")

	p, err := Plan(v, Request{
		Rows: []Row{next},
		Ops: []Op{
			op(Complete),
			{Action: Decide, Key: other},
			{Action: Claim, Key: other, Lease: time.Minute},
			{Action: Skip, Key: other, Alone: true},
			{Action: Extend, Key: other, Fence: 9, Lease: time.Minute, Alone: true},
		},
		Ranges: []Range{skippedRange()},
	}, hand())
	require.NoError(t, err)

	next.Revision, next.Due = 5, at("03-08 02:31:00.123456")
	assert.Equal(t, []Row{next}, p.Rows)
	assert.Equal(t, []Range{skippedRange()}, p.Ranges)
	require.Len(t, p.Records, 2, "each key once, as it stands at the end")
	assert.Equal(t, Done, p.Records[0].State)
	assert.Equal(t, Claimed, p.Records[1].State)
	var answers []Answer
	for _, r := range p.Results {
		answers = append(answers, r.Answer)
	}
	assert.Equal(t, []Answer{Recorded, Recorded, Recorded, InFlight, Refused}, answers)
	require.ErrorIs(t, p.Results[4].Err, ErrFenced)
	assert.Equal(t, Record{Key: other}, p.Results[4].Record)
}

func TestPlanIsAllOrNothing(t *testing.T) {
	good := Request{Rows: []Row{invoiceRow(4)}, Ops: []Op{{Action: Claim, Key: Free("billing", "other"), Lease: time.Minute}}, Ranges: []Range{skippedRange()}}
	fence := op(Complete)
	fence.Fence = 0
	tx := func(context.Context, any) error { return nil }
	bad := func(change func(*Range)) []Range { r := skippedRange(); change(&r); return []Range{r} }
	odd := func(change func(*Row)) []Row { r := invoiceRow(4); change(&r); return []Row{r} }
	for _, tt := range []struct {
		name string
		add  Request
		err  error
		says string
	}{
		{"a fence", Request{Ops: []Op{fence}}, ErrFenced, ""},
		{"a key", Request{Ops: []Op{{Action: Decide, Key: Free("", "x")}}}, ErrBadKey, ""},
		{"a row that was changed", Request{Rows: []Row{{Kind: "trigger", Namespace: "billing", ID: "report", Revision: 2}}}, ErrStale, "has revision 1, the writer read 2"},
		{"a row that should be new and is not", Request{Rows: []Row{{Kind: "trigger", Namespace: "billing", ID: "report"}}}, ErrStale, "has revision 1, the writer read 0"},
		{"a row that should be there and is not", Request{Rows: []Row{{Kind: "trigger", Namespace: "billing", ID: "gone", Revision: 1}}}, ErrStale, "has revision 0, the writer read 1"},
		{"a row to be dropped that was changed", Request{Drop: []Row{{Kind: "trigger", Namespace: "billing", ID: "report", Revision: 2}}}, ErrStale, ""},
		{"a row twice", Request{Rows: []Row{invoiceRow(4)}}, ErrIllegal, "twice in one request"},
		{"a row written and dropped", Request{Drop: []Row{invoiceRow(4)}}, ErrIllegal, "twice in one request"},
		{"a row without an id", Request{Rows: odd(func(r *Row) { r.ID = "" })}, ErrIllegal, "needs kind, namespace and id"},
		{"a row that is not UTF-8", Request{Rows: odd(func(r *Row) { r.ID = "\xff" })}, ErrIllegal, "UTF-8"},
		{"a row with a NUL in its id", Request{Rows: odd(func(r *Row) { r.ID = "a\x00b" })}, ErrIllegal, "NUL"},
		{"a row with an id of 10,000 bytes", Request{Rows: odd(func(r *Row) { r.ID = strings.Repeat("i", 10_000) })}, ErrIllegal, "more than 1024 bytes"},
		{"a row due after the year 9999", Request{Rows: odd(func(r *Row) { r.ID, r.Due = "x", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })}, ErrIllegal, "9999"},
		{"a range of nothing", Request{Ranges: bad(func(r *Range) { r.Count = 0 })}, ErrIllegal, "0 slots from"},
		{"a range that runs backwards", Request{Ranges: bad(func(r *Range) { r.Last = at("03-08 01:00:00") })}, ErrIllegal, ""},
		{"a range without a reason", Request{Ranges: bad(func(r *Range) { r.Reason = "" })}, ErrIllegal, ""},
		{"a range without a namespace", Request{Ranges: bad(func(r *Range) { r.Namespace = "" })}, ErrIllegal, ""},
		{"a range of a trigger that is not UTF-8", Request{Ranges: bad(func(r *Range) { r.Trigger = "\xff" })}, ErrBadKey, ""},
		{"a range that was decided after the year 9999", Request{Ranges: bad(func(r *Range) { r.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })}, ErrIllegal, ""},
		{"an effect for a key that has it already", Request{Ops: []Op{op(Complete)}, Tx: tx}, ErrIllegal, "complete of billing/invoice/1.1.0/slot/2026-03-08T02:30:00Z in one transaction with its effect: it is done already"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &table{}
			v.keep(Planned{Records: []Record{*ended(Done)}, Rows: []Row{invoiceRow(4), {Kind: "trigger", Namespace: "billing", ID: "report", Revision: 1}}})
			req := Request{
				Rows: append(good.Rows, tt.add.Rows...), Drop: tt.add.Drop, Ops: append(good.Ops, tt.add.Ops...),
				Ranges: append(good.Ranges, tt.add.Ranges...), Tx: tt.add.Tx,
			}
			p, err := Plan(v, req, hand())
			require.ErrorIs(t, err, tt.err)
			require.ErrorContains(t, err, tt.says)
			assert.Zero(t, p, "what is refused leaves no trace")
		})
	}
	_, err := Plan(&table{rows: map[RowKey]Row{invoiceRow(4).Key(): invoiceRow(4)}}, good, hand())
	require.NoError(t, err, "the part that is good by itself")
}

func TestPlanWithAnEffectLetsNoOpStandAlone(t *testing.T) {
	fence := op(Complete)
	fence.Fence, fence.Alone = 0, true
	v := &table{}
	v.keep(Planned{Records: []Record{*heldRecord()}})
	_, err := Plan(v, Request{Ops: []Op{fence}, Tx: func(context.Context, any) error { return nil }}, hand())
	require.ErrorIs(t, err, ErrFenced, "the effect must not be committed without its op")
}

func TestPlanPassesOnWhatTheViewSays(t *testing.T) {
	broken := errors.New("the disk is on fire")
	for name, req := range map[string]Request{
		"record": {Ops: []Op{{Action: Claim, Key: Free("n", "x"), Lease: 1, Alone: true}}},
		"row":    {Rows: []Row{invoiceRow(0)}},
		"drop":   {Drop: []Row{invoiceRow(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Plan(&table{broken: broken}, req, hand())
			require.ErrorIs(t, err, broken)
			assert.False(t, Refusal(err))
		})
	}
}

func TestWhatCannotReachTheLedgerIsAnswered(t *testing.T) {
	gone := errors.New("gone")
	var o Outcome
	(&Commit{Reply: func(got Outcome) { o = got }}).Undelivered(gone)
	require.ErrorIs(t, o.Err, ErrClosed)
	require.ErrorIs(t, o.Err, gone)
	var err error
	(&Read{Reply: func(got error) { err = got }}).Undelivered(gone)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, err, gone)
}

func TestInTx(t *testing.T) {
	require.NoError(t, InTx(t.Context()))
	ctx, cancel := context.WithCancel(EnterTx(t.Context()))
	defer cancel()
	require.ErrorIs(t, InTx(ctx), ErrInTx)
}
