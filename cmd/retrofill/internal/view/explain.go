package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/retrofill/retrofill/planner"
)

// Explain writes the answer to why something is in a plan, or why it is not.
func Explain(w io.Writer, e planner.Explanation) error {
	var b strings.Builder
	name := e.Node
	if e.Field != "" {
		name += "." + e.Field
	}
	switch {
	case e.Slot != "":
		name += "@" + e.Slot
	case e.Date != nil:
		name += "@" + e.Date.String()
	}
	verdict := "not in the plan"
	if e.In {
		verdict = "in the plan"
	}
	fmt.Fprintf(&b, "%s is %s\n", name, verdict)
	b.WriteString(Columns("  why", 16, e.Because))
	for _, f := range e.Facts {
		b.WriteString(Columns("  "+f.Name, 16, f.Text))
	}
	if e.Hint != "" {
		b.WriteString(Columns("  hint", 16, e.Hint))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("view: write explanation: %w", err)
	}
	return nil
}
