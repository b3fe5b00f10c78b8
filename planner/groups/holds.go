package groups

import (
	"fmt"
	"slices"
)

// holding tells whether what lacks node n's result waits rather than being
// blocked.
func (gr *group) holding(n int) bool {
	return gr.state[n] == held || gr.state[n] == blockedByHeld || gr.holds[n]
}

func (gr *group) hold(n int) {
	if gr.holds == nil {
		gr.holds = map[int]bool{}
	}
	gr.holds[n] = true
}

// cutEdges finds the dependencies that do not count on the group's date.
func (o *Order) cutEdges(g int) {
	gr := &o.groups[g]
	gr.cut = nil
	if o.cfg.Ignores == nil {
		return
	}
	for n := range o.cfg.Nodes {
		for _, up := range o.cfg.Ignores(Item{Group: g, Date: gr.date, Node: n}) {
			e := Edge{up, n}
			if up < 0 || up >= o.cfg.Nodes || gr.cut[e] || !slices.Contains(o.children[up], int32(n)) {
				continue
			}
			if gr.cut == nil {
				gr.cut = map[Edge]bool{}
			}
			gr.cut[e] = true
			gr.waits[n]--
		}
	}
}

// Hold ends a running instance that turned out to be paused: it did not fail,
// and what is below it waits with it. It gives them, as Finish does.
func (o *Order) Hold(it Item) ([]Blocked, error) {
	if !o.current(it) || o.groups[it.Group].state[it.Node] != running {
		return nil, fmt.Errorf("groups: hold %+v: it is not running", it)
	}
	o.groups[it.Group].running--
	o.running--
	o.end(it, held)
	out := o.block(it)
	o.advance(it.Group)
	return append(out, o.takeEarly()...), nil
}
