// Package compile turns a node's step into the SQL statements of one engine.
// It is pure: the same table and dialect give the same text, and nothing is
// looked up.
//
// Invariants: columns always by name; every value reaches SQL through a
// placeholder that modeling/param renders; no statement deletes outside the
// partition of its slot.
package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/plan"
)

// Column is a column with its SQL type.
type Column struct{ Name, Type string }

// Node is one materialization node of the table.
type Node struct {
	Name   string
	Anchor bool
	Fields []string // without key and partition columns
	Write  bool     // the step writes this node
}

// Table is what compilation needs to know of a logical table.
type Table struct {
	Dialect   dialect.Dialect
	Schema    string
	Name      string
	Key       []string
	Partition []plan.Partition
	Nodes     []Node
	Checks    []Check
	Fields    []Column // every field in the SELECT's order, key fields included
	// Registered are the fields that readers find in tables of others.
	Registered []Registered
	// Body is the SELECT with its references already routed, without a final
	// semicolon, with ${name} placeholders.
	Body string
}

// Registered is a field that is mapped from a column of another table.
type Registered struct {
	Field         string
	Table, Column string
	// On joins the logical table's columns (first) with those of Table.
	On [][2]string
	// Absent says that Table does not exist yet: the field is NULL, of Type.
	Absent bool
	Type   string
}

// Physical gives the quoted name of a node's physical table.
func (t Table) Physical(node string) string { return t.Dialect.Table(t.Schema, node) }

// NodeColumns gives the columns of a node's physical table: partition, key,
// then its own fields.
func (t Table) NodeColumns(n Node) []Column {
	var out []Column
	for _, p := range t.Partition {
		out = append(out, Column{p.Column, p.Type})
	}
	for _, c := range t.stored(n) {
		out = append(out, Column{c, t.typeOf(c)})
	}
	return out
}

// stored gives the key and the fields of a node, key first.
func (t Table) stored(n Node) []string {
	out := slices.Clone(t.Key)
	for _, f := range n.Fields {
		if !containsFold(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func (t Table) typeOf(field string) string {
	for _, c := range t.Fields {
		if strings.EqualFold(c.Name, field) {
			return c.Type
		}
	}
	return "VARCHAR"
}

// spelled gives fields in the spelling that the table's columns have.
func (t Table) spelled(fields []string) []string {
	out := slices.Clone(fields)
	for i := range out {
		for _, c := range t.Fields {
			if strings.EqualFold(c.Name, out[i]) {
				out[i] = c.Name
			}
		}
	}
	return out
}

// Create gives the idempotent DDL of the schema and of every node's table.
func Create(t Table) []string {
	d := t.Dialect
	out := []string{d.CreateSchema(t.Schema)}
	for _, n := range t.Nodes {
		cols := t.NodeColumns(n)
		defs := make([]string, len(cols))
		for i, c := range cols {
			defs[i] = d.Quote(c.Name) + " " + c.Type
		}
		out = append(out, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)", t.Physical(n.Name), strings.Join(defs, ", ")))
	}
	return out
}

// Index gives the idempotent DDL of the index on a node's partition columns, ""
// where the engine needs none.
func Index(t Table, node string) string {
	columns := make([]string, len(t.Partition))
	for i, p := range t.Partition {
		columns[i] = p.Column
	}
	return t.Dialect.PartitionIndex(t.Schema, node, columns)
}

// WidenColumn gives the DDL that changes a column's type to a wider one.
func WidenColumn(t Table, node string, c Column) string {
	return t.Dialect.WidenColumn(t.Physical(node), t.Physical(t.Name), c.Name, c.Type)
}

// AddColumn gives the idempotent DDL that adds a column to a node's table.
func AddColumn(t Table, node string, c Column) string {
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN IF NOT EXISTS %s %s", t.Physical(node), t.Dialect.Quote(c.Name), c.Type)
}

// View gives the DDL of the outside readers' view: the anchor's rows, the
// other nodes joined by LEFT JOIN on key and partition, so that no row is lost
// where a node is not built yet and count(*) is the anchor's (design "Logical
// tables in a project").
func View(t Table) string {
	var needed []string
	for _, c := range t.Fields {
		needed = append(needed, c.Name)
	}
	for _, r := range t.Registered {
		needed = append(needed, r.Field)
	}
	return t.Dialect.CreateView(t.Physical(t.Name), Read(t, needed))
}

// Read gives a SELECT over the physical nodes that gives the partition
// columns, the key and the needed fields: one node where one is enough,
// otherwise the fewest that a greedy choice finds, joined to the first.
func Read(t Table, needed []string) string {
	nodes, holder := t.route(needed)
	d := t.Dialect
	alias := func(i int) string { return fmt.Sprintf("_n%d", i) }
	var items []string
	for _, p := range t.Partition {
		items = append(items, alias(0)+"."+d.Quote(p.Column))
	}
	for _, k := range t.Key {
		if !slices.ContainsFunc(t.Partition, func(p plan.Partition) bool { return strings.EqualFold(p.Column, k) }) {
			items = append(items, alias(0)+"."+d.Quote(k))
		}
	}
	for _, c := range t.Fields { // in the SELECT's order
		if containsFold(t.Key, c.Name) || !containsFold(needed, c.Name) {
			continue
		}
		i, ok := holder[strings.ToLower(c.Name)]
		if !ok {
			continue
		}
		items = append(items, alias(i)+"."+d.Quote(c.Name))
	}
	more, joins := t.registered(needed, alias(0))
	items = append(items, more...)
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT %s FROM %s AS %s", strings.Join(items, ", "), t.Physical(nodes[0].Name), alias(0))
	for i, n := range nodes[1:] {
		var on []string
		for _, p := range t.Partition {
			on = append(on, fmt.Sprintf("%s.%s = %s.%s", alias(i+1), d.Quote(p.Column), alias(0), d.Quote(p.Column)))
		}
		for _, k := range t.Key {
			on = append(on, fmt.Sprintf("%s.%s = %s.%s", alias(i+1), d.Quote(k), alias(0), d.Quote(k)))
		}
		fmt.Fprintf(&b, " LEFT JOIN %s AS %s ON %s", t.Physical(n.Name), alias(i+1), strings.Join(on, " AND "))
	}
	b.WriteString(joins)
	return b.String()
}

// registered gives the items and joins of the needed registered fields. Their
// tables have the key as a unique one, so that no join changes the rows.
func (t Table) registered(needed []string, first string) (items []string, joins string) {
	d := t.Dialect
	var joined []Registered // one of each join
	for _, r := range t.Registered {
		if !containsFold(needed, r.Field) {
			continue
		}
		if r.Absent {
			typ := r.Type
			if typ == "" {
				typ = "VARCHAR"
			}
			items = append(items, fmt.Sprintf("CAST(NULL AS %s) AS %s", typ, d.Quote(r.Field)))
			continue
		}
		i := slices.IndexFunc(joined, func(j Registered) bool { return strings.EqualFold(j.Table, r.Table) && slices.Equal(j.On, r.On) })
		if i < 0 {
			i = len(joined)
			joined = append(joined, r)
			on := make([]string, len(r.On))
			for k, c := range r.On {
				on[k] = fmt.Sprintf("_r%d.%s = %s.%s", i, d.Quote(c[1]), first, d.Quote(c[0]))
			}
			joins += fmt.Sprintf(" LEFT JOIN %s AS _r%d ON %s", quoteParts(d, r.Table), i, strings.Join(on, " AND "))
		}
		items = append(items, fmt.Sprintf("_r%d.%s AS %s", i, d.Quote(r.Column), d.Quote(r.Field)))
	}
	return items, joins
}

// quoteParts quotes a table's name as readers write it: parts between dots.
func quoteParts(d dialect.Dialect, name string) string {
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = d.Quote(parts[i])
	}
	return strings.Join(parts, ".")
}

// Source gives what replaces a reference to the logical table in a reader's
// FROM: the one physical table that holds everything needed, or a subquery
// over the fewest nodes. The nodes read are given too.
func Source(t Table, needed []string) (sql string, nodes []string) {
	chosen, _ := t.route(needed)
	for _, n := range chosen {
		nodes = append(nodes, n.Name)
	}
	mapped := slices.ContainsFunc(t.Registered, func(r Registered) bool { return containsFold(needed, r.Field) })
	if len(chosen) == 1 && !mapped {
		return t.Physical(chosen[0].Name), nodes
	}
	return "(" + Read(t, needed) + ")", nodes
}

// route picks the nodes to read and tells which of them (by position) gives
// each needed field. The anchor comes first when it is chosen.
func (t Table) route(needed []string) ([]Node, map[string]int) {
	open := map[string]bool{}
	for _, f := range needed {
		if !containsFold(t.Key, f) && slices.ContainsFunc(t.Nodes, func(n Node) bool { return containsFold(n.Fields, f) }) {
			open[strings.ToLower(f)] = true
		}
	}
	var chosen []Node
	holder := map[string]int{}
	covers := func(n Node) (c int) {
		for _, f := range n.Fields {
			if open[strings.ToLower(f)] {
				c++
			}
		}
		return c
	}
	take := func(n Node) {
		for _, f := range n.Fields {
			if l := strings.ToLower(f); open[l] {
				holder[l] = len(chosen)
				delete(open, l)
			}
		}
		chosen = append(chosen, n)
	}
	anchor := t.Nodes[0]
	for _, n := range t.Nodes {
		if n.Anchor {
			anchor = n
		}
	}
	best := func() (Node, bool) {
		var b Node
		most := 0
		for _, n := range t.Nodes {
			if c := covers(n); c > most || c == most && c > 0 && n.Anchor {
				b, most = n, c
			}
		}
		return b, most > 0
	}
	if len(open) > 0 { // one node that covers all saves the join
		for _, n := range t.Nodes {
			if covers(n) == len(open) {
				take(n)
				return chosen, holder
			}
		}
	}
	take(anchor)
	for len(open) > 0 {
		n, ok := best()
		if !ok {
			break
		}
		take(n)
	}
	return chosen, holder
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}
