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
func passDependencies(ctx context.Context, b *build) error {
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
			if in.Node < 0 {
				continue
			}
			r := derive.Reads(p.node, in)
			up := at[in.Node]
			if up == p {
				b.feedsItself(p, in, r)
			}
			if !b.readsInput(p, in) {
				continue
			}
			if err := b.checkOutside(ctx, p, in, r, up); err != nil {
				return err
			}
			if up == nil {
				continue
			}
			if len(r.Runs) > 0 && !r.Same {
				b.refuseAhead(p, up, r)
				r = notAhead(r)
			}
			if len(r.Runs) == 0 {
				continue
			}
			e := plan.Edge{Node: up.node.Name, Kind: edgeKind(p, up, in, r), Because: r.Why}
			if !r.Same {
				e.Map = b.slotMap(maps, r.Runs)
				check.Previous = append(check.Previous, groups.PreviousCycle{Node: p.node.Name, Reads: up.node.Name})
			}
			p.out.Needs = append(p.out.Needs, e)
		}
	}
	b.contract(at)
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
	refs := in.References
	for _, r := range in.Registered {
		refs = append(refs[:len(refs):len(refs)], r.Reference)
	}
	for _, i := range refs {
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
	inside := up.realDates()
	for _, run := range r.Runs {
		if run.Hi <= 0 {
			continue
		}
		for _, d := range within(b.dates, run.From, run.To) {
			if !p.realDates()[d] {
				continue
			}
			for u := d + bizdate.Date(max(run.Lo, 1)); u <= d+bizdate.Date(run.Hi); u++ {
				if !inside[u] {
					continue
				}
				e := b.errorf("reads_ahead", "%s reads %s up to %s ahead of its own date", p.node.Name, up.node.Name, days(run.Hi))
				e.Detail = fmt.Sprintf("on %s it reads %s", d, u)
				e.Hint = fmt.Sprintf("date by date that slot is not refreshed yet: refresh %s first, in a backfill of its own, then %s", up.node.Name, p.node.Name)
				if p == up {
					e.Hint = "a table cannot read its own later slots: filter for earlier ones"
				}
				return
			}
		}
	}
}

// notAhead drops the later dates that a node reads: none of them is refreshed
// by the plan, so there is nothing to wait for.
func notAhead(r lineage.Reads) lineage.Reads {
	runs := slices.DeleteFunc(slices.Clone(r.Runs), func(run plan.MapRun) bool { return run.Lo > 0 })
	r.Same = true
	for i := range runs {
		runs[i].Hi = min(runs[i].Hi, 0)
		r.Same = r.Same && runs[i].Lo == 0
	}
	r.Runs = runs
	return r
}

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}

// within gives the dates in [from, to] of an ascending list.
func within(dates []bizdate.Date, from, to bizdate.Date) []bizdate.Date {
	i, _ := slices.BinarySearch(dates, from)
	j, _ := slices.BinarySearch(dates, to+1)
	return dates[i:max(i, j)]
}

// checkOutside looks up the slots that are read outside the backfill: a
// missing one is a warning, or with --strict an error.
func (b *build) checkOutside(ctx context.Context, p *picked, in lineage.Input, r lineage.Reads, up *picked) error {
	n := b.deps.Model.Nodes[in.Node]
	if !n.IsTable() || in.Parameter && len(in.References) == 0 {
		return nil
	}
	var inside map[bizdate.Date]bool
	if up != nil {
		inside = up.realDates()
	}
	real, seen := p.realDates(), map[bizdate.Date]bool{}
	var outside []bizdate.Date
	for _, run := range r.Runs {
		for _, d := range within(b.dates, run.From, run.To) {
			if !real[d] {
				continue
			}
			for u := d + bizdate.Date(run.Lo); u <= d+bizdate.Date(run.Hi); u++ {
				if !inside[u] && !seen[u] && n.Schedule.Scheduled(u) {
					seen[u] = true
					outside = append(outside, u)
				}
			}
		}
	}
	if len(outside) == 0 {
		return nil
	}
	slices.Sort(outside)
	if err := b.ensure(ctx, n, outside[0], outside[len(outside)-1]); err != nil {
		return err
	}
	anchor := lineage.Anchor(n)
	missing := slices.DeleteFunc(outside, func(u bizdate.Date) bool { return b.built(n, anchor, u) })
	if len(missing) == 0 {
		return nil
	}
	d := b.warnf
	if b.req.Strict {
		d = b.errorf
	}
	w := d("upstream_missing", "%s reads %s of %s, which %s never built", p.node.Name, rangesText(missing), n.Name, isAre(missing))
	w.Detail = r.Why
	switch {
	case p.node == n:
		w.Hint = "the first date starts from an empty previous slot; backfill from an earlier date to chain on what exists"
	case up != nil:
		w.Hint = fmt.Sprintf("backfill %s for these dates first", n.Name)
	default:
		w.Hint = fmt.Sprintf("add --upstream 1, or backfill %s first", n.Name)
	}
	return nil
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
