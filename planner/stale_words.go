package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/stale"
)

// say puts into words why each field of a node is stale.
func (b *build) say(p *picked, t *stale.Table) {
	p.reasons = map[string]string{}
	for _, r := range t.Rows {
		var words []string
		inputs := [2]stale.Run{{State: stale.InputRebuilt}, {State: stale.InputRebuilt, RowSet: true}}
		for i := range r.Runs {
			run := &r.Runs[i]
			if !run.State.Stale() {
				continue
			}
			if run.State == stale.InputRebuilt { // told together
				of := &inputs[0]
				if run.RowSet {
					of = &inputs[1]
				}
				for _, in := range run.Inputs {
					if !slices.ContainsFunc(of.Inputs, func(x stale.Rebuilt) bool { return x.String() == in.String() }) {
						of.Inputs = append(of.Inputs, in)
					}
				}
				continue
			}
			if w := RunText(run); !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
		for i := range inputs {
			if len(inputs[i].Inputs) > 0 {
				words = append(words, RunText(&inputs[i]))
			}
		}
		if len(words) > maxReasons {
			words = append(words[:maxReasons], fmt.Sprintf("and %d more reasons", len(words)-maxReasons))
		}
		if text := strings.Join(words, "; "); text != "" && p.reasons[r.Field] == "" {
			p.reasons[r.Field] = text
		}
	}
}

// maxReasons is the most reasons of one field that a plan names.
const maxReasons = 3

// RunText puts the reason of a run of the matrix in words.
func RunText(r *stale.Run) string {
	of := ""
	if r.RowSet {
		of = "row set: "
	}
	switch r.State {
	case stale.NeverBuilt:
		return "never built"
	case stale.OtherLogic, stale.Accepted:
		words := of + "built by other logic"
		if r.Backfill != "" {
			words += " (" + r.Backfill + ")"
		}
		if r.State == stale.Accepted {
			return words + ", accepted"
		}
		return words
	case stale.InputRebuilt:
		names := make([]string, 0, len(r.Inputs))
		for _, in := range r.Inputs {
			if in.Field == "" && slices.ContainsFunc(r.Inputs, func(x stale.Rebuilt) bool { return x.Table == in.Table && x.Field != "" }) {
				continue // a field says more
			}
			s := in.String()
			if in.Backfill != "" {
				s += " by " + in.Backfill
			}
			names = append(names, s)
		}
		const most = 3
		if n := len(names); n > most {
			names = append(names[:most], fmt.Sprintf("%d more", n-most))
		}
		return of + "rebuilt since: " + strings.Join(names, ", ")
	}
	return string(r.State)
}

// passStaleReasons replaces the reasons of a selection by those of the matrix.
func passStaleReasons(_ context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	for _, p := range b.picked {
		for i := range p.out.Fields {
			f := &p.out.Fields[i]
			if why := p.reasons[f.Name]; why != "" && f.Written {
				f.Because = why
			}
		}
		if len(p.parts) == 1 {
			p.out.Because = p.parts[0].because
		} else {
			p.out.Because = fmt.Sprintf("%d different sets of fields and dates", len(p.parts))
		}
		for i := range p.out.Writes {
			w := &p.out.Writes[i]
			w.RowsKept = !p.whole
			if len(p.parts) == 1 && p.parts[0].whys[w.Node] != p.out.Because {
				w.Because = p.parts[0].whys[w.Node]
			}
		}
	}
	return nil
}

// namesText lists the names of nodes, the first few.
func namesText(nodes []*lineage.Node) string {
	const most = 5
	var names []string
	for i, n := range nodes {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(nodes)-most))
			break
		}
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
