// Package stale computes the staleness matrix: for each materialization node ×
// field × business date whether the stored values are current, were built by
// other logic, by inputs that were rebuilt since, or never (semantics §4.6). It
// is pure: records, definitions and the analysed project go in, runs of dates
// come out.
//
// Invariants:
//   - a cell is judged by the newest record that covers its field; records of
//     other fields say nothing about it;
//   - "rebuilt since" is a comparison of numbers: an input's Build is greater
//     than the cell's Began, along the slots that the reader reads (§3.7);
//   - what a backfill in planning writes (Index.Planned) counts as rebuilt, so
//     that a plan of everything stale leaves nothing stale behind;
//   - time grows with records and with table × input × date, not with cells:
//     fields with the same records and inputs share their work.
package stale

import (
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

// Record says what built some slots of a materialization node, or of a task.
type Record struct {
	Node     string
	From, To bizdate.Date // business dates, both included
	// Slot is the id of a single sub-daily slot, "" for whole days.
	Slot       string
	Fields     []string // nil = every field, rows included
	Definition string   // id in Facts.Definitions
	// Build was drawn when the commit was recorded, Began before the inputs
	// were read.
	Build, Began int64
	Backfill     string
	BuiltAt      time.Time
}

// Acceptance says that older logic is accepted before a date (forward-only):
// it holds as long as the logic is still that of Definition.
type Acceptance struct {
	Table      string
	Fields     []string // nil = every field and the row set
	Before     bizdate.Date
	Definition string // id of the definition that was current
}

// Facts are what the ledger knows.
type Facts struct {
	Records     []Record
	Definitions map[string]plan.Definition
	Acceptances []Acceptance
}

// nodeFacts are the records of one materialization node or task.
type nodeFacts struct {
	recs   []Record
	kinds  []kind // distinct contents of the records
	kindOf []int  // by record
	series map[string]*series
	rows   *series
}

// kind is a content of records: which fields, by which definition.
type kind struct {
	fields     []string // as recorded
	definition string
}

// series is, by ascending date, what built a set of fields last.
type series struct {
	id     int
	dates  []bizdate.Date
	build  []int64 // newest slot of the date
	began  []int64 // oldest slot of the date
	rec    []int32 // record with the oldest slot
	newest []int32 // record with the newest slot
	slots  []int16 // sub-daily slots that are built; 0 = whole day
	// mixed lists the definitions of a date whose slots were built by several.
	mixed map[bizdate.Date][]string
	// kinds are the contents of its records; one says that one backfill built
	// all of it.
	kinds []int
	one   bool
}

// newestIn gives the newest build of the dates lo to hi and its record; 0, −1
// without one.
func (s *series) newestIn(lo, hi bizdate.Date) (int64, int32) {
	i, _ := slices.BinarySearch(s.dates, lo)
	best, rec := int64(0), int32(-1)
	for ; i < len(s.dates) && s.dates[i] <= hi; i++ {
		if s.build[i] > best {
			best, rec = s.build[i], s.newest[i]
		}
	}
	return best, rec
}

func indexRecords(records []Record) map[string]*nodeFacts {
	out := map[string]*nodeFacts{}
	kinds := map[string]map[string]int{}
	for _, r := range records {
		k := strings.ToLower(r.Node)
		n := out[k]
		if n == nil {
			n = &nodeFacts{series: map[string]*series{}}
			out[k], kinds[k] = n, map[string]int{}
		}
		sig := r.Definition
		if r.Fields != nil {
			sig += "\x00" + strings.Join(r.Fields, "\x00")
		}
		id, known := kinds[k][sig]
		if !known {
			id = len(n.kinds)
			kinds[k][sig] = id
			n.kinds = append(n.kinds, kind{r.Fields, r.Definition})
		}
		n.recs, n.kindOf = append(n.recs, r), append(n.kindOf, id)
	}
	return out
}

// covers tells whether a kind of record of the node built a field. Field ""
// stands for the rows.
func (k kind) covers(node, field string, defs map[string]plan.Definition) bool {
	if field == "" {
		return k.fields == nil
	}
	d, known := defs[k.definition]
	if known {
		if _, has := d.Fields[strings.ToLower(field)]; !has {
			return false // the field did not exist
		}
	}
	if k.fields != nil {
		return containsFold(k.fields, field)
	}
	if list, ok := d.Nodes[strings.ToLower(node)]; ok {
		return containsFold(list, field) // it may have lived in another node
	}
	return true
}

// of gives the series of a field of a node; "" = of its rows.
func (x *Index) of(node, field string) *series {
	n := x.nodes[strings.ToLower(node)]
	if n == nil {
		return x.none
	}
	if field == "" {
		if n.rows == nil {
			n.rows = x.rowSeries(n, node)
		}
		return n.rows
	}
	mask := make([]byte, len(n.kinds))
	any := false
	for i, k := range n.kinds {
		if k.covers(node, field, x.facts.Definitions) {
			mask[i] = 1
			any = true
		}
	}
	if !any {
		return x.none
	}
	s := n.series[string(mask)]
	if s == nil {
		s = x.build(n, func(i int) bool { return mask[n.kindOf[i]] == 1 }, func(a, b int64) bool { return a > b })
		n.series[string(mask)] = s
	}
	return s
}

// rowSeries gives the series of a node's rows: whole records; where a date has
// none, its first record, which made the rows.
func (x *Index) rowSeries(n *nodeFacts, node string) *series {
	whole := x.build(n, func(i int) bool { return n.kinds[n.kindOf[i]].fields == nil }, func(a, b int64) bool { return a > b })
	rest := x.build(n, func(i int) bool { return n.kinds[n.kindOf[i]].fields != nil }, func(a, b int64) bool { return a < b })
	if len(rest.dates) == 0 {
		return whole
	}
	out := &series{id: whole.id, mixed: whole.mixed, kinds: slices.Concat(whole.kinds, rest.kinds)}
	i, j := 0, 0
	take := func(s *series, k int) {
		out.dates, out.build, out.began = append(out.dates, s.dates[k]), append(out.build, s.build[k]), append(out.began, s.began[k])
		out.rec, out.newest, out.slots = append(out.rec, s.rec[k]), append(out.newest, s.newest[k]), append(out.slots, s.slots[k])
	}
	for i < len(whole.dates) || j < len(rest.dates) {
		if j >= len(rest.dates) || i < len(whole.dates) && whole.dates[i] <= rest.dates[j] {
			if j < len(rest.dates) && whole.dates[i] == rest.dates[j] {
				j++
			}
			take(whole, i)
			i++
			continue
		}
		take(rest, j)
		j++
	}
	return out
}

// cell is one date of a series in the making.
type cell struct {
	date bizdate.Date
	slot string
	rec  int32
}

// build makes the series of the records that in accepts; of several records of
// one slot, better chooses by build number.
func (x *Index) build(n *nodeFacts, in func(int) bool, better func(a, b int64) bool) *series {
	var cells []cell
	for i := range n.recs {
		if !in(i) {
			continue
		}
		for d := n.recs[i].From; d <= n.recs[i].To; d++ {
			cells = append(cells, cell{d, n.recs[i].Slot, int32(i)})
		}
	}
	slices.SortStableFunc(cells, func(a, b cell) int {
		if a.date != b.date {
			return int(a.date - b.date)
		}
		return strings.Compare(a.slot, b.slot)
	})
	x.made++
	s := &series{id: x.made, one: true}
	for i := range cells {
		if k := n.kindOf[cells[i].rec]; !slices.Contains(s.kinds, k) {
			s.kinds = append(s.kinds, k)
		}
		s.one = s.one && n.recs[cells[i].rec].Backfill == n.recs[cells[0].rec].Backfill
	}
	for i := 0; i < len(cells); {
		j := i
		last := len(s.dates) - 1
		for ; j < len(cells) && cells[j].date == cells[i].date && cells[j].slot == cells[i].slot; j++ {
			if better(n.recs[cells[j].rec].Build, n.recs[cells[i].rec].Build) {
				cells[i].rec = cells[j].rec
			}
		}
		c := cells[i]
		r := &n.recs[c.rec]
		slot := int16(0)
		if c.slot != "" {
			slot = 1
		}
		if last < 0 || s.dates[last] != c.date {
			s.dates, s.build, s.began = append(s.dates, c.date), append(s.build, r.Build), append(s.began, r.Began)
			s.rec, s.newest, s.slots = append(s.rec, c.rec), append(s.newest, c.rec), append(s.slots, slot)
			i = j
			continue
		}
		s.slots[last] += slot
		if first := n.recs[s.rec[last]].Definition; first != r.Definition {
			if s.mixed == nil {
				s.mixed = map[bizdate.Date][]string{}
			}
			if s.mixed[c.date] == nil {
				s.mixed[c.date] = []string{first}
			}
			if !slices.Contains(s.mixed[c.date], r.Definition) {
				s.mixed[c.date] = append(s.mixed[c.date], r.Definition)
			}
		}
		if r.Build > s.build[last] {
			s.build[last], s.newest[last] = r.Build, c.rec
		}
		if r.Began < s.began[last] {
			s.began[last], s.rec[last] = r.Began, c.rec
		}
		i = j
	}
	return s
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}
