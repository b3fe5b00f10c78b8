package selector

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// FieldLineage follows a field through its readers, for the operators behind
// `field:`. Planner implements it; without one the operators follow the
// nodes' own dependencies.
type FieldLineage interface {
	// Readers gives the nodes that read a field of a node, at most depth
	// levels down (All = every level), each node once.
	Readers(node int, field string, depth int) []int
	// Sources gives the nodes that a field of a node is read from.
	Sources(node int, field string, depth int) []int
}

// Query is one selection: `--select`, `--exclude` (each repeatable) and
// `--where`.
type Query struct {
	// Select unites its texts; nil selects every node.
	Select []string
	// Exclude is subtracted last.
	Exclude []string
	// Where filters by an expression over the node's properties (see Env).
	Where string
	// Level gives the `level` that Where sees, usually from Graph.Levels; nil
	// = 0.
	Level func(node int) int
	// Fields follows `field:` parts; optional.
	Fields FieldLineage
}

// Selection is what a query selects.
type Selection struct {
	Nodes Set
	// Unconnected are the ends {A, B} of a `between:` that found no path: the
	// plan runs them without a dependency between the two (semantics §5.3).
	Unconnected [][2]int
}

// Select evaluates a query (semantics §5.2). All errors are reported together;
// with one the selection is empty. A term that matches nothing warns
// `no_match`; whether an empty selection is an error is the command's
// business (see NonEmpty). Time is linear in nodes and edges per part.
func (g *Graph) Select(q Query) (Selection, diag.List) {
	r := &run{g: g, q: &q}
	chosen := g.Everything()
	if q.Select != nil {
		chosen = r.union(q.Select)
	}
	excluded := r.union(q.Exclude)
	chosen.Subtract(excluded)
	if q.Where != "" {
		problems := g.where(chosen, q.Where, q.Level)
		r.problems = append(r.problems, problems...)
	}
	if r.problems.HasErrors() {
		return Selection{Nodes: g.Empty()}, r.problems
	}
	sel := Selection{Nodes: chosen}
	for _, e := range r.unconnected {
		if chosen.Has(e[0]) && chosen.Has(e[1]) && !slices.Contains(sel.Unconnected, e) {
			sel.Unconnected = append(sel.Unconnected, e)
		}
	}
	return sel, r.problems
}

// NonEmpty gives the error `empty` for a selection without a node: a command
// whose whole selection is empty fails.
func NonEmpty(s Set) diag.List {
	if !s.Empty() {
		return nil
	}
	return diag.List{diag.Errorf("empty", "nothing is selected").
		WithHint("see what a selection gives with `retrofill ls --select …`; check --exclude, --where and paused nodes")}
}

// run is one evaluation of a query.
type run struct {
	g           *Graph
	q           *Query
	problems    diag.List
	unconnected [][2]int
}

// union evaluates texts and unites their terms.
func (r *run) union(texts []string) Set {
	out := r.g.Empty()
	for _, text := range texts {
		terms, bad := Parse(text)
		r.problems = append(r.problems, bad...)
		for _, term := range terms {
			out.Union(r.term(term))
		}
	}
	return out
}

// term evaluates the intersection of parts, and warns if nothing is left.
func (r *run) term(term []Part) Set {
	var out Set
	failed := false
	var silent *Part // the first part that matched nothing by itself
	for k := range term {
		s, problems := r.match(term[k])
		r.problems = append(r.problems, problems...)
		failed = failed || problems.HasErrors()
		if s.Empty() && silent == nil {
			silent = &term[k]
		}
		s = r.expand(term[k], s)
		if k == 0 {
			out = s
		} else {
			out.Intersect(s)
		}
	}
	if out.Empty() && !failed {
		r.problems = append(r.problems, r.noMatch(term, silent))
	}
	return out
}

func (r *run) noMatch(term []Part, silent *Part) diag.Diagnostic {
	texts := make([]string, len(term))
	for i, p := range term {
		texts[i] = p.String()
	}
	d := diag.Warnf("no_match", "%s matches no node", strings.Join(texts, ","))
	if silent == nil {
		return d.WithDetail("each part matches something, but no node matches all of them").
			WithHint("put blanks instead of commas to unite the parts")
	}
	if hasWildcard(silent.Value) && silent.Method != MethodID && silent.Method != MethodConfig {
		return d.WithHint("see the nodes with `retrofill ls`")
	}
	return d.WithHint("%s", diag.DidYouMean(unescape(silent.Value), r.g.values(*silent), "see the nodes with `retrofill ls`"))
}

// expand applies a part's graph operators to the whole result of its method.
func (r *run) expand(p Part, s Set) Set {
	if !p.At && !p.Parents && !p.Children {
		return s
	}
	if p.Method == MethodField && r.q.Fields != nil {
		return r.expandFields(p, s)
	}
	g := r.g
	if p.At {
		return g.Upstream(g.Downstream(s, All), All)
	}
	out := s.Clone()
	if p.Parents {
		out.Union(g.Upstream(s, p.Up))
	}
	if p.Children {
		out.Union(g.Downstream(s, p.Down))
	}
	return out
}

// expandFields is expand along the lineage of the fields that a part names.
func (r *run) expandFields(p Part, s Set) Set {
	ok, bad := matcher(p)
	if bad != nil { // match has reported it
		return s
	}
	out := s.Clone()
	for i := range s.All() {
		n := &r.g.nodes[i]
		for _, f := range n.Fields {
			if !ok(n.Name+"."+f) && !ok(n.FullName()+"."+f) {
				continue
			}
			if p.Children || p.At {
				depth := p.Down
				if p.At {
					depth = All
				}
				for _, j := range r.q.Fields.Readers(i, f, depth) {
					out.Add(j)
				}
			}
			if p.Parents {
				for _, j := range r.q.Fields.Sources(i, f, p.Up) {
					out.Add(j)
				}
			}
		}
	}
	if p.At {
		return r.g.Upstream(out, All)
	}
	return out
}
