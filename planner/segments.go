package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// segment is a run of business dates on which the same records of one
// materialization node count.
type segment struct {
	from, to bizdate.Date
	records  []*Built
}

// segments cuts the records of a materialization node at their ends.
func (b *build) segments(matNode string) []segment {
	k := strings.ToLower(matNode)
	if s, ok := b.segs[k]; ok {
		return s
	}
	list := b.records[k]
	cuts := make([]bizdate.Date, 0, 2*len(list))
	order := make([]*Built, len(list))
	for i := range list {
		order[i] = &list[i]
		cuts = append(cuts, list[i].Date, list[i].DateTo+1)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	slices.SortStableFunc(order, func(x, y *Built) int { return cmp.Compare(x.Date, y.Date) })
	var out []segment
	var active []*Built
	next := 0
	for i := 0; i+1 < len(cuts); i++ {
		active = slices.DeleteFunc(slices.Clone(active), func(r *Built) bool { return r.DateTo < cuts[i] })
		for ; next < len(order) && order[next].Date == cuts[i]; next++ {
			active = append(active, order[next])
		}
		if len(active) > 0 {
			out = append(out, segment{cuts[i], cuts[i+1] - 1, active})
		}
	}
	if b.segs == nil {
		b.segs = map[string][]segment{}
	}
	b.segs[k] = out
	return out
}

// on gives the records of a materialization node on a date.
func (b *build) on(matNode string, date bizdate.Date) []*Built {
	segs := b.segments(matNode)
	i, found := slices.BinarySearchFunc(segs, date, func(s segment, d bizdate.Date) int {
		switch {
		case s.to < d:
			return -1
		case s.from > d:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return segs[i].records
}

// holds tells whether a record says what built a field of a node: a record of
// the whole node speaks of the fields that it had then, the key included.
func (b *build) holds(matNode, field string, key bool, r *Built) bool {
	if r.Fields != nil && !containsFold(r.Fields, field) {
		return false
	}
	d, ok := b.defs[r.Definition]
	if !ok {
		return true // nothing is known of it: it counts as changed
	}
	f := strings.ToLower(field)
	if _, has := d.Fields[f]; !has {
		return false
	}
	held, known := d.Nodes[strings.ToLower(matNode)]
	return key || r.Fields != nil || !known || slices.Contains(held, f) // else it lived in another node
}

// fieldChanges finds the runs of dates on which a field was built by other
// logic than today's. On a date of a sub-daily node one such slot is enough.
func (b *build) fieldChanges(matNode, field string, key bool, now plan.Definition) []change {
	f := strings.ToLower(field)
	var out []change
	for _, s := range b.segments(matNode) {
		last := map[string]*Built{} // by slot, "" = the daily one
		for _, r := range s.records {
			if !b.holds(matNode, field, key, r) {
				continue
			}
			slot := slotOf(r)
			if have := last[slot]; have == nil || have.Build < r.Build {
				last[slot] = r
			}
		}
		var worst *Built
		for _, r := range last {
			was := b.defs[r.Definition]
			if was.Version == now.Version && was.Fields[f] == now.Fields[f] {
				continue
			}
			if worst == nil || r.SlotFrom < worst.SlotFrom {
				worst = r
			}
		}
		if worst != nil {
			out = append(out, change{s.from, s.to, *worst})
		}
	}
	return out
}

// slotOf tells the slots of one date apart: "" for a daily slot.
func slotOf(r *Built) string {
	if r.SlotFrom == r.Date.String() {
		return ""
	}
	return r.SlotFrom
}

// built tells whether every slot of a date of a node has a record, within the
// window of the backfill.
func (b *build) built(n *lineage.Node, matNode string, date bizdate.Date) bool {
	records := b.on(matNode, date)
	if len(records) == 0 || !n.Schedule.Cycle.SubDaily() {
		return len(records) > 0
	}
	have := make(map[string]bool, len(records))
	for _, r := range records {
		have[r.SlotFrom] = true
	}
	for _, s := range n.Schedule.Slots(date, b.deps.Model.Zone, b.window) {
		if !have[s.ID()] {
			return false
		}
	}
	return true
}

// ensure reads the records of a node's anchor on dates that were not read yet:
// a look-back may reach further than usual.
func (b *build) ensure(ctx context.Context, n *lineage.Node, from, to bizdate.Date) error {
	anchor := lineage.Anchor(n)
	read := func(lo, hi bizdate.Date) error {
		if lo > hi {
			return nil
		}
		list, err := b.deps.Ledger.Built(ctx, b.deps.Environment, []string{anchor}, lo, hi)
		if err != nil {
			return fmt.Errorf("planner: read ledger: %w", err)
		}
		k := strings.ToLower(anchor)
		for _, r := range list {
			if r.DateTo < b.from || r.Date > b.to { // the others are known
				b.records[k] = append(b.records[k], r)
			}
		}
		delete(b.segs, k)
		return nil
	}
	if err := read(from, min(to, b.from-1)); err != nil {
		return err
	}
	return read(max(from, b.to+1), to)
}
