// Package groups cuts the dates of a backfill into concurrency groups, refuses
// what cross-cycle dependencies forbid, and orders the instances of a run
// (semantics §6.1 to §6.3, §6.6).
//
// Invariants:
//   - everything is pure: no goroutine, no clock, no I/O; the same calls in
//     the same order give the same answers;
//   - groups partition the dates in run order, their sizes differ by at most
//     one and the larger ones come first;
//   - inside a group a date is finished before the next one starts;
//   - Order holds state for one date of each group only, never for all
//     instances: 10,000 nodes × 400 dates cost 10,000 nodes × groups.
package groups

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// MaxGroups is the largest number of groups of one backfill (semantics §6.1).
const MaxGroups = 12

// Effective gives the number of groups that dates dates really make.
func Effective(dates, groups int) int { return min(dates, groups) }

// Split drops repeated dates, sorts them in the given direction and cuts them
// into min(dates, groups) contiguous groups, the larger first (semantics §6.1,
// §6.2). dates is not changed. Diagnostic: groups_out_of_range.
func Split(dates []bizdate.Date, groups int, direction bizdate.Direction) ([][]bizdate.Date, diag.List) {
	if d := checkRange(groups); d != nil {
		return nil, diag.List{*d}
	}
	sorted := slices.Clone(dates)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	direction.Sort(sorted)
	n := Effective(len(sorted), groups)
	if n == 0 {
		return nil, nil
	}
	size, larger := len(sorted)/n, len(sorted)%n
	out := make([][]bizdate.Date, n)
	for i := range out {
		k := size
		if i < larger {
			k++
		}
		out[i], sorted = sorted[:k:k], sorted[k:]
	}
	return out, nil
}

func checkRange(groups int) *diag.Diagnostic {
	if groups >= 1 && groups <= MaxGroups {
		return nil
	}
	d := diag.Errorf("groups_out_of_range", "%d groups are not possible", groups).
		WithHint("give --groups 1 to %d; fewer dates than groups make one group a date", MaxGroups)
	return &d
}

// PreviousCycle is a self- or cross-cycle dependency: an instance of Node
// reads an earlier cycle of Reads (which may be Node itself).
type PreviousCycle struct {
	Node, Reads string
}

// Request is what Check judges.
type Request struct {
	Dates     int // number of distinct selected dates
	Groups    int
	Direction bizdate.Direction
	Selected  []string // nodes of the backfill
	Previous  []PreviousCycle
}

// Refusal is one reason why a request cannot run, with every node that causes
// it, sorted.
type Refusal struct {
	diag.Diagnostic
	Nodes []string
}

// Check gives every reason for which the groups or the direction of a request
// are refused: a selected node that reads its own or another node's previous
// cycle forbids more than one effective group and, with more than one date,
// descending order (semantics §6.3). Codes: groups_out_of_range,
// desc_with_cross_cycle, groups_with_cross_cycle.
func Check(r Request) []Refusal {
	var out []Refusal
	if d := checkRange(r.Groups); d != nil {
		out = append(out, Refusal{Diagnostic: *d})
	}
	selected := make(map[string]bool, len(r.Selected))
	for _, n := range r.Selected {
		selected[n] = true
	}
	var nodes, reasons []string
	for _, p := range r.Previous {
		if !selected[p.Node] {
			continue
		}
		nodes = append(nodes, p.Node)
		if p.Reads == p.Node {
			reasons = append(reasons, fmt.Sprintf("%s reads its own previous cycle", p.Node))
		} else {
			reasons = append(reasons, fmt.Sprintf("%s reads the previous cycle of %s", p.Node, p.Reads))
		}
	}
	if len(nodes) == 0 {
		return out
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	detail := strings.Join(reasons, "\n")
	if r.Direction == bizdate.Desc && r.Dates > 1 {
		out = append(out, Refusal{Nodes: nodes, Diagnostic: diag.Errorf("desc_with_cross_cycle",
			"descending order is not possible: each date needs the one before it").
			WithDetail("%s", detail).WithHint("run with --order asc")})
	}
	if n := Effective(r.Dates, r.Groups); n > 1 {
		out = append(out, Refusal{Nodes: nodes, Diagnostic: diag.Errorf("groups_with_cross_cycle",
			"%d groups are not possible: each date needs the one before it", n).
			WithDetail("%s", detail).WithHint("run with --groups 1, or leave these nodes out of the selection")})
	}
	return out
}
