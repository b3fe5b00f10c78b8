package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// What a text names one by one; the rest is counted.
const (
	maxDetailed    = 40 // nodes besides named ones
	maxRecommended = 20
	maxRuns        = 8 // of dates
	maxParts       = 12
	maxAlike       = 5  // diagnostics of one kind, where there are
	manyAlike      = 10 // more than this
)

// detailed chooses the nodes that are shown with their details: the current
// nodes that the command names, then level by level, nearest first, while they
// are few. The others' levels are given below and above, farthest up first.
func detailed(p *plan.Plan, full bool) (show func(*plan.Node) bool, above, below []int) {
	if full || len(p.Nodes) <= maxDetailed {
		return func(*plan.Node) bool { return true }, nil, nil
	}
	named := func(n *plan.Node) bool { return n.Level == 0 && slices.Contains(p.Request.Nodes, n.Name) }
	count, far := map[int]int{}, 0
	for i := range p.Nodes {
		if n := &p.Nodes[i]; !named(n) {
			count[n.Level]++
			far = max(far, n.Level, -n.Level)
		}
	}
	left := maxDetailed
	shown := map[int]bool{}
	full0 := count[0] <= left
	if full0 {
		shown[0] = true
		left -= count[0]
	}
	for _, sign := range []int{-1, 1} {
		open := full0
		for d := 1; d <= far; d++ {
			level := sign * d
			if open = open && count[level] <= left; open {
				shown[level] = true
				left -= count[level]
			}
		}
	}
	for d := far; d >= 1; d-- {
		if count[-d] > 0 && !shown[-d] {
			above = append(above, -d)
		}
	}
	for d := 0; d <= far; d++ {
		if count[d] > 0 && !shown[d] {
			below = append(below, d)
		}
	}
	return func(n *plan.Node) bool { return shown[n.Level] || named(n) }, above, below
}

// planLevel writes the nodes of a level that are not shown one by one, counted
// by what happens to them.
func planLevel(b *strings.Builder, p *plan.Plan, level int, shown func(*plan.Node) bool) {
	type alike struct {
		what  string
		names []string
	}
	var groups []*alike
	nodes, real, dry, cross, paused := 0, 0, 0, 0, 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Level != level || shown(n) {
			continue
		}
		nodes++
		r, d := instancesOf(n)
		real, dry = real+r, dry+d
		if slices.ContainsFunc(n.Needs, func(e plan.Edge) bool { return e.Map != nil }) {
			cross++
		}
		if n.Paused {
			paused++
		}
		what := whatHappens(n)
		k := slices.IndexFunc(groups, func(g *alike) bool { return g.what == what })
		if k < 0 {
			k = len(groups)
			groups = append(groups, &alike{what: what})
		}
		groups[k].names = append(groups[k].names, n.Name)
	}
	slices.SortStableFunc(groups, func(x, y *alike) int { return len(y.names) - len(x.names) })
	facts := []string{Count(nodes, "node"), Count(real, "instance")}
	if dry > 0 {
		facts = append(facts, Number(int64(dry))+" dry-run")
	}
	if paused > 0 {
		facts = append(facts, Number(int64(paused))+" paused")
	}
	head := "current nodes"
	if level != 0 {
		head = fmt.Sprintf("level %+d", level)
	}
	fmt.Fprintf(b, "  %-40s %s\n", head, strings.Join(facts, ", "))
	for _, g := range groups {
		fmt.Fprintf(b, "    %-28s  %5s  %s\n", g.what, Number(int64(len(g.names))), namesIn(g.names, DefaultWidth-42))
	}
	if cross > 0 {
		fmt.Fprintf(b, "    %-28s  %5s\n", "of them read other dates", Number(int64(cross)))
	}
}

func whatHappens(n *plan.Node) string {
	real, _ := instancesOf(n)
	switch {
	case real == 0:
		return "dry-run"
	case n.Writes == nil:
		return strings.ReplaceAll(string(n.Strategy), "_", " ")
	}
	what := "some fields"
	if n.Whole {
		what = "all fields"
	}
	return actionText(n.Strategy) + ", " + what
}

func instancesOf(n *plan.Node) (real, dry int) {
	for _, s := range n.Steps {
		if s.Strategy == plan.DryRun {
			dry += s.Instances
		} else {
			real += s.Instances
		}
	}
	return real, dry
}

// namesIn lists as many names as fit a width, at least one, and counts the rest.
func namesIn(names []string, width int) string {
	out := ""
	for i, name := range names {
		next := name
		if i > 0 {
			next = out + ", " + name
		}
		rest := ""
		if left := len(names) - i - 1; left > 0 {
			rest = fmt.Sprintf(", … %s more", Number(int64(left)))
		}
		if i > 0 && Width(next+rest) > width {
			return fmt.Sprintf("%s, … %s more", out, Number(int64(len(names)-i)))
		}
		out = next
	}
	return out
}

// shortRanges is Ranges with the first few runs of many.
func shortRanges(dates []bizdate.Date, full bool) string {
	runs := plan.Ranges(dates)
	if full || len(runs) <= maxRuns {
		return Ranges(dates)
	}
	last := runs[maxRuns-1].To
	k := 0
	for k < len(dates) && dates[k] <= last {
		k++
	}
	return fmt.Sprintf("%s, … %s more up to %s", Ranges(dates[:k]), Count(len(runs)-maxRuns, "range"), runs[len(runs)-1].To)
}

// Alike leaves out all but the first few warnings of a kind that has many, and
// says how many there are. Errors all stay.
func Alike(list diag.List, full bool) diag.List {
	count, seen := map[string]int{}, map[string]int{}
	for _, d := range list {
		count[d.Code]++
	}
	var out diag.List
	for _, d := range list {
		many := !full && d.Severity == diag.Warning && count[d.Code] > manyAlike
		if seen[d.Code]++; !many || seen[d.Code] <= maxAlike {
			out = append(out, d)
			continue
		}
		if seen[d.Code] == count[d.Code] {
			out = append(out, diag.Warnf(d.Code, "… and %s like this", Count(count[d.Code]-maxAlike, "more warning")).
				WithHint("--full or -o json shows all"))
		}
	}
	return out
}
