package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

func rangeOf(trigger string, first time.Time, n int64) claim.Range {
	return claim.Range{
		Namespace: "n", Trigger: trigger, Incarnation: 1, Version: 2, Epoch: 3,
		First: first, Last: first.Add(time.Duration(n-1) * time.Minute), Count: n, Reason: "misfire", At: noon,
	}
}

// rowRules are about the rows that the store keeps for others, and about ranges.
var rowRules = map[string]func(t *testing.T, s claim.Store){
	"rows are written by compare-and-set": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		write := func(r claim.Row) error { return f.apply(claim.Request{Rows: []claim.Row{r}})[0].Err }
		row := claim.Row{Kind: "trigger", Namespace: "n", ID: "t", Owner: "o", Due: noon, Blob: []byte("1")}
		require.NoError(t, write(row))
		require.ErrorIs(t, write(row), claim.ErrStale, "a row that exists is not created")
		row.Revision, row.Blob, row.Owner, row.Due = 1, []byte("2"), "", time.Time{}
		require.NoError(t, write(row))
		require.ErrorIs(t, write(row), claim.ErrStale, "whoever read revision 1 is too late")
		row.Revision = 2
		require.Equal(t, []claim.Row{row}, f.rows(claim.RowQuery{}), "a row is stored with the next revision")
		row.ID = "other"
		require.ErrorIs(t, write(row), claim.ErrStale, "a row that does not exist is not changed")
	},
	"a row that was dropped is gone": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		row := claim.Row{Kind: "trigger", Namespace: "n", ID: "t", Blob: []byte("1")}
		require.NoError(t, f.apply(claim.Request{Rows: []claim.Row{row}})[0].Err)
		require.ErrorIs(t, f.apply(claim.Request{Drop: []claim.Row{row}})[0].Err, claim.ErrStale, "it is dropped by compare-and-set")
		row.Revision = 1
		require.NoError(t, f.apply(claim.Request{Drop: []claim.Row{row}})[0].Err)
		require.Empty(t, f.rows(claim.RowQuery{}))
		require.ErrorIs(t, f.apply(claim.Request{Drop: []claim.Row{row}})[0].Err, claim.ErrStale)
		row.Revision = 0
		require.NoError(t, f.apply(claim.Request{Rows: []claim.Row{row}})[0].Err, "its name is free again")
	},
	"kind, namespace and id together name a row": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		var all []claim.Row
		for _, k := range []string{"a", "b"} {
			for _, n := range []string{"a", "b"} {
				for _, id := range []string{"a", "b"} {
					all = append(all, claim.Row{Kind: k, Namespace: n, ID: id, Blob: []byte(k + n + id)})
				}
			}
		}
		require.NoError(t, f.apply(claim.Request{Rows: all})[0].Err)
		require.Len(t, f.rows(claim.RowQuery{}), 8)
		require.Equal(t, "aba", string(f.rows(claim.RowQuery{Kind: "a", Namespace: "b", ID: "a"})[0].Blob))
	},
	"rows come by due time, those without last": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		var want []claim.Row
		for i, id := range []string{"z", "y", "x", "w", "a", "b", "c"} {
			r := claim.Row{Kind: "trigger", Namespace: "n", ID: id, Revision: 1}
			if i < 4 {
				r.Due = noon.Add(time.Duration(i/2) * time.Microsecond)
			}
			want = append(want, r)
		}
		want[0], want[1], want[2], want[3] = want[1], want[0], want[3], want[2]
		for _, i := range []int{4, 0, 6, 3, 1, 5, 2} {
			r := want[i]
			r.Revision = 0
			require.NoError(t, f.apply(claim.Request{Rows: []claim.Row{r}})[0].Err)
		}
		for limit := range 9 {
			require.Equal(t, want, f.rows(claim.RowQuery{Kind: "trigger", Namespace: "n", Limit: limit}), "in pages of %d", limit)
			require.Equal(t, want, f.rows(claim.RowQuery{Limit: limit}), "in pages of %d of all kinds", limit)
		}
	},
	"a range that is recorded again replaces the earlier one": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		a, b, c := rangeOf("t", noon, 3), rangeOf("t", noon, 4), rangeOf("u", noon.Add(-time.Hour), 1)
		require.NoError(t, f.apply(claim.Request{Ranges: []claim.Range{a, b, c}})[0].Err)
		a.Reason = "overlap"
		require.NoError(t, f.apply(claim.Request{Ranges: []claim.Range{a}})[0].Err)
		require.Equal(t, []claim.Range{c, a, b}, f.ranges(claim.Query{Limit: 1}))
		require.Equal(t, []claim.Range{a, b}, f.ranges(claim.Query{Namespace: "n", Trigger: "t"}))
		require.Equal(t, []claim.Range{c}, f.ranges(claim.Query{To: noon}))
	},
}

// listingRules are about which records come, and in which order.
var listingRules = map[string]func(t *testing.T, s claim.Store){
	"records come by slot and key": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		var want []claim.Record
		for _, id := range []string{"a", "a/b", "a b", "b", "é"} {
			want = append(want, f.claimed(claim.Free("n", id)))
		}
		want[1], want[2] = want[2], want[1] // a%20b before a%2Fb
		early := claimOp(claim.Free("n", "z"))
		early.Slot = noon.Add(-time.Microsecond)
		want = append([]claim.Record{f.do(early)[0].Record}, want...)
		want[1], want[2], want[3], want[4], want[5] = want[5], want[1], want[2], want[3], want[4] // %C3%A9 before a
		for limit := range 8 {
			require.Equal(t, want, f.records(claim.Query{Limit: limit}), "in pages of %d", limit)
			require.Equal(t, want, f.records(claim.Query{Limit: limit, Namespace: "n"}), "in pages of %d of a namespace", limit)
			require.Equal(t, want, f.records(claim.Query{Limit: limit, States: []claim.State{claim.Pending, claim.Claimed}}), "unfinished, in pages of %d", limit)
		}
	},
	"a name is not a pattern": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		for _, trigger := range []string{"slot", "t*", "t?", "[t]", "t%", "t_", "T", "t", "tt", "%t", "t/slot"} {
			f.claimed(slotKey(trigger, noon))
		}
		for _, trigger := range []string{"slot", "t*", "t?", "[t]", "t%", "t_", "T", "t", "tt", "%t", "t/slot"} {
			for _, ns := range []string{"", "n"} {
				got := f.records(claim.Query{Namespace: ns, Trigger: trigger})
				require.Len(t, got, 1, "trigger %q", trigger)
				require.Equal(t, trigger, got[0].Key.Trigger)
			}
		}
		require.Empty(t, f.records(claim.Query{Namespace: "*"}))
	},
}
