package planner

import (
	"context"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
)

// passPartitions refuses nodes of which two slots map to one partition: the
// later one would silently replace the earlier (design, "Logical tables in a
// project"; semantics §3.4).
func passPartitions(_ context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	seen := map[string]*collision{} // most tables share schedule and partition
	for _, p := range b.picked {
		if !p.node.IsTable() {
			continue
		}
		key := p.node.Schedule.String()
		for _, x := range p.node.Partition {
			key += "\x00" + x.Expr.Canonical()
		}
		c, known := seen[key]
		if !known {
			c = b.collide(p)
			seen[key] = c
		}
		if c == nil {
			continue
		}
		d := b.errorf("partition_collision", "two slots of %s map to the partition %s: %s and %s", p.node.Name, c.value, c.first.ID(), c.second.ID())
		d.Pos = p.node.Table.Partition[0].Pos
		d.Hint = "give the partition an expression that tells the slots apart"
		if p.node.Schedule.Cycle.SubDaily() {
			d.Hint = "partition by the instant, such as `slot_utc: \"${slotutc}\"`: clock readings repeat in autumn"
		}
	}
	return nil
}

// collision is two slots with one partition value.
type collision struct {
	value         string
	first, second bizdate.Slot
}

func (b *build) collide(p *picked) *collision {
	at := make(map[string]bizdate.Slot, len(p.real))
	var slots []bizdate.Slot
	for _, d := range p.real {
		slots = p.node.Schedule.AppendSlots(slots[:0], d, b.deps.Model.Zone, b.slotWindow(p))
		for _, s := range slots {
			var v strings.Builder
			for i, x := range p.node.Partition {
				if i > 0 {
					v.WriteString("/")
				}
				text, diags := x.Expr.Eval(param.At(s))
				if diags.HasErrors() {
					b.diags = append(b.diags, diags...)
					return nil
				}
				v.WriteString(text)
			}
			if first, twice := at[v.String()]; twice {
				return &collision{v.String(), first, s}
			}
			at[v.String()] = s
		}
	}
	return nil
}

// slotWindow gives the window for sub-daily nodes only: the slots of other nodes
// are not cut by it.
func (b *build) slotWindow(p *picked) *bizdate.Window {
	if p.node.Schedule.Cycle.SubDaily() {
		return b.window
	}
	return nil
}
