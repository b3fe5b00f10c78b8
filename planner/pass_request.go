package planner

import (
	"context"
	"slices"

	"github.com/retrofill/retrofill/modeling/diag"
)

// passRequest finds the current nodes and checks the plain options.
func passRequest(_ context.Context, b *build) error {
	b.diags = append(b.diags, b.deps.Model.Diagnostics...)
	if err := b.selectNodes(); err != nil {
		return err
	}
	if len(b.req.Nodes) == 0 && len(b.req.Select) == 0 && !b.req.Stale {
		b.diags = append(b.diags, diag.Errorf("empty_selection", "no node is selected").
			WithHint("name a table or task: retrofill backfill NODE --start-date … --end-date …"))
	}
	for _, name := range b.req.Nodes {
		n := b.deps.Model.Node(name)
		if n == nil {
			b.diags = append(b.diags, diag.Errorf("unknown_node", "no table or task is called %q", name).
				WithHint("%s", diag.DidYouMean(name, b.deps.Model.Names(), "`retrofill ls` lists the nodes")))
			continue
		}
		b.target(n)
	}
	if err := b.selectChildren(); err != nil {
		return err
	}
	if b.req.FieldsGiven && len(b.targets) > 1 {
		b.diags = append(b.diags, diag.Errorf("usage", "--fields selects fields of one table, but %d nodes are named", len(b.targets)).
			WithHint("run one backfill a table, or leave --fields out"))
	}
	for _, t := range b.targets {
		if b.req.FieldsGiven && !t.IsTable() {
			b.diags = append(b.diags, diag.Errorf("usage", "--fields needs a logical table; %s is a task", t.Name))
		}
	}
	oneOf := func(flag, v string, known ...string) {
		if v != "" && !slices.Contains(known, v) {
			b.diags = append(b.diags, diag.Errorf("bad_value", "--%s %q is not known", flag, v).
				WithHint("%s", diag.DidYouMean(v, known, "known values: "+join(known))))
		}
	}
	oneOf("refresh", b.req.Refresh, "auto", "rewrite", "column")
	oneOf("on-failure", b.req.OnFailure, "continue", "stop", "fail-fast")
	oneOf("paused-tasks", b.req.PausedTasks, "block", "dry-run", "run")
	oneOf("dry-run-tasks", b.req.DryRunTasks, "dry-run", "run")
	if b.req.Retries < 0 || b.req.Retries > 100 {
		b.errorf("bad_value", "--retries %d is out of range", b.req.Retries).Hint = "give 0 to 100"
	}
	for flag, v := range map[string]int{"upstream": b.req.Upstream, "downstream": b.req.Downstream} {
		if v < AllLevels || v > maxLevels {
			b.errorf("bad_value", "--%s %d is out of range", flag, v).Hint = "give 1 to 10, or all"
		}
	}
	b.resources()
	b.checkStale()
	b.checkEffective()
	b.plan.OnFailure = b.req.OnFailure
	if b.plan.OnFailure == "" {
		b.plan.OnFailure = "continue"
	}
	return nil
}

// maxLevels is the largest number of levels up or down, besides all
// (semantics §5.1).
const maxLevels = 10

func join(list []string) string {
	out := ""
	for i, s := range list {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}
