package compile

import (
	"fmt"
	"slices"
	"strings"
)

// Comparison holds the queries that compare what a node stores of a slot with
// what t.Body gives for it. They read only; their placeholders are those of
// the table's statements.
type Comparison struct {
	// Counts gives one row: stored, computed, only_stored, only_computed, and
	// changed_<i> for the i-th field, counted over keys that both sides have.
	// Without a key only_… count rows that the other side does not have, and
	// nothing is counted as changed.
	Counts string
	// Samples holds a query for each field: the key columns, then the stored
	// and the computed value as text, of the first rows that differ.
	Samples []string
}

// Compare gives the comparison of some fields of a node. have lists the
// columns that its physical table has; nil = there is no such table.
func Compare(t Table, n Node, fields, have []string, samples int) Comparison {
	d := t.Dialect
	key := func(prefix string) []string {
		out := make([]string, len(t.Key))
		for i, k := range t.Key {
			out[i] = prefix + d.Quote(k)
		}
		return out
	}
	stored, computed := key(""), key("q.")
	fields = t.spelled(fields)
	for _, f := range fields {
		if containsFold(have, f) {
			stored = append(stored, d.Quote(f))
		} else {
			stored = append(stored, fmt.Sprintf("CAST(NULL AS %s) AS %s", t.typeOf(f), d.Quote(f)))
		}
		computed = append(computed, fmt.Sprintf("CAST(q.%[1]s AS %[2]s) AS %[1]s", d.Quote(f), t.typeOf(f)))
	}
	from := t.Physical(n.Name) + " WHERE " + t.where("")
	if have == nil {
		empty := make([]string, 0, len(t.Key)+len(fields))
		for _, c := range slices.Concat(t.Key, fields) {
			empty = append(empty, fmt.Sprintf("CAST(NULL AS %s) AS %s", t.typeOf(c), d.Quote(c)))
		}
		stored, from = empty, ""
	}
	left := "SELECT " + strings.Join(stored, ", ")
	if from != "" {
		left += " FROM " + from
	} else {
		left += " WHERE false"
	}
	right := fmt.Sprintf("SELECT %s FROM (\n%s\n) AS q", strings.Join(computed, ", "), t.Body)
	if len(t.Key) == 0 {
		return Comparison{Counts: fmt.Sprintf("SELECT (SELECT count(*) FROM (%[1]s) AS x) AS stored, (SELECT count(*) FROM (%[2]s) AS x) AS computed, "+
			"(SELECT count(*) FROM (%[1]s EXCEPT ALL %[2]s) AS x) AS only_stored, (SELECT count(*) FROM (%[2]s EXCEPT ALL %[1]s) AS x) AS only_computed", left, right)}
	}
	on := make([]string, len(t.Key))
	for i, k := range t.Key {
		on[i] = fmt.Sprintf("s.%[1]s = c.%[1]s", d.Quote(k))
	}
	joined := fmt.Sprintf("(SELECT *, 1 AS _retrofill_in FROM (%s) AS x) AS s FULL JOIN (SELECT *, 1 AS _retrofill_in FROM (%s) AS x) AS c ON %s",
		left, right, strings.Join(on, " AND "))
	counts := []string{
		"count(s._retrofill_in) AS stored", "count(c._retrofill_in) AS computed",
		"count(*) FILTER (WHERE c._retrofill_in IS NULL) AS only_stored", "count(*) FILTER (WHERE s._retrofill_in IS NULL) AS only_computed",
	}
	out := Comparison{}
	for i, f := range fields {
		differ := fmt.Sprintf("s._retrofill_in = 1 AND c._retrofill_in = 1 AND s.%[1]s IS DISTINCT FROM c.%[1]s", d.Quote(f))
		counts = append(counts, fmt.Sprintf("count(*) FILTER (WHERE %s) AS changed_%d", differ, i))
		out.Samples = append(out.Samples, fmt.Sprintf("SELECT %s, CAST(s.%[2]s AS VARCHAR) AS stored, CAST(c.%[2]s AS VARCHAR) AS computed FROM %[3]s WHERE %[4]s ORDER BY %[5]s LIMIT %[6]d",
			strings.Join(key("s."), ", "), d.Quote(f), joined, differ, strings.Join(key("s."), ", "), samples))
	}
	out.Counts = "SELECT " + strings.Join(counts, ", ") + " FROM " + joined
	return out
}
