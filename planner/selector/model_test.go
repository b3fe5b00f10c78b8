package selector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is a naive selector: a distance matrix and sets as maps. It evaluates
// terms that the test builds itself, and shares nothing with the real one.
type model struct {
	nodes []Node
	dist  [][]int // levels down from i to j, −1 without a way
}

func newModel(nodes []Node, edges [][2]int) model {
	n := len(nodes)
	m := model{nodes: nodes}
	for i := range n {
		m.dist = append(m.dist, make([]int, n))
		for j := range n {
			m.dist[i][j] = -1
		}
		m.dist[i][i] = 0
	}
	for _, e := range edges {
		if e[0] != e[1] {
			m.dist[e[0]][e[1]] = 1
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				if a, b := m.dist[i][k], m.dist[k][j]; a >= 0 && b >= 0 && (m.dist[i][j] < 0 || a+b < m.dist[i][j]) {
					m.dist[i][j] = a + b
				}
			}
		}
	}
	return m
}

// modelPart is one part with its meaning as a predicate.
type modelPart struct {
	text     string
	is       func(m model, i int) bool
	at       bool
	up, down int // levels, −1 every one
}

func (m model) eval(p modelPart) map[int]bool {
	base := map[int]bool{}
	out := map[int]bool{}
	for i := range m.nodes {
		if p.is(m, i) {
			base[i], out[i] = true, true
		}
	}
	near := func(d, limit int) bool { return d >= 0 && (limit < 0 || d <= limit) }
	for i := range base {
		for j := range m.nodes {
			if !p.at && (near(m.dist[j][i], p.up) || near(m.dist[i][j], p.down)) {
				out[j] = true
			}
			if p.at && m.dist[i][j] >= 0 {
				for k := range m.nodes {
					if m.dist[k][j] >= 0 {
						out[k] = true
					}
				}
			}
		}
	}
	return out
}

func (m model) union(terms [][]modelPart) map[int]bool {
	out := map[int]bool{}
	for _, term := range terms {
		for i := range m.nodes {
			all := true
			for _, p := range term {
				all = all && m.eval(p)[i]
			}
			if all {
				out[i] = true
			}
		}
	}
	return out
}

func randomPart(rnd *rand.Rand, n int) modelPart {
	pick := rnd.IntN(n)
	name := fmt.Sprintf("n%d", pick)
	project := fmt.Sprintf("p%d", rnd.IntN(3))
	tag := fmt.Sprintf("t%d", rnd.IntN(4))
	var p modelPart
	switch rnd.IntN(9) {
	case 0, 1, 2:
		p = modelPart{text: name, is: func(m model, i int) bool { return m.nodes[i].Name == name }}
	case 3:
		p = modelPart{text: project + "." + name, is: func(m model, i int) bool { return m.nodes[i].Name == name && m.nodes[i].Project == project }}
	case 4:
		p = modelPart{text: "tag:" + tag, is: func(m model, i int) bool { return slices.Contains(m.nodes[i].Tags, tag) }}
	case 5:
		p = modelPart{text: "project:" + project, is: func(m model, i int) bool { return m.nodes[i].Project == project }}
	case 6:
		d := fmt.Sprint(rnd.IntN(10))
		p = modelPart{text: "*n?" + d, is: func(m model, i int) bool { return len(m.nodes[i].Name) == 3 && strings.HasSuffix(m.nodes[i].Name, d) }}
	case 7:
		p = modelPart{text: "models/" + project, is: func(m model, i int) bool { return m.nodes[i].Project == project }}
	default:
		b := rnd.IntN(n)
		p = modelPart{text: fmt.Sprintf("between:%s..n%d", name, b), is: func(m model, i int) bool {
			if m.dist[pick][b] < 0 {
				return i == pick || i == b
			}
			return m.dist[pick][i] >= 0 && m.dist[i][b] >= 0
		}}
	}
	switch rnd.IntN(4) {
	case 0:
		p.at, p.text = true, "@"+p.text
	case 1:
		if p.up = rnd.IntN(4) - 1; p.up < 0 {
			p.text = "+" + p.text
		} else if p.up > 0 {
			p.text = fmt.Sprint(p.up) + "+" + p.text
		}
		if p.down = rnd.IntN(4) - 1; p.down < 0 {
			p.text += "+"
		} else if p.down > 0 {
			p.text += "+" + fmt.Sprint(p.down)
		}
	}
	return p
}

func randomTerms(rnd *rand.Rand, n int) ([][]modelPart, []string) {
	var terms [][]modelPart
	var texts []string
	for range 1 + rnd.IntN(3) {
		var term []modelPart
		var parts []string
		for range 1 + rnd.IntN(2) {
			p := randomPart(rnd, n)
			term, parts = append(term, p), append(parts, p.text)
		}
		terms = append(terms, term)
		if len(texts) > 0 && rnd.IntN(2) == 0 {
			texts[len(texts)-1] += " " + strings.Join(parts, ",")
		} else {
			texts = append(texts, strings.Join(parts, ","))
		}
	}
	return terms, texts
}

func TestAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(600) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rnd.IntN(24)
		nodes := make([]Node, n)
		for i := range nodes {
			project := fmt.Sprintf("p%d", rnd.IntN(3))
			nodes[i] = Node{Name: fmt.Sprintf("n%d", i), Project: project, Path: fmt.Sprintf("models/%s/n%d.yml", project, i), Paused: rnd.IntN(8) == 0}
			for k := range 4 {
				if rnd.IntN(4) == 0 {
					nodes[i].Tags = append(nodes[i].Tags, fmt.Sprintf("t%d", k))
				}
			}
		}
		var edges [][2]int
		for range rnd.IntN(3 * n) {
			a, b := rnd.IntN(n), rnd.IntN(n)
			if a > b && rnd.IntN(20) > 0 { // a cycle now and then
				a, b = b, a
			}
			edges = append(edges, [2]int{a, b})
		}
		m := newModel(nodes, edges)
		g := mustGraph(t, nodes, edges)
		terms, texts := randomTerms(rnd, n)
		without, exclude := randomTerms(rnd, n)
		if rnd.IntN(2) == 0 {
			without, exclude = nil, nil
		}
		sel, problems := g.Select(Query{Select: texts, Exclude: exclude})
		if problems.HasErrors() {
			t.Fatalf("seed %d: %v", seed, problems)
		}
		in, out := m.union(terms), m.union(without)
		want := []int{}
		for i := range n {
			if in[i] && !out[i] {
				want = append(want, i)
			}
		}
		if d := cmp.Diff(want, slices.AppendSeq([]int{}, sel.Nodes.All())); d != "" {
			t.Fatalf("seed %d: %v exclude %v (-model +got):\n%s", seed, texts, exclude, d)
		}
		m.checkContract(t, seed, g, sel.Nodes)
		m.checkPaused(t, seed, g, sel.Nodes)
	}
}

// checkContract compares Contract with its definition: A before B in the
// whole graph exactly if A before B along the pairs, and each pair has a way
// through nodes that are not kept.
func (m model) checkContract(t *testing.T, seed uint64, g *Graph, kept Set) {
	pairs := g.Contract(kept)
	c := newModel(m.nodes, pairs)
	for a := range kept.All() {
		for b := range kept.All() {
			if (m.dist[a][b] >= 0) != (c.dist[a][b] >= 0) {
				t.Fatalf("seed %d: contraction of %d → %d: %d, %d in %v", seed, a, b, m.dist[a][b], c.dist[a][b], pairs)
			}
		}
	}
	for i, p := range pairs {
		if !kept.Has(p[0]) || !kept.Has(p[1]) || p[0] == p[1] || slices.Contains(pairs[:i], p) {
			t.Fatalf("seed %d: bad pair %v", seed, p)
		}
	}
}

func (m model) checkPaused(t *testing.T, seed uint64, g *Graph, s Set) {
	kept, left := g.WithoutPaused(s, g.Empty())
	for i := range s.All() {
		want := false
		for p := range s.All() {
			want = want || m.nodes[p].Paused && m.dist[p][i] >= 0
		}
		at := slices.IndexFunc(left, func(l LeftOut) bool { return l.Node == i })
		if kept.Has(i) == want || want != (at >= 0) {
			t.Fatalf("seed %d: node %d left out: want %v", seed, i, want)
		}
		if at >= 0 && (!m.nodes[left[at].By].Paused || m.dist[left[at].By][i] < 0) {
			t.Fatalf("seed %d: node %d left out by %d", seed, i, left[at].By)
		}
	}
}

// fnmatch is the textbook matcher, for `*`, `?` and literals.
func fnmatch(p, s string) bool {
	if p == "" {
		return s == ""
	}
	if p[0] == '*' {
		return fnmatch(p[1:], s) || s != "" && fnmatch(p, s[1:])
	}
	return s != "" && (p[0] == '?' || p[0] == s[0]) && fnmatch(p[1:], s[1:])
}

func TestGlobAgainstTextbook(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 5))
	word := func(alphabet string, n int) string {
		b := make([]byte, rnd.IntN(n))
		for i := range b {
			b[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		return string(b)
	}
	for range 20000 {
		p, s := word("ab*?.", 7), word("ab.", 7)
		re, err := compile(p, globMode{})
		if err != nil {
			t.Fatal(err)
		}
		if re.MatchString(s) != fnmatch(p, s) {
			t.Fatalf("%q on %q: %v", p, s, !fnmatch(p, s))
		}
	}
	for _, tt := range []struct {
		p, s string
		mode globMode
		want bool
	}{
		{"[]]", "]", globMode{}, true}, {"[!]]", "]", globMode{}, false}, {"[a-]", "-", globMode{}, true}, {"[z-a]", "m", globMode{}, false},
		{"[!z-a]", "m", globMode{}, true}, {"[^a]", "^", globMode{}, true}, {"[\\]", "\\", globMode{}, true}, {"[[:alpha:]]", "a]", globMode{}, true},
		{`\*`, "*", globMode{}, true}, {`\*`, "x", globMode{}, false}, {"Ä*", "äß", globMode{fold: true}, true}, {"?", "ß", globMode{}, true},
		{"a/*", "a/b/c", globMode{path: true}, true}, {"a/*/d", "a/b/c/d", globMode{path: true}, false}, {"a/**/d", "a/d", globMode{path: true}, true},
		{"a/**", "a/b/c", globMode{path: true}, true}, {"a/[!x]c", "a//c", globMode{path: true}, false}, {"*", "a/b", globMode{path: true}, true},
		{"**.yml", "a/b.yml", globMode{path: true}, true}, {"*.yml", "a/b.yml", globMode{path: true}, false},
	} {
		re, err := compile(tt.p, tt.mode)
		if err != nil || re.MatchString(tt.s) != tt.want {
			t.Errorf("%q on %q %+v: %v", tt.p, tt.s, tt.mode, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"k", "256+k+1", "@tag:t1", "config.meta.tier:gold", "between:a..b,c d", `a\ b\+c`, "[!a-z]*", "models/**/x", "\\", "a\\", "field:a.b+", "é:ü", "\xff[", "++", "1+1+1"} {
		f.Add(s)
	}
	g := world(f)
	f.Fuzz(func(t *testing.T, text string) {
		terms, problems := Parse(text)
		if (terms == nil) != problems.HasErrors() {
			t.Fatalf("%q: %v %v", text, terms, problems)
		}
		for _, term := range terms {
			for _, p := range term {
				back, bad := ParsePart(p.String())
				// A lone backslash at the end swallows what is written behind it.
				if strings.HasSuffix(strings.ReplaceAll(p.Value, `\\`, ``), `\`) {
					continue
				}
				if len(bad) > 0 || back != p {
					t.Fatalf("%q: %+v, written %q, read back %+v %v", text, p, p.String(), back, bad)
				}
			}
		}
		g.Select(Query{Select: []string{text}})
	})
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"a", "my table", "@x", "1+2", "a/b", `\`, "*", "[a]", "tag:x", "a..b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			t.Skip()
		}
		g := mustGraph(t, []Node{{Name: name}, {Name: name + "x"}, {Name: "x" + name}}, nil)
		s, problems := g.Select(Query{Select: []string{Quote(name)}})
		if len(problems) > 0 || !s.Nodes.Has(0) || s.Nodes.Len() != 1 {
			t.Fatalf("%q, quoted %q: %v %v", name, Quote(name), g.Labels(s.Nodes), problems)
		}
	})
}

func bigGraph(t testing.TB) *Graph {
	rnd := rand.New(rand.NewPCG(9, 9))
	nodes := make([]Node, 10_000)
	var edges [][2]int
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprintf("table_%05d", i), Project: fmt.Sprintf("p%d", i%20), Tags: []string{fmt.Sprintf("t%d", i%7)}, Path: fmt.Sprintf("models/p%d/table_%05d.yml", i%20, i), ID: fmt.Sprint(i)}
		for range 3 {
			if i > 0 {
				edges = append(edges, [2]int{max(0, i-1-rnd.IntN(300)), i})
			}
		}
	}
	return mustGraph(t, nodes, edges)
}

func TestScale(t *testing.T) {
	g := bigGraph(t)
	begin := time.Now()
	sel, problems := g.Select(Query{Select: []string{"table_00000+", "@tag:t1", "between:table_00000..table_09999", "+path:models/*/table_*9.yml+2"}, Exclude: []string{"tag:t3"}, Where: `"t2" not in tags`})
	if problems.HasErrors() || sel.Nodes.Len() < 5000 {
		t.Fatal(problems, sel.Nodes.Len())
	}
	selected := time.Since(begin)
	begin = time.Now()
	pairs := g.Contract(sel.Nodes)
	t.Logf("select %v, contract to %d pairs %v", selected, len(pairs), time.Since(begin))
	if d := time.Since(begin); selected+d > 5*time.Second {
		t.Errorf("select %v, contract %v", selected, d)
	}
}
