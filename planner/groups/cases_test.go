package groups

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// caseFile mirrors fixtures/cases/groups.yaml; unknown keys are errors, so that
// no key of a case goes unread.
type caseFile struct {
	Topic    string         `yaml:"topic"`
	Format   int            `yaml:"format"`
	Defaults map[string]any `yaml:"defaults"`
	Cases    []yaml.MapSlice
}

type splitCase struct {
	Head   `yaml:",inline"`
	Dates  []bizdate.Date   `yaml:"dates"`
	Groups int              `yaml:"groups"`
	Want   [][]bizdate.Date `yaml:"want"`
	Error  string           `yaml:"error"`
}

type checkCase struct {
	Head     `yaml:",inline"`
	Dates    int      `yaml:"dates"`
	Groups   int      `yaml:"groups"`
	Selected []string `yaml:"selected"`
	Deps     []struct {
		Node  string `yaml:"node"`
		Reads string `yaml:"reads_previous_of"`
	} `yaml:"deps"`
	Want       string   `yaml:"want"`
	Error      string   `yaml:"error"`
	Errors     []string `yaml:"errors"`
	ErrorNodes []string `yaml:"error_nodes"`
}

type simulateCase struct {
	Head           `yaml:",inline"`
	Dates          []bizdate.Date `yaml:"dates"`
	Groups         int            `yaml:"groups"`
	DefaultMinutes int            `yaml:"default_minutes"`
	Minutes        map[string]int `yaml:"minutes"`
	Nodes          []struct {
		Name    string   `yaml:"name"`
		Minutes int      `yaml:"minutes"`
		After   []string `yaml:"after"`
	} `yaml:"nodes"`
	Fail       []string       `yaml:"fail"`
	OnFailure  Policy         `yaml:"on_failure"`
	WantStart  map[string]int `yaml:"want_start"`
	WantEnd    int            `yaml:"want_end"`
	WantNotRun []string       `yaml:"want_not_run"`
	Error      string         `yaml:"error"`
}

type Head struct {
	ID      string            `yaml:"id"`
	Op      string            `yaml:"op"`
	Why     string            `yaml:"why"`
	Decided bool              `yaml:"decided"`
	Order   bizdate.Direction `yaml:"order"`
}

func TestCases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../fixtures/cases/groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file caseFile
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, raw := range file.Cases {
		values := raw.ToMap()
		for k, v := range file.Defaults {
			if _, given := values[k]; !given {
				values[k] = v
			}
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(values["id"]), func(t *testing.T) {
			t.Parallel()
			switch values["op"] {
			case "split":
				runSplit(t, decode[splitCase](t, text))
			case "check":
				runCheck(t, decode[checkCase](t, text))
			case "simulate":
				runSimulate(t, decode[simulateCase](t, text))
			default:
				t.Fatalf("unknown op %v", values["op"])
			}
		})
	}
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var c T
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return c
}

func runSplit(t *testing.T, c splitCase) {
	got, diags := Split(c.Dates, c.Groups, c.Order)
	if codes := strings.Join(diags.Codes(), ","); codes != c.Error {
		t.Fatalf("codes %q, want %q", codes, c.Error)
	}
	if d := gocmp.Diff(c.Want, got); d != "" {
		t.Error(d)
	}
}

func runCheck(t *testing.T, c checkCase) {
	r := Request{Dates: c.Dates, Groups: c.Groups, Direction: c.Order, Selected: c.Selected}
	for _, d := range c.Deps {
		r.Previous = append(r.Previous, PreviousCycle{Node: d.Node, Reads: d.Reads})
	}
	var codes, nodes []string
	for _, r := range Check(r) {
		codes = append(codes, r.Code)
		nodes = append(nodes, r.Nodes...)
	}
	slices.Sort(codes)
	slices.Sort(nodes)
	want := c.Errors
	if c.Error != "" {
		want = append(want, c.Error)
	}
	if (c.Want == "ok") != (len(want) == 0) {
		t.Fatalf("case says want %q and errors %v", c.Want, want)
	}
	if d := gocmp.Diff(want, codes); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff(c.ErrorNodes, slices.Compact(nodes)); d != "" {
		t.Error(d)
	}
}

func runSimulate(t *testing.T, c simulateCase) {
	groups, diags := Split(c.Dates, c.Groups, c.Order)
	if codes := strings.Join(diags.Codes(), ","); codes != c.Error {
		t.Fatalf("codes %q, want %q", codes, c.Error)
	}
	cfg := Config{Groups: groups, Nodes: max(1, len(c.Nodes)), Policy: c.OnFailure}
	index := map[string]int{}
	for i, n := range c.Nodes {
		index[n.Name] = i
	}
	for i, n := range c.Nodes {
		for _, a := range n.After {
			from, ok := index[a]
			if !ok {
				t.Fatalf("%s is after an unknown node %s", n.Name, a)
			}
			cfg.Edges = append(cfg.Edges, Edge{From: from, To: i})
		}
	}
	key := func(it Item) string {
		k := groups[it.Group][it.Date].String()
		if len(c.Nodes) > 0 {
			k += "/" + c.Nodes[it.Node].Name
		}
		return k
	}
	minutes := func(it Item) int {
		if m, ok := c.Minutes[key(it)]; ok {
			return m
		}
		if len(c.Nodes) > 0 && c.Nodes[it.Node].Minutes > 0 {
			return c.Nodes[it.Node].Minutes
		}
		return c.DefaultMinutes
	}
	start, end, notRun := simulate(t, cfg, minutes, func(it Item) bool { return slices.Contains(c.Fail, key(it)) })
	gotStart := map[string]int{}
	for it, at := range start {
		gotStart[key(it)] = at
	}
	var gotNot []string
	for _, it := range notRun {
		gotNot = append(gotNot, key(it))
	}
	slices.Sort(gotNot)
	wantNot := append([]string(nil), c.WantNotRun...)
	slices.Sort(wantNot)
	if d := gocmp.Diff(c.WantStart, gotStart); d != "" {
		t.Error("start", d)
	}
	if d := gocmp.Diff(wantNot, gotNot); d != "" {
		t.Error("not run", d)
	}
	if end != c.WantEnd {
		t.Errorf("end %d, want %d", end, c.WantEnd)
	}
}

// simulate drives an Order as a discrete-event simulation with unlimited
// workers. It gives the start of each instance in minutes, the end of the last
// one and those that did not run.
func simulate(t *testing.T, cfg Config, minutes func(Item) int, fails func(Item) bool) (map[Item]int, int, []Item) {
	t.Helper()
	o, err := NewOrder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	type event struct {
		at int
		it Item
	}
	start := map[Item]int{}
	var queue []event
	var notRun []Item
	note := func(bs []Blocked) {
		for _, b := range bs {
			notRun = append(notRun, b.Item)
		}
	}
	note(o.Blocked())
	now := 0
	for {
		for _, it := range o.Ready() {
			if err := o.Start(it); err != nil {
				t.Fatal(err)
			}
			if _, twice := start[it]; twice {
				t.Fatalf("%+v started twice", it)
			}
			start[it] = now
			queue = append(queue, event{now + minutes(it), it})
		}
		if len(queue) == 0 {
			break
		}
		slices.SortStableFunc(queue, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		e := queue[0]
		queue = queue[1:]
		now = e.at
		blocked, err := o.Finish(e.it, !fails(e.it))
		if err != nil {
			t.Fatal(err)
		}
		note(blocked)
	}
	if !o.Done() {
		t.Fatal("nothing can start, yet the order is not done")
	}
	notRun = slices.AppendSeq(notRun, o.Remaining())
	total := 0
	for _, g := range cfg.Groups {
		total += len(g) * cfg.Nodes
	}
	if len(start)+len(notRun) != total {
		t.Fatalf("%d started + %d not run, of %d", len(start), len(notRun), total)
	}
	return start, now, notRun
}
