package selector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// match gives the nodes that a part's method selects, without its operators.
func (r *run) match(p Part) (Set, diag.List) {
	g := r.g
	switch p.Method {
	case MethodID:
		return g.indexed(g.byID[unescape(p.Value)]), nil
	case MethodConfig:
		return r.matchConfig(p), nil
	case MethodBetween:
		return r.matchBetween(p)
	}
	if !hasWildcard(p.Value) {
		switch v := unescape(p.Value); p.Method {
		case MethodName:
			return g.indexed(g.byName[v]), nil
		case MethodOutput:
			return g.indexed(g.byOutput[strings.ToLower(v)]), nil
		}
	}
	ok, bad := matcher(p)
	if bad != nil {
		return g.Empty(), diag.List{*bad}
	}
	out := g.Empty()
	for i := range g.nodes {
		if slices.ContainsFunc(properties(&g.nodes[i], p.Method), ok) {
			out.Add(i)
		}
	}
	return out, nil
}

func (g *Graph) indexed(list []int32) Set {
	out := g.Empty()
	for _, i := range list {
		out.Add(int(i))
	}
	return out
}

// properties gives the texts of a node that a method matches against.
func properties(n *Node, method string) []string {
	one := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	switch method {
	case MethodName:
		return []string{n.Name, n.FullName()}
	case MethodPath:
		return one(strings.TrimPrefix(n.Path, "./"))
	case MethodTag:
		return n.Tags
	case MethodProject:
		return one(n.Project)
	case MethodOutput:
		return n.Outputs
	case MethodOwner:
		return one(n.Owner)
	case MethodKind:
		return one(n.Kind)
	case MethodField:
		out := make([]string, 0, 2*len(n.Fields))
		for _, f := range n.Fields {
			out = append(out, n.Name+"."+f, n.FullName()+"."+f)
		}
		return out
	}
	return nil
}

// matcher makes the predicate of a part's value.
func matcher(p Part) (func(string) bool, *diag.Diagnostic) {
	mode := globMode{path: p.Method == MethodPath, fold: p.Method == MethodOutput}
	value := p.Value
	if mode.path {
		value = strings.TrimRight(strings.TrimPrefix(value, "./"), "/")
		if value == "" || value == "." {
			return func(string) bool { return true }, nil
		}
	}
	if !hasWildcard(value) && !mode.fold {
		v := unescape(value)
		if mode.path {
			return func(s string) bool { return s == v || strings.HasPrefix(s, v+"/") }, nil
		}
		return func(s string) bool { return s == v }, nil
	}
	re, err := compile(value, mode)
	if err != nil {
		d := syntax(p.String(), err.Error())
		return nil, &d
	}
	return re.MatchString, nil
}

func (r *run) matchConfig(p Part) Set {
	out := r.g.Empty()
	want := unescape(p.Value)
	keys := strings.Split(p.Arg, ".")
	for i := range r.g.nodes {
		n := &r.g.nodes[i]
		v, ok := setting(n.Config, keys)
		if !ok && len(keys) == 1 {
			// What the project calls settings but Node holds as properties.
			switch keys[0] {
			case "cycle":
				v = n.Cycle
			case "paused":
				v = n.Paused
			}
		}
		if holds(v, want) {
			out.Add(i)
		}
	}
	return out
}

// setting follows keys into nested maps; a key with dots of its own is found
// as well.
func setting(m map[string]any, keys []string) (any, bool) {
	if v, ok := m[strings.Join(keys, ".")]; ok {
		return v, true
	}
	for n := len(keys) - 1; n > 0; n-- {
		var inner map[string]any
		switch v := m[strings.Join(keys[:n], ".")].(type) {
		case map[string]any:
			inner = v
		case map[any]any:
			inner = make(map[string]any, len(v))
			for k, x := range v {
				inner[fmt.Sprint(k)] = x
			}
		default:
			continue
		}
		if v, ok := setting(inner, keys[n:]); ok {
			return v, true
		}
	}
	return nil, false
}

// holds tells whether a setting's value is, or as a list has, the value
// wanted. Texts keep their case; true and false do not.
func holds(v any, want string) bool {
	switch x := v.(type) {
	case nil:
		return false
	case string:
		return x != "" && x == want
	case bool:
		return strings.EqualFold(want, fmt.Sprint(x))
	case []any:
		return slices.ContainsFunc(x, func(e any) bool { return holds(e, want) })
	case []string:
		return slices.Contains(x, want)
	case map[string]any:
		_, ok := x[want]
		return ok
	case map[any]any:
		_, ok := x[want]
		return ok
	}
	return fmt.Sprint(v) == want
}

// matchBetween gives all nodes on any path from A to B (semantics §5.3). With
// no path it gives both ends alone, remembers them as unconnected and warns.
func (r *run) matchBetween(p Part) (Set, diag.List) {
	g := r.g
	left, right, _ := cutBetween(p.Value)
	var problems diag.List
	a, bad := r.one(left)
	problems = append(problems, bad...)
	b, bad := r.one(right)
	problems = append(problems, bad...)
	if problems.HasErrors() {
		return g.Empty(), problems
	}
	out := g.Downstream(g.Of(a), All)
	if !out.Has(b) {
		r.unconnected = append(r.unconnected, [2]int{a, b})
		return g.Of(a, b), diag.List{diag.Warnf("unreachable", "%s is not downstream of %s: only the two are taken, unconnected", g.Label(b), g.Label(a)).
			WithHint("swap the ends, or select with +%s or %s+", g.Label(b), g.Label(a))}
	}
	out.Intersect(g.Upstream(g.Of(b), All))
	return out, nil
}

// one finds the only node that a name tells.
func (r *run) one(text string) (int, diag.List) {
	name := unescape(text)
	found := r.g.Find(name)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return -1, diag.List{diag.Errorf("unknown_node", "there is no node %q", name).
			WithHint("%s", diag.DidYouMean(name, r.g.names(), "list the nodes with `retrofill ls`"))}
	}
	return -1, diag.List{r.g.ambiguous(name, found)}
}

// ambiguous lists the candidates of a name.
func (g *Graph) ambiguous(name string, found []int) diag.Diagnostic {
	var list []string
	for _, i := range found {
		n := &g.nodes[i]
		line := n.FullName()
		if n.ID != "" {
			line += "  id:" + n.ID
		}
		if n.Path != "" {
			line += "  " + n.Path
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return diag.Errorf("ambiguous", "%q names %d nodes", name, len(found)).
		WithDetail("%s", strings.Join(list, "\n")).
		WithHint("write it with its project, as in %s", strings.Fields(list[0])[0])
}

// names gives every name and project.name, for suggestions.
func (g *Graph) names() []string {
	out := make([]string, 0, len(g.byName))
	for n := range g.byName {
		out = append(out, n)
	}
	return out
}

// values gives every value that a method could have matched, for suggestions.
func (g *Graph) values(p Part) []string {
	if p.Method == MethodName {
		return g.names()
	}
	seen := map[string]bool{}
	var out []string
	add := func(s string) {
		if s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		switch p.Method {
		case MethodID:
			add(n.ID)
		case MethodConfig:
			v, _ := setting(n.Config, strings.Split(p.Arg, "."))
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			for _, x := range list {
				if s, ok := x.(string); ok {
					add(s)
				}
			}
		default:
			for _, s := range properties(n, p.Method) {
				add(s)
			}
		}
	}
	return out
}
