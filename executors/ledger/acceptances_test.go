package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/planner/plan"
)

func TestAcceptances(t *testing.T) {
	t.Parallel()
	l := open(t, file(t), ledger.Options{})
	defs := map[string]plan.Definition{
		"one": {Table: "t", Text: "1", Fields: map[string]string{"a": "x"}, Nodes: map[string][]string{"t_node": {"a"}}},
		"two": {Table: "t", Text: "2"},
	}
	first := plan.Acceptance{Table: "t", Fields: []string{"b", "a"}, Before: day, Definition: "one"}
	whole := plan.Acceptance{Table: "t", Before: day + 7, Definition: "one"}
	if err := l.Accept(t.Context(), "dev", "ann", []plan.Acceptance{first, whole}, defs); err != nil {
		t.Fatal(err)
	}
	later := first
	later.Before = day + 3 // replaces the first
	if err := l.Accept(t.Context(), "dev", "bob", []plan.Acceptance{later}, defs); err != nil {
		t.Fatal(err)
	}
	got, err := l.Acceptances(t.Context(), "dev")
	if err != nil {
		t.Fatal(err)
	}
	var list []plan.Acceptance
	var by []string
	for _, a := range got {
		list, by = append(list, a.Acceptance), append(by, a.By)
	}
	want := []plan.Acceptance{whole, {Table: "t", Fields: []string{"a", "b"}, Before: day + 3, Definition: "one"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("acceptances (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ann", "bob"}, by); diff != "" {
		t.Errorf("by whom (-want +got):\n%s", diff)
	}
	if other, err := l.Acceptances(t.Context(), "prod"); err != nil || len(other) != 0 {
		t.Errorf("another environment has %v, %v", other, err)
	}
	stored, err := l.Definitions(t.Context(), []string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	if _, unused := stored["two"]; unused || stored["one"].Nodes["t_node"] == nil {
		t.Errorf("stored definitions: %+v", stored)
	}
	unknown := plan.Acceptance{Table: "t", Before: day, Definition: "nope"}
	if err := l.Accept(t.Context(), "dev", "ann", []plan.Acceptance{unknown}, nil); err == nil {
		t.Error("an acceptance of an unknown definition was recorded")
	}
}
