package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/compile"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/plan"
)

// passPrepare plans the schema changes that come before the data: schema,
// tables, added columns, widened types, and the outside readers' views. A type
// change that could lose something is refused (design, "Writing safely").
func passPrepare(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	var prepare, publish []string
	there := map[string]bool{}
	add := func(list *[]string, sql string) {
		if !there[sql] {
			there[sql] = true
			*list = append(*list, sql)
		}
	}
	for _, p := range b.picked {
		if !p.node.IsTable() {
			continue
		}
		t, diags := b.compilable(ctx, p.node)
		if diags.HasErrors() {
			continue // reported by the compile pass
		}
		b.checkLengths(p, t)
		view, found, err := b.deps.Catalog.Table(ctx, b.deps.Schema+"."+p.node.Name)
		if err != nil {
			return fmt.Errorf("planner: look up view %s: %w", p.node.Name, err)
		}
		if found && !view.View {
			d := b.errorf("name_taken", "%s.%s is a table, but readers' view of %s needs that name", b.deps.Schema, p.node.Name, p.node.Name)
			d.Pos, d.Hint = p.node.Pos(), "rename or drop that table, or use another schema for the environment"
		}
		ddl, err := b.tables(ctx, p, t)
		if err != nil {
			return err
		}
		for _, sql := range ddl {
			add(&prepare, sql)
		}
		if err := b.absent(ctx, p, &t); err != nil {
			return err
		}
		add(&publish, compile.View(t))
	}
	looked := map[int]bool{}
	for _, p := range b.picked { // what is read must exist, if only empty
		for _, in := range p.node.Inputs {
			if in.Node < 0 || len(in.References) == 0 || !b.deps.Model.Nodes[in.Node].IsTable() || looked[in.Node] {
				continue
			}
			looked[in.Node] = true
			t, diags := b.compilable(ctx, b.deps.Model.Nodes[in.Node])
			if diags.HasErrors() {
				continue
			}
			ddl, err := b.tables(ctx, nil, t)
			if err != nil {
				return err
			}
			for _, sql := range ddl {
				add(&prepare, sql)
			}
		}
	}
	b.plan.Prepare, b.plan.Publish = prepare, publish
	return nil
}

// tables gives the DDL that a table's nodes need: creation where they do not
// exist, and for a written table (p) the changes of its columns.
func (b *build) tables(ctx context.Context, p *picked, t compile.Table) ([]string, error) {
	var out []string
	for i, sql := range compile.Create(t) {
		if i == 0 {
			out = append(out, sql) // the schema
			continue
		}
		node := t.Nodes[i-1]
		have, exists, err := b.deps.Catalog.Table(ctx, b.deps.Schema+"."+node.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("planner: look up %s: %w", node.Name, err)
		case !exists:
			out = append(out, sql)
			if index := compile.Index(t, node.Name); index != "" {
				out = append(out, index)
			}
		case p != nil && len(have.Columns) > 0:
			out = append(out, b.alter(p, t, node, have)...)
		}
	}
	return out, nil
}

// alter gives the changes that an existing physical table needs.
func (b *build) alter(p *picked, t compile.Table, n compile.Node, have Table) []string {
	out := b.dropRemoved(p, t, n, have)
	for _, c := range t.NodeColumns(n) {
		i := slices.IndexFunc(have.Columns, func(h Column) bool { return strings.EqualFold(h.Name, c.Name) })
		if i < 0 {
			out = append(out, compile.AddColumn(t, n.Name, c))
			continue
		}
		was := have.Columns[i].Type
		if was == "" || c.Type == "" || b.dialect.SameType(was, c.Type) {
			continue
		}
		if written := slices.ContainsFunc(p.writes, func(w fields.Write) bool { return w.Node == n.Name }); !written {
			continue
		}
		if b.dialect.Widens(was, c.Type) {
			out = append(out, compile.WidenColumn(t, n.Name, c))
			continue
		}
		if b.dialect.Widens(c.Type, was) {
			continue // the stored type holds every value of the new one
		}
		if b.req.AllowDestructive {
			out = append(out, b.retype(p, t, n, c, was))
			continue
		}
		b.diags = append(b.diags, diag.Errorf("type_changed", "field %s of %s is %s now, but %s stores it as %s", c.Name, p.node.Name, c.Type, n.Name, was).
			At(diag.Pos{File: p.node.Table.SQLFile}).
			WithHint("cast the expression to %s, give the field another name, or add --allow-destructive: stored values that do not fit become NULL", was))
	}
	return out
}

// passEstimate counts what the plan will do.
func passEstimate(_ context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	e := plan.Estimate{Rows: 0}
	known := true
	for i := range b.plan.Nodes {
		n := &b.plan.Nodes[i]
		for _, s := range n.Steps {
			e.Instances += s.Instances
			if s.Strategy == plan.DryRun {
				e.DryRun += s.Instances
				continue
			}
			e.Real += s.Instances
			e.Statements += s.Instances * max(len(s.Statements), min(1, len(s.Command)))
		}
		rows, ok := b.rowsKnown(n)
		known = known && ok
		e.Rows += rows
	}
	if !known || e.Rows == 0 {
		e.Rows = -1
	}
	b.plan.Estimate, b.plan.Instances = e, e.Instances
	return nil
}

// rowsKnown gives the rows that the ledger recorded for the selected dates of
// the written nodes.
func (b *build) rowsKnown(n *plan.Node) (int64, bool) {
	if len(n.Writes) == 0 {
		return 0, true
	}
	first, last := b.dates[0], b.dates[len(b.dates)-1]
	var total int64
	found := false
	for _, r := range b.records[strings.ToLower(n.Writes[0].Node)] {
		if r.Date >= first && r.DateTo <= last && r.Fields == nil {
			total += r.Rows
			found = true
		}
	}
	return total, found
}

// passName gives the backfill its name: the user's, or
// <node>_<yyyyMMdd of creation>_<n> (semantics §1).
func passName(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	digest, err := LedgerDigest(ctx, b.deps.Ledger, &b.plan)
	if err != nil {
		return err
	}
	b.plan.LedgerDigest = digest
	if b.req.Name != "" {
		taken, err := b.deps.Ledger.NameTaken(ctx, b.req.Name)
		if err != nil {
			return fmt.Errorf("planner: look up name: %w", err)
		}
		if taken {
			b.errorf("name_taken", "a backfill is already called %q", b.req.Name).Hint = "choose another --name; `retrofill status` lists the backfills"
		}
		b.plan.Backfill = b.req.Name
		return nil
	}
	day := todayIn(b)
	var base string
	switch {
	case b.req.Stale && len(b.req.Nodes) == 0:
		base = "stale" // of all tables, none of them the current one
	case len(b.targets) > 0:
		base = b.targets[0].Name
	default:
		base = b.picked[0].node.Name // the current node itself is excluded
	}
	n, err := b.deps.Ledger.NextNumber(ctx, base, day)
	if err != nil {
		return fmt.Errorf("planner: number the backfill: %w", err)
	}
	y, m, d := day.Civil()
	b.plan.Backfill = fmt.Sprintf("%s_%04d%02d%02d_%d", base, y, int(m), d, n)
	return nil
}

// LedgerDigest identifies the ledger's records of everything that a plan
// writes, for telling a stale plan.
func LedgerDigest(ctx context.Context, l Ledger, p *plan.Plan) (string, error) {
	var nodes []string
	for i := range p.Nodes {
		for _, w := range p.Nodes[i].Writes {
			nodes = append(nodes, w.Node)
		}
		for _, f := range p.Nodes[i].Params {
			if f.Late == param.LateCross {
				nodes = append(nodes, f.Node)
			}
		}
	}
	if len(nodes) == 0 || len(p.Dates) == 0 {
		return "", nil
	}
	d, err := l.Digest(ctx, p.Environment, nodes, slices.Min(p.Dates), slices.Max(p.Dates))
	if err != nil {
		return "", fmt.Errorf("planner: digest ledger: %w", err)
	}
	return d, nil
}
