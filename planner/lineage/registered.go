package lineage

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

// Registered is a field of a logical table that is mapped from a table that
// someone else fills (semantics §1): the logical table's readers find it
// joined on the key, nothing computes it.
type Registered struct {
	Field string
	// Table and Column are what it is mapped from, as declared.
	Table, Column string
	Type          string // SQL type, "" unknown
	// On are the columns that join the two: of the logical table, and of Table.
	On [][2]string
}

// RegisteredRead is one registered column that a node reads through a logical
// table.
type RegisteredRead struct {
	Reference int    // index into Analysis.References: the one to the logical table
	Field     string // of the logical table
	Column    string // of what it is mapped from
	RowSet    bool   // it decides which rows exist
}

// registered resolves the registered fields of every table and reports what is
// wrong with them: registered_key, unknown_field.
func (b *builder) registered() {
	for _, n := range b.model.Nodes {
		if !n.IsTable() {
			continue
		}
		for _, f := range n.Table.Fields {
			table, column, ok := f.RegisteredColumn()
			if !ok {
				continue
			}
			r := Registered{Field: f.Name, Table: table, Column: column, Type: f.Type}
			src := b.schema[strings.ToLower(table)]
			if src.Name != "" {
				r.Table = src.Name
			}
			i := slices.IndexFunc(src.Columns, func(c sqlast.Column) bool { return strings.EqualFold(c.Name, column) })
			switch {
			case i >= 0:
				r.Column = src.Columns[i].Name
				if r.Type == "" {
					r.Type = src.Columns[i].Type
				}
			case len(src.Columns) > 0:
				names := make([]string, len(src.Columns))
				for k, c := range src.Columns {
					names[k] = c.Name
				}
				n.Diagnostics = append(n.Diagnostics, diag.Errorf("unknown_field", "registered field %q is mapped from %s, which has no column %q", f.Name, r.Table, column).
					At(f.RegisteredPos).WithHint("%s", diag.DidYouMean(column, names, "correct the column")))
				continue
			}
			if r.On, ok = b.joined(n, f, r.Table, src); ok {
				n.Registered = append(n.Registered, r)
			}
		}
	}
}

// joined gives the columns on which a registered field's table is joined: its
// declared key must be the logical table's key, with its partition where it
// has one.
func (b *builder) joined(n *Node, f modeling.FieldSpec, table string, src sqlast.Table) ([][2]string, bool) {
	fail := func(why, hint string, args ...any) ([][2]string, bool) {
		n.Diagnostics = append(n.Diagnostics, diag.Errorf("registered_key", "registered field %q cannot be joined: %s", f.Name, why).
			At(f.RegisteredPos).WithDetail("a registered field is found by the key of its logical table, in the same partition where its table has partitions").
			WithHint(hint, args...))
		return nil, false
	}
	if len(n.Table.Key) == 0 {
		return fail(n.Name+" has no key", "add key: [column, …] to %s", n.Table.YAMLFile)
	}
	var on [][2]string
	for _, k := range n.Table.Key {
		on = append(on, [2]string{k, k})
	}
	var parts []string // of the registered table
	if s := b.deps.Project.Source(table); s != nil {
		theirs, _ := partitions(n.Params, s.Partition)
		for _, p := range theirs {
			own := slices.IndexFunc(n.Partition, func(x Partition) bool { return x.Expr.Canonical() == p.Expr.Canonical() })
			if own < 0 {
				return fail(table+" is partitioned by "+p.Name+", which is no partition of "+n.Name,
					"write the same partition expression at both, or map a table without partitions")
			}
			on = append(on, [2]string{n.Partition[own].Name, p.Name})
			parts = append(parts, p.Name)
		}
	}
	for _, u := range src.Unique {
		if sameNames(u, n.Table.Key) || len(parts) > 0 && sameNames(u, slices.Concat(n.Table.Key, parts)) {
			return on, true
		}
	}
	return fail(table+" declares no key "+strings.Join(n.Table.Key, ", "),
		"declare it: sources: [{table: %s, key: [%s]}] in retrofill.yml", table, strings.Join(slices.Concat(n.Table.Key, parts), ", "))
}

// sameNames tells whether two lists hold the same names, in any order and
// letter case.
func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y string) bool { return strings.EqualFold(x, y) }) {
			return false
		}
	}
	return true
}

// registeredReads gives the registered columns that a node reads, by the table
// that they come from.
func (b *builder) registeredReads(n *Node, visit func(table string, r RegisteredRead)) {
	if n.Analysis == nil {
		return
	}
	for i, ref := range n.Analysis.References {
		at, ok := b.model.index[strings.ToLower(ref.Table)]
		if !ok || !b.model.Nodes[at].IsTable() {
			continue
		}
		for _, r := range b.model.Nodes[at].Registered {
			if ref.AllColumns || slices.ContainsFunc(ref.Columns, func(c string) bool { return strings.EqualFold(c, r.Field) }) {
				visit(r.Table, RegisteredRead{Reference: i, Field: r.Field, Column: r.Column, RowSet: rowSetReads(n, b.model.Nodes[at].Name, r.Field)})
			}
		}
	}
}

// rowSetReads tells whether a node's row set reads a field.
func rowSetReads(n *Node, table, field string) bool {
	return n.Analysis.Unsplittable != nil || slices.ContainsFunc(n.Analysis.RowSet.Reads, func(c sqlast.ColumnRef) bool {
		return strings.EqualFold(c.Table, table) && strings.EqualFold(c.Column, field)
	})
}

// reorder sorts the nodes again when one of them reads a registered field that
// a task fills: it stands behind that task.
func (b *builder) reorder() {
	found := false
	for _, n := range b.model.Nodes {
		b.registeredReads(n, func(table string, _ RegisteredRead) { found = found || b.model.Producer(table) >= 0 })
	}
	if found && !b.model.Diagnostics.HasErrors() {
		b.order()
	}
}

// RegisteredField finds a registered field, without letter case.
func (n *Node) RegisteredField(name string) (Registered, bool) {
	for _, r := range n.Registered {
		if strings.EqualFold(r.Field, name) {
			return r, true
		}
	}
	return Registered{}, false
}

// ReadableNames gives the names that readers of a table may use: its fields
// and its registered fields.
func (n *Node) ReadableNames() []string {
	out := n.FieldNames()
	for _, r := range n.Registered {
		out = append(out, r.Field)
	}
	return out
}
