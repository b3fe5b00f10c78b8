package lineage

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

// Reference dates of the search for slots that share a partition: more than a
// year, so that forms without a year are found, with a leap day. One date
// would do for sub-daily nodes, two more tell `hh` from `yyyy-mm-dd hh`.
var (
	collideFrom   = bizdate.Of(2023, 12, 1)
	collideTo     = bizdate.Of(2025, 1, 31)
	collideSubFew = []bizdate.Date{bizdate.Of(2024, 1, 16), bizdate.Of(2024, 1, 17), bizdate.Of(2024, 2, 16), bizdate.Of(2025, 1, 16)}
)

// collisions reports tables of which two slots always map to one partition,
// whatever dates a backfill selects: run by two backfills, the later slot
// would silently replace the earlier (design, "Logical tables in a project").
// Instants that only the clock's change makes one are the planner's to find,
// on the dates selected.
func (b *builder) collisions() {
	type found struct {
		value         string
		first, second bizdate.Slot
	}
	seen := map[string]*found{} // most tables share schedule and partition
	for _, n := range b.model.Nodes {
		if !n.IsTable() || len(n.Partition) == 0 || n.Diagnostics.HasErrors() {
			continue
		}
		key := n.Schedule.String()
		for _, x := range n.Partition {
			key += "\x00" + x.Expr.Canonical()
		}
		c, known := seen[key]
		if !known {
			at := map[string]bizdate.Slot{}
			for _, s := range b.referenceSlots(n) {
				v, ok := PartitionText(n, s)
				if !ok {
					break // the problem is the expression's, and reported where it is used
				}
				if first, twice := at[v]; twice {
					c = &found{v, first, s}
					break
				}
				at[v] = s
			}
			seen[key] = c
		}
		if c != nil {
			n.Diagnostics = append(n.Diagnostics, Collision(n, c.value, c.first, c.second))
		}
	}
}

func (b *builder) referenceSlots(n *Node) []bizdate.Slot {
	var slots []bizdate.Slot
	if n.Schedule.Cycle.SubDaily() {
		for _, d := range collideSubFew {
			slots = n.Schedule.AppendSlots(slots, d, b.model.Zone, nil)
		}
		return slots
	}
	for d := collideFrom; d <= collideTo; d++ {
		if n.Schedule.Scheduled(d) {
			slots = n.Schedule.AppendSlots(slots, d, b.model.Zone, nil)
		}
	}
	return slots
}

// PartitionText gives the partition values of a slot as one text; false when
// an expression has none there.
func PartitionText(n *Node, s bizdate.Slot) (string, bool) {
	var v strings.Builder
	for i, x := range n.Partition {
		if i > 0 {
			v.WriteByte('/')
		}
		text, diags := x.Expr.Eval(param.At(s))
		if diags.HasErrors() {
			return "", false
		}
		v.WriteString(text)
	}
	return v.String(), true
}

// Collision is the diagnostic of two slots with one partition.
func Collision(n *Node, value string, first, second bizdate.Slot) diag.Diagnostic {
	d := diag.Errorf("partition_collision", "two slots of %s map to the partition %s: %s and %s", n.Name, value, first.ID(), second.ID()).
		At(n.Table.Partition[0].Pos)
	if n.Schedule.Cycle.SubDaily() {
		return d.WithHint("partition by the instant, such as `slot_utc: \"${slotutc}\"`: clock readings repeat in autumn")
	}
	return d.WithHint("give the partition an expression that tells the slots apart")
}
