package memory

import (
	"bytes"
	"context"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// Rows gives rows by (Due, ID, Namespace, Kind), those without a due time last. It looks at all rows.
func (s *Store) Rows(ctx context.Context, q claim.RowQuery) ([]claim.Row, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	var rows []claim.Row
	if k := (claim.RowKey{Kind: q.Kind, Namespace: q.Namespace, ID: q.ID}); k.Kind != "" && k.Namespace != "" && k.ID != "" {
		if r, ok := s.rows[k]; ok && q.HasRow(&r) {
			rows = append(rows, r)
		}
	} else {
		for _, r := range s.rows {
			if q.HasRow(&r) {
				rows = append(rows, r)
			}
		}
	}
	rows = q.PageRows(rows)
	for i := range rows {
		rows[i].Blob = bytes.Clone(rows[i].Blob)
	}
	return rows, nil
}

// Records gives records by (Slot, text of the key). It looks at all records of the trigger, or of all triggers.
func (s *Store) Records(ctx context.Context, q claim.Query) ([]claim.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	var records []claim.Record
	s.each(&q, func(sh *shelf) {
		for _, r := range sh.records {
			if q.HasRecord(&r) {
				records = append(records, r)
			}
		}
	})
	records = q.PageRecords(records)
	for i := range records {
		records[i] = own(records[i])
	}
	return records, nil
}

// Ranges gives ranges by (First, Name). It looks at all ranges of the trigger, or of all triggers.
func (s *Store) Ranges(ctx context.Context, q claim.Query) ([]claim.Range, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	var ranges []claim.Range
	s.each(&q, func(sh *shelf) {
		for _, r := range sh.ranges {
			if q.HasRange(&r) {
				ranges = append(ranges, r)
			}
		}
	})
	return q.PageRanges(ranges), nil
}

func (s *Store) readable(ctx context.Context) error {
	if !s.open {
		return claim.ErrClosed
	}
	return ctx.Err()
}

// each visits the shelves that may hold what q selects.
func (s *Store) each(q *claim.Query, visit func(*shelf)) {
	if q.Namespace != "" && q.Trigger != "" {
		if sh := s.shelves[owner{q.Namespace, q.Trigger}]; sh != nil {
			visit(sh)
		}
		return
	}
	for _, sh := range s.shelves {
		visit(sh)
	}
}
