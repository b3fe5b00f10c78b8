package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
)

// runText says when a plan runs and what bounds it; nothing where nothing was
// asked for. Lines end with a line break.
func runText(p *plan.Plan, local *time.Location) string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	if at, err := p.RunsAt(); err == nil && !at.IsZero() {
		line("run at", "%s", Moment(at, p.Zone, local))
	}
	if p.WaitSchedule {
		line("schedule", "no instance begins before its slot's own time")
	}
	if g := p.ResourceGroup; g != nil {
		line("resources", "group %s: %s%s", g.Name, Count(g.Connections, "connection"), settingsText(g.Settings))
	}
	if p.OnFailure != "" && p.OnFailure != "continue" {
		line("on failure", "%s", map[string]string{"stop": "nothing new begins", "fail-fast": "what runs is cancelled, nothing new begins"}[p.OnFailure])
	}
	if p.Retries > 0 {
		line("retries", "%d after transient errors, after about %s", p.Retries, backoffText(p.Retries))
	}
	if x := p.Budget; x != nil {
		var parts []string
		if x.MaxSeconds > 0 {
			parts = append(parts, "after "+Duration(time.Duration(x.MaxSeconds)*time.Second))
		}
		if x.MaxRows > 0 {
			parts = append(parts, "after "+Number(x.MaxRows)+" rows")
		}
		if x.NotBetween != "" {
			parts = append(parts, "between "+strings.Replace(x.NotBetween, "-", " and ", 1))
		}
		line("pauses", "at a step's end %s", strings.Join(parts, ", or "))
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Paused {
			line("paused", "%s: its instances stay pending, and everything below waits", n.Name)
		}
		if n.SkipIf != "" {
			line("skips", "%s where %s", n.Name, n.SkipIf)
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// settingsText lists settings by name, after a comma; "" for none.
func settingsText(settings map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, ", %s = %s", k, settings[k])
	}
	return b.String()
}

// paramText writes a frozen parameter: its value expression, or who gives the
// value while the plan runs.
func paramText(f plan.Parameter) string {
	switch {
	case f.Late == param.LateCross && f.Default != nil:
		return fmt.Sprintf("(set by %s as %s, else %q)", f.Node, f.Output, *f.Default)
	case f.Late == param.LateCross:
		return fmt.Sprintf("(set by %s as %s)", f.Node, f.Output)
	case f.Late != "":
		return fmt.Sprintf("(the %s's id)", f.Late)
	}
	return f.Value
}

// backoffText gives the pauses before the retries: doubled each time, at most
// a minute.
func backoffText(n int) string {
	var parts []string
	for i := range min(n, 4) {
		parts = append(parts, fmt.Sprintf("%d s", 1<<i))
	}
	if n > 4 {
		parts = append(parts, "… at most 60 s")
	}
	return strings.Join(parts, ", ")
}

// Moment writes an instant in the project's zone, and in the user's as well if
// its clock shows something else.
func Moment(t time.Time, zone string, local *time.Location) string {
	z, err := bizdate.LoadZone(zone)
	if err != nil {
		z = time.UTC
	}
	const form = "2006-01-02 15:04 MST"
	text := t.In(z).Format(form)
	if local == nil || t.In(local).Format(form) == text {
		return text
	}
	return text + " (" + t.In(local).Format(form) + " here)"
}
