package planner

import (
	"slices"

	"github.com/retrofill/retrofill/planner/lineage"
)

// reach gives the nodes that a request can take, in dependency order: the
// current nodes, their primary dimensions, and what stands so many levels up
// or down. What a node outside of it holds cannot change the plan.
func (b *build) reach() []*lineage.Node {
	m := b.deps.Model
	in := make([]bool, len(m.Nodes))
	var start []int
	for _, t := range b.targets {
		start = append(start, t.Position)
		in[t.Position] = true
		if t.IsTable() && t.Table.Parent != "" {
			if p := m.Node(t.Table.Parent); p != nil {
				in[p.Position] = true
			}
		}
	}
	if b.req.Upstream != 0 {
		walk(in, start, b.req.Upstream, func(i int, yield func(int)) {
			for _, x := range m.Nodes[i].Inputs {
				if x.Node >= 0 {
					yield(x.Node)
				}
			}
		})
	}
	if b.downstream() != 0 {
		readers := make([][]int, len(m.Nodes))
		for i, n := range m.Nodes {
			for _, x := range n.Inputs {
				if x.Node >= 0 {
					readers[x.Node] = append(readers[x.Node], i)
				}
			}
		}
		walk(in, start, b.downstream(), func(i int, yield func(int)) {
			for _, r := range readers[i] {
				yield(r)
			}
		})
	}
	var out []*lineage.Node
	for i, n := range m.Nodes {
		if in[i] {
			out = append(out, n)
		}
	}
	return out
}

// walk marks what is at most so many steps away from start; AllLevels = any.
func walk(in []bool, start []int, levels int, next func(int, func(int))) {
	seen := make([]bool, len(in))
	at := slices.Clone(start)
	for _, i := range at {
		seen[i] = true
	}
	for ; len(at) > 0 && levels != 0; levels-- {
		var beyond []int
		for _, i := range at {
			next(i, func(j int) {
				if !seen[j] {
					seen[j], in[j] = true, true
					beyond = append(beyond, j)
				}
			})
		}
		at = beyond
	}
}

// withInputs adds the nodes that the given ones read: their slots outside the
// backfill are looked up.
func (b *build) withInputs(nodes []*lineage.Node) []*lineage.Node {
	m := b.deps.Model
	in := make([]bool, len(m.Nodes))
	for _, n := range nodes {
		in[n.Position] = true
		for _, x := range n.Inputs {
			if x.Node >= 0 {
				in[x.Node] = true
			}
		}
	}
	var out []*lineage.Node
	for i, n := range m.Nodes {
		if in[i] {
			out = append(out, n)
		}
	}
	return out
}
