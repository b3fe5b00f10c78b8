package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
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
		case p != nil:
			out = append(out, b.alter(p, t, node, have)...)
		}
	}
	return out, nil
}

// alter gives the changes that an existing physical table needs.
func (b *build) alter(p *picked, t compile.Table, n compile.Node, have Table) []string {
	var out []string
	for _, c := range t.NodeColumns(n) {
		i := slices.IndexFunc(have.Columns, func(h Column) bool { return strings.EqualFold(h.Name, c.Name) })
		if i < 0 {
			out = append(out, compile.AddColumn(t, n.Name, c))
			continue
		}
		was := have.Columns[i].Type
		if was == "" || c.Type == "" || sameType(was, c.Type) {
			continue
		}
		if written := slices.ContainsFunc(p.writes, func(w fields.Write) bool { return w.Node == n.Name }); !written {
			continue
		}
		if widens(was, c.Type) {
			out = append(out, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DATA TYPE %s", t.Physical(n.Name), t.Dialect.Quote(c.Name), c.Type))
			continue
		}
		if widens(c.Type, was) {
			continue // the stored type holds every value of the new one
		}
		b.diags = append(b.diags, diag.Errorf("type_changed", "field %s of %s is %s now, but %s stores it as %s", c.Name, p.node.Name, c.Type, n.Name, was).
			At(diag.Pos{File: p.node.Table.SQLFile}).
			WithHint("cast the expression to %s, give the field another name, or drop the stored column yourself", was))
	}
	return out
}

// typeOrder lists types of which each holds every value of those before it.
var typeOrder = [][]string{
	{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"},
	{"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"},
	{"UTINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"},
	{"USMALLINT", "INTEGER", "BIGINT", "HUGEINT"},
	{"UINTEGER", "BIGINT", "HUGEINT"},
	{"FLOAT", "DOUBLE"},
	{"TINYINT", "SMALLINT", "INTEGER", "DOUBLE"},
	{"DATE", "TIMESTAMP"},
}

// widens tells whether a column of type from may become type to without
// losing a value.
func widens(from, to string) bool {
	from, to = plainType(from), plainType(to)
	for _, chain := range typeOrder {
		i, j := slices.Index(chain, from), slices.Index(chain, to)
		if i >= 0 && j > i {
			return true
		}
	}
	var p1, s1, p2, s2 int
	if scan(from, &p1, &s1) && scan(to, &p2, &s2) {
		return s2 >= s1 && p2-s2 >= p1-s1
	}
	return false
}

func scan(t string, precision, scale *int) bool {
	n, err := fmt.Sscanf(t, "DECIMAL(%d,%d)", precision, scale)
	return err == nil && n == 2
}

func sameType(a, b string) bool { return plainType(a) == plainType(b) }

// plainType gives one spelling to a type: upper case, no blanks, no synonyms.
func plainType(t string) string {
	t = strings.ToUpper(strings.Join(strings.Fields(t), " "))
	t = strings.ReplaceAll(strings.ReplaceAll(t, ", ", ","), "( ", "(")
	switch t {
	case "INT", "INT4", "SIGNED":
		return "INTEGER"
	case "INT8", "LONG":
		return "BIGINT"
	case "INT2", "SHORT":
		return "SMALLINT"
	case "INT1":
		return "TINYINT"
	case "TEXT", "STRING", "CHAR", "BPCHAR", "CHARACTER VARYING":
		return "VARCHAR"
	case "BOOL", "LOGICAL":
		return "BOOLEAN"
	case "FLOAT8", "DOUBLE PRECISION":
		return "DOUBLE"
	case "FLOAT4", "REAL":
		return "FLOAT"
	case "TIMESTAMP WITHOUT TIME ZONE", "DATETIME":
		return "TIMESTAMP"
	case "TIMESTAMPTZ":
		return "TIMESTAMP WITH TIME ZONE"
	case "DECIMAL", "NUMERIC":
		return "DECIMAL(18,3)"
	}
	if rest, ok := strings.CutPrefix(t, "NUMERIC("); ok {
		return "DECIMAL(" + rest
	}
	if strings.HasPrefix(t, "VARCHAR(") {
		return "VARCHAR"
	}
	return t
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
	n, err := b.deps.Ledger.NextNumber(ctx, b.targets[0].Name, day)
	if err != nil {
		return fmt.Errorf("planner: number the backfill: %w", err)
	}
	y, m, d := day.Civil()
	b.plan.Backfill = fmt.Sprintf("%s_%04d%02d%02d_%d", b.targets[0].Name, y, int(m), d, n)
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
