// Package selector selects nodes of a project (semantics §5.2–5.5): dbt's
// selection language with further methods, a filter expression, the
// neighbourhood of a current node, and what becomes of nodes that are left
// out (contraction, paused nodes).
//
// Invariants:
//   - a Graph is immutable and safe for concurrent use;
//   - a selection never depends on the order of nodes, edges or terms;
//   - errors and warnings are diagnostics whose codes are the kinds that
//     cases/README.md names: syntax, unknown_method, unknown_node, ambiguous,
//     no_match, unreachable, empty; and our own: where, levels, not_a_child,
//     not_downstream, too_many.
package selector

import (
	"fmt"
	"slices"
	"strings"
)

// All as a number of levels means every level.
const All = -1

// Node is what a selection can ask of a node. Empty values match nothing.
type Node struct {
	Name    string
	Project string
	Kind    string // table kind or task kind
	Owner   string
	ID      string
	Path    string // of its file, with slashes, relative to the project
	Cycle   string // daily, hourly, …
	Paused  bool
	Tags    []string
	Outputs []string
	Fields  []string // of a logical table
	// Config holds further settings: strings, numbers, booleans, lists and
	// maps with string keys, as YAML gives them.
	Config map[string]any
}

// FullName gives project.name, or the name alone without a project.
func (n *Node) FullName() string {
	if n.Project == "" {
		return n.Name
	}
	return n.Project + "." + n.Name
}

// Graph is the nodes of a project with their dependencies.
type Graph struct {
	nodes    []Node
	down, up adjacency
	byName   map[string][]int32 // name and project.name
	byID     map[string][]int32
	byOutput map[string][]int32 // lower case
}

// adjacency holds neighbours in one slice: those of i are
// list[start[i]:start[i+1]].
type adjacency struct {
	start []int32
	list  []int32
}

func (a adjacency) of(i int) []int32 { return a.list[a.start[i]:a.start[i+1]] }

func newAdjacency(n int, edges [][2]int, from int) adjacency {
	a := adjacency{start: make([]int32, n+1), list: make([]int32, len(edges))}
	for _, e := range edges {
		a.start[e[from]+1]++
	}
	for i := range n {
		a.start[i+1] += a.start[i]
	}
	next := slices.Clone(a.start)
	for _, e := range edges {
		a.list[next[e[from]]] = int32(e[1-from])
		next[e[from]]++
	}
	return a
}

// New makes a graph from nodes and edges {upstream, downstream} between their
// indexes. Edges that repeat or lead from a node to itself (a self-dependency)
// do no harm; one outside the nodes is an error.
func New(nodes []Node, edges [][2]int) (*Graph, error) {
	n := len(nodes)
	kept := make([][2]int, 0, len(edges))
	for _, e := range edges {
		if e[0] < 0 || e[1] < 0 || e[0] >= n || e[1] >= n {
			return nil, fmt.Errorf("selector: index edge %v: there are %d nodes", e, n)
		}
		if e[0] != e[1] {
			kept = append(kept, e)
		}
	}
	g := &Graph{
		nodes: slices.Clone(nodes), down: newAdjacency(n, kept, 0), up: newAdjacency(n, kept, 1),
		byName: make(map[string][]int32, 2*n), byID: make(map[string][]int32, n), byOutput: make(map[string][]int32, n),
	}
	for i := range g.nodes {
		x := &g.nodes[i]
		g.byName[x.Name] = append(g.byName[x.Name], int32(i))
		if full := x.FullName(); full != x.Name {
			g.byName[full] = append(g.byName[full], int32(i))
		}
		if x.ID != "" {
			g.byID[x.ID] = append(g.byID[x.ID], int32(i))
		}
		for _, o := range x.Outputs {
			o = strings.ToLower(o)
			if l := g.byOutput[o]; len(l) == 0 || l[len(l)-1] != int32(i) {
				g.byOutput[o] = append(l, int32(i))
			}
		}
	}
	return g, nil
}

// Len gives the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Node gives the node of an index.
func (g *Graph) Node(i int) Node { return g.nodes[i] }

// Empty gives a set of this graph without nodes.
func (g *Graph) Empty() Set { return newSet(len(g.nodes)) }

// Everything gives the set of all nodes.
func (g *Graph) Everything() Set {
	s := g.Empty()
	for i := range g.nodes {
		s.Add(i)
	}
	return s
}

// Of gives the set of some indexes.
func (g *Graph) Of(nodes ...int) Set {
	s := g.Empty()
	for _, i := range nodes {
		s.Add(i)
	}
	return s
}

// Label gives the shortest name that tells node i: its name, or project.name
// where the name is not unique.
func (g *Graph) Label(i int) string {
	if len(g.byName[g.nodes[i].Name]) == 1 {
		return g.nodes[i].Name
	}
	return g.nodes[i].FullName()
}

// Labels gives the labels of a set, sorted.
func (g *Graph) Labels(s Set) []string {
	out := make([]string, 0, s.Len())
	for i := range s.All() {
		out = append(out, g.Label(i))
	}
	slices.Sort(out)
	return out
}

// Find gives the nodes that a name or project.name tells, ascending.
func (g *Graph) Find(name string) []int {
	out := make([]int, 0, 1)
	for _, i := range g.byName[name] {
		out = append(out, int(i))
	}
	return out
}

// Downstream gives from and the nodes at most depth levels below it (All =
// every level).
func (g *Graph) Downstream(from Set, depth int) Set { return g.reach(g.down, from, depth) }

// Upstream gives from and the nodes at most depth levels above it.
func (g *Graph) Upstream(from Set, depth int) Set { return g.reach(g.up, from, depth) }

func (g *Graph) reach(adj adjacency, from Set, depth int) Set {
	out := from.Clone()
	var level []int32
	for i := range from.All() {
		level = append(level, int32(i))
	}
	for d := 0; len(level) > 0 && (depth < 0 || d < depth); d++ {
		var next []int32
		for _, i := range level {
			for _, j := range adj.of(int(i)) {
				if !out.Has(int(j)) {
					out.Add(int(j))
					next = append(next, j)
				}
			}
		}
		level = next
	}
	return out
}

// Levels gives for every node its distance from the nearest current node:
// positive below, negative above, 0 for current nodes and unrelated ones. A
// node both above and below (of different current nodes) counts as below.
func (g *Graph) Levels(current Set) []int {
	out := make([]int, len(g.nodes))
	fill := func(adj adjacency, sign int) {
		seen := current.Clone()
		var level []int32
		for i := range current.All() {
			level = append(level, int32(i))
		}
		for d := 1; len(level) > 0; d++ {
			var next []int32
			for _, i := range level {
				for _, j := range adj.of(int(i)) {
					if !seen.Has(int(j)) {
						seen.Add(int(j))
						out[j] = sign * d
						next = append(next, j)
					}
				}
			}
			level = next
		}
	}
	fill(g.up, -1)
	fill(g.down, 1)
	return out
}
