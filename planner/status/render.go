package status

import (
	"fmt"
	"strings"
)

// Markdown renders the whole transition table: one row per operation, one
// column per status; a cell is the next status, or the refusal's code in
// italics. The documentation is made from it.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| operation |")
	for _, s := range All() {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", numStatuses) + "\n")
	t := table()
	for _, o := range Ops() {
		name := o.String()
		if o.Event() {
			name += " (runner)"
		}
		fmt.Fprintf(&b, "| %s |", name)
		for _, s := range All() {
			if c := t[o][s]; c.refuse != "" {
				fmt.Fprintf(&b, " *%s* |", c.refuse)
			} else if o == Pause || o == Unpause {
				fmt.Fprintf(&b, " %s, flag |", c.next)
			} else {
				fmt.Fprintf(&b, " %s |", c.next)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Mermaid renders the transitions as a Mermaid state diagram. The pause flag
// changes no status and is left out; operations with one arrow share it.
func Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> pending\n")
	t := table()
	for _, from := range All() {
		for _, to := range All() {
			var ops []string
			for _, o := range Ops() {
				c := t[o][from]
				if o != Pause && o != Unpause && c.refuse == "" && c.next == to && from != to {
					ops = append(ops, o.String())
				}
			}
			if len(ops) > 0 {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, strings.Join(ops, ", "))
			}
		}
	}
	return b.String()
}
