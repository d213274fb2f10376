package claim

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shelf is a Reader of slices.
type shelf struct {
	rows    []Row
	records []Record
	ranges  []Range
	broken  error
}

func (s shelf) Rows(_ context.Context, q RowQuery) ([]Row, error) {
	return q.PageRows(append([]Row(nil), s.rows...)), s.broken
}

func (s shelf) Records(_ context.Context, q Query) ([]Record, error) {
	return q.PageRecords(append([]Record(nil), s.records...)), s.broken
}

func (s shelf) Ranges(_ context.Context, q Query) ([]Range, error) {
	return q.PageRanges(append([]Range(nil), s.ranges...)), s.broken
}

func TestEach(t *testing.T) {
	var s shelf
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		s.records = append(s.records, Record{Key: Free("n", id)})
		s.rows = append(s.rows, Row{Kind: "k", Namespace: "n", ID: id})
		g := skippedRange()
		g.Trigger = id
		s.ranges = append(s.ranges, g)
	}
	own := errors.New("enough")
	for limit := range 7 {
		var ids []string
		note := func(id string) error {
			ids = append(ids, id)
			if len(ids) == 8 {
				return own
			}
			return nil
		}
		record := func(r *Record) error { return note(r.Key.ID) }
		row := func(r *Row) error { return note(r.ID) }
		require.NoError(t, EachRecord(t.Context(), s, Query{Limit: limit}, record))
		require.ErrorIs(t, EachRow(t.Context(), s, RowQuery{Limit: limit}, row), own)
		require.NoError(t, EachRange(t.Context(), s, Query{Limit: limit}, func(r *Range) error { return note(r.Trigger) }))
		assert.Equal(t, []string{"a", "b", "c", "d", "e", "a", "b", "c", "a", "b", "c", "d", "e"}, ids, "in pages of %d", limit)
	}
	s.broken = errors.New("the disk is on fire")
	require.ErrorIs(t, EachRecord(t.Context(), s, Query{}, nil), s.broken)
	require.ErrorIs(t, EachRow(t.Context(), s, RowQuery{}, nil), s.broken)
}
