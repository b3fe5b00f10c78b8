package compile

import (
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/planner/plan"
)

// Fact names that the rules below look at.
const (
	factDuplicates = "duplicate_keys"
	factNulls      = "null_keys"
	factRows       = "rows"
)

// stage is the temporary table that holds a slot's rows while several nodes
// are written from them.
const stage = "_retrofill_stage"

// Rewrite gives the statements that replace the slot's partition in every
// written node, and what must be true before the commit (design "Writing
// safely"): the key is unique and not null, each node gets every row, and a
// partition that had rows does not become empty without consent.
func Rewrite(t Table) ([]plan.Statement, []plan.Rule) {
	var written []Node
	for _, n := range t.Nodes {
		if n.Write {
			written = append(written, n)
		}
	}
	var stmts []plan.Statement
	var rules []plan.Rule
	from := "(\n" + t.Body + "\n) AS q"
	if len(written) > 1 {
		cols := t.union(written)
		stmts = append(stmts, plan.Statement{
			Role: "stage", Target: stage,
			SQL: t.Dialect.Stage(stage, fmt.Sprintf("SELECT %s FROM %s", t.Dialect.Columns("q.", cols), from)),
		})
		from = stage + " AS q"
		if s, r, ok := t.keyFacts("stage", stage, "", t.union(written)); ok {
			stmts, rules = append(stmts, s), append(rules, r...)
		}
	}
	where := t.where("")
	for _, n := range written {
		phys := t.Physical(n.Name)
		stmts = append(stmts, plan.Statement{
			Role: "delete", Target: phys,
			SQL: fmt.Sprintf("DELETE FROM %s WHERE %s", phys, where),
		}, plan.Statement{
			Role: "insert", Target: phys,
			SQL: fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s", phys, t.insertColumns(n), t.insertValues(n), from),
		})
		if len(written) == 1 {
			if s, r, ok := t.keyFacts(n.Name, phys, where, t.stored(n)); ok {
				stmts, rules = append(stmts, s), append(rules, r...)
			}
		} else {
			rules = append(rules, plan.Rule{
				Fact: "inserted." + phys, Kind: "equals", Other: "stage." + factRows, Code: "rows_differ",
				Message: fmt.Sprintf("node %s did not get every row of the slot", n.Name),
			})
		}
		rules = append(rules, plan.Rule{
			Fact: "inserted." + phys, Kind: "not_emptied", Other: "deleted." + phys, Code: "emptied",
			Message: fmt.Sprintf("the partition of node %s holds rows, but the logic gives none for this slot", n.Name),
		})
	}
	return stmts, rules
}

// union gives the stored columns of several nodes, each once.
func (t Table) union(nodes []Node) []string {
	var out []string
	for _, n := range nodes {
		for _, c := range t.stored(n) {
			if !containsFold(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

func (t Table) partitionValue(p plan.Partition) string {
	if strings.EqualFold(p.Type, "VARCHAR") || p.Type == "" {
		return "'${" + p.Param + "}'"
	}
	return "CAST('${" + p.Param + "}' AS " + p.Type + ")"
}

// where gives the condition that selects the slot's partition.
func (t Table) where(prefix string) string {
	parts := make([]string, len(t.Partition))
	for i, p := range t.Partition {
		parts[i] = prefix + t.Dialect.Quote(p.Column) + " = " + t.partitionValue(p)
	}
	return strings.Join(parts, " AND ")
}

func (t Table) insertColumns(n Node) string {
	var names []string
	for _, p := range t.Partition {
		names = append(names, p.Column)
	}
	return t.Dialect.Columns("", append(names, t.stored(n)...))
}

func (t Table) insertValues(n Node) string {
	var vals []string
	for _, p := range t.Partition {
		vals = append(vals, t.partitionValue(p))
	}
	if s := t.stored(n); len(s) > 0 {
		vals = append(vals, t.Dialect.Columns("q.", s))
	}
	return strings.Join(vals, ", ")
}

// keyFacts gives the query that counts rows, repeated and NULL keys, with its
// rules. Without a key only the rows are counted by the insert itself.
func (t Table) keyFacts(name, table, where string, available []string) (plan.Statement, []plan.Rule, bool) {
	checks, checkRules := t.checkFacts(name, available)
	if len(t.Key) == 0 {
		if name != "stage" && checks == "" {
			return plan.Statement{}, nil, false
		}
		sql := "SELECT count(*) AS rows" + checks + " FROM " + table
		if where != "" {
			sql += " WHERE " + where
		}
		return plan.Statement{Role: "facts", Target: table, Name: name, SQL: sql}, checkRules, true
	}
	d := t.Dialect
	nulls := make([]string, len(t.Key))
	for i, k := range t.Key {
		nulls[i] = d.Quote(k) + " IS NULL"
	}
	distinct := d.Columns("", t.Key)
	if len(t.Key) > 1 {
		distinct = "(" + distinct + ")"
	}
	sql := fmt.Sprintf("SELECT count(*) AS rows, count(*) FILTER (WHERE %[1]s) AS null_keys, "+
		"count(*) FILTER (WHERE NOT (%[1]s)) - count(DISTINCT %[2]s) FILTER (WHERE NOT (%[1]s)) AS duplicate_keys",
		strings.Join(nulls, " OR "), distinct) + checks + " FROM " + table
	if where != "" {
		sql += " WHERE " + where
	}
	key := strings.Join(t.Key, ", ")
	return plan.Statement{Role: "facts", Target: table, Name: name, SQL: sql}, append([]plan.Rule{
		{Fact: name + "." + factDuplicates, Kind: "zero", Code: "key_duplicate",
			Message: fmt.Sprintf("the key (%s) of %s is not unique in this slot", key, t.Name)},
		{Fact: name + "." + factNulls, Kind: "zero", Code: "key_null",
			Message: fmt.Sprintf("the key (%s) of %s holds NULL in this slot", key, t.Name)},
	}, checkRules...), true
}

// Reference is one use of a table in a SELECT's text, to be replaced.
type Reference struct {
	Start, End int    // byte offsets of the table's name in the text
	With       string // what to write there
	Alias      string // alias to add behind it, "" = the text has one
}

// Route replaces references in a SELECT's text. The references must not
// overlap; any order.
func Route(text string, refs []Reference) (string, error) {
	sorted := append([]Reference(nil), refs...)
	for i := range sorted { // insertion sort by start: a handful of references
		for j := i; j > 0 && sorted[j].Start < sorted[j-1].Start; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	var b strings.Builder
	at := 0
	for _, r := range sorted {
		if r.Start < at || r.End < r.Start || r.End > len(text) {
			return "", fmt.Errorf("compile: route references: span %d-%d overlaps or lies outside the text", r.Start, r.End)
		}
		b.WriteString(text[at:r.Start])
		b.WriteString(r.With)
		if r.Alias != "" {
			b.WriteString(" AS " + r.Alias)
		}
		at = r.End
	}
	b.WriteString(text[at:])
	return b.String(), nil
}
