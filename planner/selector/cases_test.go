package selector

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/diag"
)

type caseFile struct {
	Topic    string               `yaml:"topic"`
	Format   int                  `yaml:"format"`
	Defaults map[string]any       `yaml:"defaults"`
	Graphs   map[string]caseGraph `yaml:"graphs"`
	Cases    []selectorCase       `yaml:"cases"`
}

type caseGraph struct {
	Nodes []caseNode  `yaml:"nodes"`
	Edges [][2]string `yaml:"edges"`
}

type caseNode struct {
	Name    string         `yaml:"name"`
	Project string         `yaml:"project"`
	Tags    []string       `yaml:"tags"`
	ID      any            `yaml:"id"`
	Kind    string         `yaml:"kind"`
	Owner   string         `yaml:"owner"`
	Path    string         `yaml:"path"`
	Output  string         `yaml:"output"`
	Config  map[string]any `yaml:"config"`
}

type selectorCase struct {
	ID         string   `yaml:"id"`
	Op         string   `yaml:"op"`
	Graph      string   `yaml:"graph"`
	Select     []string `yaml:"select"`
	Exclude    []string `yaml:"exclude"`
	Text       string   `yaml:"text"`
	Want       any      `yaml:"want"`
	Warn       []string `yaml:"warn"`
	Error      string   `yaml:"error"`
	Errors     []string `yaml:"errors"`
	ErrorNodes []string `yaml:"error_nodes"`
	Decided    bool     `yaml:"decided"`
	Why        string   `yaml:"why"`
}

func (c caseGraph) build(t *testing.T) *Graph {
	t.Helper()
	var nodes []Node
	at := map[string]int{}
	for i, n := range c.Nodes {
		x := Node{Name: n.Name, Project: n.Project, Kind: n.Kind, Owner: n.Owner, Path: n.Path, Tags: n.Tags, Config: n.Config}
		if n.ID != nil {
			x.ID = fmt.Sprint(n.ID)
		}
		if n.Output != "" {
			x.Outputs = []string{n.Output}
		}
		at[x.Name], at[x.FullName()] = i, i
		nodes = append(nodes, x)
	}
	var edges [][2]int
	for _, e := range c.Edges {
		a, ok := at[e[0]]
		b, ok2 := at[e[1]]
		if !ok || !ok2 {
			t.Fatalf("edge %v", e)
		}
		edges = append(edges, [2]int{a, b})
	}
	g, err := New(nodes, edges)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../fixtures/cases/selectors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var f caseFile
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	graphs := map[string]*Graph{}
	for n, g := range f.Graphs {
		graphs[n] = g.build(t)
	}
	for _, c := range f.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			switch c.Op {
			case "select":
				c.runSelect(t, graphs[c.Graph])
			case "parse":
				c.runParse(t)
			default:
				t.Fatalf("unknown op %q", c.Op)
			}
		})
	}
}

// wantErrors compares the kinds of errors and what their text must name.
func (c selectorCase) wantErrors(t *testing.T, problems diag.List) (done bool) {
	t.Helper()
	want := c.Errors
	if c.Error != "" {
		want = []string{c.Error}
	}
	got := problems.Errors().Codes()
	slices.Sort(got)
	got = slices.Compact(got)
	if !slices.Equal(got, want) {
		t.Fatalf("errors %v, want %v\n%v", got, want, problems)
	}
	for _, n := range c.ErrorNodes {
		if !slices.ContainsFunc(problems.Errors(), func(d diag.Diagnostic) bool { return strings.Contains(d.String(), n) }) {
			t.Errorf("no error names %s: %v", n, problems)
		}
	}
	return len(want) > 0
}

func (c selectorCase) runSelect(t *testing.T, g *Graph) {
	if g == nil {
		t.Fatalf("no graph %q", c.Graph)
	}
	sel, problems := g.Select(Query{Select: c.Select, Exclude: c.Exclude})
	if c.wantErrors(t, problems) {
		return
	}
	want := []string{}
	list, ok := c.Want.([]any)
	if !ok {
		t.Fatalf("want is %T", c.Want)
	}
	for _, x := range list {
		want = append(want, x.(string))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, g.Labels(sel.Nodes)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	warn := problems.Warnings().Codes()
	slices.Sort(warn)
	warn = slices.Compact(warn)
	slices.Sort(c.Warn)
	if !slices.Equal(warn, c.Warn) {
		t.Errorf("warnings %v, want %v", warn, c.Warn)
	}
	for _, d := range problems {
		if d.Hint == "" {
			t.Errorf("no hint: %v", d)
		}
	}
}

func (c selectorCase) runParse(t *testing.T) {
	p, problems := ParsePart(c.Text)
	if c.wantErrors(t, problems) {
		return
	}
	got := map[string]any{"method": p.Method, "value": p.Value}
	if p.At {
		got["at"] = true
	}
	if p.Arg != "" {
		got["arg"] = p.Arg
	}
	if p.Parents {
		got["parents"] = true
		if p.Up != All {
			got["parents_depth"] = uint64(p.Up)
		}
	}
	if p.Children {
		got["children"] = true
		if p.Down != All {
			got["children_depth"] = uint64(p.Down)
		}
	}
	want := map[string]any{}
	for k, v := range c.Want.(map[string]any) {
		if v != false && v != nil {
			want[k] = v
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
