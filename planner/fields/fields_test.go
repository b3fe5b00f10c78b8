package fields

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

func mustNew(t *testing.T, tables ...Table) *Model {
	t.Helper()
	m, err := New(tables)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustClose(t *testing.T, m *Model, req Request) Result {
	t.Helper()
	res, problems := m.Close(req)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return res
}

// text renders a table's result in one line: `t: f1 f2(kept) @ A B(column)`.
func text(r TableResult) string {
	var b strings.Builder
	b.WriteString(r.Table + ":")
	if r.Whole {
		b.WriteString(" *")
	}
	for _, f := range r.Fields {
		if r.Whole {
			break
		}
		b.WriteString(" " + f.Name)
		if f.Kept {
			b.WriteString("(kept)")
		}
	}
	b.WriteString(" @")
	for _, n := range r.Nodes {
		b.WriteString(" " + n.Node)
		if n.Column {
			b.WriteString("(column)")
		}
	}
	return b.String()
}

func texts(list []TableResult) []string {
	out := []string{}
	for _, r := range list {
		out = append(out, text(r))
	}
	return out
}

func chain() []Table {
	return []Table{
		{Name: "t", Key: []string{"k"}, Fields: []string{"f1", "f2", "f3"}, Nodes: []Node{{"A", []string{"f1", "f2"}}, {"B", []string{"f2", "f3"}}}},
		{Name: "u", Key: []string{"k"}, Fields: []string{"x", "y", "z"}, Nodes: []Node{{"U", []string{"x", "y"}}, {"V", []string{"z"}}}, From: []string{"t"},
			Reads: map[string][]Ref{"x": {{"t", "f1"}}, "y": {{"t", "f3"}}, "z": {{"t", "f2"}}}, RowSetReads: []Ref{{"t", "k"}}},
		{Name: "w", Key: []string{"k"}, Fields: []string{"s", "q"}, Nodes: []Node{{"S", []string{"s"}}, {"Q", []string{"q"}}}, From: []string{"u"},
			Reads: map[string][]Ref{"s": {{"u", "x"}}, "q": {{"u", "z"}}}},
	}
}

// With column refresh, co-located fields are kept and downstream starts from
// the written fields alone (semantics §4.8).
func TestColumnRefresh(t *testing.T) {
	t.Parallel()
	m := mustNew(t, chain()...)
	all := func(string, string) bool { return true }
	res := mustClose(t, m, Request{Table: "t", Select: []string{"f1"}, Downstream: All, Upstream: All, Column: all})
	if d := cmp.Diff("t: f1 f2(kept) @ A(column)", text(res.Target)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"u: x y(kept) @ U(column)", "w: s @ S(column)"}, texts(res.Downstream)); d != "" {
		t.Error(d)
	}
	// A is rewritten, so f2 is written there, and by column in B.
	res = mustClose(t, m, Request{Table: "t", Select: []string{"f1"}, Downstream: All,
		Column: func(table, node string) bool { return node != "A" }})
	if d := cmp.Diff("t: f1 f2 f3(kept) @ A B(column)", text(res.Target)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"u: x y(kept) z @ U(column) V(column)", "w: s q @ S(column) Q(column)"}, texts(res.Downstream)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]Code{"f2": CoLocated, "f3": CoLocated}, res.Target.Required()); d != "" {
		t.Error(d)
	}
	// A key column rewrites every node whatever is asked.
	res = mustClose(t, m, Request{Table: "t", Select: []string{"k"}, Column: all})
	if d := cmp.Diff("t: k f1 f2 f3 @ A B", text(res.Target)); d != "" {
		t.Error(d)
	}
	// So do system-required fields.
	tables := chain()
	tables[0].CycleChanged = []string{"f3"}
	res = mustClose(t, mustNew(t, tables...), Request{Table: "t", Select: []string{"f1"}, Column: all})
	if d := cmp.Diff("t: f1 f2 f3 @ A(column) B", text(res.Target)); d != "" {
		t.Error(d)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	res := mustClose(t, mustNew(t, chain()...), Request{Table: "t", Select: []string{"f1"}, Downstream: 1})
	want := []Field{
		{Name: "f1", Reasons: []Reason{{Code: Selected}}},
		{Name: "f2", Reasons: []Reason{{Code: CoLocated, Via: Ref{"t", "f1"}, Node: "A"}}},
		{Name: "f3", Reasons: []Reason{{Code: CoLocated, Via: Ref{"t", "f2"}, Node: "B"}}},
	}
	if d := cmp.Diff(want, res.Target.Fields); d != "" {
		t.Error(d)
	}
	if len(res.Downstream) != 1 {
		t.Fatalf("levels are not limited: %v", texts(res.Downstream))
	}
	want = []Field{
		{Name: "x", Reasons: []Reason{{Code: Reader, Via: Ref{"t", "f1"}}}},
		{Name: "y", Reasons: []Reason{{Code: Reader, Via: Ref{"t", "f3"}}}},
		{Name: "z", Reasons: []Reason{{Code: Reader, Via: Ref{"t", "f2"}}}},
	}
	if d := cmp.Diff(want, res.Downstream[0].Fields); d != "" {
		t.Error(d)
	}
	res = mustClose(t, mustNew(t, chain()...), Request{Table: "t", Full: true, Downstream: All})
	for i, via := range []string{"t", "u"} {
		d := res.Downstream[i]
		if !d.Whole || !slices.Contains(d.Because, Reason{Code: RowSet, Via: Ref{via, AnyField}}) {
			t.Errorf("%s: %v", d.Table, d.Because)
		}
	}
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	m := mustNew(t, chain()...)
	up := func(r Result) []string {
		out := []string{}
		for _, u := range r.Upstream {
			s := text(u.TableResult)
			if u.Rows {
				s += " rows"
			}
			out = append(out, s)
		}
		return out
	}
	res := mustClose(t, m, Request{Table: "w", Select: []string{"s"}, Upstream: All})
	if d := cmp.Diff([]string{"u: x y @ U rows", "t: f1 f2 f3 @ A B rows"}, up(res)); d != "" {
		t.Error(d)
	}
	res = mustClose(t, m, Request{Table: "w", Select: []string{"q"}, Upstream: 1})
	if d := cmp.Diff([]string{"u: z @ V rows"}, up(res)); d != "" {
		t.Error(d)
	}
	res = mustClose(t, m, Request{Table: "w", Full: true, Upstream: All})
	if d := cmp.Diff([]string{"u: x y z @ U V rows", "t: f1 f2 f3 @ A B rows"}, up(res)); d != "" {
		t.Error(d)
	}
	// The row set's reads count whatever is selected; a registered field is
	// listed, not followed. Rows that are read may be others than those stored:
	// no column refresh.
	tables := chain()
	tables[1].RowSetReads = append(tables[1].RowSetReads, Ref{"t", "f3"})
	tables[0].Registered = []string{"r"}
	tables[1].Reads["z"] = []Ref{{"t", "r"}}
	res = mustClose(t, mustNew(t, tables...), Request{Table: "u", Select: []string{"z"}, Upstream: All,
		Column: func(string, string) bool { return true }})
	if d := cmp.Diff([]string{"t: f1 f2 f3 @ A B rows"}, up(res)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"r"}, res.Upstream[0].Registered); d != "" {
		t.Error(d)
	}
}

func TestPaused(t *testing.T) {
	t.Parallel()
	tables := chain()
	tables[1].Paused = []string{"x"}
	tables = append(tables, Table{Name: "v", Key: []string{"k"}, Fields: []string{"a", "b"}, Nodes: []Node{{"N", []string{"a", "b"}}},
		Reads: map[string][]Ref{"a": {{"u", "x"}}, "b": {{"t", "f1"}}}})
	tables = append(tables, Table{Name: "y", Key: []string{"k"}, Fields: []string{"a", "b"}, Nodes: []Node{{"N", []string{"a", "b"}}},
		Reads: map[string][]Ref{"a": {{"u", "z"}}, "b": {{"t", "f1"}}}})
	tables = append(tables, Table{Name: "z", Key: []string{"k"}, Fields: []string{"a"}, Nodes: []Node{{"N", []string{"a"}}},
		Reads: map[string][]Ref{"a": {{"u", "z"}}}})
	m := mustNew(t, tables...)
	res := mustClose(t, m, Request{Table: "t", Select: []string{"f1"}, Downstream: All})
	if d := cmp.Diff([]string{"y: a b @ N"}, texts(res.Downstream)); d != "" {
		t.Error(d)
	}
	want := []LeftOut{
		{Table: "u", Paused: []string{"x"}},
		{Table: "v", Via: Ref{"u", "x"}},
		{Table: "w", Via: Ref{"u", "x"}},
		{Table: "z"},
	}
	if d := cmp.Diff(want, res.LeftOut); d != "" {
		t.Error(d)
	}
	res = mustClose(t, m, Request{Table: "t", Select: []string{"f1"}, Downstream: All, IncludePaused: true})
	if len(res.Downstream) != 5 || len(res.LeftOut) != 0 {
		t.Errorf("%v %v", texts(res.Downstream), res.LeftOut)
	}
	// A paused field that would not be written holds nothing.
	tables[1].Paused = []string{"z"}
	res = mustClose(t, mustNew(t, tables...), Request{Table: "t", Select: []string{"f1"}, Downstream: All,
		Column: func(string, string) bool { return true }})
	if len(res.LeftOut) != 0 {
		t.Errorf("%v", res.LeftOut)
	}
}

func TestWholeDownstreamAndTasks(t *testing.T) {
	t.Parallel()
	tables := append(chain(), Table{Name: "export", FullOnly: true, From: []string{"w"}, RowSetReads: []Ref{{"w", AnyField}}})
	m := mustNew(t, tables...)
	res := mustClose(t, m, Request{Table: "t", Select: []string{"f1"}, Downstream: All, DownstreamWhole: true})
	if d := cmp.Diff([]string{"u: * @ U V", "w: * @ S Q", "export: * @"}, texts(res.Downstream)); d != "" {
		t.Error(d)
	}
	if b := res.Downstream[0].Because; len(b) != 1 || b[0].Note != noteAll {
		t.Errorf("%v", b)
	}
	if _, problems := m.Close(Request{Table: "export", Select: []string{"x"}}); !slices.Contains(problems.Codes(), "full_table_only") {
		t.Errorf("%v", problems)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	d := bizdate.Of(2024, 1, 5)
	tables := chain()
	tables[0].Nodes = []Node{{"A", []string{"f1"}}, {"B", []string{"f2", "f3"}}}
	on := Func(func(x bizdate.Date) bool { return x == d })
	tables[0].Changed = map[string]When{"f2": on, "f3": on}
	m := mustNew(t, tables...)
	req := Request{Table: "t", Select: []string{"f1"}, Dates: []bizdate.Date{d, d + 1}}
	res := mustClose(t, m, req)
	if len(res.Recommended) != 2 || len(res.Recommended[0].Dates) != 1 {
		t.Errorf("%v", res.Recommended)
	}
	req.Accept = ParseAccept("all")
	res = mustClose(t, m, req)
	if len(res.Recommended) != 0 || len(res.Accepted) != 2 || text(res.Target) != "t: f1 f2 f3 @ A B" {
		t.Errorf("%v %s", res.Recommended, text(res.Target))
	}
	req.Accept = ParseAccept("f2")
	res = mustClose(t, m, req)
	if len(res.Recommended) != 0 {
		t.Errorf("a node mate of an accepted field is still offered: %v", res.Recommended)
	}
	req.Accept = ParseAccept("f4, t.f2")
	if _, problems := m.Close(req); len(problems) != 1 || problems[0].Code != "not_recommended" {
		t.Errorf("%v", problems)
	}
	req.Accept = ParseAccept("none")
	req.Dates = []bizdate.Date{d + 1}
	if res = mustClose(t, m, req); len(res.Recommended) != 0 {
		t.Errorf("%v", res.Recommended)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	if _, err := New([]Table{{Name: "t"}, {Name: "t"}}); err == nil {
		t.Error("a table twice is accepted")
	}
	if _, err := New([]Table{{Name: "t", Fields: []string{"a", "a"}}}); err == nil {
		t.Error("a field twice is accepted")
	}
	m := mustNew(t, chain()...)
	_, problems := m.Close(Request{Table: "tt"})
	if len(problems) != 1 || problems[0].Code != "unknown_table" || !strings.Contains(problems[0].Hint, `"t"`) {
		t.Errorf("%v", problems)
	}
	tables := chain()
	tables[0].RowSetChanged = Days{1, 2, 4}
	tables[0].Differences = map[string]string{RowSetChanged: "- WHERE a\n+ WHERE b"}
	_, problems = mustNew(t, tables...).Close(Request{Table: "t", Select: []string{"f1"}, Dates: []bizdate.Date{0, 1, 2, 4}})
	if len(problems) != 1 || !strings.Contains(problems[0].Detail, "1970-01-02..1970-01-03, 1970-01-05") || !strings.Contains(problems[0].Detail, "+ WHERE b") {
		t.Errorf("%v", problems)
	}
	for _, d := range problems {
		if d.Hint == "" {
			t.Errorf("no hint: %v", d)
		}
	}
}

// Readers are judged on their own dates, and levels count the shortest way.
func TestDatesOfAndLevels(t *testing.T) {
	t.Parallel()
	d := bizdate.Of(2024, 1, 8)
	tables := chain()
	tables[1].RowSetChanged = Days{d}
	tables[2].Reads["q"] = []Ref{{"t", "f2"}}
	m := mustNew(t, tables...)
	req := Request{Table: "t", Select: []string{"f1"}, Dates: []bizdate.Date{d - 1}, Downstream: 1, Column: func(string, string) bool { return true }}
	if got := texts(mustClose(t, m, req).Downstream); !slices.Equal(got, []string{"u: x y(kept) @ U(column)"}) {
		t.Errorf("%v", got)
	}
	req.DatesOf = func(string) []bizdate.Date { return []bizdate.Date{d} }
	res := mustClose(t, m, req)
	if got := texts(res.Downstream); !slices.Equal(got, []string{"u: * @ U V"}) {
		t.Errorf("%v", got)
	}
	if b := res.Downstream[0].Because; len(b) != 1 || b[0].Note != noteFullOnly {
		t.Errorf("%v", b)
	}
	req.Select = []string{"f1", "f2"}
	res = mustClose(t, m, req)
	if len(res.Downstream) != 2 || res.Downstream[1].Table != "w" || res.Downstream[1].Level != 1 {
		t.Errorf("w reads t directly as well: %v", texts(res.Downstream))
	}
}

func TestLineage(t *testing.T) {
	t.Parallel()
	tables := chain()
	tables[0].Registered = []string{"r"}
	tables[2].Reads["q"] = append(tables[2].Reads["q"], Ref{"t", "r"})
	m := mustNew(t, tables...)
	for _, tt := range []struct {
		got, want []string
	}{
		{m.Readers("t", "f3", All), []string{"u"}},
		{m.Readers("t", "f1", All), []string{"u", "w"}},
		{m.Readers("t", "f1", 1), []string{"u"}},
		{m.Readers("t", "r", All), []string{"w"}},
		{m.Readers("t", "k", 1), []string{"u"}},
		{m.Readers("t", "f1", 0), nil},
		{m.Readers("t", "nope", All), nil},
		{m.Readers("nope", "f1", All), nil},
		{m.Sources("w", "s", All), []string{"t", "u"}},
		{m.Sources("w", "s", 1), []string{"u"}},
		{m.Sources("t", "f1", All), nil},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Error(d)
		}
	}
}
