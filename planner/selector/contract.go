package selector

import "slices"

// Contract gives the dependencies {upstream, downstream} between kept nodes:
// their own edges, and one from A to B where a way from A to B leads through
// nodes that are not kept only (A→X→B keeps A before B, semantics §5.4).
// The pairs are sorted and each occurs once. Self-loops never occur.
func (g *Graph) Contract(kept Set) [][2]int {
	var out [][2]int
	seen := make([]int32, len(g.nodes)) // the last start, +1, that reached a node
	var queue []int32
	for a := range kept.All() {
		mark := int32(a) + 1
		queue = append(queue[:0], int32(a))
		from := len(out)
		for k := 0; k < len(queue); k++ {
			for _, j := range g.down.of(int(queue[k])) {
				if seen[j] == mark || int(j) == a {
					continue
				}
				seen[j] = mark
				if kept.Has(int(j)) {
					out = append(out, [2]int{a, int(j)})
				} else {
					queue = append(queue, j)
				}
			}
		}
		slices.SortFunc(out[from:], func(x, y [2]int) int { return x[1] - y[1] })
	}
	return out
}

// LeftOut is one node that WithoutPaused takes out.
type LeftOut struct {
	Node int
	// By is the nearest paused node that is the reason; Node itself if it is
	// paused.
	By int
}

// WithoutPaused takes paused nodes of s and everything below them out of s
// (semantics §5.4), and reports node by node, ascending. Nodes of keep (the
// current node, say, that the user named) are never taken out and hold
// nothing. A paused node outside s holds nothing either.
func (g *Graph) WithoutPaused(s, keep Set) (Set, []LeftOut) {
	by := map[int]int{}
	var level []int32
	for i := range s.All() {
		if g.nodes[i].Paused && !keep.Has(i) {
			by[i] = i
			level = append(level, int32(i))
		}
	}
	for len(level) > 0 {
		var next []int32
		for _, i := range level {
			for _, j := range g.down.of(int(i)) {
				if _, ok := by[int(j)]; !ok && !keep.Has(int(j)) {
					by[int(j)] = by[int(i)]
					next = append(next, j)
				}
			}
		}
		level = next
	}
	out := s.Clone()
	var left []LeftOut
	for i := range s.All() {
		if p, ok := by[i]; ok {
			out.Remove(i)
			left = append(left, LeftOut{Node: i, By: p})
		}
	}
	return out, left
}
