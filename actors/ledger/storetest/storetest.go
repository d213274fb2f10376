// Package storetest says what a store of the ledger must do, as tests that every store runs:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) claim.Store { return memory.New() })
//	}
//
// A failure names the rule that was broken. Every test ends with a look at all that is stored: each record must be
// valid, and the store's own check, if it has one ([Checker]), must pass.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// Checker is implemented by a store that can check itself.
type Checker interface {
	Check(ctx context.Context) error
}

// Run tests a store. Empty makes one that holds nothing and has not been opened; it is called once a test.
func Run(t *testing.T, empty func(t *testing.T) claim.Store) {
	for _, group := range []map[string]func(t *testing.T, s claim.Store){lifeRules, claimRules, rowRules, listingRules, txRules} {
		for rule, test := range group {
			t.Run(rule, func(t *testing.T) { test(t, empty(t)) })
		}
	}
	t.Run("a store does what the kernel says", func(t *testing.T) { model(t, empty) })
}

// RunDurable tests what a store must do whose state outlives the process. At makes a store that has not been opened,
// over what a directory holds.
func RunDurable(t *testing.T, at func(t *testing.T, dir string) claim.Store) {
	for rule, test := range durableRules {
		t.Run(rule, func(t *testing.T) {
			dir := t.TempDir()
			test(t, func() claim.Store { return at(t, dir) })
		})
	}
}

// noon is when every test begins.
var noon = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

// fixture is a store that is open.
type fixture struct {
	t     testing.TB
	store claim.Store
	now   claim.Hand
}

// open opens the store, and closes and checks it when the test ends.
func open(t testing.TB, s claim.Store) *fixture {
	t.Helper()
	session, err := s.Open(t.Context())
	require.NoError(t, err, "a store that is not open can be opened")
	require.NotZero(t, session.ID, "a session has a number above 0")
	f := &fixture{t: t, store: s, now: claim.Hand{Wall: noon, Session: session.ID, Sole: session.Sole}}
	t.Cleanup(func() {
		if !t.Failed() {
			f.check()
		}
		require.NoError(t, f.store.Close(), "a store that is open can be closed")
	})
	return f
}

// reopen closes the store and opens it again, or another over the same state.
func (f *fixture) reopen(s claim.Store) {
	f.t.Helper()
	require.NoError(f.t, f.store.Close())
	session, err := s.Open(f.t.Context())
	require.NoError(f.t, err, "a store that was closed can be opened again")
	require.Greater(f.t, session.ID, f.now.Session, "a session's number is above that of every earlier one")
	f.store, f.now = s, claim.Hand{Wall: f.now.Wall, Session: session.ID, Sole: session.Sole}
}

// after lets time pass, on both hands.
func (f *fixture) after(d time.Duration) *fixture {
	f.now.Wall, f.now.Mono = f.now.Wall.Add(d), f.now.Mono+d
	return f
}

// apply commits requests in one transaction.
func (f *fixture) apply(reqs ...claim.Request) []claim.Outcome {
	f.t.Helper()
	out, err := f.store.Apply(context.Background(), f.now, reqs)
	require.NoError(f.t, err, "a refusal is the request's outcome and no error of Apply")
	require.Len(f.t, out, len(reqs), "each request has an outcome")
	return out
}

// do commits ops in one request, which must not be refused.
func (f *fixture) do(ops ...claim.Op) []claim.Result {
	f.t.Helper()
	o := f.apply(claim.Request{Ops: ops})[0]
	require.NoError(f.t, o.Err)
	require.Len(f.t, o.Results, len(ops), "each op has a result")
	return o.Results
}

// claimed claims a key, which must be free, for a minute.
func (f *fixture) claimed(k claim.Key) claim.Record {
	f.t.Helper()
	r := f.do(claimOp(k))[0]
	require.Equal(f.t, claim.Recorded, r.Answer)
	return r.Record
}

func claimOp(k claim.Key) claim.Op {
	return claim.Op{Action: claim.Claim, Key: k, Slot: noon, Lease: time.Minute}
}

func completeOp(r claim.Record) claim.Op {
	return claim.Op{Action: claim.Complete, Key: r.Key, Fence: r.Fence}
}

// record gives what is stored of a key, nil for nothing.
func (f *fixture) record(k claim.Key) *claim.Record {
	f.t.Helper()
	for _, r := range f.records(claim.Query{Namespace: k.Namespace, Trigger: k.Trigger}) {
		if r.Key == k {
			return &r
		}
	}
	return nil
}

// records gives all that q selects, page by page.
func (f *fixture) records(q claim.Query) []claim.Record {
	f.t.Helper()
	return pages(f.t, &q, f.store.Records, claim.Record.Cursor)
}

// ranges gives all that q selects, page by page.
func (f *fixture) ranges(q claim.Query) []claim.Range {
	f.t.Helper()
	return pages(f.t, &q, f.store.Ranges, claim.Range.Cursor)
}

func pages[T any](t testing.TB, q *claim.Query, read func(context.Context, claim.Query) ([]T, error), cursor func(T) *claim.Cursor) []T {
	t.Helper()
	var all []T
	limit := q.Limit
	if limit == 0 {
		limit = claim.DefaultPage
	}
	for {
		page, err := read(context.Background(), *q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit, "a page has at most Limit entries")
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
		q.After = cursor(page[len(page)-1])
	}
}

// rows gives all that q selects, page by page.
func (f *fixture) rows(q claim.RowQuery) []claim.Row {
	f.t.Helper()
	var all []claim.Row
	limit := q.Limit
	if limit == 0 {
		limit = claim.DefaultPage
	}
	for {
		page, err := f.store.Rows(context.Background(), q)
		require.NoError(f.t, err)
		require.LessOrEqual(f.t, len(page), limit, "a page has at most Limit entries")
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
		q.After = &page[len(page)-1]
	}
}

// check looks at all that is stored.
func (f *fixture) check() {
	f.t.Helper()
	for _, r := range f.records(claim.Query{}) {
		require.NoError(f.t, r.Valid(), "every record that is stored keeps the invariants")
	}
	if c, ok := f.store.(Checker); ok {
		require.NoError(f.t, c.Check(context.Background()), "the store's own check")
	}
}
