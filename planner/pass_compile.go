package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/compile"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// partParam is the prefix of the parameters that hold partition values.
const partParam = "_retrofill_p"

// passCompile writes every node's statements, routed to physical tables, with
// frozen parameters (design, "Values worth getting right first").
func passCompile(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	for _, p := range b.picked {
		var step plan.Step
		var ok bool
		if p.parts != nil {
			b.compileParts(ctx, p)
			continue
		}
		if p.node.IsTable() {
			step, ok = b.compileTable(ctx, p)
		} else {
			step, ok = b.compileTask(p)
		}
		if !ok {
			continue
		}
		b.checkRendering(p, step)
		p.out.Steps = b.steps(p, step)
		b.plan.Nodes = append(b.plan.Nodes, p.out)
	}
	return nil
}

// steps cuts a node's dates into its real step and its dry-run step.
func (b *build) steps(p *picked, step plan.Step) []plan.Step {
	out := []plan.Step{}
	if len(p.real) > 0 {
		step.ID = p.node.Name + "/" + string(step.Strategy)
		step.Dates = ranges(p.real)
		step.Instances = b.instances(p, p.real)
		out = append(out, step)
	}
	if len(p.dry) > 0 {
		out = append(out, plan.Step{
			ID: p.node.Name + "/dry_run", Strategy: plan.DryRun, Because: p.dryWhy,
			Dates: ranges(p.dry), Instances: b.instances(p, p.dry),
		})
	}
	return out
}

// Compilable describes a table for the compiler, its fields typed where the
// typer knows them.
func (b *build) compilable(ctx context.Context, n *lineage.Node) (compile.Table, diag.List) {
	if t, ok := b.typed[n]; ok {
		t.Nodes = slices.Clone(t.Nodes) // what is written of it differs
		return t, nil
	}
	t := compile.Table{Dialect: b.dialect, Schema: b.deps.Schema, Name: n.Name, Key: n.Table.Key}
	cols, diags := b.deps.Typer.Fields(ctx, n)
	if cols == nil {
		cols = n.Fields
	}
	for _, c := range cols {
		t.Fields = append(t.Fields, compile.Column{Name: c.Name, Type: c.Type})
	}
	for i, p := range n.Partition {
		t.Partition = append(t.Partition, plan.Partition{Column: p.Name, Type: p.Type, Param: fmt.Sprintf("%s%d", partParam, i+1)})
	}
	for _, c := range n.Table.Checks {
		t.Checks = append(t.Checks, compile.Check{Kind: c.Kind, Fields: c.Fields, Values: c.Values, Min: c.Min, Max: c.Max})
	}
	for _, m := range n.Table.Nodes {
		t.Nodes = append(t.Nodes, compile.Node{Name: m.Name, Anchor: m.Anchor, Fields: m.Fields})
	}
	for _, r := range n.Registered {
		t.Registered = append(t.Registered, compile.Registered{Field: r.Field, Table: r.Table, Column: r.Column, On: r.On, Type: r.Type})
	}
	b.spell(&t)
	if len(diags) == 0 {
		b.typed[n] = t
		t.Nodes = slices.Clone(t.Nodes)
	}
	return t, diags
}

func (b *build) compileTable(ctx context.Context, p *picked) (plan.Step, bool) {
	n := p.node
	t, diags := b.compilable(ctx, n)
	b.diags = append(b.diags, diags...)
	less, _ := b.reduced(ctx, p)
	body, ok := b.route(ctx, n, less)
	if !ok || diags.HasErrors() {
		return plan.Step{}, false
	}
	t.Body = body
	b.unrunChecks(n)
	id, def, err := DefinitionOf(n)
	if err != nil {
		b.errorf("internal", "%v", err)
		return plan.Step{}, false
	}
	b.plan.Definitions[id] = def
	p.out.Definition, p.out.Partition = id, t.Partition

	step := plan.Step{Strategy: p.out.Strategy, Because: p.out.Because}
	refreshed := map[string][]string{}
	rewrite := false
	for _, w := range p.writes {
		if w.Column {
			refreshed[w.Node] = w.Fields
			continue
		}
		rewrite = true
		for i := range t.Nodes {
			if t.Nodes[i].Name == w.Node {
				t.Nodes[i].Write = true
			}
		}
	}
	if rewrite {
		step.Statements, step.Verify = compile.Rewrite(t)
	}
	if len(refreshed) > 0 {
		s, r, err := compile.RefreshColumns(t, refreshed)
		if err != nil {
			b.errorf("column_refresh_impossible", "%v", err)
			return plan.Step{}, false
		}
		step.Statements, step.Verify = append(step.Statements, s...), append(step.Verify, r...)
	}
	p.out.Params = b.freeze(p, step)
	return step, true
}

// route replaces references to logical tables by the physical nodes that hold
// the columns read.
func (b *build) route(ctx context.Context, n *lineage.Node, a *sqlast.Analysis) (string, bool) {
	var refs []compile.Reference
	for _, r := range a.References {
		up := b.deps.Model.Node(r.Table)
		if up == nil || !up.IsTable() {
			continue
		}
		t, _ := b.compilable(ctx, up)
		needed := r.Columns
		if r.AllColumns {
			needed = up.ReadableNames()
		}
		with, _ := compile.Source(t, needed)
		refs = append(refs, compile.Reference{Start: r.Name.Start, End: r.Name.End, With: with, Alias: lineage.AliasFor(b.dialect, r)})
	}
	text, err := compile.Route(a.Definition.SQL, refs)
	if err != nil {
		b.errorf("internal", "%s: %v", n.Name, err)
		return "", false
	}
	return strings.TrimRight(trimSemicolons(text), " \t\r\n"), true
}

// trimSemicolons drops closing semicolons; comments behind them stay.
func trimSemicolons(sql string) string {
	tokens := param.StatementSpans(sql)
	if len(tokens) == 0 {
		return sql
	}
	return sql[:tokens[0].End]
}

// freeze gives the frozen parameters that a step's statements use.
func (b *build) freeze(p *picked, step plan.Step) map[string]plan.Parameter {
	out := map[string]plan.Parameter{}
	for i, part := range p.node.Partition {
		out[fmt.Sprintf("%s%d", partParam, i+1)] = plan.Parameter{Value: part.Expr.Canonical(), Origin: "partition"}
	}
	texts := append(slices.Clone(step.Command), step.Env...)
	for _, s := range step.Statements {
		texts = append(texts, s.SQL)
	}
	all := append(p.node.Params.Params(), p.node.Params.Builtins()...)
	for _, text := range texts {
		lower := strings.ToLower(text)
		for _, x := range all {
			k := strings.ToLower(x.Name)
			if _, ok := out[k]; ok || !strings.Contains(lower, "${"+k+"}") {
				continue
			}
			if f, ok := p.node.Params.Freeze(k); ok {
				out[k] = f
			}
		}
	}
	return out
}

// checkRendering renders the statements for every real slot's values that the
// plan can know, so that a bad value is found now and not in the middle of the
// run. Slots of one node differ in their parameters only, so the first, the
// last and a few between are enough.
func (b *build) checkRendering(p *picked, step plan.Step) {
	if len(p.real) == 0 {
		return
	}
	sample := []int{0, len(p.real) / 2, len(p.real) - 1}
	slices.Sort(sample)
	pos := p.node.Pos()
	if p.node.Table != nil {
		pos = p.node.Table.CodePos()
	}
	dialect := param.Dialect(b.plan.Dialect)
	for _, s := range step.Statements {
		if s.Plain {
			continue
		}
		tmpl, diags := param.Thaw(dialect, param.Source{Text: s.SQL}, p.out.Params)
		if tmpl == nil {
			for _, d := range diags {
				b.diags = append(b.diags, d.At(pos))
			}
			return
		}
		for _, i := range slices.Compact(sample) {
			for _, slot := range p.node.Schedule.Slots(p.real[i], b.deps.Model.Zone, nil) {
				_, bad := tmpl.Preview(param.At(slot), nil)
				if bad.HasErrors() {
					d := bad[0]
					d.Summary = fmt.Sprintf("%s at %s: %s", p.node.Name, slot.ID(), d.Summary)
					b.diags = append(b.diags, d.At(pos))
					return
				}
				break
			}
		}
	}
}

func (b *build) compileTask(p *picked) (plan.Step, bool) {
	t := p.node.Task
	step := plan.Step{Strategy: p.out.Strategy, Because: p.out.Because, TimeoutSec: t.TimeoutSec, Command: t.Command, Env: t.Env}
	if p.out.Strategy == plan.Script {
		spans := param.StatementSpans(t.SQL)
		if len(spans) == 0 {
			b.errorf("empty_task", "task %s holds no SQL statement", t.Name).Pos = t.Pos
			return step, false
		}
		for _, s := range spans {
			step.Statements = append(step.Statements, plan.Statement{SQL: t.SQL[s.Start:s.End], Role: "script"})
		}
	}
	p.out.Params = b.freeze(p, step)
	return step, true
}

// unrunChecks warns of checks that this version reads but does not run.
func (b *build) unrunChecks(n *lineage.Node) {
	for _, c := range n.Table.Checks {
		if c.Kind == "sql" {
			w := b.warnf("check_not_run", "the SQL check of %s is not run by this version", n.Name)
			w.Pos, w.Hint = c.Pos, "not_null, unique, accepted_values and rows_between are run before each commit"
		}
	}
}
