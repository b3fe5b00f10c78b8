package selector

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// The most entries of a list of names or ids, and of outputs (semantics §5.5),
// and the most levels that can be asked for by number (§5.1).
const (
	MaxNames   = 5000
	MaxOutputs = 1000
	MaxLevels  = 10
)

// ParseLevels reads a number of levels: `all`, or 1 to 10; "" is none (0).
func ParseLevels(s string) (int, diag.List) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, nil
	}
	if strings.EqualFold(s, "all") {
		return All, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxLevels {
		return 0, diag.List{diag.Errorf("levels", "%q is not a number of levels", s).WithHint("give 1 to %d, or all", MaxLevels)}
	}
	return n, nil
}

// ParseList reads a list of names, ids or outputs: one a line, blank lines and
// blanks around an entry ignored, repeated entries once.
func ParseList(text string) []string {
	seen := map[string]bool{}
	var out []string
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" && !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out
}

// Scope is the neighbourhood of current nodes (semantics §5.1, §5.5). The
// zero value but for Current gives the current nodes alone.
type Scope struct {
	Current []int
	// Upstream and Downstream are numbers of levels: 0 none, All every one.
	Upstream, Downstream int
	// Children are names of level-1 children, taken with all their
	// descendants.
	Children []string
	// Names, IDs and Outputs keep those descendants of the current nodes (of
	// the downstream levels and children, where these are given).
	Names, IDs, Outputs []string
}

// Around gives the nodes of a scope, current nodes included. Errors:
// too_many, not_a_child, unknown_node, ambiguous (with the candidates), all
// reported together. An entry that exists but is not among the descendants
// warns not_downstream.
func (g *Graph) Around(s Scope) (Set, diag.List) {
	var problems diag.List
	current := g.Of(s.Current...)
	below := g.Downstream(current, s.Downstream)
	for _, name := range s.Children {
		children := g.Downstream(current, 1)
		children.Subtract(current)
		found := within(g.Find(name), children)
		switch {
		case len(found) == 1:
			below.Union(g.Downstream(g.Of(found...), All))
		case len(found) > 1:
			problems = append(problems, g.ambiguous(name, found))
		case len(g.Find(name)) == 0:
			problems = append(problems, g.unknown("node", name, g.names()))
		default:
			problems = append(problems, diag.Errorf("not_a_child", "%q is not a direct child of the current node", name).
				WithDetail("children: %s", strings.Join(g.Labels(children), ", ")).
				WithHint("%s", diag.DidYouMean(name, g.Labels(children), "use --select 'between:A..B' for nodes further below")))
		}
	}
	if s.Names != nil || s.IDs != nil || s.Outputs != nil {
		if s.Downstream == 0 && s.Children == nil {
			below = g.Downstream(current, All)
		}
		named, bad := g.named(s, below)
		problems = append(problems, bad...)
		below.Intersect(named)
	}
	if problems.HasErrors() {
		return g.Empty(), problems
	}
	below.Union(current)
	below.Union(g.Upstream(current, s.Upstream))
	return below, problems
}

func within(nodes []int, s Set) []int {
	return slices.DeleteFunc(nodes, func(i int) bool { return !s.Has(i) })
}

func (g *Graph) unknown(what, entry string, candidates []string) diag.Diagnostic {
	return diag.Errorf("unknown_node", "there is no %s %q", what, entry).
		WithHint("%s", diag.DidYouMean(entry, candidates, "list the nodes with `retrofill ls`"))
}

// maxUnknown is how many unknown entries of one list are reported one by one.
const maxUnknown = 20

// named finds the entries of a scope's lists among its descendants.
func (g *Graph) named(s Scope, below Set) (Set, diag.List) {
	out := g.Empty()
	var problems diag.List
	lists := []struct {
		what    string
		flag    string
		entries []string
		limit   int
		find    func(string) []int32
		values  func() []string
	}{
		{"node", "--names-file", s.Names, MaxNames, func(e string) []int32 { return g.byName[e] }, g.names},
		{"node with the id", "--ids-file", s.IDs, MaxNames, func(e string) []int32 { return g.byID[e] }, func() []string { return g.values(Part{Method: MethodID}) }},
		{"output", "--outputs-file", s.Outputs, MaxOutputs, func(e string) []int32 { return g.byOutput[strings.ToLower(e)] }, func() []string { return g.values(Part{Method: MethodOutput}) }},
	}
	for _, l := range lists {
		if len(l.entries) > l.limit {
			problems = append(problems, diag.Errorf("too_many", "the list of %s holds %d entries, at most %d are possible", l.flag, len(l.entries), l.limit).
				WithHint("cut the list, or select with --select and wildcards, tags or a project"))
			continue
		}
		unknown := 0
		for _, e := range l.entries {
			all := l.find(e)
			var found []int
			for _, i := range all {
				found = append(found, int(i))
			}
			kept := within(slices.Clone(found), below)
			switch {
			case len(all) == 0:
				if unknown++; unknown <= maxUnknown {
					problems = append(problems, g.unknown(l.what, e, l.values()))
				}
			case len(kept) > 1:
				problems = append(problems, g.ambiguous(e, kept))
			case len(kept) == 0:
				problems = append(problems, diag.Warnf("not_downstream", "%s %q is not downstream of the current node, or not in the chosen levels: left out", l.what, e).
					WithHint("name it as a node of its own with --select"))
			default:
				out.Add(kept[0])
			}
		}
		if unknown > maxUnknown {
			problems = append(problems, diag.Errorf("unknown_node", "%d more entries of %s do not exist", unknown-maxUnknown, l.flag).
				WithHint("list the nodes with `retrofill ls`"))
		}
	}
	return out, problems
}
