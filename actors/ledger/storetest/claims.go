package storetest

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

func slotKey(trigger string, slot time.Time) claim.Key {
	return claim.Key{Namespace: "n", Trigger: trigger, Incarnation: 1, Version: 1, Kind: claim.KindSlot, Slot: slot}
}

// claimRules are about the records of keys.
var claimRules = map[string]func(t *testing.T, s claim.Store){
	"nothing is applied": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		require.Empty(t, f.apply())
		require.NoError(t, f.apply(claim.Request{})[0].Err)
	},
	"a key goes through its states": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		key := slotKey("t", noon)
		f.do(claim.Op{Action: claim.Decide, Key: key, Slot: noon, Due: noon, Job: "j", Payload: []byte("p")})
		require.Equal(t, claim.Pending, f.record(key).State)
		op := claimOp(key)
		op.Stored = true
		r := f.do(op)[0].Record
		f.do(claim.Op{Action: claim.Fail, Key: key, Fence: r.Fence, Due: noon.Add(time.Minute), Reason: "no route to host"})
		r = f.after(time.Minute).do(op)[0].Record
		require.Equal(t, uint32(2), r.Attempt)
		f.do(claim.Op{Action: claim.Release, Key: key, Fence: r.Fence, Reason: "shutdown"})
		r = f.after(time.Minute).do(op)[0].Record
		f.do(claim.Op{Action: claim.Extend, Key: key, Fence: r.Fence, Lease: time.Hour})
		r = f.do(claim.Op{Action: claim.Complete, Key: key, Fence: r.Fence, Result: []byte("42")})[0].Record
		require.Equal(t, claim.Done, r.State)
		require.Equal(t, r, *f.record(key), "what the answer says is what is stored")
		require.Equal(t, claim.Already, f.do(op)[0].Answer, "a key with a verdict is not claimed again")
	},
	"each request has its own outcome": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		held := f.claimed(claim.Free("n", "held"))
		old := completeOp(held)
		old.Fence--
		out := f.apply(
			claim.Request{Ops: []claim.Op{claimOp(claim.Free("n", "a"))}},
			claim.Request{Ops: []claim.Op{old}},
			claim.Request{Ops: []claim.Op{claimOp(claim.Free("", "b"))}},
			claim.Request{Ops: []claim.Op{claimOp(held.Key)}},
			claim.Request{Ops: []claim.Op{claimOp(claim.Free("n", "c"))}},
		)
		require.NoError(t, out[0].Err)
		require.ErrorIs(t, out[1].Err, claim.ErrFenced)
		require.ErrorIs(t, out[2].Err, claim.ErrBadKey)
		require.NoError(t, out[3].Err)
		require.Equal(t, claim.InFlight, out[3].Results[0].Answer)
		require.Equal(t, held, out[3].Results[0].Record, "the answer says who holds it")
		require.NoError(t, out[4].Err)
		require.NotNil(t, f.record(claim.Free("n", "c")), "a refused request does not take others with it")
	},
	"a request is kept whole or not at all": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		key := claim.Free("n", "k")
		o := f.apply(claim.Request{
			Rows:   []claim.Row{{Kind: "trigger", Namespace: "n", ID: "t"}},
			Ops:    []claim.Op{claimOp(key), {Action: claim.Complete, Key: claim.Free("n", "absent"), Fence: 1}},
			Ranges: []claim.Range{rangeOf("t", noon, 3)},
		})[0]
		require.ErrorIs(t, o.Err, claim.ErrIllegal)
		require.Empty(t, o.Results)
		require.Nil(t, f.record(key))
		require.Empty(t, f.rows(claim.RowQuery{}))
		require.Empty(t, f.ranges(claim.Query{}))
	},
	"an op that stands alone is refused alone": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		key := claim.Free("n", "k")
		got := f.do(claimOp(key), claim.Op{Action: claim.Complete, Key: claim.Free("n", "absent"), Fence: 1, Alone: true})
		require.Equal(t, claim.Refused, got[1].Answer)
		require.ErrorIs(t, got[1].Err, claim.ErrIllegal)
		require.NotNil(t, f.record(key))
	},
	"requests of one transaction see each other in order": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		key := claim.Free("n", "k")
		out := f.apply(
			claim.Request{Ops: []claim.Op{claimOp(key)}},
			claim.Request{Ops: []claim.Op{claimOp(key)}},
			claim.Request{Ops: []claim.Op{{Action: claim.Complete, Key: key, Fence: 1}}},
			claim.Request{Ops: []claim.Op{claimOp(key)}},
			claim.Request{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "r"}}},
			claim.Request{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "r", Revision: 1}}},
			claim.Request{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "r", Revision: 1}}},
		)
		answers := []claim.Answer{claim.Recorded, claim.InFlight, claim.Recorded, claim.Already}
		for i, want := range answers {
			require.NoError(t, out[i].Err)
			require.Equal(t, want, out[i].Results[0].Answer, "request %d", i)
		}
		require.NoError(t, out[4].Err)
		require.NoError(t, out[5].Err)
		require.ErrorIs(t, out[6].Err, claim.ErrStale)
	},
	"records come back as they were written": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		first := time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
		last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
		f.now.Wall = time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC) // past what 64 bits of nanoseconds hold
		for i, op := range []claim.Op{
			{Key: slotKey("first", first), Slot: first, Due: first},
			{Key: slotKey("last", last), Slot: last, Due: last},
			{Key: claim.Free("n", "no times")},
			{Key: claim.Free("n", "a/b %é\"'"), Job: "jøb", Payload: []byte{}},
			{Key: claim.Free("n", strings.Repeat("k", 1000)), Payload: bytes.Repeat([]byte{0, 255}, 500_000)},
			{Key: claim.Key{Namespace: "n", Trigger: "t", Incarnation: math.MaxUint32, Version: math.MaxUint32, Epoch: math.MaxUint32, Kind: claim.KindOrdinal, Ordinal: math.MinInt64}},
			{Key: claim.Key{Namespace: "n", Trigger: "t", Kind: claim.KindManual, ID: "by hand"}},
		} {
			op.Action = claim.Decide
			want := f.do(op)[0].Record
			require.Equal(t, want, *f.record(op.Key), "op %d", i)
			op.Action, op.Lease = claim.Claim, math.MaxInt64
			want = f.do(op)[0].Record
			require.Equal(t, want, *f.record(op.Key), "op %d, claimed", i)
			done := completeOp(want)
			done.Result = []byte("\x00\xff")
			want = f.do(done)[0].Record
			require.Equal(t, want, *f.record(op.Key), "op %d, done", i)
		}
	},
	"bytes are the store's own": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		key := claim.Free("n", "k")
		payload, blob := []byte("payload"), []byte("blob")
		op := claimOp(key)
		op.Payload = payload
		o := f.apply(claim.Request{Ops: []claim.Op{op}, Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "r", Blob: blob}}})[0]
		require.NoError(t, o.Err)
		payload[0], blob[0] = 'X', 'X'
		f.record(key).Payload[1] = 'X'
		f.rows(claim.RowQuery{})[0].Blob[1] = 'X'
		require.Equal(t, "payload", string(f.record(key).Payload), "what callers do with their bytes changes nothing")
		require.Equal(t, "blob", string(f.rows(claim.RowQuery{})[0].Blob))
	},
	"bad keys are refused": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		for _, k := range []claim.Key{{}, claim.Free("n", ""), claim.Free("n", strings.Repeat("k", 10_000)), claim.Free("n", "\xff"), claim.Free("\xff", "k"), slotKey("t", time.Time{})} {
			o := f.apply(claim.Request{Ops: []claim.Op{claimOp(k)}})[0]
			require.ErrorIs(t, o.Err, claim.ErrBadKey)
		}
		require.Empty(t, f.records(claim.Query{}))
	},
	"a key is known by its payload": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		op := claimOp(claim.Free("n", "k"))
		op.Job, op.Payload = "j", []byte("p")
		f.do(op)
		op.Payload = []byte("q")
		require.ErrorIs(t, f.apply(claim.Request{Ops: []claim.Op{op}})[0].Err, claim.ErrKeyConflict)
	},
	"a lease ends on the monotonic hand": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		key := claim.Free("n", "k")
		first := f.claimed(key)
		f.now.Wall = f.now.Wall.AddDate(1, 0, 0)
		require.Equal(t, claim.InFlight, f.do(claimOp(key))[0].Answer, "a step of the wall clock ends no lease")
		f.now.Mono += time.Minute
		require.Equal(t, first.Fence+1, f.claimed(key).Fence)
	},
	"a thousand requests are one transaction": func(t *testing.T, s claim.Store) {
		f := open(t, s)
		reqs := make([]claim.Request, 1000)
		for i := range reqs {
			reqs[i].Ops = []claim.Op{claimOp(slotKey("t", noon.Add(time.Duration(i)*time.Second)))}
		}
		for _, o := range f.apply(reqs...) {
			require.NoError(t, o.Err)
		}
		require.Len(t, f.records(claim.Query{Trigger: "t", Limit: 333}), 1000)
	},
}
