package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// byColumn tells whether a materialization node may be refreshed in place
// (semantics §4.8).
func (b *build) byColumn(table, matNode string) bool {
	n := b.deps.Model.Node(table)
	return n != nil && n.IsTable() && b.whyNotColumn(n, matNode) == ""
}

// whyNotColumn gives the reason against refreshing a node's columns in place,
// "" for none.
func (b *build) whyNotColumn(n *lineage.Node, matNode string) string {
	switch {
	case b.req.Refresh == "rewrite":
		return "--refresh rewrite"
	case !b.dialect.UpdatesInPlace || !b.dialect.Transactional:
		return "the engine does not update rows in place within a transaction"
	case len(n.Table.Key) == 0:
		return "no key is declared"
	case n.Analysis == nil || n.Analysis.Unsplittable != nil:
		return "the SELECT cannot be split into row set and fields"
	case n.Analysis.RowSet.Nondeterministic != "":
		return "the row set is not deterministic: " + n.Analysis.RowSet.Nondeterministic
	}
	if b.req.Stale { // asked for other dates each time
		return b.neverBuilt(n, matNode)
	}
	why, known := b.notColumn[matNode]
	if !known {
		why = b.neverBuilt(n, matNode)
		if b.notColumn == nil {
			b.notColumn = map[string]string{}
		}
		b.notColumn[matNode] = why
	}
	return why
}

// neverBuilt names a date on which there are no rows to be refreshed in place.
func (b *build) neverBuilt(n *lineage.Node, matNode string) string {
	for _, d := range b.dates {
		if n.Schedule.Scheduled(d) && !b.built(n, matNode, d) {
			return fmt.Sprintf("%s was never built on %s", matNode, d)
		}
	}
	return ""
}

// passStrategy chooses, for each node, between column refresh and rewrite, and
// says why (semantics §4.8). A column refresh that keeps nothing is a rewrite
// of the same cells, and the rewrite is cheaper.
func passStrategy(_ context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	for _, p := range b.picked {
		n := p.node
		p.out.Name, p.out.Kind, p.out.Project, p.out.Level = n.Name, n.Kind, b.deps.Model.Project.Name, p.level
		p.out.Whole, p.out.Why, p.out.Fields = p.whole, p.why, []plan.Field{}
		if !n.IsTable() {
			p.out.Owner, p.out.Tags, p.out.Schedule = n.Task.Owner, n.Task.Tags, n.Task.Schedule
			p.out.Strategy, p.out.Because = plan.Script, "SQL task"
			if n.Kind == modeling.Command {
				p.out.Strategy, p.out.Because = plan.Command, "external command"
			}
			continue
		}
		p.out.Owner, p.out.Tags, p.out.Schedule = n.Table.Owner, n.Table.Tags, n.Table.Schedule
		p.out.Key = n.Table.Key
		for _, f := range n.FieldNames() {
			if !n.Table.IsKey(f) {
				p.out.FieldCount++
			}
		}
		p.out.Strategy = plan.Rewrite
		column := false
		for i := range p.writes {
			w := &p.writes[i]
			if w.Column && len(w.Kept) == 0 && b.req.Refresh != "column" {
				w.Column = false
			}
			column = column || w.Column
		}
		if b.req.Refresh == "column" && b.req.FieldsGiven {
			for _, w := range p.writes {
				if why := b.whyNotColumn(n, w.Node); why != "" && !w.Column {
					b.errorf("column_refresh_impossible", "%s cannot be refreshed by column: %s", w.Node, why).
						Hint = "leave --refresh out, so that the plan rewrites this node"
				}
			}
		}
		switch {
		case column:
			p.out.Strategy, p.out.Because = plan.Column, "key declared, rows unchanged"
		case p.whole:
			p.out.Because = "all fields"
		case len(p.writes) > 0:
			p.out.Because = b.writeBecause(p, p.writes[0])
		}
		b.outFields(p)
	}
	return nil
}

// writeBecause tells why one materialization node is refreshed as it is.
func (b *build) writeBecause(p *picked, w fields.Write) string {
	switch {
	case w.Column:
		return "key declared, rows unchanged"
	case p.whole:
		return "all fields"
	}
	if why := b.whyNotColumn(p.node, w.Node); why != "" {
		return why
	}
	if p.level < 0 {
		return "its rows are read"
	}
	return "every field of the node is refreshed"
}

// outFields writes the fields with their reasons, and the writes.
func (b *build) outFields(p *picked) {
	t := p.node.Table
	for _, f := range p.fields {
		out := plan.Field{Name: f.Name, Written: !f.Kept, Reasons: []string{}, Nodes: []string{}}
		for _, m := range t.Nodes {
			if slices.Contains(m.Fields, f.Name) {
				out.Nodes = append(out.Nodes, m.Name)
			}
		}
		var because []string
		for _, r := range f.Reasons {
			if !slices.Contains(out.Reasons, string(r.Code)) {
				out.Reasons = append(out.Reasons, string(r.Code))
			}
			if p.whole && r.Code == fields.RowSet && r.Note == "" {
				continue // said once for the table
			}
			if s := b.fieldReason(p, f, r); !slices.Contains(because, s) {
				because = append(because, s)
			}
		}
		if out.Because = strings.Join(because, "; "); out.Because == "" {
			out.Because = "all rows are refreshed"
		}
		p.out.Fields = append(p.out.Fields, out)
	}
	for _, w := range p.writes {
		out := plan.Write{Node: w.Node, Table: b.dialect.Table(b.deps.Schema, w.Node), Action: plan.Rewrite, Fields: w.Fields, Whole: !w.Column, RowsKept: !p.whole && p.level >= 0}
		if w.Column {
			out.Action = plan.Column
		}
		if out.Fields == nil {
			out.Fields = []string{}
		}
		if why := b.writeBecause(p, w); p.parts == nil && why != p.out.Because {
			out.Because = why
		}
		p.out.Writes = append(p.out.Writes, out)
	}
}

// fieldReason puts one reason in words.
func (b *build) fieldReason(p *picked, f fields.Field, r fields.Reason) string {
	switch r.Code {
	case fields.Selected:
		if r.Note != "" {
			return strings.ReplaceAll(r.Note, "_", " ")
		}
		if p.whole {
			return "full table"
		}
		if c, ok := b.firstFieldChange(p.node, f.Name); ok {
			return "selected · " + builtBy(c)
		}
		return "selected"
	case fields.CoLocated:
		if f.Kept {
			return "co-located, kept and proven unchanged"
		}
		return fmt.Sprintf("co-located with %s in %s", r.Via.Field, r.Node)
	case fields.System:
		return "required: its schedule changed while its storage stays"
	case fields.Recommended:
		return "recommended: " + strings.ReplaceAll(r.Note, "_", " ")
	case fields.RowSet:
		if r.Note != "" {
			return strings.ReplaceAll(r.Note, "_", " ")
		}
		if r.Via.Table == p.node.Name || p.level < 0 {
			return "the rows are read by " + r.Via.Table
		}
		return "the rows depend on " + via(r.Via)
	case fields.Reader:
		if p.level < 0 {
			return "read by " + via(r.Via)
		}
		return "reads " + via(r.Via)
	}
	return string(r.Code)
}

func (b *build) firstFieldChange(n *lineage.Node, field string) (change, bool) {
	_, now, err := DefinitionOf(n)
	if err != nil {
		return change{}, false
	}
	var list []change
	for _, m := range n.Table.Nodes {
		if slices.Contains(m.Fields, field) {
			list = append(list, b.fieldChanges(m.Name, field, false, now)...)
		}
	}
	return firstChange(list, b.dates)
}
