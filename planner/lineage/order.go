package lineage

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

// order sorts the nodes so that each stands behind what it reads, and gives
// the positions level by level. Nodes in a circle are reported and left out of
// the levels.
func (b *builder) order() [][]int {
	n := len(b.model.Nodes)
	ups := make([][]int, n)
	for i, node := range b.model.Nodes {
		add := func(j int) {
			if j >= 0 && j != i && !slices.Contains(ups[i], j) {
				ups[i] = append(ups[i], j)
			}
		}
		for _, name := range b.tables[i] {
			add(b.model.Producer(name))
		}
		b.registeredReads(node, func(table string, _ RegisteredRead) { add(b.model.Producer(table)) })
		for _, d := range node.dependsOn() {
			if d.To == 0 { // an earlier cycle alone puts no order on one date
				add(b.model.Producer(d.Node))
			}
		}
		for _, p := range node.params() {
			if p.FromNode != "" {
				add(b.model.Producer(p.FromNode))
			}
		}
	}
	depth := make([]int, n)
	state := make([]uint8, n) // 0 open, 1 on the path, 2 done, 3 in or behind a circle
	var path []int
	var visit func(int)
	visit = func(i int) {
		state[i] = 1
		path = append(path, i)
		for _, j := range ups[i] {
			switch state[j] {
			case 0:
				visit(j)
			case 1:
				b.circle(path[slices.Index(path, j):])
				state[i] = 3
			}
			if state[j] == 3 {
				state[i] = 3
			}
			depth[i] = max(depth[i], depth[j]+1)
		}
		path = path[:len(path)-1]
		if state[i] == 1 {
			state[i] = 2
		}
	}
	for i := range n {
		if state[i] == 0 {
			visit(i)
		}
	}
	sorted := make([]int, n)
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted, func(x, y int) int { return depth[x] - depth[y] })
	b.permute(sorted)
	var levels [][]int
	for pos, old := range sorted {
		if state[old] == 3 {
			continue
		}
		for len(levels) <= depth[old] {
			levels = append(levels, nil)
		}
		levels[depth[old]] = append(levels[depth[old]], pos)
	}
	return levels
}

// permute puts nodes, definitions and table lists in the given order.
func (b *builder) permute(sorted []int) {
	nodes := make([]*Node, len(sorted))
	defs := make([]sqlast.Definition, len(sorted))
	tables := make([][]string, len(sorted))
	for pos, old := range sorted {
		nodes[pos], defs[pos], tables[pos] = b.model.Nodes[old], b.defs[old], b.tables[old]
	}
	b.model.Nodes, b.defs, b.tables = nodes, defs, tables
	b.reindex()
}

// circle reports nodes that read each other.
func (b *builder) circle(nodes []int) {
	var names []string
	for _, i := range nodes {
		names = append(names, b.model.Nodes[i].Name)
	}
	slices.Reverse(names) // from what is read to the reader
	names = append(names, names[0])
	d := diag.Errorf("cyclic_tables", "nodes read each other in a circle: %s", strings.Join(names, " → ")).
		At(b.model.Nodes[nodes[0]].Pos()).
		WithHint("break the circle: let one of them read a source, or a table in between")
	b.model.Nodes[nodes[0]].Diagnostics = append(b.model.Nodes[nodes[0]].Diagnostics, d)
	b.model.Diagnostics = append(b.model.Diagnostics, d)
}

func (n *Node) dependsOn() []modeling.Dependency {
	if n.Table != nil {
		return n.Table.DependsOn
	}
	return n.Task.DependsOn
}

func (n *Node) params() []modeling.Param {
	if n.Table != nil {
		return n.Table.Params
	}
	return n.Task.Params
}

// inputs gathers what a node reads: the references of its SELECT, declared
// dependencies and cross-node parameters, each upstream once.
func (b *builder) inputs(n *Node) {
	find := func(name string) *Input {
		pos := b.model.Producer(name)
		for i := range n.Inputs {
			if pos >= 0 && n.Inputs[i].Node == pos || strings.EqualFold(n.Inputs[i].Name, name) {
				return &n.Inputs[i]
			}
		}
		in := Input{Name: name, Node: pos, Source: b.deps.Project.Source(name)}
		if pos >= 0 && b.model.Nodes[pos].IsTable() {
			in.Name = b.model.Nodes[pos].Name
		}
		n.Inputs = append(n.Inputs, in)
		return &n.Inputs[len(n.Inputs)-1]
	}
	if n.Analysis != nil {
		for i, r := range n.Analysis.References {
			in := find(r.Table)
			in.References = append(in.References, i)
		}
		b.registeredReads(n, func(table string, r RegisteredRead) {
			in := find(table)
			in.Registered = append(in.Registered, r)
		})
	} else {
		for _, name := range b.tables[n.Position] {
			find(name)
		}
	}
	for _, d := range n.dependsOn() {
		if b.model.Producer(d.Node) < 0 && b.deps.Project.Source(d.Node) == nil {
			n.Diagnostics = append(n.Diagnostics, diag.Errorf("unknown_node", "%s depends on %q, which is no table, task or source", n.Name, d.Node).
				At(d.Pos).WithHint("%s", diag.DidYouMean(d.Node, b.knownTables(), "check the name under depends_on")))
			continue
		}
		in := find(d.Node)
		in.Declared = append(in.Declared, d)
	}
	for _, p := range n.params() {
		if p.FromNode == "" {
			continue
		}
		if b.model.Producer(p.FromNode) < 0 {
			n.Diagnostics = append(n.Diagnostics, diag.Errorf("unknown_node", "parameter %s is read from %q, which is no node", p.Name, p.FromNode).
				At(p.Pos).WithHint("%s", diag.DidYouMean(p.FromNode, b.model.Names(), "name the task that sets it")))
			continue
		}
		find(p.FromNode).Parameter = true
	}
}
