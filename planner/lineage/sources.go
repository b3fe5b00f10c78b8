package lineage

import (
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
)

// SourceLayout is how a source with a declared partition is cut into dates.
type SourceLayout struct {
	Partition []Partition
	Schedule  bizdate.Schedule
}

// Layout gives the layout of a source; nil where it declares no partition, or
// one that cannot be read.
func (d *Deriver) Layout(s *modeling.Source) *SourceLayout {
	if l, known := d.layouts[s]; known {
		return l
	}
	l := d.layout(s)
	d.layouts[s] = l
	return l
}

func (d *Deriver) layout(s *modeling.Source) *SourceLayout {
	if len(s.Partition) == 0 {
		return nil
	}
	sched, diags := ParseSchedule(s.Schedule)
	if diags.HasErrors() {
		return nil
	}
	if d.common == nil {
		// The analysis has told what is wrong with dialect and parameters: what
		// is sound is enough here.
		dialect, _ := param.ParseDialect(d.model.Project.Dialect)
		d.common, _ = param.NewSet(param.Config{Dialect: dialect, Project: Declared(d.model.Project.Params)})
	}
	parts, diags := partitions(d.common, s.Partition)
	if diags.HasErrors() {
		return nil
	}
	return &SourceLayout{Partition: parts, Schedule: sched}
}

// Dated gives the partition column whose value is a function of the business
// date alone, the finest if there are several; nil without one.
func (l *SourceLayout) Dated() *Partition {
	var best *Partition
	for i := range l.Partition {
		p := &l.Partition[i]
		if p.Dated && (best == nil || best.Form.Grain != param.GrainDay && p.Form.Grain == param.GrainDay) {
			best = p
		}
	}
	return best
}

// SourceReads derives which business dates of a source's partitions a node
// reads, from the partitions that its SQL filters by parameters (semantics
// §3.7); false where that cannot be told of any reference. The runs are those
// of all references, and of all values of an IN list: they may overlap, and
// nothing between them is read.
func (d *Deriver) SourceReads(n *Node, in Input) ([]plan.MapRun, bool) {
	if in.Source == nil || n.Analysis == nil || len(in.References) == 0 {
		return nil, false
	}
	l := d.Layout(in.Source)
	if l == nil {
		return nil, false
	}
	var all []plan.MapRun
	told := false
	for _, r := range in.References {
		bounds, sig, ok := d.bounds(n, n.Analysis.References[r].Predicates, l.Partition)
		if !ok {
			continue
		}
		for i, one := range alternatives(bounds) {
			if runs := d.solved(n, one, fmt.Sprintf("%s\x02%d", sig, i), l.Schedule); runs != nil {
				told = true
				all = append(all, runs...)
			}
		}
	}
	return all, told
}

// alternatives gives the bounds once for each value of their first IN list, so
// that what lies between two values does not count as read.
func alternatives(bounds []bound) [][]bound {
	i := slices.IndexFunc(bounds, func(b bound) bool { return b.op == "in" && b.part.Dated && len(b.values) > 1 })
	if i < 0 {
		return [][]bound{bounds}
	}
	out := make([][]bound, len(bounds[i].values))
	for k, v := range bounds[i].values {
		out[k] = slices.Clone(bounds)
		out[k][i].op, out[k][i].values = "=", []*param.Expr{v}
	}
	return out
}
