package sqlite

import (
	"strings"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// query is SQL that grows, with its arguments.
type query struct {
	text  strings.Builder
	args  []any
	where bool
}

// and adds a condition.
func (q *query) and(cond string, args ...any) {
	if q.where {
		q.text.WriteString(" AND ")
	} else {
		q.text.WriteString(" WHERE ")
		q.where = true
	}
	q.text.WriteString(cond)
	q.args = append(q.args, args...)
}

func (q *query) end(order string, limit int) {
	if limit <= 0 {
		limit = claim.DefaultPage
	}
	q.text.WriteString(" ORDER BY " + order + " LIMIT ?")
	q.args = append(q.args, limit)
}

// beneath adds that a text begins with a prefix, so that an index on it is of use.
func (q *query) beneath(column, prefix string) {
	q.and(column+" >= ? AND "+column+" < ?", prefix, prefix[:len(prefix)-1]+"0") // "0" is what follows "/"
}

// recordsQuery chooses its index by hand, since nobody has counted the rows for SQLite: unfinished ones are few; those
// of a trigger lie together; all others are read in the order in which they are asked for.
func recordsQuery(q *claim.Query) query {
	var s query
	order := "slot, key"
	s.text.WriteString("SELECT key, " + claimColumns + " FROM qj_claims ")
	switch {
	case unfinished(q.States):
		s.text.WriteString("INDEXED BY qj_claims_unfinished")
		s.and("ended_at IS NULL")
	case q.Namespace != "" && q.Trigger != "":
		s.text.WriteString("NOT INDEXED")
		order = "+slot, key"
	default:
		s.text.WriteString("INDEXED BY qj_claims_slot")
	}
	if q.Namespace != "" {
		s.beneath("key", claim.Prefix(q.Namespace, q.Trigger))
	}
	if q.Namespace == "" && q.Trigger != "" || q.Kind != 0 {
		// A key has four slashes, and a part of it none.
		trigger, kind := "*/", "*"
		if q.Trigger != "" {
			trigger = claim.Prefix(q.Trigger, "")
		}
		if q.Kind != 0 {
			kind = q.Kind.String()
		}
		s.and("key GLOB ?", "*/"+trigger+"*/"+kind+"/*")
	}
	if q.Job != "" {
		s.and("job = ?", q.Job)
	}
	if n := len(q.States); n > 0 {
		var states []any
		for _, st := range q.States {
			states = append(states, int64(st))
		}
		s.and("state IN (?"+strings.Repeat(", ?", n-1)+")", states...)
	}
	s.span("slot", "key", q)
	s.end(order, q.Limit)
	return s
}

// unfinished says whether all of the states, of which there are some, are no verdicts.
func unfinished(states []claim.State) bool {
	for _, s := range states {
		if s.Terminal() {
			return false
		}
	}
	return len(states) > 0
}

func rangesQuery(q *claim.Query) query {
	var s query
	order := "first, name"
	s.text.WriteString("SELECT " + rangeColumns + " FROM qj_ranges ")
	if q.Namespace != "" && q.Trigger != "" {
		s.text.WriteString("NOT INDEXED")
		order = "+first, name"
	} else {
		s.text.WriteString("INDEXED BY qj_ranges_first")
	}
	if q.Namespace != "" {
		s.beneath("name", claim.Prefix(q.Namespace, q.Trigger))
	} else if q.Trigger != "" {
		s.and("trigger = ?", q.Trigger)
	}
	s.span("first", "name", q)
	s.end(order, q.Limit)
	return s
}

// span adds the stretch of time, and where the page begins.
func (q *query) span(at, name string, of *claim.Query) {
	if !of.From.IsZero() {
		q.and(at+" >= ?", ceil(of.From))
	}
	if !of.To.IsZero() {
		q.and(at+" < ?", ceil(of.To))
	}
	if of.After != nil {
		q.and("("+at+", "+name+") > (?, ?)", of.After.At.UnixMicro(), of.After.Name)
	}
}

// rowsQuery asks for the rows that are due some time, or for those that are not.
func rowsQuery(q *claim.RowQuery, due bool) query {
	var s query
	s.text.WriteString("SELECT " + rowColumns + " FROM qj_rows")
	for _, c := range []struct{ column, value string }{{"kind", q.Kind}, {"namespace", q.Namespace}, {"id", q.ID}} {
		if c.value != "" {
			s.and(c.column+" = ?", c.value)
		}
	}
	if q.OfOwner {
		s.and("owner = ?", q.Owner)
	}
	order := "id, namespace, kind"
	if due {
		order = "due, " + order
		s.and("due IS NOT NULL")
		if a := q.After; a != nil {
			s.and("(due, id, namespace, kind) > (?, ?, ?, ?)", a.Due.UnixMicro(), a.ID, a.Namespace, a.Kind)
		}
	} else {
		s.and("due IS NULL")
		if a := q.After; a != nil {
			s.and("(id, namespace, kind) > (?, ?, ?)", a.ID, a.Namespace, a.Kind)
		}
	}
	s.end(order, q.Limit)
	return s
}
