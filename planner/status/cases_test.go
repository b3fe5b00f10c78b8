package status

import (
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

type caseFile struct {
	Topic    string         `yaml:"topic"`
	Format   int            `yaml:"format"`
	Defaults map[string]any `yaml:"defaults"`
	Cases    []statusCase   `yaml:"cases"`
}

type statusCase struct {
	ID         string            `yaml:"id"`
	Op         string            `yaml:"op"`
	Statuses   any               `yaml:"statuses"`
	Paused     any               `yaml:"paused"`
	From       string            `yaml:"from"`
	Action     string            `yaml:"action"`
	Edges      [][2]string       `yaml:"edges"`
	Status     map[string]string `yaml:"status"`
	Node       string            `yaml:"node"`
	Want       string            `yaml:"want"`
	WantPaused any               `yaml:"want_paused"`
	WantStatus map[string]string `yaml:"want_status"`
	WantRun    []string          `yaml:"want_will_run"`
	Error      string            `yaml:"error"`
	ErrorItems []string          `yaml:"error_items"`
	Decided    bool              `yaml:"decided"`
	Why        string            `yaml:"why"`
}

// The case files' names for statuses and operations (cases/README.md).
func caseStatus(t *testing.T, s string) Status {
	t.Helper()
	switch s {
	case "not_run":
		return Pending
	case "success", "dry_run":
		return Succeeded
	}
	v, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func caseOp(t *testing.T, s string) Op {
	t.Helper()
	if s == "resume" {
		return Unpause
	}
	o, err := ParseOp(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// productName translates the case files' status names to the product's.
func productName(s string) string {
	return map[string]string{"not_run": "pending", "success": "succeeded"}[s]
}

func code(r *Refusal) string {
	if r == nil {
		return ""
	}
	return r.Code
}

func TestCases(t *testing.T) {
	t.Parallel()
	runCases(t, "../../fixtures/cases/status.yaml")
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
			switch c.Op {
			case "rollup":
				c.rollup(t)
			case "transition":
				c.transition(t)
			case "effect":
				c.effect(t)
			case "batch":
				c.batch(t)
			default:
				t.Fatalf("unknown op %q", c.Op)
			}
		})
	}
}

func (c statusCase) rollup(t *testing.T) {
	paused := map[int]bool{}
	for _, p := range list(t, c.Paused) {
		paused[int(p.(uint64))] = true
	}
	var n Counts
	for i, s := range list(t, c.Statuses) {
		n.Add(State{caseStatus(t, s.(string)), paused[i]}, 1)
	}
	got, r := Rollup(n)
	if code(r) != c.Error {
		t.Fatalf("refusal %q, want %q", code(r), c.Error)
	}
	want := c.Want
	if p := productName(want); p != "" {
		want = p
	}
	if r == nil && got.String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func (c statusCase) transition(t *testing.T) {
	st := State{Status: caseStatus(t, c.From)}
	if p, ok := c.Paused.(bool); ok {
		st.Paused = p
	}
	got, r := Transition(st, caseOp(t, c.Action))
	if code(r) != c.Error {
		t.Fatalf("refusal %q, want %q", code(r), c.Error)
	}
	if r != nil {
		return
	}
	if want := c.stoppedFor(t, c.Want, got.Status); got.Status != want {
		t.Errorf("got %s, want %s", got.Status, want)
	}
	wantPaused := st.Paused
	if p, ok := c.WantPaused.(bool); ok {
		wantPaused = p
	}
	if got.Paused != wantPaused {
		t.Errorf("paused %v, want %v", got.Paused, wantPaused)
	}
}

// stoppedFor reads a wanted status; the product calls stopped what the cases
// call failed after a stop (cases/README.md).
func (c statusCase) stoppedFor(t *testing.T, want string, got Status) Status {
	w := caseStatus(t, want)
	if c.Action == "stop" && w == Failed && got == Stopped {
		return Stopped
	}
	return w
}

func (c statusCase) effect(t *testing.T) {
	var names []string
	for n := range c.Status {
		names = append(names, n)
	}
	slices.Sort(names)
	at := func(n string) int {
		i := slices.Index(names, n)
		if i < 0 {
			t.Fatalf("no node %q", n)
		}
		return i
	}
	states := make([]State, len(names))
	for i, n := range names {
		states[i].Status = caseStatus(t, c.Status[n])
	}
	for _, p := range list(t, c.Paused) {
		states[at(p.(string))].Paused = true
	}
	var edges [][2]int
	for _, e := range c.Edges {
		edges = append(edges, [2]int{at(e[0]), at(e[1])})
	}
	out, r := Effect(NewGraph(len(names), edges), states, Action{Op: caseOp(t, c.Action), Instance: at(c.Node)})
	if code(r) != c.Error {
		t.Fatalf("refusal %q, want %q", code(r), c.Error)
	}
	if r != nil {
		return
	}
	for n, s := range c.WantStatus {
		got := out.States[at(n)].Status
		want := caseStatus(t, s)
		if n == c.Node {
			want = c.stoppedFor(t, s, got)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", n, got, want)
		}
	}
	for _, p := range list(t, c.WantPaused) {
		if !out.States[at(p.(string))].Paused {
			t.Errorf("%v is not paused", p)
		}
	}
	got := []string{}
	for _, i := range out.WillRun {
		got = append(got, names[i])
	}
	slices.Sort(c.WantRun)
	if d := cmp.Diff(append([]string{}, c.WantRun...), got); d != "" {
		t.Errorf("will run (-want +got):\n%s", d)
	}
}

func (c statusCase) batch(t *testing.T) {
	var items []Item
	for n, s := range c.Statuses.(map[string]any) {
		items = append(items, Item{Name: n, State: State{Status: caseStatus(t, s.(string))}})
	}
	r := Batch(items, caseOp(t, c.Action))
	if code(r) != c.Error {
		t.Fatalf("refusal %q, want %q", code(r), c.Error)
	}
	if r == nil {
		if c.Want != "ok" {
			t.Errorf("want %q, got ok", c.Want)
		}
		return
	}
	if d := cmp.Diff(c.ErrorItems, r.Items); d != "" {
		t.Errorf("items (-want +got):\n%s", d)
	}
}

// list reads an optional list; a map stands for its keys that are true.
func list(t *testing.T, v any) []any {
	t.Helper()
	switch x := v.(type) {
	case nil:
		return nil
	case []any:
		return x
	case string:
		return []any{x}
	case map[string]any:
		var out []any
		for k, on := range x {
			if on == true {
				out = append(out, k)
			}
		}
		return out
	}
	t.Fatalf("a list is wanted, got %T", v)
	return nil
}
