package claim

import "context"

// EachRow calls fn for every row that the query selects, page by page, until fn returns an error.
func EachRow(ctx context.Context, r Reader, q RowQuery, fn func(*Row) error) error {
	for {
		rows, err := r.Rows(ctx, q)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := fn(&rows[i]); err != nil {
				return err
			}
		}
		if len(rows) < page(q.Limit) {
			return nil
		}
		q.After = &rows[len(rows)-1]
	}
}

// EachRecord calls fn for every record that the query selects, page by page, until fn returns an error.
func EachRecord(ctx context.Context, r Reader, q Query, fn func(*Record) error) error {
	return eachPage(ctx, q, r.Records, Record.Cursor, fn)
}

// EachRange calls fn for every range that the query selects, page by page, until fn returns an error.
func EachRange(ctx context.Context, r Reader, q Query, fn func(*Range) error) error {
	return eachPage(ctx, q, r.Ranges, Range.Cursor, fn)
}

func eachPage[T any](ctx context.Context, q Query, read func(context.Context, Query) ([]T, error), cursor func(T) *Cursor, fn func(*T) error) error {
	for {
		list, err := read(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			if err := fn(&list[i]); err != nil {
				return err
			}
		}
		if len(list) < page(q.Limit) {
			return nil
		}
		q.After = cursor(list[len(list)-1])
	}
}
