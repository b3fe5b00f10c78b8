package spine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// CheckSlots chooses the slots of the self-check: the first, the last, one that is
// known to have no rows, and others by chance from a seed, n in all. It is a
// function of its arguments; the result is sorted.
func CheckSlots(slots, n int, empty []int, seed uint64) []int {
	if n <= 0 || slots == 0 {
		return nil
	}
	var out []int
	add := func(i int) {
		if i >= 0 && i < slots && len(out) < n && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	add(0)
	add(slots - 1)
	if len(empty) > 0 {
		if n < 3 && len(out) > 1 { // an empty date finds more than the last one
			out = out[:1]
		}
		add(empty[0])
	}
	r := rand.New(rand.NewPCG(seed, uint64(slots)))
	for _, i := range r.Perm(slots) {
		add(i)
	}
	slices.Sort(out)
	return out
}

// check computes some slots one by one, as normal runs do, into a table of the
// target's types and compares the multisets of rows (design "Single instance,
// many dates"). DOUBLE and FLOAT are equal to 9 significant digits: sums may be
// added in another order.
func (w *writer) check(slots []int, fields []Field) *Refusal {
	sql, r := w.in.literal(slots)
	if r != nil {
		return r
	}
	list := make([]string, len(slots))
	for i, s := range slots {
		list[i] = fmt.Sprint(s)
	}
	items := []string{"CAST(x." + w.d.Quote(OrdinalColumn) + " AS INTEGER) AS " + w.d.Quote(OrdinalColumn)}
	for i := range w.in.Partition {
		items = append(items, "x."+w.d.Quote(PartitionColumn(i)))
	}
	for _, f := range fields {
		items = append(items, fmt.Sprintf("CAST(x.%s AS %s) AS %s", w.d.Quote(f.Name), f.Type, w.d.Quote(f.Name)))
	}
	w.add("stage", checkTable, w.d.Stage(checkTable, fmt.Sprintf("SELECT %s FROM (\n%s\n) AS x", strings.Join(items, ", "), sql)))
	for _, n := range w.t.Nodes {
		want := "SELECT c." + w.d.Quote(OrdinalColumn) + w.compared("c.", n) + " FROM " + checkTable + " AS c"
		got := fmt.Sprintf("SELECT p.%s%s FROM %s AS t JOIN %s ON %s WHERE p.%s IN (%s)", w.d.Quote(OrdinalColumn), w.compared("t.", n),
			n.Table, w.partitions(), w.onPartition("t."), w.d.Quote(OrdinalColumn), strings.Join(list, ", "))
		var parts []string
		for _, x := range [][3]string{{"missing", want, got}, {"extra", got, want}} {
			parts = append(parts, fmt.Sprintf("SELECT %s AS slot, '%s' AS side, count(*) AS n FROM (%s EXCEPT ALL %s) AS d GROUP BY 1",
				w.d.Quote(OrdinalColumn), x[0], x[1], x[2]))
		}
		var cols []string
		for _, side := range []string{"missing", "extra"} {
			for _, s := range slots {
				cols = append(cols, fmt.Sprintf("coalesce(max(n) FILTER (WHERE slot = %d AND side = '%s'), 0)::BIGINT AS %s_%d", s, side, side, s))
			}
		}
		w.facts("check."+n.Name, "SELECT "+strings.Join(cols, ", ")+" FROM ("+strings.Join(parts, " UNION ALL ")+") AS g")
		for _, s := range slots {
			id := w.in.Slots[s].ID
			w.rule(s, MissingFact(n.Name, s), "zero", "", "self_check", "%s computed alone has rows that the single instance has not (node %s)", id, n.Name)
			w.rule(s, ExtraFact(n.Name, s), "zero", "", "self_check", "the single instance has rows that %s computed alone has not (node %s)", id, n.Name)
		}
	}
	return nil
}

// compared gives a node's fields as they are compared, each behind a comma.
func (w *writer) compared(prefix string, n Node) string {
	var b strings.Builder
	for _, f := range n.Fields {
		c := prefix + w.d.Quote(f.Name)
		switch strings.ToUpper(f.Type) {
		case "DOUBLE", "FLOAT", "REAL":
			c = "printf('%.9g', CAST(" + c + " AS DOUBLE))"
		}
		b.WriteString(", " + c)
	}
	return b.String()
}
