package planner

import (
	"slices"

	"github.com/retrofill/retrofill/planner/plan"
)

// contract keeps the order of nodes that others between them, which are not
// in the plan, connect (A→X→B keeps A before B, semantics §5.4): each node
// needs, on the same date, the nearest nodes of the plan that are above it
// through nodes outside of it only.
func (b *build) contract(at map[int]*picked) {
	if len(b.picked) < 2 {
		return
	}
	nodes := b.deps.Model.Nodes
	// above[i] are the nearest nodes of the plan above a node outside of it,
	// known for every position below the one that asks.
	above := map[int][]int{}
	var nearest func(i int) []int
	nearest = func(i int) []int {
		if list, known := above[i]; known {
			return list
		}
		above[i] = nil
		var out []int
		for _, in := range nodes[i].Inputs {
			if in.Node < 0 || in.Node >= i {
				continue // an earlier cycle puts no order on one date
			}
			if at[in.Node] != nil {
				out = append(out, in.Node)
			} else {
				out = append(out, nearest(in.Node)...)
			}
		}
		slices.Sort(out)
		above[i] = slices.Compact(out)
		return above[i]
	}
	for _, p := range b.picked {
		has := map[string]bool{}
		for _, e := range p.out.Needs {
			has[e.Node] = e.Map == nil || has[e.Node]
		}
		for _, in := range p.node.Inputs {
			if in.Node < 0 || in.Node >= p.node.Position || at[in.Node] != nil {
				continue
			}
			for _, i := range nearest(in.Node) {
				name := nodes[i].Name
				if has[name] {
					continue
				}
				has[name] = true
				p.out.Needs = append(p.out.Needs, plan.Edge{
					Node: name, Kind: "contracted", Because: nodes[in.Node].Name + " lies between and is not in the plan",
				})
			}
		}
	}
}
