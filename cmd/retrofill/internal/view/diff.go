package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Diff is the JSON of `diff`: one table, one business date.
type Diff struct {
	Table       string       `json:"table"`
	Environment string       `json:"environment"`
	Date        bizdate.Date `json:"date"`
	Nodes       []NodeDiff   `json:"nodes"`
	Diagnostics diag.List    `json:"diagnostics"`
}

// NodeDiff compares one materialization node. Rows are matched by key.
type NodeDiff struct {
	Node         string      `json:"node"`
	Key          []string    `json:"key"`
	Stored       int64       `json:"stored"`
	Computed     int64       `json:"computed"`
	OnlyStored   int64       `json:"only_stored"`
	OnlyComputed int64       `json:"only_computed"`
	Fields       []FieldDiff `json:"fields"`
}

// FieldDiff counts the rows of both sides whose value of a field differs.
type FieldDiff struct {
	Field            string   `json:"field"`
	Changed          int64    `json:"changed"`
	Nondeterministic string   `json:"nondeterministic,omitempty"` // why values may differ from run to run
	Samples          []Sample `json:"samples"`
}

// Sample is one row that differs; values as the engine's text, null = NULL.
type Sample struct {
	Key      []any `json:"key"`
	Stored   any   `json:"stored"`
	Computed any   `json:"computed"`
}

// PlanDiff is the JSON of plan --diff and backfill --diff.
type PlanDiff struct {
	Backfill    string      `json:"backfill"`
	Environment string      `json:"environment"`
	Tables      []TableDiff `json:"tables"`
	Diagnostics diag.List   `json:"diagnostics"`
}

// TableDiff is one table of a plan's diff.
type TableDiff struct {
	Table string     `json:"table"`
	Dates []DateDiff `json:"dates"`
}

// DateDiff is one business date of it.
type DateDiff struct {
	Date  bizdate.Date `json:"date"`
	Nodes []NodeDiff   `json:"nodes"`
}

// DiffText writes a diff for people.
func DiffText(w io.Writer, d Diff) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · environment %s · %s\n", d.Table, d.Environment, d.Date)
	for _, n := range d.Nodes {
		fmt.Fprintf(&b, "\n  %s  %s stored, %s computed", n.Node, Count(int(n.Stored), "row"), Number(n.Computed))
		if n.OnlyStored > 0 || n.OnlyComputed > 0 {
			fmt.Fprintf(&b, ", %s only stored, %s only computed", Number(n.OnlyStored), Number(n.OnlyComputed))
		}
		b.WriteString("\n")
		var equal []string
		for _, f := range n.Fields {
			if f.Changed == 0 {
				equal = append(equal, f.Field)
				continue
			}
			fmt.Fprintf(&b, "    %-20s  %s\n", f.Field, changesText(f.Changed, f.Nondeterministic))
			for _, s := range f.Samples {
				b.WriteString("      " + sampleText(n.Key, s) + "\n")
			}
		}
		switch {
		case len(n.Key) == 0:
			b.WriteString("    no key: rows are compared as a whole\n")
		case len(equal) > 0:
			b.WriteString(Columns("    equal", 26, strings.Join(equal, ", ")))
		}
	}
	return write(w, b.String())
}

func changesText(n int64, nondeterministic string) string {
	s := Count(int(n), "row") + " differ"
	if n == 1 {
		s += "s"
	}
	if nondeterministic != "" {
		s += " (not deterministic: " + nondeterministic + ")"
	}
	return s
}

func sampleText(key []string, s Sample) string {
	parts := make([]string, len(key))
	for i, k := range key {
		parts[i] = k + "=" + valueText(s.Key[i])
	}
	return fmt.Sprintf("%s: %s → %s", strings.Join(parts, ", "), valueText(s.Stored), valueText(s.Computed))
}

func valueText(v any) string {
	if v == nil {
		return "NULL"
	}
	return Clean(fmt.Sprint(v))
}

// maxDiffDates is the most dates of one field that the text lists.
const maxDiffDates = 31

// PlanDiffText writes a plan's diff for people: of each field the rows that
// would change, in all and by date.
func PlanDiffText(w io.Writer, d PlanDiff) error {
	var b strings.Builder
	fmt.Fprintf(&b, "what %s would change · environment %s · nothing is written\n", d.Backfill, d.Environment)
	for i := range d.Tables {
		tableDiff(&b, &d.Tables[i])
	}
	b.WriteString("\nComputed over what is stored upstream now: what a plan would change there is not in it.\n")
	return write(w, b.String())
}

// fieldTotal gathers a field over the dates.
type fieldTotal struct {
	name    string
	total   int64
	dates   []string // date and count
	example string
}

func tableDiff(b *strings.Builder, t *TableDiff) {
	var totals []*fieldTotal
	index := map[string]*fieldTotal{}
	add := func(name string, n int64, date bizdate.Date, example string) {
		f := index[name]
		if f == nil {
			f = &fieldTotal{name: name}
			index[name], totals = f, append(totals, f)
		}
		if n == 0 {
			return
		}
		f.total += n
		f.dates = append(f.dates, fmt.Sprintf("%s %s", date, Number(n)))
		if f.example == "" {
			f.example = example
		}
	}
	for _, d := range t.Dates {
		for _, n := range d.Nodes {
			for _, f := range n.Fields {
				example := ""
				if len(f.Samples) > 0 {
					example = sampleText(n.Key, f.Samples[0])
				}
				name := f.Field
				if f.Nondeterministic != "" {
					name += " (not deterministic)"
				}
				add(name, f.Changed, d.Date, example)
			}
			if n.OnlyStored > 0 {
				add("rows only stored in "+n.Node, n.OnlyStored, d.Date, "")
			}
			if n.OnlyComputed > 0 {
				add("new rows in "+n.Node, n.OnlyComputed, d.Date, "")
			}
		}
	}
	fmt.Fprintf(b, "\n  %s  %s\n", t.Table, Count(len(t.Dates), "date"))
	var equal []string
	for _, f := range totals {
		if f.total == 0 {
			equal = append(equal, f.name)
			continue
		}
		fmt.Fprintf(b, "    %-20s  %s on %s\n", f.name, Count(int(f.total), "row"), Count(len(f.dates), "date"))
		shown := f.dates
		if len(shown) > maxDiffDates {
			shown = append(shown[:maxDiffDates:maxDiffDates], fmt.Sprintf("and %d more dates (-o json has them)", len(f.dates)-maxDiffDates))
		}
		b.WriteString(Columns("", 26, strings.Join(shown, ", ")))
		if f.example != "" {
			fmt.Fprintf(b, "%26s%s\n", "", "e.g. "+f.example)
		}
	}
	if len(equal) > 0 {
		b.WriteString(Columns("    equal", 26, strings.Join(equal, ", ")))
	}
}
