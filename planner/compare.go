package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/compile"
	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// Comparison compares what one materialization node stores of a slot with what
// today's logic gives, over what is stored upstream. Its queries hold
// placeholders of Params and only read.
type Comparison struct {
	Table  string
	Node   string   // materialization node
	Key    []string // key columns; none = rows are compared as a whole
	Fields []string
	// Nondeterministic are the fields among them whose values may differ from
	// run to run, with the reason.
	Nondeterministic map[string]string
	compile.Comparison
	Params map[string]plan.Parameter
}

// Compared names fields of one node to be compared; no field = all of them.
type Compared struct {
	Node   string
	Fields []string
}

// Compare gives the comparisons of a table: of the given nodes, or of all nodes
// that hold one of the given fields (none = all). Diagnostics: unknown_node,
// not_a_table, broken_table, unknown_field, and what compiling the table gives.
func Compare(ctx context.Context, deps Deps, table string, of []Compared, names []string, samples int) ([]Comparison, diag.List, error) {
	d, err := dialect.For(deps.Engine.Type)
	if err != nil {
		return nil, diag.List{diag.Errorf("unknown_engine", "%v", err)}, nil
	}
	b := &build{deps: deps, dialect: d, byNode: map[*lineage.Node]*picked{}, typed: map[*lineage.Node]compile.Table{}}
	b.plan.Dialect, b.plan.Definitions = deps.Model.Project.Dialect, map[string]plan.Definition{}
	n := deps.Model.Node(table)
	switch {
	case n == nil:
		return nil, diag.List{diag.Errorf("unknown_node", "no table is called %q", table).
			WithHint("%s", diag.DidYouMean(table, deps.Model.Names(), "`retrofill ls` lists the nodes"))}, nil
	case !n.IsTable():
		return nil, diag.List{diag.Errorf("not_a_table", "%s is a task: it stores no fields", n.Name)}, nil
	case n.Analysis == nil || n.Diagnostics.HasErrors():
		return nil, append(slices.Clone(n.Diagnostics), diag.Errorf("broken_table", "%s cannot be analysed", n.Name).
			WithHint("`retrofill validate` tells why")), nil
	}
	for _, f := range names {
		if !containsFold(n.FieldNames(), f) || n.Table.IsKey(f) {
			b.errorf("unknown_field", "%s has no field %q besides its key", n.Name, f).
				Hint = diag.DidYouMean(f, n.FieldNames(), "`retrofill show "+n.Name+"` lists its fields")
		}
	}
	if b.diags.HasErrors() {
		return nil, b.diags, nil
	}
	var out []Comparison
	for _, m := range n.Table.Nodes {
		list, wanted := comparedFields(n, m.Name, m.Fields, of, names)
		if !wanted {
			continue
		}
		c, err := b.compare(ctx, n, m.Name, list, samples)
		if err != nil {
			return nil, nil, err
		}
		if b.diags.HasErrors() {
			return nil, b.diags, nil
		}
		out = append(out, c)
	}
	return out, b.diags, nil
}

// comparedFields gives the fields of a node that are asked for.
func comparedFields(n *lineage.Node, node string, held []string, of []Compared, names []string) ([]string, bool) {
	wanted := func(f string) bool { return len(names) == 0 || containsFold(names, f) }
	if of != nil {
		i := slices.IndexFunc(of, func(c Compared) bool { return strings.EqualFold(c.Node, node) })
		if i < 0 {
			return nil, false
		}
		wanted = func(f string) bool { return len(of[i].Fields) == 0 || containsFold(of[i].Fields, f) }
	}
	var list []string
	for _, f := range held {
		if !n.Table.IsKey(f) && containsFold(n.FieldNames(), f) && wanted(f) {
			list = append(list, f)
		}
	}
	return list, len(list) > 0 || of != nil || len(names) == 0
}

func (b *build) compare(ctx context.Context, n *lineage.Node, node string, list []string, samples int) (Comparison, error) {
	c := Comparison{Table: n.Name, Node: node, Key: n.Table.Key, Fields: list, Nondeterministic: map[string]string{}}
	for _, f := range n.Analysis.Fields {
		if f.Nondeterministic != "" && containsFold(list, f.Name) {
			c.Nondeterministic[f.Name] = f.Nondeterministic
		}
	}
	t, diags := b.compilable(ctx, n)
	b.diags = append(b.diags, diags...)
	p := &picked{node: n, writes: []fields.Write{{Node: node, Column: true, Fields: list}}}
	less, _ := b.reduced(ctx, p)
	body, ok := b.route(ctx, n, less)
	if !ok || diags.HasErrors() {
		return c, nil
	}
	t.Body = body
	have, found, err := b.deps.Catalog.Table(ctx, b.deps.Schema+"."+node)
	if err != nil {
		return c, fmt.Errorf("planner: look up %s: %w", node, err)
	}
	var columns []string
	if found {
		columns = []string{}
		for _, col := range have.Columns {
			columns = append(columns, col.Name)
		}
	}
	for _, m := range t.Nodes {
		if m.Name == node {
			c.Comparison = compile.Compare(t, m, list, columns, samples)
		}
	}
	step := plan.Step{Statements: []plan.Statement{{SQL: c.Counts}}}
	c.Params = b.freeze(p, step)
	return c, nil
}
