package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// largePlan has 2 upstream nodes, the current one, 5 nodes below it, and 490
// further down on two levels, over every second day of two years and more.
func largePlan() *plan.Plan {
	p := &plan.Plan{Backfill: "big", Environment: "dev", Order: "asc", Engine: plan.EngineRef{Name: "local", Type: "duckdb"},
		Request: plan.Request{Nodes: []string{"cur"}}, Estimate: plan.Estimate{Rows: -1}}
	for i := range 400 {
		p.Dates = append(p.Dates, bizdate.Of(2023, 1, 1)+bizdate.Date(2*i))
	}
	p.Groups = [][]bizdate.Date{p.Dates}
	add := func(name string, level int, s plan.Strategy) {
		n := plan.Node{Name: name, Level: level, Strategy: s, Because: "all fields", Why: "reads cur.v", FieldCount: 1, Whole: level%2 == 0,
			Steps: []plan.Step{{Strategy: s, Instances: 400}}}
		if s == plan.Rewrite {
			n.Writes = []plan.Write{{Node: name + "__main", Action: s, Fields: []string{"v"}}}
		}
		p.Nodes = append(p.Nodes, n)
	}
	add("up_1", -1, plan.Rewrite)
	add("up_2", -2, plan.Rewrite)
	add("cur", 0, plan.Rewrite)
	for i := range 5 {
		add(fmt.Sprintf("near_%d", i), 1, plan.Rewrite)
	}
	for i := range 290 {
		add(fmt.Sprintf("mart_%03d", i), 2, plan.Rewrite)
	}
	for i := range 10 {
		add(fmt.Sprintf("export_%d", i), 2, plan.Command)
	}
	for i := range 190 {
		add(fmt.Sprintf("far_%03d", i), 3, plan.Rewrite)
	}
	add("idle", 3, plan.DryRun)
	return p
}

func TestLargePlan(t *testing.T) {
	t.Parallel()
	p := largePlan()
	var w strings.Builder
	if err := Plan(&w, p, PlanOptions{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(w.String(), "\n"), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  level +2") })
	if at < 0 {
		t.Fatalf("no levels:\n%s", w.String())
	}
	want := []string{
		"  level +2                                 300 nodes, 120,000 instances",
		"    rewrite, all fields             290  mart_000, mart_001, … 288 more",
		"    command                          10  export_0, export_1, export_2, … 7 more",
		"  level +3                                 191 nodes, 76,000 instances, 400 dry-run",
		"    rewrite, some fields            190  far_000, far_001, far_002, … 187 more",
		"    dry-run                           1  idle",
		"  (`plan --full` shows every node, `plan --explain NODE` why one is here or not)",
	}
	if d := cmp.Diff(want, lines[at:at+len(want)]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if want := "2023-01-01, 2023-01-03, 2023-01-05, 2023-01-07, 2023-01-09, 2023-01-11, 2023-01-13, 2023-01-15, … 392 ranges more up to 2025-03-09"; strings.TrimSpace(lines[1]) != want {
		t.Errorf("dates: %s", lines[1])
	}
	for _, name := range []string{"up_1", "up_2", "cur", "near_4"} { // with their details
		if !strings.Contains(w.String(), "\n    "+name+"__main") {
			t.Errorf("%s has no details", name)
		}
	}
	if len(lines) > 50 {
		t.Errorf("%d lines", len(lines))
	}
	var full strings.Builder
	if err := Plan(&full, p, PlanOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
	for i := range p.Nodes {
		if !strings.Contains(full.String(), "\n  "+p.Nodes[i].Name+" ") {
			t.Errorf("--full does not show %s", p.Nodes[i].Name)
		}
	}
	if !strings.Contains(full.String(), p.Dates[399].String()) || strings.Contains(full.String(), "more") {
		t.Error("--full counts")
	}
}

// Many current nodes are counted too, but for those that the command names.
func TestManyCurrentNodes(t *testing.T) {
	t.Parallel()
	p := largePlan()
	for i := range p.Nodes {
		p.Nodes[i].Level = 0
	}
	var w strings.Builder
	if err := Plan(&w, p, PlanOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.String(), "\n    cur__main") || !strings.Contains(w.String(), "\n  current nodes                            498 nodes") {
		t.Error(w.String())
	}
}

func TestAlike(t *testing.T) {
	t.Parallel()
	var list diag.List
	for i := range 12 {
		list = append(list, diag.Warnf("many", "warning %d", i), diag.Errorf("bad", "error %d", i))
	}
	list = append(list, diag.Warnf("few", "one"))
	got := Alike(list, false)
	if n := len(got.Warnings()); n != maxAlike+2 {
		t.Errorf("%d warnings", n)
	}
	if n := len(got.Errors()); n != 12 {
		t.Errorf("%d errors", n)
	}
	if !strings.Contains(got.Warnings()[maxAlike].Summary, "7 more warnings") {
		t.Error(got.Warnings())
	}
	if d := cmp.Diff(len(list), len(Alike(list, true))); d != "" {
		t.Error(d)
	}
}
