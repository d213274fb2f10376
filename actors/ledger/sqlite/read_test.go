package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

func TestReaderBesideTheWriter(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	r, err := OpenReader(f.path)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	seen := func() int {
		got, err := r.Records(t.Context(), claim.Query{})
		require.NoError(t, err)
		return len(got)
	}
	assert.Equal(t, 1, seen())
	f.claimed("b")
	assert.Equal(t, 2, seen())

	require.NoError(t, r.View(t.Context(), func(ctx context.Context, tx Tx) error {
		count := func() (n int, err error) {
			err = tx.QueryRowContext(ctx, "SELECT count(*) FROM qj_claims").Scan(&n)
			return n, err
		}
		before, err := count()
		assert.NoError(t, err)
		f.claimed("c")
		after, err := count()
		assert.Equal(t, before, after, "one state")
		return err
	}))
	assert.Equal(t, 3, seen())

	for name, view := range map[string]func(context.Context, func(context.Context, Tx) error) error{"reader": r.View, "store": f.View} {
		own := errors.New("no")
		require.ErrorIs(t, view(t.Context(), func(context.Context, Tx) error { return own }), own)
		require.ErrorIs(t, view(t.Context(), func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM qj_claims")
			return err
		}), claim.ErrUnavailable, "%s: it only reads", name)
	}
}

func TestReaderAfterTheWriter(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	require.NoError(t, f.Close())
	r, err := OpenReader(f.path)
	require.NoError(t, err)
	got, err := r.Records(t.Context(), claim.Query{})
	require.NoError(t, err)
	assert.Len(t, got, 1)
	require.NoError(t, r.Close())
}

func TestReaderOfWhatIsNotThere(t *testing.T) {
	_, err := OpenReader(filepath.Join(t.TempDir(), "quarterjack.db"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, err, claim.ErrUnavailable)
	require.ErrorContains(t, err, "there is no such file")

	path := filepath.Join(t.TempDir(), "empty.db")
	raw(t, path, "CREATE TABLE letters (x)")
	_, err = OpenReader(path)
	require.ErrorIs(t, err, claim.ErrUnavailable)
	require.ErrorContains(t, err, "version 0")
}

// TestListingsUseTheirIndexes: no listing may look at the whole history, or sort it.
func TestListingsUseTheirIndexes(t *testing.T) {
	f := openStore(t, Config{})
	after := claim.Cursor{At: noon, Name: "n/"}
	for _, tt := range []struct {
		name string
		q    query
		plan []string
	}{
		{"all records", recordsQuery(&claim.Query{}), []string{"SCAN qj_claims USING INDEX qj_claims_slot"}},
		{"the next page of all records", recordsQuery(&claim.Query{After: &after}), []string{"SEARCH qj_claims USING INDEX qj_claims_slot ((slot,key)>(?,?))"}},
		{"a namespace", recordsQuery(&claim.Query{Namespace: "n"}), []string{"SCAN qj_claims USING INDEX qj_claims_slot"}},
		{"a stretch of time", recordsQuery(&claim.Query{From: noon, To: noon.Add(time.Hour)}), []string{"SEARCH qj_claims USING INDEX qj_claims_slot (slot>? AND slot<?)"}},
		{"a trigger", recordsQuery(&claim.Query{Namespace: "n", Trigger: "t"}), []string{"SEARCH qj_claims USING PRIMARY KEY (key>? AND key<?)", "USE TEMP B-TREE FOR ORDER BY"}},
		{"what is unfinished of a trigger", recordsQuery(&claim.Query{Namespace: "n", Trigger: "t", States: []claim.State{claim.Pending, claim.Claimed}}), []string{"SEARCH qj_claims USING INDEX qj_claims_unfinished (key>? AND key<?)", "USE TEMP B-TREE FOR ORDER BY"}},
		{"what is unfinished", recordsQuery(&claim.Query{States: []claim.State{claim.Pending}}), []string{"SCAN qj_claims USING INDEX qj_claims_unfinished", "USE TEMP B-TREE FOR ORDER BY"}},
		{"all ranges", rangesQuery(&claim.Query{}), []string{"SCAN qj_ranges USING INDEX qj_ranges_first"}},
		{"a trigger's ranges", rangesQuery(&claim.Query{Namespace: "n", Trigger: "t"}), []string{"SEARCH qj_ranges USING PRIMARY KEY (name>? AND name<?)", "USE TEMP B-TREE FOR ORDER BY"}},
		{"rows that are due", rowsQuery(&claim.RowQuery{Kind: "trigger", Namespace: "n"}, true), []string{"SEARCH qj_rows USING INDEX qj_rows_due (kind=? AND namespace=? AND due>?)"}},
		{"rows that are not", rowsQuery(&claim.RowQuery{Kind: "trigger", Namespace: "n"}, false), []string{"SEARCH qj_rows USING PRIMARY KEY (kind=? AND namespace=?)"}},
		{"a row", rowsQuery(&claim.RowQuery{Kind: "trigger", Namespace: "n", ID: "t"}, true), []string{"SEARCH qj_rows USING PRIMARY KEY (kind=? AND namespace=? AND id=?)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, f.View(t.Context(), func(ctx context.Context, tx Tx) error {
				rows, err := tx.QueryContext(ctx, "EXPLAIN QUERY PLAN "+tt.q.text.String(), tt.q.args...)
				if err != nil {
					return err
				}
				defer rows.Close()
				var plan []string
				for rows.Next() {
					var id, parent, unused int
					var detail string
					if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
						return err
					}
					plan = append(plan, detail)
				}
				for i := range plan { // details that do not matter
					plan[i] = strings.ReplaceAll(plan[i], "FOR LAST TERM OF ORDER BY", "FOR ORDER BY")
				}
				assert.Equal(t, tt.plan, plan)
				return rows.Err()
			}))
		})
	}
}

func TestInstantsKeepTheirOrder(t *testing.T) {
	var last int64
	for i, at := range []time.Time{
		{}, time.Time{}.Add(time.Microsecond), time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0).UTC(), noon, noon.Add(time.Microsecond),
		time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	} {
		us := at.UnixMicro()
		assert.True(t, i == 0 || us > last, at)
		last = us
		d := decoder{values: []driver.Value{us}}
		assert.Equal(t, at, d.instant())
	}
	assert.Equal(t, noon.UnixMicro(), ceil(noon))
	assert.Equal(t, noon.UnixMicro()+1, ceil(noon.Add(1)))
}
