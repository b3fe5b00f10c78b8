package lineage

import (
	"cmp"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
)

// Declared turns a project's parameter entries into a configuration layer.
func Declared(params []modeling.Param) []param.Declared {
	out := make([]param.Declared, len(params))
	for i, p := range params {
		d := param.Declared{Name: p.Name, Raw: p.Raw, Verbatim: p.Verbatim, Pos: p.Pos}
		if !p.Unassigned && p.FromNode == "" {
			v := p.Value
			d.Value = &v
		}
		if p.FromNode != "" {
			d.Cross = &param.CrossRef{Node: p.FromNode, Output: p.FromParam, Default: p.Default, Lookback: p.LookbackDays}
		}
		out[i] = d
	}
	return out
}

// withDefaults gives cross-node parameters the default of their producer
// where the reader has none, and names producer and output as they are
// declared (semantics §2.6).
func (b *builder) withDefaults(list []param.Declared) []param.Declared {
	for _, d := range list {
		if d.Cross == nil {
			continue
		}
		t := b.deps.Project.Task(d.Cross.Node)
		if t == nil {
			continue
		}
		d.Cross.Node = t.Name
		for _, s := range t.Sets {
			if !strings.EqualFold(s.Name, cmp.Or(d.Cross.Output, d.Name)) {
				continue
			}
			d.Cross.Output = s.Name
			if d.Cross.Default == nil {
				d.Cross.Default = s.Default
			}
		}
	}
	return list
}

// shared is what the nodes without parameters of their own have in common.
type shared struct {
	set   *param.Set
	diags diag.List
}

// nodeParams gives the parameter set of a node: project, node, overrides.
func (b *builder) nodeParams(n *Node) {
	own := []modeling.Param(nil)
	if n.Table != nil {
		own = n.Table.Params
	} else {
		own = n.Task.Params
	}
	if len(own) == 0 && b.common != nil {
		n.Params = b.common.set
		n.Diagnostics = append(n.Diagnostics, b.common.diags...)
		return
	}
	set, diags := param.NewSet(param.Config{
		Dialect: b.dialect, Env: b.deps.Environment,
		Project: b.projectParams, Node: b.withDefaults(Declared(own)), Overrides: b.deps.Overrides,
	})
	n.Params = set
	n.Diagnostics = append(n.Diagnostics, diags...)
	if len(own) == 0 {
		b.common = &shared{set: set, diags: diags}
	}
}

// schedule parses the node's schedule; the loader has checked it, so problems
// here are of a project made by hand.
func (b *builder) schedule(n *Node) {
	s := modeling.Schedule{}
	if n.Table != nil {
		s = n.Table.Schedule
	} else {
		s = n.Task.Schedule
	}
	parsed, diags := ParseSchedule(s)
	n.Schedule = parsed
	for _, d := range diags {
		n.Diagnostics = append(n.Diagnostics, d.At(n.Pos()))
	}
}

// ParseSchedule gives the calculable form of a project's schedule.
func ParseSchedule(s modeling.Schedule) (bizdate.Schedule, diag.List) {
	return plan.ParseSchedule(s, nil)
}

// partitions parses the partition columns of a table.
func partitions(set *param.Set, cols []modeling.PartitionColumn) ([]Partition, diag.List) {
	var out []Partition
	var diags diag.List
	for _, c := range cols {
		e, found := set.ParseValue(param.Source{Text: c.Expr, Pos: c.Pos})
		diags = append(diags, found...)
		if e == nil {
			continue
		}
		p := Partition{Name: c.Name, Type: c.Type, Expr: e}
		p.Form, p.Dated = e.DateForm()
		if p.Type == "" {
			p.Type = partitionType(e, p)
		}
		out = append(out, p)
	}
	return out, diags
}

// partitionType derives the SQL type of a partition column that declares
// none: DATE for yyyy-mm-dd, otherwise VARCHAR.
func partitionType(_ *param.Expr, p Partition) string {
	if p.Dated && strings.EqualFold(p.Form.Layout, "{yyyy}-{MM}-{dd}") {
		return "DATE"
	}
	return "VARCHAR"
}
