package planner

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/lineage"
)

// feedsItself warns where a table reads its own earlier slots and a refresh
// leaves behind what was computed from the old values: fields that are not
// refreshed, and slots after the selected dates (semantics §6.3).
func (b *build) feedsItself(p *picked, in lineage.Input, r lineage.Reads) {
	a := p.node.Analysis
	if a == nil {
		return
	}
	read := map[string]bool{}    // own columns that are read, lower case
	readers := map[string]bool{} // fields that read a refreshed one
	rows := false                // the row set does
	written := map[string]bool{}
	for _, w := range p.writes {
		for _, f := range w.Fields {
			written[strings.ToLower(f)] = true
		}
	}
	for _, i := range in.References {
		ref := a.References[i]
		hit := p.whole || ref.AllColumns
		for _, c := range ref.Columns {
			if k := strings.ToLower(c); p.whole || written[k] {
				read[k], hit = true, true
			}
		}
		if !hit {
			continue
		}
		rows = rows || ref.RowSet && slices.ContainsFunc(ref.RowColumns, func(c string) bool { return p.whole || written[strings.ToLower(c)] })
		for _, f := range ref.Fields {
			readers[strings.ToLower(f)] = true
		}
	}
	if len(read) == 0 && !p.whole {
		return
	}
	b.warnLater(p, r)
	if p.whole || len(b.dates) < 2 {
		return
	}
	var behind []string
	for _, f := range a.Fields {
		reads := slices.ContainsFunc(f.Reads, func(c sqlast.ColumnRef) bool {
			return strings.EqualFold(c.Table, p.node.Name) && read[strings.ToLower(c.Column)]
		})
		if k := strings.ToLower(f.Name); (reads && readers[k] || rows) && !written[k] && !p.node.Table.IsKey(f.Name) {
			behind = append(behind, f.Name)
		}
	}
	if len(behind) > 0 {
		d := b.warnf("reads_itself", "%s of %s read refreshed fields of an earlier slot, and are not refreshed", strings.Join(behind, ", "), p.node.Name)
		if len(behind) == 1 {
			d.Summary = behind[0] + " of " + p.node.Name + " reads refreshed fields of an earlier slot, and is not refreshed"
		}
		d.Pos, d.Hint = p.node.Pos(), "add "+strings.Join(behind, ",")+" to --fields"
	}
}

// warnLater names the built slots that read a refreshed one and are not
// refreshed themselves.
func (b *build) warnLater(p *picked, r lineage.Reads) {
	inside := p.realDates()
	anchor := lineage.Anchor(p.node)
	seen := map[bizdate.Date]bool{}
	var later []bizdate.Date
	for _, run := range r.Runs {
		if run.Lo >= 0 {
			continue
		}
		// The offsets of the last selected dates hold for those after it, too.
		for _, d := range within(b.dates, run.From, run.To) {
			for k := run.Lo; k <= min(run.Hi, -1); k++ {
				u := d - bizdate.Date(k)
				if inside[d] && !inside[u] && !seen[u] && u <= b.to && p.node.Schedule.Scheduled(u) && len(b.on(anchor, u)) > 0 {
					seen[u] = true
					later = append(later, u)
				}
			}
		}
	}
	if len(later) == 0 {
		return
	}
	d := b.warnf("reads_itself", "%s on %s was computed from slots that are refreshed here, and stays as it is", p.node.Name, rangesText(later))
	d.Pos, d.Detail = p.node.Pos(), r.Why
	d.Hint = "extend the dates to the last built one, so that the new values are carried on"
}
