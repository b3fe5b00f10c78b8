package plan

import (
	"errors"
	"fmt"
	"slices"
)

// Validate checks what the runner relies on and reports every violation in
// one error: each node's steps cover each date of the plan exactly once and no
// other, the groups are the dates cut in run order, edges name nodes of the
// plan and point backwards within one date, counts are right. A plan made by
// planning always passes; a document edited by hand may not.
func Validate(p *Plan) error {
	v := validator{plan: p}
	if p.Backfill == "" {
		v.addf("the backfill has no name")
	}
	if len(p.Dates) == 0 {
		v.addf("there is no business date")
	}
	sorted := sortedDates(p.Dates)
	if len(slices.Compact(slices.Clone(sorted))) != len(sorted) {
		v.addf("a business date is listed twice")
	}
	if !slices.Equal(slices.Concat(p.Groups...), p.Dates) {
		v.addf("the groups are not the dates, cut in run order")
	}
	if _, err := p.RunsAt(); err != nil {
		v.errs = append(v.errs, err)
	}
	if p.Budget != nil && p.Budget.NotBetween != "" {
		if _, err := ParseDayPart(p.Budget.NotBetween); err != nil {
			v.errs = append(v.errs, err)
		}
	}
	if g := p.ResourceGroup; g != nil && (g.Name == "" || g.Connections < 1) {
		v.addf("the resource group %q has %d connections", g.Name, g.Connections)
	}
	x, err := NewExpander(p)
	if err != nil {
		return errors.Join(append(v.errs, err)...)
	}
	v.names()
	total := 0
	for i := range p.Nodes {
		v.edges(i)
		total += v.steps(x, i)
	}
	if total != p.Instances {
		v.addf("the plan counts %d instances, its steps make %d", p.Instances, total)
	}
	return errors.Join(v.errs...)
}

type validator struct {
	plan  *Plan
	index map[string]int
	errs  []error
}

func (v *validator) addf(format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("plan: validate: "+format, args...))
}

func (v *validator) names() {
	v.index = make(map[string]int, len(v.plan.Nodes))
	for i := range v.plan.Nodes {
		name := v.plan.Nodes[i].Name
		if name == "" {
			v.addf("node %d has no name", i)
		}
		if _, twice := v.index[name]; twice {
			v.addf("node %s is listed twice", name)
		}
		v.index[name] = i
	}
}

// edges checks one node's needs. An edge that reads the reader's own date must
// point to a node listed before: with that, the graph of one date is acyclic.
func (v *validator) edges(i int) {
	n := &v.plan.Nodes[i]
	for _, e := range n.Needs {
		up, known := v.index[e.Node]
		if !known {
			v.addf("%s needs %s, which is not in the plan", n.Name, e.Node)
			continue
		}
		if e.Map != nil && (*e.Map < 0 || *e.Map >= len(v.plan.SlotMaps)) {
			v.addf("%s needs %s by slot map %d of %d", n.Name, e.Node, *e.Map, len(v.plan.SlotMaps))
			continue
		}
		if up >= i && v.plan.SameDate(e) {
			v.addf("%s needs %s of the same business date, which comes after it", n.Name, e.Node)
		}
	}
}

// SameDate tells whether an edge reads, for any reader's date, the same date.
func (p *Plan) SameDate(e Edge) bool {
	if e.Map == nil {
		return true
	}
	return slices.ContainsFunc(p.SlotMaps[*e.Map].Runs, func(r MapRun) bool { return r.Lo <= 0 && r.Hi >= 0 })
}

// steps checks one node's steps and gives the number of its instances.
func (v *validator) steps(x *Expander, i int) int {
	n := &v.plan.Nodes[i]
	covered := make(map[int64]int, len(v.plan.Dates))
	ids := map[string]bool{}
	total := 0
	for _, s := range n.Steps {
		if s.ID == "" || ids[s.ID] {
			v.addf("a step of %s has the id %q, which is empty or used twice", n.Name, s.ID)
		}
		ids[s.ID] = true
		count := 0
		for k, r := range s.Dates {
			if r.To < r.From {
				v.addf("step %s of %s has a range that ends before it starts", s.ID, n.Name)
				return 0
			}
			if k > 1 && (s.Dates[1].From > s.Dates[0].From) != (r.From > s.Dates[k-1].From) {
				v.addf("step %s of %s has unsorted ranges", s.ID, n.Name)
			}
			for d := r.From; d <= r.To; d++ {
				covered[int64(d)]++
				count += x.Count(i, d)
			}
		}
		if s.Instances != count {
			v.addf("step %s of %s counts %d instances, its dates make %d", s.ID, n.Name, s.Instances, count)
		}
		total += count
	}
	for _, d := range v.plan.Dates {
		if c := covered[int64(d)]; c != 1 {
			v.addf("%d steps of %s cover %s, there must be one", c, n.Name, d)
		}
	}
	if len(covered) > len(v.plan.Dates) {
		v.addf("the steps of %s cover dates that the plan does not have", n.Name)
	}
	return total
}
