package spine

import (
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/planner/dialect"
)

// stageTable and checkTable are temporary tables of one step.
const (
	stageTable = "_retrofill_stage"
	checkTable = "_retrofill_check"
)

// Field is a column of the body with its SQL type in the target.
type Field struct{ Name, Type string }

// Node is a physical table that gets rows, one column for each of its fields.
type Node struct {
	Name   string  // for messages and facts
	Table  string  // quoted, with schema
	Fields []Field // stored columns without the partition columns, key first
}

// Target is what a single instance writes.
type Target struct {
	Nodes []Node // at least one; all have the partition columns of Input
	Key   []string
}

// Statement is SQL of one transaction; Role and Target have the meaning of
// executors.Statement. The statements hold no placeholders.
type Statement struct {
	Role   string // stage, delete, insert, update, facts
	Target string
	Name   string // of facts
	SQL    string
}

// Rule is a condition on facts that must hold before the commit. The kinds are
// those of plan.Rule: zero, equals, not_emptied.
type Rule struct {
	Fact, Kind, Other, Code, Message string
	// Slot is the position in Input.Slots that the rule speaks of, -1 = all.
	Slot int
}

// Work is the statements of one single-instance step in order, and what must
// be true before the commit.
type Work struct {
	Statements []Statement
	Verify     []Rule
}

// RowsFact, DuplicatesFact and NullsFact name the facts of a slot: rows
// computed, repeated keys, and rows with a NULL in the key. HadFact is the
// rows that a node's partition of the slot held before.
func RowsFact(slot int) string                 { return fmt.Sprintf("slots.rows_%d", slot) }
func DuplicatesFact(slot int) string           { return fmt.Sprintf("slots.duplicate_keys_%d", slot) }
func NullsFact(slot int) string                { return fmt.Sprintf("slots.null_keys_%d", slot) }
func HadFact(node string, slot int) string     { return fmt.Sprintf("had.%s.rows_%d", node, slot) }
func MissingFact(node string, slot int) string { return fmt.Sprintf("check.%s.missing_%d", node, slot) }
func ExtraFact(node string, slot int) string   { return fmt.Sprintf("check.%s.extra_%d", node, slot) }

// Write gives the statements that replace the partitions of all slots, and no
// other, with the rows of a choice (semantics §6.4, design "Writing safely"):
// what the partitions held is counted, all dates are computed into a temporary
// table if several nodes or chunks need it, the selected partitions are
// deleted, the rows inserted, and rows and keys counted for each slot. check
// holds the slots that are computed one by one and compared before the commit
// (see CheckSlots); a UnionAll choice needs none.
func Write(in Input, c Choice, t Target, check []int) (Work, *Refusal) {
	w := writer{in: in, d: in.Dialect, t: t}
	for _, n := range t.Nodes {
		w.facts("had."+n.Name, w.had(n))
	}
	staged := len(t.Nodes) > 1 || len(c.Chunks) > 1 || len(in.Partition) == 0
	var fields []Field
	for _, n := range t.Nodes {
		for _, f := range n.Fields {
			if !hasField(fields, f.Name) {
				fields = append(fields, f)
			}
		}
	}
	if staged {
		for i, ch := range c.Chunks {
			sel := fmt.Sprintf("SELECT %s FROM (\n%s\n) AS x", w.columns("x.", fields), ch.SQL)
			if i == 0 {
				w.add("stage", stageTable, w.d.Stage(stageTable, sel))
			} else {
				w.add("insert", stageTable, "INSERT INTO "+stageTable+" "+sel)
			}
		}
		w.slotFacts(stageTable+" AS s", `s.`+w.d.Quote(OrdinalColumn), "s.")
	}
	for _, n := range t.Nodes {
		w.add("delete", n.Table, fmt.Sprintf("DELETE FROM %s WHERE %s", n.Table, w.selected("")))
		from := stageTable + " AS x"
		if !staged {
			from = "(\n" + c.Chunks[0].SQL + "\n) AS x"
		}
		w.add("insert", n.Table, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s", n.Table, w.insertColumns(n), w.insertValues(n), from))
	}
	if !staged {
		n := t.Nodes[0]
		w.slotFacts(fmt.Sprintf("%s AS s JOIN %s ON %s", n.Table, w.partitions(), w.onPartition("s.")), "p."+w.d.Quote(OrdinalColumn), "s.")
	}
	w.rules()
	if c.Form != UnionAll && len(check) > 0 {
		if r := w.check(check, fields); r != nil {
			return Work{}, r
		}
	}
	return w.work, nil
}

type writer struct {
	in   Input
	d    dialect.Dialect
	t    Target
	work Work
}

func (w *writer) add(role, target, sql string) {
	w.work.Statements = append(w.work.Statements, Statement{Role: role, Target: target, SQL: sql})
}

func (w *writer) facts(name, sql string) {
	w.work.Statements = append(w.work.Statements, Statement{Role: "facts", Name: name, SQL: sql})
}

func (w *writer) rule(slot int, fact, kind, other, code, format string, args ...any) {
	w.work.Verify = append(w.work.Verify, Rule{Fact: fact, Kind: kind, Other: other, Code: code, Message: fmt.Sprintf(format, args...), Slot: slot})
}

func hasField(fields []Field, name string) bool {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	return false
}

// columns gives the stage's columns: slot, partition, fields.
func (w *writer) columns(prefix string, fields []Field) string {
	out := []string{prefix + w.d.Quote(OrdinalColumn)}
	for i := range w.in.Partition {
		out = append(out, prefix+w.d.Quote(PartitionColumn(i)))
	}
	for _, f := range fields {
		out = append(out, prefix+w.d.Quote(f.Name))
	}
	return strings.Join(out, ", ")
}

func (w *writer) insertColumns(n Node) string {
	var out []string
	for _, c := range w.in.Partition {
		out = append(out, w.d.Quote(c.Name))
	}
	for _, f := range n.Fields {
		out = append(out, w.d.Quote(f.Name))
	}
	return strings.Join(out, ", ")
}

func (w *writer) insertValues(n Node) string {
	var out []string
	for i := range w.in.Partition {
		out = append(out, "x."+w.d.Quote(PartitionColumn(i)))
	}
	for _, f := range n.Fields {
		out = append(out, "x."+w.d.Quote(f.Name))
	}
	return strings.Join(out, ", ")
}

// selected gives the condition of exactly the selected partitions.
func (w *writer) selected(prefix string) string {
	switch len(w.in.Partition) {
	case 0:
		return "true"
	case 1:
		var vals []string
		for _, s := range w.in.Slots {
			vals = append(vals, partitionLiteral(w.d, s.Partition[0], w.in.Partition[0].Type))
		}
		return prefix + w.d.Quote(w.in.Partition[0].Name) + " IN (" + strings.Join(vals, ", ") + ")"
	}
	var cols, parts []string
	for i, c := range w.in.Partition {
		cols = append(cols, prefix+w.d.Quote(c.Name))
		parts = append(parts, "p."+w.d.Quote(PartitionColumn(i)))
	}
	return "(" + strings.Join(cols, ", ") + ") IN (SELECT " + strings.Join(parts, ", ") + " FROM " + w.partitions() + ")"
}

// partitions gives the slots with their partition values as relation p.
func (w *writer) partitions() string {
	var b strings.Builder
	b.WriteString("(VALUES ")
	for s, slot := range w.in.Slots {
		if s > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d", s)
		for i, c := range w.in.Partition {
			b.WriteString(", " + partitionLiteral(w.d, slot.Partition[i], c.Type))
		}
		b.WriteString(")")
	}
	b.WriteString(") AS p(" + w.d.Quote(OrdinalColumn))
	for i := range w.in.Partition {
		b.WriteString(", " + w.d.Quote(PartitionColumn(i)))
	}
	return b.String() + ")"
}

func (w *writer) onPartition(prefix string) string {
	if len(w.in.Partition) == 0 {
		return "true"
	}
	var on []string
	for i, c := range w.in.Partition {
		on = append(on, prefix+w.d.Quote(c.Name)+" = p."+w.d.Quote(PartitionColumn(i)))
	}
	return strings.Join(on, " AND ")
}

// had counts what the selected partitions of a node hold, by slot.
func (w *writer) had(n Node) string {
	inner := fmt.Sprintf("SELECT p.%s AS slot, count(*) AS rows FROM %s AS t JOIN %s ON %s WHERE %s GROUP BY 1",
		w.d.Quote(OrdinalColumn), n.Table, w.partitions(), w.onPartition("t."), w.selected("t."))
	return w.oneRow(inner, w.all(), "rows")
}

// slotFacts counts rows and keys by slot.
func (w *writer) slotFacts(from, slot, prefix string) {
	cols := []string{"rows"}
	sel := "SELECT " + slot + " AS slot, count(*) AS rows"
	if len(w.t.Key) > 0 {
		var nulls, keys []string
		for _, k := range w.t.Key {
			nulls = append(nulls, prefix+w.d.Quote(k)+" IS NULL")
			keys = append(keys, prefix+w.d.Quote(k))
		}
		null, key := strings.Join(nulls, " OR "), strings.Join(keys, ", ")
		if len(keys) > 1 {
			key = "(" + key + ")"
		}
		sel += fmt.Sprintf(", count(*) FILTER (WHERE %[1]s) AS null_keys, count(*) FILTER (WHERE NOT (%[1]s)) - "+
			"count(DISTINCT %[2]s) FILTER (WHERE NOT (%[1]s)) AS duplicate_keys", null, key)
		cols = append(cols, "null_keys", "duplicate_keys")
	}
	w.facts("slots", w.oneRow(sel+" FROM "+from+" GROUP BY 1", w.all(), cols...))
}

// oneRow turns numbers by slot into one row with a column for each slot, 0
// where a slot is absent.
func (w *writer) oneRow(bySlot string, slots []int, cols ...string) string {
	var items []string
	for _, c := range cols {
		for _, s := range slots {
			items = append(items, fmt.Sprintf("coalesce(max(%s) FILTER (WHERE slot = %d), 0)::BIGINT AS %s_%d", c, s, c, s))
		}
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + bySlot + ") AS g"
}

func (w *writer) all() []int {
	out := make([]int, len(w.in.Slots))
	for i := range out {
		out[i] = i
	}
	return out
}

func (w *writer) rules() {
	for s, slot := range w.in.Slots {
		if len(w.t.Key) > 0 {
			key := strings.Join(w.t.Key, ", ")
			w.rule(s, DuplicatesFact(s), "zero", "", "key_duplicate", "the key (%s) is not unique on %s", key, slot.ID)
			w.rule(s, NullsFact(s), "zero", "", "key_null", "the key (%s) holds NULL on %s", key, slot.ID)
		}
		for _, n := range w.t.Nodes {
			w.rule(s, RowsFact(s), "not_emptied", HadFact(n.Name, s), "emptied", "the partition of node %s for %s holds rows, but the logic gives none", n.Name, slot.ID)
		}
	}
}
