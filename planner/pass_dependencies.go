package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// passDependencies derives which slots of which node each node of the plan
// reads, refuses what the order of dates cannot give, and checks the slots
// outside the backfill in the ledger (semantics §3.7, §6.3).
func passDependencies(_ context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	derive := lineage.NewDeriver(b.deps.Model, b.dates)
	at := map[int]*picked{}
	for _, p := range b.picked {
		at[p.node.Position] = p
	}
	maps := map[string]int{}
	check := groups.Request{Dates: len(b.dates), Groups: b.req.Groups, Direction: b.req.Selection.Direction}
	for _, p := range b.picked {
		check.Selected = append(check.Selected, p.node.Name)
		for _, in := range p.node.Inputs {
			if in.Node < 0 || !b.readsInput(p, in) {
				continue
			}
			r := derive.Reads(p.node, in)
			up := at[in.Node]
			b.checkOutside(p, in, r, up)
			if up == nil || len(r.Runs) == 0 {
				continue
			}
			e := plan.Edge{Node: up.node.Name, Kind: edgeKind(p, up, in, r), Because: r.Why}
			if !r.Same {
				e.Map = b.slotMap(maps, r.Runs)
				check.Previous = append(check.Previous, groups.PreviousCycle{Node: p.node.Name, Reads: up.node.Name})
				b.refuseAhead(p, up, r)
			}
			p.out.Needs = append(p.out.Needs, e)
		}
	}
	for _, r := range groups.Check(check) {
		b.diags = append(b.diags, r.Diagnostic)
	}
	return nil
}

// readsInput tells whether the refreshed part of a node reads an input: a node
// that is refreshed by field reads only what its written fields and its row
// set read.
func (b *build) readsInput(p *picked, in lineage.Input) bool {
	if p.whole || len(in.Declared) > 0 || in.Parameter || p.node.Analysis == nil || p.node.Analysis.Unsplittable != nil {
		return true
	}
	for _, i := range in.References {
		ref := p.node.Analysis.References[i]
		if ref.RowSet || ref.AllColumns {
			return true
		}
		for _, f := range ref.Fields {
			for _, w := range p.writes {
				if containsFold(w.Fields, f) {
					return true
				}
			}
		}
	}
	return false
}

func edgeKind(p, up *picked, in lineage.Input, r lineage.Reads) string {
	switch {
	case p == up:
		return "self"
	case !r.Same:
		return "cross_cycle"
	case in.Parameter:
		return "parameter"
	case r.How == "declared":
		return "declared"
	}
	return "lineage"
}

// slotMap gives the index of a slot map, each different one stored once.
func (b *build) slotMap(seen map[string]int, runs []plan.MapRun) *int {
	key, err := json.Marshal(runs)
	if err != nil {
		key = fmt.Append(nil, runs) // plain values always marshal
	}
	i, ok := seen[string(key)]
	if !ok {
		i = len(b.plan.SlotMaps)
		seen[string(key)] = i
		b.plan.SlotMaps = append(b.plan.SlotMaps, plan.SlotMap{Runs: runs})
	}
	return &i
}

// refuseAhead refuses a node that reads a later date of another node of the
// plan: date by date that slot does not exist yet.
func (b *build) refuseAhead(p, up *picked, r lineage.Reads) {
	for _, run := range r.Runs {
		if run.Hi <= 0 || p == up && run.Hi < 0 {
			continue
		}
		last := b.dates[len(b.dates)-1]
		if run.From+bizdate.Date(run.Lo) > last { // never inside the backfill
			continue
		}
		b.errorf("reads_ahead", "%s reads %s up to %d days ahead of its own date", p.node.Name, up.node.Name, run.Hi).
			Hint = fmt.Sprintf("date by date that slot is not refreshed yet: refresh %s first, in a backfill of its own, then %s", up.node.Name, p.node.Name)
		return
	}
}

// checkOutside looks up the slots that are read outside the backfill: a
// missing one is a warning, or with --strict an error.
func (b *build) checkOutside(p *picked, in lineage.Input, r lineage.Reads, up *picked) {
	n := b.deps.Model.Nodes[in.Node]
	if !n.IsTable() || in.Parameter && len(in.References) == 0 {
		return
	}
	var inside map[bizdate.Date]bool
	if up != nil {
		inside = up.realDates()
	}
	anchor := lineage.Anchor(n)
	var missing []bizdate.Date
	real, seen := p.realDates(), map[bizdate.Date]bool{}
	for _, run := range r.Runs {
		for _, d := range b.dates {
			if d < run.From || d > run.To || !real[d] {
				continue
			}
			for u := d + bizdate.Date(run.Lo); u <= d+bizdate.Date(run.Hi); u++ {
				if inside[u] || seen[u] || !n.Schedule.Scheduled(u) || b.built(anchor, u) {
					continue
				}
				if up != nil && p == up && u < b.dates[0] && len(missing) > 0 {
					continue
				}
				seen[u] = true
				missing = append(missing, u)
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.Sort(missing)
	d := b.warnf
	if b.req.Strict {
		d = b.errorf
	}
	w := d("upstream_missing", "%s reads %s of %s, which %s never built", p.node.Name, n.Name, rangesText(missing), isAre(missing))
	w.Detail = r.Why
	switch {
	case p.node == n:
		w.Hint = fmt.Sprintf("the first date starts from an empty previous slot; backfill from an earlier date to chain on what exists")
	case up != nil:
		w.Hint = fmt.Sprintf("backfill %s for these dates first", n.Name)
	default:
		w.Hint = fmt.Sprintf("add --upstream 1, or backfill %s first", n.Name)
	}
}

func isAre(list []bizdate.Date) string {
	if len(list) == 1 {
		return "was"
	}
	return "were"
}

// maxRanges is the most ranges that a message lists.
const maxRanges = 5

func rangesText(dates []bizdate.Date) string {
	var parts []string
	for i, r := range plan.Ranges(dates) {
		if i == maxRanges {
			parts = append(parts, "…")
			break
		}
		if r.From == r.To {
			parts = append(parts, r.From.String())
		} else {
			parts = append(parts, r.From.String()+".."+r.To.String())
		}
	}
	return strings.Join(parts, ", ")
}
