package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// passSteps decides for every picked node on which dates it really runs and on
// which its instance is a dry-run success (semantics §3.5, §6.5).
func passSteps(_ context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	for _, p := range b.picked {
		b.splitDates(p)
	}
	real := 0
	var idle diag.List
	for _, p := range b.picked {
		real += len(p.real)
		if len(p.real) == 0 && b.isTarget(p.node) {
			_, _, diags := p.node.Schedule.Runs(p.dry)
			idle = append(idle, diags...)
		}
	}
	if real == 0 && len(b.picked) > 0 {
		d := diag.Errorf("no_real_run", "nothing would run: every instance of this plan is a dry-run success")
		for _, x := range idle {
			d.Detail, d.Hint = x.Detail, x.Hint
		}
		if d.Detail == "" {
			d.Detail = b.picked[0].dryWhy
		}
		if d.Hint == "" {
			d.Hint = "select other dates or nodes, or let them run: --dry-run-tasks run, --paused-tasks run, without --dry-run-this-node"
		}
		b.diags = append(b.diags, d)
	}
	return nil
}

func (b *build) splitDates(p *picked) {
	n := p.node
	allDry := ""
	switch {
	case b.req.DryRunThisNode && b.isTarget(n):
		allDry = "--dry-run-this-node"
	case b.dryRunNode(p) && b.req.DryRunTasks != "run":
		allDry = "the node is scheduled as dry-run"
	case b.isPaused(p.node) && b.req.PausedTasks == "dry-run":
		allDry = "the node is paused (--paused-tasks dry-run)"
	case !b.impact.Runs(n.Schedule, b.window):
		allDry = fmt.Sprintf("its time %s lies outside %s (--hourly-impact in-window)", n.Schedule.At, b.window)
	}
	for _, d := range b.plan.Dates {
		if allDry == "" && n.Schedule.Scheduled(d) {
			p.real = append(p.real, d)
		} else {
			p.dry = append(p.dry, d)
		}
	}
	if p.dryWhy = allDry; allDry == "" && len(p.dry) > 0 {
		p.dryWhy = fmt.Sprintf("not scheduled (%s)", n.Schedule)
	}
}

func (b *build) dryRunNode(p *picked) bool {
	if p.node.Table != nil {
		return p.node.Table.DryRun
	}
	return p.node.Task.DryRun
}

// instances counts the instances of a node on some dates.
func (b *build) instances(p *picked, dates []bizdate.Date) int {
	if !p.node.Schedule.Cycle.SubDaily() {
		return len(dates)
	}
	total := 0
	var slots []bizdate.Slot
	for _, d := range dates {
		slots = p.node.Schedule.AppendSlots(slots[:0], d, b.deps.Model.Zone, b.window)
		total += len(slots)
	}
	return total
}

// ranges joins dates in run order into runs that ascend.
func ranges(dates []bizdate.Date) []plan.DateRange {
	sorted := slices.Clone(dates)
	slices.Sort(sorted)
	return plan.Ranges(sorted)
}
