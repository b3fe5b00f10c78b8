package stale

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// Index answers what is stale in a project. It is not safe for concurrent use.
type Index struct {
	model   *lineage.Model
	facts   Facts
	nodes   map[string]*nodeFacts // by materialization node or task, lower case
	planned map[string]map[bizdate.Date]bool
	none    *series // of what was never built
	// recorded holds Recorded as a set, by table.
	recorded map[int]map[bizdate.Date]bool
	made     int
}

// New indexes the facts of a model.
func New(m *lineage.Model, f Facts) *Index {
	return &Index{model: m, facts: f, nodes: indexRecords(f.Records), planned: map[string]map[bizdate.Date]bool{}, none: &series{}, recorded: map[int]map[bizdate.Date]bool{}}
}

// Recorded gives the dates on which any node of a table has a record, and on
// which the table is scheduled; ascending.
func (x *Index) Recorded(n *lineage.Node) []bizdate.Date {
	var out []bizdate.Date
	for _, m := range n.Table.Nodes {
		facts := x.nodes[strings.ToLower(m.Name)]
		if facts == nil {
			continue
		}
		for i := range facts.recs {
			for d := facts.recs[i].From; d <= facts.recs[i].To; d++ {
				out = append(out, d)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(d bizdate.Date) bool { return !n.Schedule.Scheduled(d) })
}

// Planned tells the index what a plan writes: whoever reads these fields of a
// node on these dates is stale. rows says that the row set is refreshed, too.
func (x *Index) Planned(node string, fields []string, rows bool, dates []bizdate.Date) {
	mark := func(field string) {
		k := plannedKey(node, field)
		if x.planned[k] == nil {
			x.planned[k] = map[bizdate.Date]bool{}
		}
		for _, d := range dates {
			x.planned[k][d] = true
		}
	}
	for _, f := range fields {
		mark(f)
	}
	if rows {
		mark("")
	}
}

func plannedKey(node, field string) string {
	return strings.ToLower(node) + "\x00" + strings.ToLower(field)
}

// input is something that a table's fields or rows read: a field of another
// node, or its rows, on dates that follow from the reader's.
type input struct {
	table string
	field string
	self  bool
	reads []plan.MapRun
	from  []source
}

// source is a materialization node, or task, that holds an input.
type source struct {
	node    string
	series  *series
	planned map[bizdate.Date]bool
	facts   *nodeFacts
}

// inputs are what a table reads: by the row set, and by each field (lower
// case), as positions in all.
type inputs struct {
	all    []input
	rows   []int
	fields map[string][]int
}

// reader collects the inputs of one table.
type reader struct {
	x      *Index
	node   *lineage.Node
	derive *lineage.Deriver
	out    inputs
	index  map[string]int
}

func (x *Index) inputsOf(n *lineage.Node, derive *lineage.Deriver) inputs {
	r := reader{x: x, node: n, derive: derive, out: inputs{fields: map[string][]int{}}, index: map[string]int{}}
	a := n.Analysis
	for _, in := range n.Inputs {
		if in.Node < 0 {
			continue
		}
		up := x.model.Nodes[in.Node]
		if in.Parameter || len(in.References)+len(in.Registered) == 0 || a.Unsplittable != nil || !up.IsTable() && up.Task == nil {
			r.whole(up, in)
			continue
		}
		if len(in.Declared) > 0 && up != n {
			r.rows(r.add(up, "", in, "declared"))
		}
		r.references(up, in)
		r.registered(up, in)
	}
	return r.out
}

// whole makes the row set read all of an input.
func (r *reader) whole(up *lineage.Node, in lineage.Input) {
	r.rows(r.add(up, "", in, "all"))
	if up.IsTable() {
		for _, f := range up.FieldNames() {
			if !up.Table.IsKey(f) {
				r.rows(r.add(up, f, in, "all"))
			}
		}
	}
}

// references goes through the places where an input is read: each with its own
// slots, and with its own readers.
func (r *reader) references(up *lineage.Node, in lineage.Input) {
	a := r.node.Analysis
	for _, i := range in.References {
		ref := a.References[i]
		one := in
		one.References = []int{i}
		if ref.AllColumns {
			r.whole(up, one)
			continue
		}
		sig := string(rune('a' + i))
		if ref.RowSet {
			r.rows(r.add(up, "", one, sig))
			for _, c := range ref.RowColumns {
				r.rows(r.column(up, c, one, sig))
			}
		}
		for _, f := range a.Fields {
			if !containsFold(ref.Fields, f.Name) {
				continue
			}
			for _, c := range f.Reads {
				if !strings.EqualFold(c.Table, ref.Table) || len(ref.Columns) > 0 && !containsFold(ref.Columns, c.Column) {
					continue
				}
				if k := r.column(up, c.Column, one, sig); r.node.Table.IsKey(f.Name) {
					r.rows(k)
				} else {
					r.field(f.Name, k)
				}
			}
		}
	}
}

// registered goes through the registered fields that an input fills: what
// reads them reads its output.
func (r *reader) registered(up *lineage.Node, in lineage.Input) {
	a := r.node.Analysis
	for _, x := range in.Registered {
		one := in
		one.References = nil // its own slots, not those of the logical table
		k := r.add(up, "", one, "registered")
		if x.RowSet {
			r.rows(k)
			continue
		}
		table := a.References[x.Reference].Table
		for _, f := range a.Fields {
			if slices.ContainsFunc(f.Reads, func(c sqlast.ColumnRef) bool {
				return strings.EqualFold(c.Table, table) && strings.EqualFold(c.Column, x.Field)
			}) {
				r.field(f.Name, k)
			}
		}
	}
}

// column gives the input of a column: a field, or the rows for a key column
// and for a task's output; −1 for a partition column, which names the slot.
func (r *reader) column(up *lineage.Node, column string, in lineage.Input, sig string) int {
	switch {
	case !up.IsTable() || up.Table.IsKey(column):
		return r.add(up, "", in, sig)
	case slices.ContainsFunc(up.Fields, func(f sqlast.Column) bool { return strings.EqualFold(f.Name, column) }):
		return r.add(up, column, in, sig)
	}
	return -1
}

func (r *reader) rows(i int) {
	if i >= 0 && !slices.Contains(r.out.rows, i) {
		r.out.rows = append(r.out.rows, i)
	}
}

func (r *reader) field(name string, i int) {
	k := strings.ToLower(name)
	if i >= 0 && !slices.Contains(r.out.fields[k], i) {
		r.out.fields[k] = append(r.out.fields[k], i)
	}
}

// add gives the position of an input, made once.
func (r *reader) add(up *lineage.Node, field string, in lineage.Input, sig string) int {
	k := strings.ToLower(up.Name+"\x00"+field) + "\x00" + sig
	if i, known := r.index[k]; known {
		return i
	}
	i := len(r.out.all)
	r.index[k] = i
	p := input{table: up.Name, field: field, self: up == r.node, reads: r.derive.Reads(r.node, in).Runs}
	switch {
	case !up.IsTable():
		p.from = append(p.from, r.source(up.Name, ""))
	case field == "":
		p.from = append(p.from, r.source(lineage.Anchor(up), ""))
	default:
		for _, m := range up.Table.Nodes {
			if containsFold(m.Fields, field) {
				p.from = append(p.from, r.source(m.Name, field))
			}
		}
	}
	r.out.all = append(r.out.all, p)
	return i
}

func (r *reader) source(node, field string) source {
	k := plannedKey(node, field)
	if r.x.planned[k] == nil {
		r.x.planned[k] = map[bizdate.Date]bool{} // may be filled later
	}
	return source{node: node, series: r.x.of(node, field), planned: r.x.planned[k], facts: r.x.nodes[strings.ToLower(node)]}
}
