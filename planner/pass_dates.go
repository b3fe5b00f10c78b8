package planner

import (
	"context"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
)

// passDates selects the business dates, the groups and the window (semantics
// §3, §6.1, §6.2).
func passDates(_ context.Context, b *build) error {
	clock := bizdate.Clock{Now: b.deps.Now, RunAt: b.req.RunAt, Zone: b.deps.Model.Zone}
	dates, diags := b.req.Selection.Select(clock)
	b.diags = append(b.diags, diags...)
	if b.req.Groups == 0 {
		b.req.Groups = 1
	}
	cut, gd := groups.Split(dates, b.req.Groups, b.req.Selection.Direction)
	b.diags = append(b.diags, gd...)
	b.plan.Dates, b.plan.Groups = dates, cut
	b.plan.Order = string(b.req.Selection.Direction)
	if b.plan.Order == "" {
		b.plan.Order = string(bizdate.Asc)
	}
	b.dates = slices.Clone(dates)
	slices.Sort(b.dates)

	impact, id := bizdate.ParseImpact(b.req.HourlyImpact)
	b.diags = append(b.diags, id...)
	b.impact = impact
	if b.req.WindowFrom != "" || b.req.WindowTo != "" {
		w, wd := bizdate.ParseWindow(b.req.WindowFrom, b.req.WindowTo)
		b.diags = append(b.diags, wd...)
		if !wd.HasErrors() {
			b.window = &w
			b.plan.Window = &plan.Window{From: w.From.String(), To: w.To.String(), Impact: string(impact)}
		}
	}
	return nil
}
