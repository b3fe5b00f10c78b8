package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// backfillPlan is a stored backfill with its frozen plan.
type backfillPlan struct {
	Backfill ledger.Backfill
	Plan     plan.Plan
	Expander *plan.Expander
}

// openBackfill reads a backfill and its plan from the ledger; l may be nil.
func openBackfill(ctx context.Context, l *ledger.Ledger, name string) (*backfillPlan, error) {
	if l == nil {
		return nil, noBackfill(ctx, nil, name)
	}
	b, err := l.Backfill(ctx, name)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, noBackfill(ctx, l, name)
	}
	if err != nil {
		return nil, err
	}
	out := &backfillPlan{Backfill: b}
	if out.Plan, err = l.Plan(ctx, name); err != nil {
		return nil, err
	}
	out.Expander, err = plan.NewExpander(&out.Plan)
	return out, err
}

// find gives the instance that a person names: node@slot, node@date (the only
// slot of that date), or the slot alone where the backfill has one node.
// Diagnostics: unknown_instance, ambiguous_instance.
func (b *backfillPlan) find(text string) (plan.Instance, error) {
	name, slot := "", text
	if i := strings.LastIndex(text, "@"); i >= 0 {
		name, slot = text[:i], text[i+1:]
	}
	var names []string
	node := -1
	for i := range b.Plan.Nodes {
		names = append(names, b.Plan.Nodes[i].Name)
		if strings.EqualFold(b.Plan.Nodes[i].Name, name) {
			node = i
		}
	}
	switch {
	case name == "" && len(names) == 1:
		node, name = 0, names[0]
	case name == "":
		return plan.Instance{}, refuse(diag.List{diag.Errorf("unknown_instance", "%q does not name the node", text).
			WithHint("write it as NODE@DATE, such as %s", b.example(0))})
	case node < 0:
		return plan.Instance{}, refuse(diag.List{diag.Errorf("unknown_instance", "the backfill %s has no node %q", b.Plan.Backfill, name).
			WithHint("%s", diag.DidYouMean(name, names, "its nodes are "+strings.Join(firstFew(names), ", ")))})
	}
	var near []string
	for _, d := range b.Plan.Dates {
		for _, s := range b.Expander.Slots(node, d) {
			if s.ID() == slot {
				return plan.Instance{Node: node, Step: b.Expander.Step(node, d), Slot: s}, nil
			}
			if s.Date.String() == slot {
				near = append(near, plan.InstanceID(name, s.ID()))
			}
		}
	}
	if len(near) > 1 {
		return plan.Instance{}, refuse(diag.List{diag.Errorf("ambiguous_instance", "%s has %d slots on %s", name, len(near), slot).
			WithHint("name one of them, such as %s", near[0])})
	}
	if len(near) == 1 {
		return b.find(near[0])
	}
	return plan.Instance{}, refuse(diag.List{diag.Errorf("unknown_instance", "the backfill %s has no instance %s@%s", b.Plan.Backfill, name, slot).
		WithHint("write it as NODE@DATE, such as %s", b.example(node))})
}

// example gives the first instance of a node, for hints.
func (b *backfillPlan) example(node int) string {
	for _, d := range b.Plan.Dates {
		if s := b.Expander.Slots(node, d); len(s) > 0 {
			return plan.InstanceID(b.Plan.Nodes[node].Name, s[0].ID())
		}
	}
	return plan.InstanceID(b.Plan.Nodes[node].Name, bizdate.Of(2024, 1, 15).String())
}

// maxNamed is the most names that a hint lists.
const maxNamed = 8

func firstFew(names []string) []string {
	if len(names) <= maxNamed {
		return names
	}
	return append(names[:maxNamed:maxNamed], "…")
}
