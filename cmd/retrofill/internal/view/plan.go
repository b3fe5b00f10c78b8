package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

// PlanOptions say how much of a plan is shown.
type PlanOptions struct {
	SQL bool // with every statement
	// Full shows every node, date and warning one by one, however many.
	Full bool
	// Local is the user's time zone, nil = the project's.
	Local *time.Location
}

// Plan writes a plan for people: what will be refreshed and why, what is left
// out, what it costs. It reads the plan only.
func Plan(w io.Writer, p *plan.Plan, o PlanOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "backfill %s · environment %s · %s · %s, %s, %s\n",
		p.Backfill, p.Environment, engineText(p.Engine), Count(len(p.Dates), "date"), Count(len(p.Groups), "group"), orderText(p.Order))
	fmt.Fprintf(&b, "  %s\n\n", shortRanges(sortedDates(p.Dates), o.Full))
	b.WriteString(runText(p, o.Local))
	show, above, below := detailed(p, o.Full)
	for _, level := range above {
		planLevel(&b, p, level, show)
	}
	for i := range p.Nodes {
		if show(&p.Nodes[i]) {
			planNode(&b, p, &p.Nodes[i], o.Full)
		}
	}
	for _, level := range below {
		planLevel(&b, p, level, show)
	}
	if len(above)+len(below) > 0 {
		b.WriteString("  (`plan --full` shows every node, `plan --explain NODE` why one is here or not)\n")
	}
	b.WriteString(recommendedText(p, o.Full))
	b.WriteString(leftOutText(p, o.Full))
	fmt.Fprintf(&b, "\n  %s\n", estimateText(p))
	if o.SQL {
		b.WriteString("\n")
		planSQL(&b, p)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("view: write plan: %w", err)
	}
	return nil
}

func planNode(b *strings.Builder, p *plan.Plan, n *plan.Node, full bool) {
	written, total := 0, n.FieldCount
	for _, f := range n.Fields {
		if f.Written && !slices.Contains(n.Key, f.Name) {
			written++
		}
	}
	var facts []string
	if n.Writes != nil {
		if n.Whole {
			facts = append(facts, fmt.Sprintf("all %s", Count(total, "field")))
		} else {
			facts = append(facts, fmt.Sprintf("%d of %s", written, Count(total, "field")))
		}
		facts = append(facts, Count(len(n.Writes), "node"))
	}
	real, dry := instancesOf(n)
	facts = append(facts, Count(real, "instance"))
	if dry > 0 {
		facts = append(facts, fmt.Sprintf("%d dry-run", dry))
	}
	fmt.Fprintf(b, "  %-40s %s\n", n.Name, strings.Join(facts, ", "))
	if n.Why != "" {
		fmt.Fprintf(b, "    why                   %s\n", n.Why)
	}
	wide := 20
	for _, w := range n.Writes {
		wide = max(wide, len([]rune(w.Node)))
	}
	for _, w := range n.Writes {
		because := cmp.Or(w.Because, n.Because)
		if because != "" {
			because = " (" + because + ")"
		}
		fmt.Fprintf(b, "    %-*s  %s%s\n", wide, w.Node, actionText(w.Action), because)
		for _, group := range groupFields(n, w) {
			names := strings.Join(group.names, ", ")
			if len([]rune(names)) > wide-2 {
				fmt.Fprintf(b, "      %s\n      %*s  %s\n", names, wide-2, "", group.because)
				continue
			}
			fmt.Fprintf(b, "      %-*s  %s\n", wide-2, names, group.because)
		}
	}
	if n.Writes == nil && n.Because != "" {
		fmt.Fprintf(b, "    %-20s  %s\n", n.Strategy, n.Because)
	}
	for _, s := range n.Steps {
		if s.Strategy == plan.DryRun {
			fmt.Fprintf(b, "    dry-run               %s: %s\n", Count(s.Instances, "instance"), s.Because)
		}
	}
	planParts(b, n, full)
	for _, e := range n.Needs {
		if e.Kind == "self" || e.Kind == "cross_cycle" || e.Kind == "contracted" {
			fmt.Fprintf(b, "    needs                 %s, %s (%s)\n", e.Node, edgeText(p, e), e.Because)
		}
	}
}

// planParts tells what is written on which dates, where a node's steps differ.
func planParts(b *strings.Builder, n *plan.Node, full bool) {
	var parts []plan.Step
	for _, s := range n.Steps {
		if s.Writes != nil {
			parts = append(parts, s)
		}
	}
	if len(parts) < 2 {
		return
	}
	for i, s := range parts {
		if i == maxParts && !full {
			fmt.Fprintf(b, "    on other dates        %s more\n", Count(len(parts)-i, "part"))
			break
		}
		var what []string
		for _, w := range s.Writes {
			what = append(what, fmt.Sprintf("%s of %s (%s)", strings.Join(w.Fields, ", "), w.Node, actionText(w.Action)))
		}
		var dates []bizdate.Date
		for _, r := range s.Dates {
			for d := r.From; d <= r.To; d++ {
				dates = append(dates, d)
			}
		}
		b.WriteString(Columns("    on dates", 26, shortRanges(sortedDates(dates), full)+": "+strings.Join(what, "; ")))
	}
}

type fieldGroup struct {
	names   []string
	because string
}

// groupFields gathers the fields of a write that share their reason.
func groupFields(n *plan.Node, w plan.Write) []fieldGroup {
	var out []fieldGroup
	for _, f := range n.Fields {
		if !slices.Contains(f.Nodes, w.Node) {
			continue
		}
		why := f.Because
		if why == "" {
			why = strings.Join(f.Reasons, ", ")
		}
		i := slices.IndexFunc(out, func(g fieldGroup) bool { return g.because == why })
		if i < 0 {
			out = append(out, fieldGroup{because: why})
			i = len(out) - 1
		}
		out[i].names = append(out[i].names, f.Name)
	}
	return out
}

func edgeText(p *plan.Plan, e plan.Edge) string {
	if e.Map == nil || *e.Map >= len(p.SlotMaps) || len(p.SlotMaps[*e.Map].Runs) == 0 {
		return "same date"
	}
	lo, hi := 0, 0
	for i, r := range p.SlotMaps[*e.Map].Runs {
		if i == 0 {
			lo, hi = r.Lo, r.Hi
		}
		lo, hi = min(lo, r.Lo), max(hi, r.Hi)
	}
	if lo == hi {
		return fmt.Sprintf("date %+d", lo)
	}
	return fmt.Sprintf("dates %+d to %+d", lo, hi)
}

func recommendedText(p *plan.Plan, full bool) string {
	var b strings.Builder
	for i, r := range p.Recommended {
		if i == maxRecommended && !full {
			fmt.Fprintf(&b, "  recommended            … and %d more\n", len(p.Recommended)-i)
			break
		}
		state := "not taken"
		if r.Taken {
			state = "taken"
		}
		fmt.Fprintf(&b, "  recommended            %s.%s  %s (%s)", r.Table, r.Field, strings.ReplaceAll(r.Reason, "_", " "), state)
		if r.Detail != "" {
			b.WriteString(": " + r.Detail)
		}
		b.WriteString("\n")
	}
	if len(p.Recommended) == 0 {
		b.WriteString("  recommended            none\n")
	}
	return b.String()
}

// maxLeftOut is the most nodes that are named; the rest is counted.
const maxLeftOut = 10

func leftOutText(p *plan.Plan, full bool) string {
	var b strings.Builder
	var unlisted []string
	named := 0
	for _, l := range p.LeftOut {
		if l.Reason == "not_listed" && !full {
			unlisted = append(unlisted, l.Node)
			continue
		}
		if named++; named > maxLeftOut && !full {
			continue
		}
		fmt.Fprintf(&b, "  left out               %s  %s", l.Node, strings.ReplaceAll(l.Reason, "_", " "))
		if l.Detail != "" {
			b.WriteString(": " + l.Detail)
		}
		b.WriteString("\n")
	}
	if named > maxLeftOut && !full {
		fmt.Fprintf(&b, "  left out               … and %d more\n", named-maxLeftOut)
	}
	if len(unlisted) > 0 {
		fmt.Fprintf(&b, "  left out               %s not in the list: %s\n", Count(len(unlisted), "node"), namesIn(unlisted, DefaultWidth-48))
	}
	return b.String()
}

func estimateText(p *plan.Plan) string {
	e := p.Estimate
	parts := []string{Count(e.Real, "instance")}
	if e.DryRun > 0 {
		parts = append(parts, Count(e.DryRun, "dry-run success")+"es")
		if e.DryRun == 1 {
			parts[1] = "1 dry-run success"
		}
	}
	parts = append(parts, Count(e.Statements, "statement"))
	if e.Rows >= 0 {
		parts = append(parts, Number(e.Rows)+" rows estimated from the ledger")
	}
	return strings.Join(parts, ", ")
}

func planSQL(b *strings.Builder, p *plan.Plan) {
	for _, s := range p.Prepare {
		fmt.Fprintf(b, "-- prepare\n%s;\n", s)
	}
	for _, s := range p.Publish {
		fmt.Fprintf(b, "-- publish\n%s;\n", s)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, st := range n.Steps {
			if len(st.Statements) == 0 && len(st.Command) == 0 {
				continue
			}
			fmt.Fprintf(b, "\n-- %s, %s of %s\n", st.ID, st.Strategy, n.Name)
			for _, name := range sortedKeys(n.Params) {
				fmt.Fprintf(b, "--   ${%s} = %s\n", name, strings.ReplaceAll(paramText(n.Params[name]), "\n", " "))
			}
			if len(st.Command) > 0 {
				fmt.Fprintf(b, "%q\n", st.Command)
			}
			for _, s := range st.Statements {
				fmt.Fprintf(b, "-- %s\n%s;\n", s.Role, s.SQL)
			}
			for _, s := range st.Sets {
				if s.Query != "" {
					fmt.Fprintf(b, "-- sets %s\n%s;\n", s.Param, s.Query)
				}
			}
			for _, r := range st.Verify {
				fmt.Fprintf(b, "-- verify %s %s", r.Fact, strings.ReplaceAll(r.Kind, "_", " "))
				if r.Other != "" {
					fmt.Fprintf(b, " %s", r.Other)
				}
				fmt.Fprintf(b, ", else %s\n", r.Code)
			}
		}
	}
}

func actionText(s plan.Strategy) string {
	switch s {
	case plan.Column:
		return "column refresh"
	case plan.Rewrite:
		return "rewrite"
	}
	return string(s)
}

func engineText(e plan.EngineRef) string {
	name := map[string]string{"duckdb": "DuckDB", "postgres": "PostgreSQL", "trino": "Trino"}[e.Type]
	if name == "" {
		name = e.Type
	}
	if e.Path != "" {
		return name + " " + e.Path
	}
	return name + " " + e.Name
}

func orderText(o string) string {
	if o == "desc" {
		return "descending"
	}
	return "ascending"
}

func sortedDates(dates []bizdate.Date) []bizdate.Date {
	out := slices.Clone(dates)
	slices.Sort(out)
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Count writes a number with its noun: 1 date, 365 dates.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return Number(int64(n)) + " " + noun
	}
	return Number(int64(n)) + " " + noun + "s"
}

// Number writes an integer with thousands separators.
func Number(n int64) string {
	s := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
