package view

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/stale"
)

// Matrix is the JSON of `fields`.
type Matrix struct {
	Environment string         `json:"environment"`
	Tables      []*stale.Table `json:"tables"`
	Diagnostics diag.List      `json:"diagnostics"`
}

// MatrixText writes the matrix for people, fields with equal states together.
func MatrixText(w io.Writer, m Matrix, zone *time.Location) error {
	var b strings.Builder
	for i, t := range m.Tables {
		if i > 0 {
			b.WriteString("\n")
		}
		matrixTable(&b, m.Environment, t, zone)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("view: write matrix: %w", err)
	}
	return nil
}

func matrixTable(b *strings.Builder, environment string, t *stale.Table, zone *time.Location) {
	if t.Dates == 0 {
		fmt.Fprintf(b, "%s · environment %s · nothing is recorded\n", t.Table, environment)
		return
	}
	first, last := t.Rows[0].Runs[0].From, t.Rows[0].Runs[len(t.Rows[0].Runs)-1].To
	fmt.Fprintf(b, "%s · environment %s · %s, %s\n", t.Table, environment, Count(t.Dates, "date"), rangeText(first.String(), last.String()))
	var lines []string // one a different state, in the order of fields
	names := map[string][]string{}
	staleCells, nodes := 0, map[string]int{}
	for _, r := range t.Rows {
		nodes[r.Field]++
	}
	for _, r := range t.Rows {
		var x strings.Builder
		for i := range r.Runs {
			run := &r.Runs[i]
			if run.State.Stale() {
				staleCells += run.Dates
			}
			fmt.Fprintf(&x, "    %-14s %s  (%s)", strings.ReplaceAll(string(run.State), "_", " "),
				rangeText(run.From.String(), run.To.String()), Number(int64(run.Dates)))
			if why := runWhy(run, zone); why != "" {
				x.WriteString("  " + why)
			}
			x.WriteString("\n")
		}
		name := r.Field
		switch {
		case name == "":
			name = "rows of " + r.Node
		case nodes[r.Field] > 1:
			name += " (" + r.Node + ")"
		}
		if _, known := names[x.String()]; !known {
			lines = append(lines, x.String())
		}
		names[x.String()] = append(names[x.String()], name)
	}
	for _, l := range lines {
		b.WriteString("\n" + indentedBy(Wrap(strings.Join(names[l], ", "), 2), "  ") + "\n" + l)
	}
	if staleCells == 0 {
		b.WriteString("\nnothing is stale\n")
		return
	}
	fmt.Fprintf(b, "\n%s stale; `retrofill backfill --stale %s` refreshes them\n", Count(staleCells, "cell"), t.Table)
}

func indentedBy(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }

func rangeText(from, to string) string {
	if from == to {
		return from
	}
	return from + ".." + to
}

// runWhy says what built the values, or what was rebuilt since.
func runWhy(r *stale.Run, zone *time.Location) string {
	of := ""
	if r.RowSet && r.State != stale.NeverBuilt {
		of = "row set: "
	}
	switch r.State {
	case stale.InputRebuilt:
		var parts []string
		for _, in := range r.Inputs {
			if in.Field == "" && slices.ContainsFunc(r.Inputs, func(x stale.Rebuilt) bool { return x.Table == in.Table && x.Field != "" }) {
				continue // a field says more
			}
			part := in.String()
			if in.Backfill != "" {
				part += " by " + in.Backfill
			}
			parts = append(parts, part)
		}
		return of + strings.Join(parts, ", ")
	case stale.OtherLogic, stale.Accepted:
		definition := r.Definition
		if len(definition) > 8 {
			definition = definition[:8]
		}
		return fmt.Sprintf("%sbuilt by %s, %s, definition %s", of, r.Backfill, r.BuiltAt.In(zone).Format("2006-01-02 15:04"), definition)
	case stale.Current:
		if r.Backfill != "" {
			return "built by " + r.Backfill
		}
	}
	return ""
}

// MatrixCSV writes one line a run.
func MatrixCSV(w io.Writer, m Matrix) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"table", "field", "node", "from", "to", "dates", "state", "row_set", "definition", "backfill", "built_at", "inputs"}}
	for _, t := range m.Tables {
		for _, r := range t.Rows {
			for _, x := range r.Runs {
				built := ""
				if !x.BuiltAt.IsZero() {
					built = x.BuiltAt.UTC().Format(time.RFC3339)
				}
				var inputs []string
				for _, in := range x.Inputs {
					inputs = append(inputs, in.String())
				}
				rows = append(rows, []string{t.Table, r.Field, r.Node, x.From.String(), x.To.String(), strconv.Itoa(x.Dates), string(x.State),
					strconv.FormatBool(x.RowSet), x.Definition, x.Backfill, built, strings.Join(inputs, " ")})
			}
		}
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("view: write csv: %w", err)
	}
	return nil
}
