package planner

import (
	"maps"
	"slices"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// resources freezes the resource group that was asked for (semantics §6.5).
func (b *build) resources() {
	name := b.req.ResourceGroup
	if name == "" {
		return
	}
	project := b.deps.Model.Project
	g := project.ResourceGroup(name)
	if g == nil {
		names := project.ResourceGroupNames()
		hint := "the project has no resource groups: add resource_groups to retrofill.yml"
		if len(names) > 0 {
			hint = "known groups: " + join(names)
		}
		b.errorf("unknown_resource_group", "the project has no resource group %q", name).Hint = diag.DidYouMean(name, names, hint)
		return
	}
	if !g.For(modeling.UseBatch) {
		d := b.errorf("resource_group_use", "resource group %s is not for backfills", g.Name)
		d.Detail, d.Hint = "its uses: "+join(g.Uses), "choose a group that has "+modeling.UseBatch+" among its uses, or add it there"
		*d = d.At(g.Pos)
		return
	}
	if b.currentAlone() {
		b.errorf("resource_group_alone", "--resource-group is not for the table %s alone", b.targets[0].Name).
			Hint = "take tables around it with --upstream or --downstream, or leave --resource-group out; --groups runs dates side by side"
		return
	}
	out := plan.ResourceGroup{Name: g.Name, Connections: g.Connections}
	known := modeling.EngineSettings(b.deps.Engine.Type)
	for _, k := range slices.Sorted(maps.Keys(g.Settings)) {
		if !slices.Contains(known, k) {
			b.warnf("resource_group_setting", "the setting %s of resource group %s is not one of %s", k, g.Name, b.deps.Engine.Type).
				Hint = "it is left out in this environment"
			continue
		}
		if out.Settings == nil {
			out.Settings = map[string]string{}
		}
		out.Settings[k] = g.Settings[k]
	}
	b.plan.ResourceGroup = &out
}

// currentAlone tells whether only one logical table is asked for, without what
// is above or below it.
func (b *build) currentAlone() bool {
	return len(b.targets) == 1 && b.targets[0].IsTable() &&
		b.req.Upstream == 0 && b.downstream() == 0
}
