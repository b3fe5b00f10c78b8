package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/plan"
)

// compileParts compiles a step for each part of a node.
func (b *build) compileParts(ctx context.Context, p *picked) {
	params := map[string]plan.Parameter{}
	steps := []plan.Step{}
	for k, x := range p.parts {
		one := *p
		one.parts, one.whole, one.fields, one.writes = nil, x.whole, x.fields, x.writes
		one.real, one.isReal = x.dates, nil
		one.out.Because, one.out.Strategy, one.out.Writes, one.out.Fields = x.because, plan.Rewrite, nil, nil
		if slices.ContainsFunc(x.writes, func(w fields.Write) bool { return w.Column }) {
			one.out.Strategy = plan.Column
		}
		step, ok := b.compileTable(ctx, &one)
		if !ok {
			return
		}
		b.checkRendering(&one, step)
		for name, v := range one.out.Params {
			params[name] = v
		}
		b.outFields(&one)
		step.Writes = one.out.Writes
		for i := range step.Writes {
			step.Writes[i].Because = x.whys[step.Writes[i].Node]
		}
		step.ID = fmt.Sprintf("%s/%s_%d", p.node.Name, step.Strategy, k+1)
		step.Dates, step.Instances = ranges(x.dates), b.instances(&one, x.dates)
		steps = append(steps, step)
		p.out.Definition, p.out.Partition = one.out.Definition, one.out.Partition
	}
	p.out.Params = params
	var current, unscheduled []bizdate.Date
	for _, d := range p.dry {
		if p.node.Schedule.Scheduled(d) {
			current = append(current, d)
		} else {
			unscheduled = append(unscheduled, d)
		}
	}
	dry := func(id, because string, dates []bizdate.Date) {
		if len(dates) > 0 {
			steps = append(steps, plan.Step{ID: p.node.Name + "/" + id, Strategy: plan.DryRun, Because: because,
				Dates: ranges(dates), Instances: b.instances(p, dates)})
		}
	}
	dry("current", "current", current)
	dry("dry_run", fmt.Sprintf("not scheduled (%s)", p.node.Schedule), unscheduled)
	p.out.Steps = steps
	b.plan.Nodes = append(b.plan.Nodes, p.out)
}
