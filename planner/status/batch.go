package status

import "slices"

// Item is one instance of a batch operation, by the name that messages use.
type Item struct {
	Name  string
	State State
}

// Batch tells whether op may be applied to all items together: every one must
// qualify, else all are refused with `not_all_allowed` naming those that do
// not (semantics §6.8). A batch of nothing is refused with `empty`.
func Batch(items []Item, op Op) *Refusal {
	if len(items) == 0 {
		return &Refusal{Code: CodeEmpty, Op: op}
	}
	var bad []string
	for _, it := range items {
		if _, r := Transition(it.State, op); r != nil {
			bad = append(bad, it.Name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return &Refusal{Code: CodeNotAll, Op: op, Items: bad}
}
