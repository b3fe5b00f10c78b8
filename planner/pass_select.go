package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/selector"
)

// isPaused tells whether a node is paused in the project or in the ledger.
func (b *build) isPaused(n *lineage.Node) bool {
	if n.Table != nil && n.Table.Paused || n.Task != nil && n.Task.Paused {
		return true
	}
	return b.deps.Paused != nil && b.deps.Paused(n.Name)
}

// pausedNode tells whether a picked node is paused.
func (b *build) pausedNode(p *picked) bool { return b.isPaused(p.node) }

// selection gives the selection graph, made when it is first asked for; its
// indexes are positions in the model.
func (b *build) selection() (*selector.Graph, error) {
	if b.graph != nil {
		return b.graph, nil
	}
	g, err := b.deps.Model.Graph(b.deps.Paused)
	b.graph = g
	return g, err
}

// selectNodes resolves --select into current nodes and --exclude into the set
// of nodes to be left out (semantics §5.2).
func (b *build) selectNodes() error {
	if b.req.Where != "" && len(b.req.Select) == 0 {
		b.errorf("usage", "--where filters what --select gives, and there is none").
			Hint = "add --select, such as --select '*' for all nodes"
	}
	if len(b.req.Select) == 0 && len(b.req.Exclude) == 0 {
		return nil
	}
	g, err := b.selection()
	if err != nil {
		return err
	}
	if len(b.req.Exclude) > 0 {
		sel, diags := g.Select(selector.Query{Select: b.req.Exclude})
		b.diags = append(b.diags, diags...)
		b.excluded = &sel.Nodes
	}
	if len(b.req.Select) == 0 {
		return nil
	}
	q := selector.Query{Select: b.req.Select, Where: b.req.Where}
	if q.Where != "" {
		named := g.Empty()
		for _, name := range b.req.Nodes {
			if n := b.deps.Model.Node(name); n != nil {
				named.Add(n.Position)
			}
		}
		levels := g.Levels(named)
		q.Level = func(i int) int { return levels[i] }
	}
	sel, diags := g.Select(q)
	b.diags = append(b.diags, diags...)
	if diags.HasErrors() {
		return nil
	}
	b.diags = append(b.diags, selector.NonEmpty(sel.Nodes)...)
	for i := range sel.Nodes.All() {
		b.target(b.deps.Model.Nodes[i])
	}
	return nil
}

func (b *build) target(n *lineage.Node) {
	if b.isTargets == nil {
		b.isTargets = map[*lineage.Node]bool{}
	}
	if !b.isTargets[n] {
		b.isTargets[n] = true
		b.targets = append(b.targets, n)
	}
}

// isTarget tells whether the node is a current node.
func (b *build) isTarget(n *lineage.Node) bool { return b.isTargets[n] }

// isNamed tells whether the node is a current node that was named, not found
// by a selection.
func (b *build) isNamed(n *lineage.Node) bool {
	return b.isTarget(n) && slices.ContainsFunc(b.req.Nodes, func(name string) bool { return strings.EqualFold(name, n.Name) })
}

// selectChildren resolves --children: these level-1 children and everything
// below them, besides the levels of --downstream (semantics §5.1); and the
// lists that keep some descendants of these, or of all (§5.5).
func (b *build) selectChildren() error {
	if len(b.req.Children) == 0 && !b.req.lists() {
		return nil
	}
	if len(b.targets) == 0 {
		if !b.diags.HasErrors() && !b.req.Stale {
			b.errorf("usage", "--children, --names-file, --ids-file and --outputs-file keep descendants of a current node, and there is none").
				Hint = "name the node, or select nodes with --select"
		}
		return nil
	}
	g, err := b.selection()
	if err != nil {
		return err
	}
	scope := selector.Scope{Downstream: b.req.Downstream, Children: b.req.Children}
	for _, t := range b.targets {
		scope.Current = append(scope.Current, t.Position)
	}
	below, diags := g.Around(scope)
	if len(b.req.Children) > 0 {
		b.below = &below
	}
	if b.req.lists() {
		scope.Names, scope.IDs, scope.Outputs = b.req.Names, b.req.IDs, b.req.Outputs
		var listed selector.Set
		listed, diags = g.Around(scope) // what was wrong above is among it
		b.listed = &listed
	}
	b.diags = append(b.diags, diags...)
	return nil
}

// lists tells whether a list keeps some of the descendants.
func (r *Request) lists() bool { return r.Names != nil || r.IDs != nil || r.Outputs != nil }

// leaveUnlisted takes descendants out of the plan that the lists do not keep,
// and names those of the lists that read nothing of what is written: they are
// not in the plan either. What is upstream stays.
func (b *build) leaveUnlisted() {
	if b.listed == nil {
		return
	}
	b.drop(func(p *picked) bool {
		if p.level <= 0 || b.isTarget(p.node) || b.listed.Has(p.node.Position) {
			return false
		}
		b.plan.LeftOut = append(b.plan.LeftOut, plan.LeftOut{Node: p.node.Name, Reason: "not_listed"})
		return true
	})
	for i := range b.listed.All() {
		n := b.deps.Model.Nodes[i]
		if b.byNode[n] == nil && !slices.ContainsFunc(b.plan.LeftOut, func(l plan.LeftOut) bool { return l.Node == n.Name }) {
			b.plan.LeftOut = append(b.plan.LeftOut, plan.LeftOut{Node: n.Name, Reason: "reads_nothing_written", Detail: "it is listed, but nothing that it reads is written"})
		}
	}
}

// downstream gives the number of levels that the field closure follows: with
// --children they are bounded by b.below instead; lists alone keep descendants
// of any level.
func (b *build) downstream() int {
	if b.below != nil || b.listed != nil && b.req.Downstream == 0 {
		return AllLevels
	}
	return b.req.Downstream
}

// passLeaveOut takes the excluded nodes out of the plan, and paused nodes with
// everything below them (semantics §5.4). A paused node that was named stays.
func passLeaveOut(_ context.Context, b *build) error {
	if b.diags.HasErrors() || b.idle {
		return nil
	}
	before := len(b.picked)
	b.leaveUnlisted()
	b.leaveExcluded()
	if err := b.leavePaused(); err != nil {
		return err
	}
	if len(b.picked) == 0 && before > 0 {
		b.errorf("empty", "nothing is left of the plan: every node is excluded or paused").
			Hint = "`retrofill ls --select …` shows a selection; --include-paused takes paused nodes"
	}
	b.checkOverrides()
	b.checkShadowed()
	return nil
}

// drop takes nodes out of the plan.
func (b *build) drop(gone func(*picked) bool) {
	b.picked = slices.DeleteFunc(b.picked, func(p *picked) bool {
		if !gone(p) {
			return false
		}
		delete(b.byNode, p.node)
		delete(b.isTargets, p.node)
		b.targets = slices.DeleteFunc(b.targets, func(n *lineage.Node) bool { return n == p.node })
		return true
	})
}

func (b *build) leaveExcluded() {
	if b.excluded == nil {
		return
	}
	b.drop(func(p *picked) bool {
		if !b.excluded.Has(p.node.Position) {
			return false
		}
		b.plan.LeftOut = append(b.plan.LeftOut, plan.LeftOut{Node: p.node.Name, Reason: "excluded", Detail: "--exclude " + strings.Join(b.req.Exclude, " ")})
		return true
	})
}

func (b *build) leavePaused() error {
	if b.req.IncludePaused || !slices.ContainsFunc(b.picked, func(p *picked) bool { return b.isPaused(p.node) && !b.isNamed(p.node) }) {
		return nil
	}
	g, err := b.selection()
	if err != nil {
		return err
	}
	all, keep := g.Empty(), g.Empty()
	for _, p := range b.picked {
		all.Add(p.node.Position)
		if b.isNamed(p.node) {
			keep.Add(p.node.Position)
		}
	}
	kept, left := g.WithoutPaused(all, keep)
	for _, l := range left {
		out := plan.LeftOut{Node: b.deps.Model.Nodes[l.Node].Name, Reason: "paused", Detail: "--include-paused takes it"}
		if l.By != l.Node {
			out.Reason, out.Detail = "below_paused", "below "+b.deps.Model.Nodes[l.By].Name
		}
		b.plan.LeftOut = append(b.plan.LeftOut, out)
	}
	b.drop(func(p *picked) bool { return !kept.Has(p.node.Position) })
	return nil
}

// checkOverrides warns for a --param that no node of the plan knows.
func (b *build) checkOverrides() {
	if len(b.req.Params) == 0 || len(b.picked) == 0 {
		return
	}
	unknown := map[string]int{}
	var known []string
	for _, p := range b.picked {
		if p.node.Params == nil {
			continue
		}
		for _, name := range p.node.Params.UndeclaredOverrides() {
			unknown[strings.ToLower(name)]++
		}
		for _, x := range p.node.Params.Params() {
			if _, override := b.req.Params[strings.ToLower(x.Name)]; !override && !slices.Contains(known, x.Name) {
				known = append(known, x.Name)
			}
		}
	}
	names := make([]string, 0, len(unknown))
	for name, n := range unknown {
		if n == len(b.picked) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b.diags = append(b.diags, diag.Warnf("undeclared", "--param %s: no node of this plan has a parameter of that name", name).
			WithHint("%s", diag.DidYouMean(name, known, "declare it under `params`, or leave the override out")))
	}
}

// checkShadowed says which built-in parameters have a value of the user's
// (semantics §2.5).
func (b *build) checkShadowed() {
	nodes := map[string][]string{}
	first := map[string]param.Param{}
	var names []string
	for _, p := range b.picked {
		if p.node.Params == nil {
			continue
		}
		for _, x := range p.node.Params.Shadowed() {
			if _, known := first[x.Name]; !known {
				first[x.Name] = x
				names = append(names, x.Name)
			}
			nodes[x.Name] = append(nodes[x.Name], p.node.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		who := nodes[name][0]
		if n := len(nodes[name]); n > 1 {
			who = fmt.Sprintf("%s and %d more", who, n-1)
		}
		d := b.warnf("shadows_builtin", "${%s} has a value of the project or the command line in %s, in place of the built-in one", name, who)
		d.Pos, d.Hint = first[name].Pos, "give the parameter another name if that is not meant"
	}
}

// distinct drops diagnostics that were reported before.
func distinct(list diag.List) diag.List {
	seen := make(map[diag.Diagnostic]bool, len(list))
	out := list[:0]
	for _, d := range list {
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}
