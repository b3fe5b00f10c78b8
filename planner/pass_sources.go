package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/compile"
)

// passSources refuses a plan that reads a table which is neither in the engine
// nor written by a task of the plan: every instance would fail.
func passSources(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	inPlan := map[int]bool{}
	for _, p := range b.picked {
		if len(p.real) > 0 {
			inPlan[p.node.Position] = true
		}
	}
	seen := map[string]bool{}
	for _, p := range b.picked {
		if len(p.real) == 0 {
			continue
		}
		for _, in := range p.node.Inputs {
			k := strings.ToLower(in.Name)
			if seen[k] || len(in.References)+len(in.Registered) == 0 || in.Node >= 0 && (inPlan[in.Node] || b.deps.Model.Nodes[in.Node].IsTable()) {
				continue
			}
			seen[k] = true
			found, err := b.inEngine(ctx, in.Name)
			if err != nil {
				return err
			}
			if found {
				continue
			}
			d := diag.Errorf("missing_source", "%s reads %s, which is not in the engine", p.node.Name, in.Name).
				At(p.node.Pos()).WithHint("load the source first, or correct its name")
			if in.Node >= 0 {
				d.Hint = fmt.Sprintf("task %s writes it: add --upstream, or backfill %s first", b.deps.Model.Nodes[in.Node].Name, b.deps.Model.Nodes[in.Node].Name)
			}
			if in.Source != nil {
				d = d.At(in.Source.Pos)
			}
			b.diags = append(b.diags, d)
		}
	}
	return nil
}

// inEngine looks a source up; a name without a schema is looked for in the
// engine's default one.
func (b *build) inEngine(ctx context.Context, name string) (bool, error) {
	_, ok, err := b.deps.Catalog.Table(ctx, name)
	if err == nil && !ok && !strings.Contains(name, ".") {
		_, ok, err = b.deps.Catalog.Table(ctx, b.dialect.DefaultSchema+"."+name)
	}
	if err != nil {
		return false, fmt.Errorf("planner: look up source %s: %w", name, err)
	}
	return ok, nil
}

// absent marks the registered fields whose tables do not exist yet: readers'
// view shows NULL for them until it is made again.
func (b *build) absent(ctx context.Context, p *picked, t *compile.Table) error {
	t.Registered = slices.Clone(t.Registered)
	for i := range t.Registered {
		r := &t.Registered[i]
		found, err := b.inEngine(ctx, r.Table)
		if err != nil {
			return err
		}
		if r.Absent = !found; r.Absent {
			d := b.warnf("registered_absent", "registered field %s.%s is NULL for now: %s is not in the engine", p.node.Name, r.Field, r.Table)
			d.Pos, d.Hint = p.node.Pos(), "load "+r.Table+"; the next backfill of "+p.node.Name+" maps it"
		}
	}
	return nil
}
