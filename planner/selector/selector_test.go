package selector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustGraph(t testing.TB, nodes []Node, edges [][2]int) *Graph {
	t.Helper()
	g, err := New(nodes, edges)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// letters makes nodes a, b, c, … from edges such as "ab bc".
func letters(t testing.TB, n int, edges string) *Graph {
	t.Helper()
	var nodes []Node
	for i := range n {
		nodes = append(nodes, Node{Name: string(rune('a' + i)), Project: "p"})
	}
	var list [][2]int
	for _, e := range strings.Fields(edges) {
		list = append(list, [2]int{int(e[0] - 'a'), int(e[1] - 'a')})
	}
	return mustGraph(t, nodes, list)
}

func world(t testing.TB) *Graph {
	t.Helper()
	return mustGraph(t, []Node{
		{Name: "ods", Project: "raw", Kind: "task", ID: "1", Tags: []string{"n"}, Paused: true, Cycle: "hourly", Path: "tasks/ods.yml"},
		{Name: "dim", Project: "core", Kind: "dimension", ID: "2", Owner: "ann@x.org", Outputs: []string{"core.Dim", "core.dim_v"}, Fields: []string{"id", "name"}, Path: "models/core/dim.yml",
			Config: map[string]any{"retries": uint64(3), "meta": map[string]any{"tier": "gold", "a.b": "x"}, "flag": false}},
		{Name: "fct", Project: "core", Kind: "fact", ID: "3", Fields: []string{"amount", "name"}, Path: "models/core/deep/er/fct.yml", Config: map[string]any{"retries": 5}},
		{Name: "my table, +1", Project: "core", Kind: "summary", ID: "4", Path: "models/mart/odd name.yml"},
		{Name: "fct", Project: "mart", Kind: "fact", ID: "5", Path: "models/mart/fct.yml"},
	}, [][2]int{{0, 1}, {1, 2}, {2, 3}, {2, 4}, {1, 1}})
}

func TestOwnSelections(t *testing.T) {
	t.Parallel()
	g := world(t)
	tests := []struct{ sel, want, codes string }{
		{`"`, ``, `no_match`},
		{`owner:ann@x.org`, `dim`, ``},
		{`output:CORE.DIM_?`, `dim`, ``},
		{`output:core.[a-e]im`, `dim`, ``},
		{`id:1*`, ``, `no_match`},
		{`config.retries:3`, `dim`, ``},
		{`config.meta.a.b:x`, `dim`, ``},
		{`config.flag:FALSE`, `dim`, ``},
		{`config.meta.tier:GOLD`, ``, `no_match`},
		{`config.meta:tier`, `dim`, ``},
		{`config.cycle:hourly`, `ods`, ``},
		{`config.paused:true`, `ods`, ``},
		{`path:models/core/`, `core.fct dim`, ``},
		{`./models/core`, `core.fct dim`, ``},
		{`path:models/*`, `core.fct dim mart.fct my_table,_+1`, ``},
		{`path:models/*.yml`, ``, `no_match`},
		{`models/**/fct.yml`, `core.fct mart.fct`, ``},
		{`path:**/fct*`, `core.fct mart.fct`, ``},
		{`path:models/cor`, ``, `no_match`},
		{`name:fct`, `core.fct mart.fct`, ``},
		{`core.fct`, `core.fct`, ``},
		{`*fct,mart.*`, `mart.fct`, ``},
		{`f[!a-b]t`, `core.fct mart.fct`, ``},
		{`[d]im`, `dim`, ``},
		{`[d`, ``, `no_match`},
		{Quote("my table, +1"), `my_table,_+1`, ``},
		{`my?table*`, `my_table,_+1`, ``},
		{`between:dim..` + Quote("my table, +1"), `core.fct dim my_table,_+1`, ``},
		{`field:dim.name`, `dim`, ``},
		{`field:*.name`, `core.fct dim`, ``},
		{`field:core.fct.amount`, `core.fct`, ``},
		{`field:dim.nope`, ``, `no_match`},
		{`field:dim.name+1`, `core.fct dim`, ``},
		{`between:x..y`, ``, `unknown_node unknown_node`},
		{`between:dim..fct`, ``, `ambiguous`},
		{`between:a..b..c`, ``, `syntax`},
		{`@`, ``, `syntax`}, {`@@dim`, ``, `syntax`}, {`+@dim`, ``, `syntax`}, {`1+`, ``, `syntax`},
		{`:dim`, ``, `syntax`}, {`tag.x:n`, ``, `syntax`}, {`config.:x`, ``, `syntax`}, {`config.a..b:x`, ``, `syntax`},
		{`field:dim`, ``, `syntax`}, {`field:.x`, ``, `syntax`}, {``, ``, `syntax`}, {`  `, ``, `syntax`},
		{`dim, fct`, ``, `syntax`},
		{`TAG:n`, ``, `unknown_method`},
		{`a, color:x`, ``, `syntax unknown_method`},
		{`99999999999999999999+dim`, `dim ods`, ``},
		{"dim\tods\nfct", `core.fct dim mart.fct ods`, ``},
	}
	for _, tt := range tests {
		sel, problems := g.Select(Query{Select: []string{tt.sel}})
		got := strings.Join(g.Labels(sel.Nodes), " ")
		got = strings.ReplaceAll(got, "my table, +1", "my_table,_+1")
		if codes := strings.Join(problems.Codes(), " "); got != tt.want || codes != tt.codes {
			t.Errorf("%q: got %q %q, want %q %q", tt.sel, got, codes, tt.want, tt.codes)
		}
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	g := world(t)
	for sel, want := range map[string]string{
		"dmi": `"dim"`, "kind:fcat": `"fact"`, "path:models/core/dmi.yml": `"models/core/dim.yml"`,
		"colour:x tag:n": `methods: name`, "ownr:x": `"owner"`, "config.meta.tier:gild": `"gold"`, "between:dmi..fct": `"dim"`,
	} {
		_, problems := g.Select(Query{Select: []string{sel}})
		if len(problems) == 0 || !strings.Contains(problems[0].Hint, want) {
			t.Errorf("%s: no %s in %v", sel, want, problems)
		}
	}
	_, problems := g.Select(Query{Select: []string{"between:fct..dim"}})
	if len(problems) != 1 || !strings.Contains(problems[0].Detail, "core.fct  id:3  models/core/deep/er/fct.yml\nmart.fct  id:5") {
		t.Errorf("%v", problems)
	}
	if bad := NonEmpty(g.Empty()); len(bad) != 1 || bad[0].Code != "empty" || NonEmpty(g.Everything()) != nil {
		t.Errorf("%v", bad)
	}
}

func TestDefaultsAndUnconnected(t *testing.T) {
	t.Parallel()
	g := letters(t, 4, "ab bc")
	sel, problems := g.Select(Query{Exclude: []string{"b nope"}})
	if got := strings.Join(g.Labels(sel.Nodes), ""); got != "acd" || len(problems) != 1 {
		t.Errorf("%s %v", got, problems)
	}
	sel, _ = g.Select(Query{Select: []string{"between:c..a", "between:c..a between:a..d"}, Exclude: []string{"d"}})
	if d := cmp.Diff([][2]int{{2, 0}}, sel.Unconnected); d != "" {
		t.Error(d)
	}
}

type lineage map[string][]int

func (l lineage) Readers(node int, field string, depth int) []int {
	return l[fmt.Sprintf("%d.%s>%d", node, field, depth)]
}
func (l lineage) Sources(node int, field string, depth int) []int {
	return l[fmt.Sprintf("%d.%s<%d", node, field, depth)]
}

func TestFieldLineage(t *testing.T) {
	t.Parallel()
	g := world(t)
	l := lineage{"1.name>-1": {3}, "1.name>2": {4}, "1.name<1": {0}, "1.id>-1": {2}}
	for sel, want := range map[string]string{
		"field:dim.name+": "dim my table, +1", "1+field:dim.name+2": "dim mart.fct ods", "field:dim.*+": "core.fct dim my table, +1",
		"@field:dim.id": "core.fct dim ods",
	} {
		s, problems := g.Select(Query{Select: []string{sel}, Fields: l})
		if got := strings.Join(g.Labels(s.Nodes), " "); got != want || len(problems) > 0 {
			t.Errorf("%s: %q %v", sel, got, problems)
		}
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()
	g := world(t)
	tests := []struct{ where, want, code string }{
		{`kind == "fact"`, "core.fct mart.fct", ""},
		{`"n" in tags or paused`, "ods", ""},
		{`config.retries > 2`, "", "where"}, // nil > 2 for nodes without it
		{`(config.retries ?? 0) > 3`, "core.fct", ""},
		{`level == 2`, "core.fct", ""},
		{`name startsWith "f" and project == "mart"`, "mart.fct", ""},
		{`kind`, "", "where"},
		{`kind ==`, "", "where"},
		{`nope == 1`, "", "where"},
		{`now() > now()`, "", "where"},
		{`len(fields) == 2 and id in ["2", "4"]`, "dim", ""},
	}
	for _, tt := range tests {
		s, problems := g.Select(Query{Where: tt.where, Level: func(i int) int { return i }})
		got := strings.Join(g.Labels(s.Nodes), " ")
		if codes := strings.Join(problems.Codes(), " "); got != tt.want || codes != tt.code {
			t.Errorf("%s: got %q, %v", tt.where, got, problems)
		}
		for _, d := range problems {
			if d.Line != 1 || d.Column < 1 || d.Hint == "" {
				t.Errorf("%s: no position or hint: %+v", tt.where, d)
			}
		}
	}
	s, _ := g.Select(Query{Select: []string{"core.*"}, Where: `kind == "fact"`})
	if got := strings.Join(g.Labels(s.Nodes), " "); got != "core.fct" {
		t.Errorf("where does not filter the selection: %s", got)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	//   a → b → c → d
	//       b → e → f      g alone
	g := letters(t, 7, "ab bc cd be ef")
	tests := []struct {
		scope       Scope
		want, codes string
	}{
		{Scope{}, "b", ""},
		{Scope{Downstream: 1}, "bce", ""},
		{Scope{Downstream: All, Upstream: All}, "abcdef", ""},
		{Scope{Upstream: 1}, "ab", ""},
		{Scope{Children: []string{"c"}}, "bcd", ""},
		{Scope{Children: []string{"c", "p.e"}}, "bcdef", ""},
		{Scope{Children: []string{"d"}}, "", "not_a_child"},
		{Scope{Children: []string{"zz"}}, "", "unknown_node"},
		{Scope{Names: []string{"d", "f"}}, "bdf", ""},
		{Scope{Names: []string{"d", "a", "g"}}, "bd", "not_downstream not_downstream"},
		{Scope{Names: []string{"d"}, Downstream: 1}, "b", "not_downstream"},
		{Scope{Names: []string{"nope", "nada"}}, "", "unknown_node unknown_node"},
		{Scope{Names: make([]string, 5001)}, "", "too_many"},
		{Scope{Outputs: make([]string, 1001)}, "", "too_many"},
		{Scope{IDs: []string{}}, "b", ""},
	}
	for _, tt := range tests {
		tt.scope.Current = []int{1}
		s, problems := g.Around(tt.scope)
		if got, codes := strings.Join(g.Labels(s), ""), strings.Join(problems.Codes(), " "); got != tt.want || codes != tt.codes {
			t.Errorf("%+v: got %q %q, want %q %q", tt.scope, got, codes, tt.want, tt.codes)
		}
	}
	w := world(t)
	_, problems := w.Around(Scope{Current: []int{1}, Names: []string{"fct"}})
	if len(problems) != 1 || problems[0].Code != "ambiguous" {
		t.Errorf("%v", problems)
	}
	s, problems := w.Around(Scope{Current: []int{0}, IDs: []string{"3"}, Outputs: []string{"CORE.dim"}, Names: []string{"mart.fct"}})
	if got := w.Labels(s); len(problems) > 0 || !slices.Equal(got, []string{"core.fct", "dim", "mart.fct", "ods"}) {
		t.Errorf("%v %v", got, problems)
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprint("nope", i)
	}
	if _, problems := g.Around(Scope{Names: many}); len(problems) != maxUnknown+1 {
		t.Errorf("%d problems", len(problems))
	}
	if d := cmp.Diff([]int{-1, 0, 1, 2, 1, 2, 0}, g.Levels(g.Of(1))); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]int{"": 0, "all": All, "ALL": All, "1": 1, "10": 10} {
		if n, bad := ParseLevels(text); n != want || len(bad) > 0 {
			t.Errorf("%q: %d %v", text, n, bad)
		}
	}
	for _, text := range []string{"0", "11", "-1", "x", "1.5"} {
		if _, bad := ParseLevels(text); len(bad) != 1 || bad[0].Code != "levels" {
			t.Errorf("%q: %v", text, bad)
		}
	}
	if d := cmp.Diff([]string{"a b", "c"}, ParseList(" a b \r\n\nc\na b\n")); d != "" {
		t.Error(d)
	}
}

func TestContractAndPaused(t *testing.T) {
	t.Parallel()
	g := letters(t, 6, "ab bc ac cd de bf ab")
	kept := g.Everything()
	kept.Remove(1)
	kept.Remove(3)
	if d := cmp.Diff([][2]int{{0, 2}, {0, 5}, {2, 4}}, g.Contract(kept)); d != "" {
		t.Error(d)
	}
	nodes := make([]Node, 6)
	for i := range nodes {
		nodes[i] = Node{Name: string(rune('a' + i)), Paused: i == 1 || i == 4}
	}
	g = mustGraph(t, nodes, [][2]int{{0, 1}, {1, 2}, {2, 3}, {4, 5}})
	s, left := g.WithoutPaused(g.Everything(), g.Empty())
	if d := cmp.Diff([]string{"a"}, g.Labels(s)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]LeftOut{{1, 1}, {2, 1}, {3, 1}, {4, 4}, {5, 4}}, left); d != "" {
		t.Error(d)
	}
	// The current node is kept although paused; one outside the set holds nothing.
	s, left = g.WithoutPaused(g.Of(1, 3, 5), g.Of(1))
	if s.Len() != 3 || len(left) != 0 {
		t.Errorf("%v %v", g.Labels(s), left)
	}
	// b is not in the set's way to d, but above it.
	s, left = g.WithoutPaused(g.Of(1, 3), g.Empty())
	if s.Len() != 0 || len(left) != 2 {
		t.Errorf("%v %v", g.Labels(s), left)
	}
}

func TestBadEdge(t *testing.T) {
	t.Parallel()
	if _, err := New(make([]Node, 2), [][2]int{{0, 2}}); err == nil {
		t.Error("an edge outside is accepted")
	}
}
