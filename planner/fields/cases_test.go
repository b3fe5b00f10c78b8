package fields

import (
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

type caseFile struct {
	Topic    string         `yaml:"topic"`
	Format   int            `yaml:"format"`
	Defaults map[string]any `yaml:"defaults"`
	Cases    []closureCase  `yaml:"cases"`
}

type closureCase struct {
	ID      string               `yaml:"id"`
	Dates   []string             `yaml:"dates"`
	Tables  map[string]caseTable `yaml:"tables"`
	Table   string               `yaml:"table"`
	Mode    string               `yaml:"mode"`
	Select  []string             `yaml:"select"`
	Accept  []string             `yaml:"accept"`
	Want    *caseWant            `yaml:"want"`
	Error   string               `yaml:"error"`
	Errors  []string             `yaml:"errors"`
	Reasons []string             `yaml:"reasons"`
	Decided bool                 `yaml:"decided"`
	Why     string               `yaml:"why"`
}

type caseTable struct {
	PK            []string            `yaml:"pk"`
	Fields        []string            `yaml:"fields"`
	Registered    []string            `yaml:"registered"`
	Nodes         map[string][]string `yaml:"nodes"`
	Changed       map[string][]string `yaml:"changed"`
	PKChanged     []string            `yaml:"pk_changed"`
	RowSetChanged []string            `yaml:"row_set_changed"`
	CycleChanged  []string            `yaml:"cycle_changed"`
	Primary       string              `yaml:"primary"`
	From          []string            `yaml:"from"`
	Reads         map[string][]string `yaml:"reads"`
	RowSetReads   []string            `yaml:"row_set_reads"`
}

type caseWant struct {
	Fields      []string            `yaml:"fields"`
	Required    map[string]string   `yaml:"required"`
	Recommended map[string]string   `yaml:"recommended"`
	Nodes       []string            `yaml:"nodes"`
	Downstream  map[string][]string `yaml:"downstream"`
}

func days(t *testing.T, list []string) Days {
	t.Helper()
	var out Days
	for _, s := range list {
		d, err := bizdate.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// when keeps an absent list a nil When.
func when(t *testing.T, list []string) When {
	if list == nil {
		return nil
	}
	return days(t, list)
}

func refs(list []string) []Ref {
	var out []Ref
	for _, s := range list {
		i := slices.Index([]byte(s), '.')
		out = append(out, Ref{s[:i], s[i+1:]})
	}
	return out
}

func (c caseTable) table(t *testing.T, name string) Table {
	tab := Table{
		Name: name, Key: c.PK, Fields: c.Fields, Registered: c.Registered, From: c.From,
		Reads: map[string][]Ref{}, RowSetReads: refs(c.RowSetReads),
		KeyChanged: when(t, c.PKChanged), RowSetChanged: when(t, c.RowSetChanged),
		Changed: map[string]When{}, CycleChanged: c.CycleChanged, Primary: c.Primary,
	}
	for f, r := range c.Reads {
		tab.Reads[f] = refs(r)
	}
	for f, d := range c.Changed {
		tab.Changed[f] = when(t, d)
	}
	for n, f := range c.Nodes {
		tab.Nodes = append(tab.Nodes, Node{n, f})
	}
	slices.SortFunc(tab.Nodes, func(a, b Node) int { return compareNames(a.Name, b.Name) })
	return tab
}

func TestCases(t *testing.T) {
	t.Parallel()
	runCases(t, "../../fixtures/cases/closure.yaml")
}

func TestOwnCases(t *testing.T) {
	t.Parallel()
	runCases(t, "testdata/own.yaml")
}

func runCases(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f caseFile
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c closureCase) run(t *testing.T) {
	var tables []Table
	for n, tab := range c.Tables {
		tables = append(tables, tab.table(t, n))
	}
	m, err := New(tables)
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode != "full" && c.Mode != "fields" {
		t.Fatalf("unknown mode %q", c.Mode)
	}
	res, problems := m.Close(Request{
		Table: c.Table, Full: c.Mode == "full", Select: c.Select, Dates: days(t, c.Dates),
		Accept: Accept{Names: c.Accept}, Downstream: All, Upstream: All,
	})
	want := c.Errors
	if c.Error != "" {
		want = []string{c.Error}
	}
	codes := problems.Errors().Codes()
	slices.Sort(codes)
	if d := cmp.Diff(want, codes, nilIsEmpty); d != "" {
		t.Fatalf("errors (-want +got):\n%s", d)
	}
	var reasons []string
	for _, r := range res.Refusal {
		reasons = append(reasons, r.Reason)
	}
	if d := cmp.Diff(c.Reasons, reasons, nilIsEmpty); d != "" {
		t.Errorf("reasons (-want +got):\n%s", d)
	}
	if len(want) > 0 {
		return
	}
	got := view(res)
	slices.Sort(c.Want.Fields)
	slices.Sort(c.Want.Nodes)
	for _, l := range c.Want.Downstream {
		slices.Sort(l)
	}
	if d := cmp.Diff(*c.Want, got, nilIsEmpty); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

var nilIsEmpty = cmp.Options{
	cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(a, b map[string][]string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore()),
}

// view gives a result in the words of the case files, lists sorted.
func view(res Result) caseWant {
	w := caseWant{Fields: res.Target.Names(), Required: map[string]string{}, Recommended: map[string]string{}, Downstream: map[string][]string{}}
	for f, code := range res.Target.Required() {
		w.Required[f] = string(code)
	}
	for _, r := range res.Recommended {
		w.Recommended[r.String()] = r.Kind
	}
	for _, n := range res.Target.Nodes {
		w.Nodes = append(w.Nodes, n.Node)
	}
	for _, d := range res.Downstream {
		w.Downstream[d.Table] = d.Names()
		if d.Whole {
			w.Downstream[d.Table] = []string{"*"}
		}
		slices.Sort(w.Downstream[d.Table])
	}
	slices.Sort(w.Fields)
	slices.Sort(w.Nodes)
	return w
}
