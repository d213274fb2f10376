package claim

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// What listings mean. A store that keeps its records in memory uses these; one that asks a database must come to the
// same.

// page is the limit of a query as it is meant.
func page(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return limit
}

// within says whether t is in the query's stretch of time.
func (q *Query) within(t time.Time) bool {
	return (q.From.IsZero() || !t.Before(q.From)) && (q.To.IsZero() || t.Before(q.To))
}

// HasRecord says whether the query selects r, wherever the page begins.
func (q *Query) HasRecord(r *Record) bool {
	return (q.Namespace == "" || r.Key.Namespace == q.Namespace) &&
		(q.Trigger == "" || r.Key.Trigger == q.Trigger) &&
		(q.Kind == 0 || r.Key.Kind == q.Kind) &&
		(q.Job == "" || r.Job == q.Job) &&
		(len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
		q.within(r.Slot)
}

// HasRange says whether the query selects r, wherever the page begins.
func (q *Query) HasRange(r *Range) bool {
	return (q.Namespace == "" || r.Namespace == q.Namespace) &&
		(q.Trigger == "" || r.Trigger == q.Trigger) &&
		q.within(r.First)
}

// HasRow says whether the query selects r, wherever the page begins.
func (q *RowQuery) HasRow(r *Row) bool {
	return (q.Kind == "" || r.Kind == q.Kind) &&
		(q.Namespace == "" || r.Namespace == q.Namespace) &&
		(q.ID == "" || r.ID == q.ID) &&
		(!q.OfOwner || r.Owner == q.Owner)
}

// PageRecords gives the page that q asks for, of records all of which it selects. It sorts them in place.
func (q *Query) PageRecords(all []Record) []Record { return paged(all, q, Record.Cursor) }

// PageRanges gives the page that q asks for, of ranges all of which it selects. It sorts them in place.
func (q *Query) PageRanges(all []Range) []Range { return paged(all, q, Range.Cursor) }

func paged[T any](all []T, q *Query, cursor func(T) *Cursor) []T {
	type placed struct {
		at *Cursor
		v  T
	}
	ps := make([]placed, 0, len(all))
	for _, v := range all {
		if at := cursor(v); q.After == nil || at.compare(q.After) > 0 {
			ps = append(ps, placed{at, v})
		}
	}
	slices.SortFunc(ps, func(a, b placed) int { return a.at.compare(b.at) })
	out := all[:0]
	for _, p := range ps[:min(len(ps), page(q.Limit))] {
		out = append(out, p.v)
	}
	return out
}

func (c *Cursor) compare(o *Cursor) int {
	return cmp.Or(c.At.Compare(o.At), strings.Compare(c.Name, o.Name))
}

// PageRows gives the page that q asks for, of rows all of which it selects. It sorts them in place.
func (q *RowQuery) PageRows(all []Row) []Row {
	slices.SortFunc(all, compareRows)
	from := 0
	if q.After != nil {
		from, _ = slices.BinarySearchFunc(all, *q.After, func(r, after Row) int {
			if compareRows(r, after) > 0 {
				return 1
			}
			return -1
		})
	}
	return all[from:][:min(len(all)-from, page(q.Limit))]
}

func compareRows(a, b Row) int {
	if a.Due.IsZero() != b.Due.IsZero() {
		if a.Due.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID, b.ID), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind))
}
