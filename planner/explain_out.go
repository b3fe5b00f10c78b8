package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// measure fills the distances from the current nodes.
func (x *explainer) measure() {
	nodes := x.model.Nodes
	below := make([][]int, len(nodes))
	for i, n := range nodes {
		for _, in := range n.Inputs {
			if in.Node >= 0 && in.Node != i {
				below[in.Node] = append(below[in.Node], i)
			}
		}
	}
	var start []int
	for _, n := range x.start {
		start = append(start, n.Position)
	}
	x.down = distances(len(nodes), start, func(i int) []int { return below[i] })
	x.up = distances(len(nodes), start, x.inputs)
}

func (x *explainer) inputs(i int) []int {
	var out []int
	for _, in := range x.model.Nodes[i].Inputs {
		if in.Node >= 0 && in.Node != i && !slices.Contains(out, in.Node) {
			out = append(out, in.Node)
		}
	}
	return out
}

// distances gives the number of steps from start, 0 = start or out of reach.
func distances(n int, start []int, next func(int) []int) []int {
	out, seen := make([]int, n), make([]bool, n)
	for _, i := range start {
		seen[i] = true
	}
	for at := start; len(at) > 0; {
		var beyond []int
		for _, i := range at {
			for _, j := range next(i) {
				if !seen[j] {
					seen[j], out[j] = true, out[i]+1
					beyond = append(beyond, j)
				}
			}
		}
		at = beyond
	}
	return out
}

// source answers for a table that nothing in the project fills.
func (x *explainer) source(e *Explanation) {
	e.Kind = "source"
	e.answer(false, "source", "it is a source: no table or task of the project fills it, so no backfill writes it")
	var readers []string
	for _, n := range x.model.Nodes {
		if _, in := x.index[n.Name]; in && slices.ContainsFunc(n.Inputs, func(i lineage.Input) bool { return strings.EqualFold(i.Name, e.Node) }) {
			readers = append(readers, n.Name)
		}
	}
	if len(readers) > 0 {
		e.fact("read by", "%s", someOf(readers))
	}
}

// out says why a node is not in the plan (semantics §4.7, §5.1–5.5).
func (x *explainer) out(e *Explanation, n *lineage.Node) {
	if x.leftOut(e, n) {
		return
	}
	down, up := x.down[n.Position], x.up[n.Position]
	r := x.req
	switch {
	case n.IsTable() && n.Analysis == nil:
		e.answer(false, "broken", "it cannot be analysed, so what it reads is not known")
		e.Hint = "`retrofill validate` shows its problems"
	case r.Stale && len(r.Nodes)+len(r.Select) > 0 && !x.isStart(n):
		e.answer(false, "not_selected", "--stale looks at the named tables only: %s", someOf(append(slices.Clone(r.Nodes), r.Select...)))
		e.Hint = "name it as well, or name none to look at all"
	case r.Stale && !n.IsTable():
		e.answer(false, "not_selected", "it is a task: --stale refreshes tables")
	case r.Stale:
		e.answer(false, "current", "nothing of it is stale on the selected dates, or nothing of it was ever built there")
		e.Hint = "`retrofill fields " + n.Name + "` shows field by date"
	case down > 0:
		x.notBelow(e, n, down)
	case up > 0 && r.Upstream == 0:
		e.answer(false, "beyond_levels", "it is %s above %s, and no upstream nodes are asked for", levelsText(up), x.current())
		e.Hint = fmt.Sprintf("add --upstream %s", levelFlag(up))
	case up > 0 && r.Upstream > 0 && up > r.Upstream:
		e.answer(false, "beyond_levels", "it is %s above %s, and the plan goes %s up", levelsText(up), x.current(), levelsText(r.Upstream))
		e.Hint = fmt.Sprintf("add --upstream %s", levelFlag(up))
	case up > 0:
		x.notRead(e, n)
	default:
		e.answer(false, "unrelated", "it is neither downstream nor upstream of %s", x.current())
		e.Hint = "add it with --select " + n.Name
	}
}

func (x *explainer) isStart(n *lineage.Node) bool { return slices.Contains(x.start, n) }

// leftOut answers for a node that the plan says was left out.
func (x *explainer) leftOut(e *Explanation, n *lineage.Node) bool {
	i := slices.IndexFunc(x.plan.LeftOut, func(l plan.LeftOut) bool { return strings.EqualFold(l.Node, n.Name) })
	if i < 0 {
		return false
	}
	l := x.plan.LeftOut[i]
	switch l.Reason {
	case "excluded":
		e.answer(false, l.Reason, "--exclude '%s' leaves it out", strings.Join(x.req.Exclude, "' '"))
		e.Hint = "take it out of --exclude"
	case "paused":
		e.answer(false, l.Reason, "it is paused")
		if strings.HasPrefix(l.Detail, "paused fields") {
			e.answer(false, l.Reason, "%s", l.Detail)
		}
		e.Hint = "add --include-paused, or unpause it"
	case "below_paused":
		by := strings.TrimPrefix(l.Detail, "below ")
		e.answer(false, l.Reason, "it is below %s, which is left out", by)
		why := Explanation{}
		if up, ok := x.find(by); ok && up != nil && up != n && x.leftOut(&why, up) {
			e.fact("in the way", "%s: %s", by, why.Because)
		}
		e.Hint = "add --include-paused, or unpause that one"
	case "not_listed":
		e.answer(false, l.Reason, "it is downstream of %s, but not in the list of nodes to keep", x.current())
		e.Hint = "add it to --names-file, --ids-file or --outputs-file"
	case "reads_nothing_written":
		x.readsInstead(e, n, "")
	default:
		e.answer(false, l.Reason, "%s", l.Detail)
	}
	return true
}

// notBelow says why a descendant of the current nodes is not in the plan.
func (x *explainer) notBelow(e *Explanation, n *lineage.Node, down int) {
	r := x.req
	switch {
	case r.Downstream == 0 && len(r.Children) == 0 && !r.lists():
		e.answer(false, "beyond_levels", "it is %s below %s, and no downstream nodes are asked for", levelsText(down), x.current())
		e.Hint = fmt.Sprintf("add --downstream %s", levelFlag(down))
		return
	case len(r.Children) > 0 && !x.belowChildren(n) && (r.Downstream >= 0 && down > r.Downstream):
		e.answer(false, "not_a_child", "it is below %s, but neither one of --children %s nor below one", x.current(), strings.Join(r.Children, ","))
		e.Hint = "add the child that leads to it to --children"
		return
	case len(r.Children) == 0 && r.Downstream > 0 && down > r.Downstream:
		e.answer(false, "beyond_levels", "it is %s below %s, and the plan goes %s down", levelsText(down), x.current(), levelsText(r.Downstream))
		e.Hint = fmt.Sprintf("add --downstream %s", levelFlag(down))
		return
	}
	x.readsInstead(e, n, "")
}

// belowChildren tells whether a node is one of --children or below one.
func (x *explainer) belowChildren(n *lineage.Node) bool {
	var start []int
	for _, name := range x.req.Children {
		if c := x.model.Node(name); c != nil {
			start = append(start, c.Position)
		}
	}
	return slices.Contains(start, n.Position) || slices.ContainsFunc(start, func(i int) bool {
		return distances(len(x.model.Nodes), []int{n.Position}, x.inputs)[i] > 0
	})
}

// readsInstead says what a node (or one field of it) reads, none of which is
// written: of the nodes of the plan other fields, and which nodes between are
// not in the plan.
func (x *explainer) readsInstead(e *Explanation, n *lineage.Node, field string) {
	e.answer(false, "reads_nothing_written", "it reads nothing that is written")
	reads := x.readsOf(n, field)
	var instead, between []string
	hit := false
	for _, i := range x.inputs(n.Position) {
		up := x.model.Nodes[i]
		list := reads[up.Name]
		k, in := x.index[up.Name]
		switch {
		case len(list) == 0 && field != "":
		case in && len(list) > 0:
			instead = append(instead, qualified(up.Name, list)...)
			pn := &x.plan.Nodes[k]
			if pn.Whole || slices.ContainsFunc(list, func(f string) bool { return f == fields.AnyField || containsFold(written(pn), f) }) {
				hit = true
				continue
			}
			e.fact("written", "of %s: %s", up.Name, someOf(written(pn)))
		case x.down[i] > 0 && !in:
			between = append(between, up.Name)
		}
	}
	if len(instead) == 0 {
		for _, name := range sortedNames(reads) {
			instead = append(instead, qualified(name, reads[name])...)
		}
	}
	switch {
	case hit && x.req.Downstream > 0:
		e.answer(false, "beyond_levels", "by what is written it is more than %s below %s", levelsText(x.req.Downstream), x.current())
		e.Hint = "give more levels with --downstream"
	case field != "" && len(instead) > 0:
		e.Because = "it reads only " + someOf(instead) + ", and nothing of that is written"
	case field != "":
		e.Because = "it is made from nothing that is written"
	case len(between) > 0:
		e.Because = "it reads what is written only through " + someOf(between) + ", which is not in the plan"
		if len(between) > 1 {
			e.Because = strings.Replace(e.Because, "which is", "which are", 1)
		}
		if len(instead) > 0 {
			e.fact("reads", "%s", someOf(instead))
		}
		for _, name := range between[:min(len(between), maxBetween)] {
			why := Explanation{}
			if !x.leftOut(&why, x.model.Node(name)) {
				x.out(&why, x.model.Node(name))
			}
			e.fact("in the way", "%s: %s", name, why.Because)
		}
	case len(instead) > 0:
		e.Because = "it reads only " + someOf(instead) + ", and nothing of that is written"
	}
}

// qualified writes the columns of a table with its name.
func qualified(table string, columns []string) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = table + "." + c
	}
	return out
}

// maxBetween is the most nodes in the way that are explained themselves.
const maxBetween = 3

// readsOf gives the columns that a node, or one field of it, reads, by the
// name of the node or source that has them.
func (x *explainer) readsOf(n *lineage.Node, field string) map[string][]string {
	t := FieldTable(x.model, n)
	out := map[string][]string{}
	add := func(list []fields.Ref) {
		for _, r := range list {
			name := r.Table
			if i := x.model.Producer(name); i >= 0 {
				name = x.model.Nodes[i].Name
			}
			if !slices.Contains(out[name], r.Field) {
				out[name] = append(out[name], r.Field)
			}
		}
	}
	for f, list := range t.Reads {
		if field == "" || strings.EqualFold(f, field) {
			add(list)
		}
	}
	if field == "" {
		add(t.RowSetReads)
	}
	for name := range out {
		slices.Sort(out[name])
	}
	return out
}

// notRead says why a node above the current ones is not in the plan although
// the levels reach it: nothing that is written reads it.
func (x *explainer) notRead(e *Explanation, n *lineage.Node) {
	e.answer(false, "not_read", "nothing that the plan writes reads it")
	var between []string
	for i := range x.plan.Nodes {
		pn := &x.plan.Nodes[i]
		reader := x.model.Node(pn.Name)
		if reader == nil || !slices.Contains(x.inputs(reader.Position), n.Position) {
			continue
		}
		t := FieldTable(x.model, reader)
		var by []string
		for _, f := range t.Fields {
			if slices.ContainsFunc(t.Reads[f], func(r fields.Ref) bool { return strings.EqualFold(r.Table, n.Name) }) {
				by = append(by, f)
			}
		}
		if len(by) > 0 {
			e.fact("read by", "%s for %s; written of it: %s", pn.Name, someOf(by), someOf(written(pn)))
		}
	}
	for i, m := range x.model.Nodes {
		if _, in := x.index[m.Name]; !in && x.up[i] > 0 && slices.Contains(x.inputs(i), n.Position) {
			between = append(between, m.Name)
		}
	}
	if len(e.Facts) == 0 && len(between) > 0 {
		e.fact("in the way", "%s, not in the plan", someOf(between))
	}
}

// path gives a shortest way from a current node to a node of the plan.
func (x *explainer) path(name string) []string {
	from := map[string]string{name: ""}
	for at := []string{name}; len(at) > 0; at = at[1:] {
		n := &x.plan.Nodes[x.index[at[0]]]
		if n.Level == 0 {
			var out []string
			for s := at[0]; s != ""; s = from[s] {
				out = append(out, s)
			}
			return out
		}
		for _, d := range n.Needs {
			if _, seen := from[d.Node]; !seen {
				if _, in := x.index[d.Node]; in {
					from[d.Node] = at[0]
					at = append(at, d.Node)
				}
			}
		}
	}
	return nil
}

// current names the current nodes.
func (x *explainer) current() string {
	var names []string
	for _, n := range x.start {
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return "the current node"
	}
	return someOf(names)
}

// written gives the fields of a plan's node that are written.
func written(pn *plan.Node) []string {
	var out []string
	for _, f := range pn.Fields {
		if f.Written {
			out = append(out, f.Name)
		}
	}
	return out
}

// maxSome is the most items of a list that a sentence names.
const maxSome = 6

// someOf lists a few items and counts the rest.
func someOf(list []string) string {
	if len(list) <= maxSome+1 {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:maxSome], ", "), len(list)-maxSome)
}

func levelsText(n int) string {
	if n == 1 {
		return "1 level"
	}
	return fmt.Sprintf("%d levels", n)
}

func instancesText(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// levelFlag gives the value of --upstream or --downstream that reaches n levels.
func levelFlag(n int) string {
	if n > maxLevels {
		return "all"
	}
	return fmt.Sprint(n)
}

func stepText(s plan.Step) string {
	if s.Because == "" {
		return action(s.Strategy)
	}
	return action(s.Strategy) + ", " + s.Because
}

func action(s plan.Strategy) string {
	if s == plan.Column {
		return "column refresh"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

// dateRanges writes a step's dates, the first few of many ranges.
func dateRanges(list []plan.DateRange) string {
	var parts []string
	for _, r := range list {
		if r.From == r.To {
			parts = append(parts, r.From.String())
		} else {
			parts = append(parts, r.From.String()+".."+r.To.String())
		}
	}
	return someOf(parts)
}

func sortedNames(m map[string][]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
