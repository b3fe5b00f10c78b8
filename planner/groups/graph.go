package groups

import (
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// link builds the graph of one date and refuses cycles.
func (o *Order) link() error {
	edges := slices.Clone(o.cfg.Edges)
	slices.SortFunc(edges, func(a, b Edge) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	for _, e := range slices.Compact(edges) {
		if e.From < 0 || e.To < 0 || e.From >= o.cfg.Nodes || e.To >= o.cfg.Nodes {
			return fmt.Errorf("groups: order nodes: edge %d -> %d among %d nodes", e.From, e.To, o.cfg.Nodes)
		}
		o.children[e.From] = append(o.children[e.From], int32(e.To))
		o.waits[e.To]++
	}
	left := slices.Clone(o.waits)
	var free []int32
	for n, w := range left {
		if w == 0 {
			free = append(free, int32(n))
		}
	}
	for i := 0; i < len(free); i++ {
		for _, c := range o.children[free[i]] {
			if left[c]--; left[c] == 0 {
				free = append(free, c)
			}
		}
	}
	o.topo = free
	if len(free) < o.cfg.Nodes {
		at := slices.IndexFunc(left, func(w int32) bool { return w > 0 })
		return fmt.Errorf("groups: order nodes: the dependencies at or above node %d form a cycle", at)
	}
	return nil
}

// linkLags indexes the cross-cycle dependencies.
func (o *Order) linkLags() error {
	if len(o.cfg.Lags) == 0 {
		return nil
	}
	if len(o.cfg.Groups) > 1 {
		return fmt.Errorf("groups: order nodes: cross-cycle dependencies with %d groups", len(o.cfg.Groups))
	}
	for _, g := range o.cfg.Groups {
		if !slices.IsSorted(g) {
			return fmt.Errorf("groups: order nodes: cross-cycle dependencies with dates that do not ascend")
		}
	}
	o.lagsTo = make([][]Lag, o.cfg.Nodes)
	o.lagFrom = make([]bool, o.cfg.Nodes)
	o.missing = make([][]bizdate.Date, o.cfg.Nodes)
	for _, l := range o.cfg.Lags {
		if l.From < 0 || l.To < 0 || l.From >= o.cfg.Nodes || l.To >= o.cfg.Nodes || l.Min < 1 || l.Max < l.Min {
			return fmt.Errorf("groups: order nodes: impossible lag %+v among %d nodes", l, o.cfg.Nodes)
		}
		o.lagsTo[l.To] = append(o.lagsTo[l.To], l)
		o.lagFrom[l.From] = true
	}
	return nil
}
