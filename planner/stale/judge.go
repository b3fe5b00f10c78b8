package stale

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/lineage"
)

// Judge judges one table. It may judge again after more was planned.
type Judge struct {
	x      *Index
	node   *lineage.Node
	dates  []bizdate.Date
	inputs inputs
	prints map[string]string // today's fingerprint by field, lower case
	slots  []int16           // expected sub-daily slots by date; nil = whole days
	logic  map[string]int8   // by definition and field: see differs
	hits   map[[2]int][]hit  // by input and series
}

// hit is an input that was rebuilt after a date's values: by which record of
// which source; source −1 = by the plan, −2 = not at all.
type hit struct {
	source int16
	record int32
}

var noHit = hit{-2, -1}

// Judge makes a judge of a table on some dates (ascending, scheduled ones). The
// table must be analysed. derive must know the dates.
func (x *Index) Judge(n *lineage.Node, dates []bizdate.Date, derive *lineage.Deriver) *Judge {
	j := &Judge{x: x, node: n, dates: dates, inputs: x.inputsOf(n, derive), prints: map[string]string{}, logic: map[string]int8{}}
	for _, f := range n.Analysis.Fields {
		j.prints[strings.ToLower(f.Name)] = f.Fingerprint
	}
	if n.Schedule.Cycle.SubDaily() {
		j.slots = make([]int16, len(dates))
		var buf []bizdate.Slot
		for i, d := range dates {
			buf = n.Schedule.AppendSlots(buf[:0], d, x.model.Zone, nil)
			j.slots[i] = int16(len(buf))
		}
	}
	return j
}

// Table judges every field of every node.
func (j *Judge) Table() *Table {
	j.hits = map[[2]int][]hit{}
	t := &Table{Table: j.node.Name, Dates: len(j.dates), Rows: []Row{}, dates: j.dates}
	for _, m := range j.node.Table.Nodes {
		fields := slices.DeleteFunc(slices.Clone(m.Fields), func(f string) bool {
			_, known := j.prints[strings.ToLower(f)]
			return !known || j.node.Table.IsKey(f)
		})
		if len(fields) == 0 {
			fields = []string{""}
		}
		for _, f := range fields {
			row, cells := Row{Field: f, Node: m.Name}, []cellState(nil)
			if run, ok := j.allCurrent(m.Name, f); ok {
				row.Runs = []Run{run}
			} else {
				cells = j.cells(m.Name, f)
				row.Runs = j.runs(m.Name, f, cells)
			}
			t.Rows, t.cells = append(t.Rows, row), append(t.cells, cells)
		}
	}
	return t
}

// allCurrent tells without a look at each cell that a field is current on all
// dates, which is the rule: built on each of them, by today's logic, with no
// input rebuilt since.
func (j *Judge) allCurrent(node, field string) (Run, bool) {
	s := j.x.of(node, field)
	if j.slots != nil || len(j.dates) == 0 || !slices.Equal(s.dates, j.dates) {
		return Run{}, false
	}
	facts := j.x.nodes[strings.ToLower(node)]
	for _, k := range s.kinds {
		if own, rows := j.differs(facts.kinds[k].definition, field); own || rows {
			return Run{}, false
		}
	}
	if j.hitsOf(j.inputs.rows, s) != nil || j.hitsOf(j.inputs.fields[strings.ToLower(field)], s) != nil {
		return Run{}, false
	}
	rec := &facts.recs[s.rec[0]]
	r := Run{From: j.dates[0], To: j.dates[len(j.dates)-1], Dates: len(j.dates), State: Current, BuiltAt: rec.BuiltAt}
	if len(s.kinds) == 1 {
		r.Definition = rec.Definition
	}
	if s.one {
		r.Backfill = rec.Backfill
	}
	return r, true
}

// cells judges one field of one node, or (field "") its rows alone.
func (j *Judge) cells(node, field string) []cellState {
	s := j.x.of(node, field)
	facts := j.x.nodes[strings.ToLower(node)]
	rowHits := j.hitsOf(j.inputs.rows, s)
	fieldHits := j.hitsOf(j.inputs.fields[strings.ToLower(field)], s)
	any := j.x.anyOf(j.node)
	out := make([]cellState, len(j.dates))
	var verdicts []verdict
	if facts != nil {
		verdicts = make([]verdict, len(facts.kinds))
	}
	at := 0
	for i, d := range j.dates {
		for at < len(s.dates) && s.dates[at] < d {
			at++
		}
		c := &out[i]
		if at == len(s.dates) || s.dates[at] != d || j.slots != nil && s.slots[at] < j.slots[i] {
			c.state, c.rec = isNever, -1
			c.rowSet = !any[d] || at < len(s.dates) && s.dates[at] == d // nothing, or some slots of the day
			if !c.rowSet && facts != nil && j.accepted(field, d, false) {
				c.state = isAccepted
			}
			continue
		}
		c.rec = s.rec[at]
		v := &verdicts[facts.kindOf[c.rec]]
		if !v.known {
			v.known = true
			v.own, v.rows = j.differs(facts.recs[c.rec].Definition, field)
		}
		own, rows := v.own, v.rows
		for _, more := range s.mixed[d] {
			if o, r := j.differs(more, field); o || r {
				own, rows = own || o, rows || r
			}
		}
		switch {
		case own || rows:
			c.state, c.rowSet = isOther, rows
			if j.accepted(field, d, rows) {
				c.state, c.rowSet = isAccepted, false
			}
		case anyHit(rowHits, i):
			c.state, c.rowSet = isInput, true
		case anyHit(fieldHits, i):
			c.state = isInput
		}
	}
	return out
}

// verdict remembers what differs for a kind of record.
type verdict struct{ known, own, rows bool }

// anyOf gives the dates on which a table has any record.
func (x *Index) anyOf(n *lineage.Node) map[bizdate.Date]bool {
	if m, ok := x.recorded[n.Position]; ok {
		return m
	}
	m := map[bizdate.Date]bool{}
	for _, d := range x.Recorded(n) {
		m[d] = true
	}
	x.recorded[n.Position] = m
	return m
}

// differs compares a recorded definition with today's: the field's own logic,
// and the row set or key. An unknown or incomparable definition differs.
func (j *Judge) differs(definition, field string) (own, rows bool) {
	k := definition + "\x00" + field
	v, known := j.logic[k]
	if !known {
		a := j.node.Analysis
		was, ok := j.x.facts.Definitions[definition]
		f := strings.ToLower(field)
		switch {
		case !ok || was.Version != a.Version || was.Key != a.RowSet.KeyFingerprint || was.RowSet != a.RowSet.Fingerprint:
			v = 2
		case field != "" && was.Fields[f] != j.prints[f]:
			v = 1
		}
		j.logic[k] = v
	}
	return v == 1, v == 2
}

// accepted tells whether older logic of a field is accepted on a date. A
// difference of the row set needs an acceptance of the whole table. An
// acceptance ends when the logic changes again.
func (j *Judge) accepted(field string, d bizdate.Date, rows bool) bool {
	for _, a := range j.x.facts.Acceptances {
		if d >= a.Before || !strings.EqualFold(a.Table, j.node.Name) {
			continue
		}
		if a.Fields != nil && (rows || !containsFold(a.Fields, field)) {
			continue
		}
		if own, other := j.differs(a.Definition, field); !own && !other {
			return true
		}
	}
	return false
}

// hitsOf gives, for each input that was rebuilt at all, its hits by date.
func (j *Judge) hitsOf(list []int, s *series) map[int][]hit {
	if len(s.dates) == 0 {
		return nil
	}
	var out map[int][]hit
	for _, i := range list {
		k := [2]int{i, s.id}
		h, known := j.hits[k]
		if !known {
			h = j.compare(&j.inputs.all[i], s)
			j.hits[k] = h
		}
		if h == nil {
			continue
		}
		if out == nil {
			out = map[int][]hit{}
		}
		out[i] = h
	}
	return out
}

func anyHit(hits map[int][]hit, date int) bool {
	for _, h := range hits {
		if h[date] != noHit {
			return true
		}
	}
	return false
}

// compare finds the dates on which an input was rebuilt after the values; nil
// when there is none.
func (j *Judge) compare(in *input, s *series) []hit {
	if in.idle(s) {
		return nil
	}
	var out []hit
	at, run := 0, 0
	for i, d := range j.dates {
		for at < len(s.dates) && s.dates[at] < d {
			at++
		}
		if at == len(s.dates) {
			break
		}
		for run < len(in.reads) && in.reads[run].To < d {
			run++
		}
		if s.dates[at] != d || run == len(in.reads) || in.reads[run].From > d {
			continue
		}
		h := in.newer(d+bizdate.Date(in.reads[run].Lo), d+bizdate.Date(in.reads[run].Hi), s.began[at], in.self, d)
		if h == noHit {
			continue
		}
		if out == nil {
			out = make([]hit, len(j.dates))
			for k := range out {
				out[k] = noHit
			}
		}
		out[i] = h
	}
	return out
}

// idle tells that nothing of an input can be newer, by its newest build alone.
func (in *input) idle(s *series) bool {
	oldest := slices.Min(s.began)
	for _, src := range in.from {
		if len(src.planned) > 0 || len(src.series.build) > 0 && slices.Max(src.series.build) > oldest {
			return false
		}
	}
	return true
}

// newer gives what rebuilt an input's dates lo to hi after a build began. A
// table that reads itself does not count the date itself.
func (in *input) newer(lo, hi bizdate.Date, began int64, self bool, own bizdate.Date) hit {
	best, out := began, noHit
	for k, src := range in.from {
		for d := lo; len(src.planned) > 0 && d <= hi; d++ {
			if src.planned[d] && !(self && d == own) {
				return hit{-1, -1}
			}
		}
		if self && lo <= own && own <= hi {
			for _, r := range [][2]bizdate.Date{{lo, own - 1}, {own + 1, hi}} {
				if b, rec := src.series.newestIn(r[0], r[1]); b > best {
					best, out = b, hit{int16(k), rec}
				}
			}
			continue
		}
		if b, rec := src.series.newestIn(lo, hi); b > best {
			best, out = b, hit{int16(k), rec}
		}
	}
	return out
}

// runs joins the cells of a field.
func (j *Judge) runs(node, field string, cells []cellState) []Run {
	s := j.x.of(node, field)
	facts := j.x.nodes[strings.ToLower(node)]
	rows, own := j.hitsOf(j.inputs.rows, s), j.hitsOf(j.inputs.fields[strings.ToLower(field)], s)
	out := []Run{}
	for i, c := range cells {
		r := Run{From: j.dates[i], To: j.dates[i], Dates: 1, State: c.state.name(), RowSet: c.rowSet}
		if c.rec >= 0 {
			rec := &facts.recs[c.rec]
			r.Definition, r.Backfill, r.BuiltAt = rec.Definition, rec.Backfill, rec.BuiltAt
		}
		if c.state == isInput {
			hits := own
			if c.rowSet {
				hits = rows
			}
			r.Inputs = j.rebuilt(hits, i)
		}
		if n := len(out); n > 0 && out[n-1].joins(&r) {
			last := &out[n-1]
			last.To = r.To
			last.Dates++
			if last.Backfill != r.Backfill {
				last.Backfill = ""
			}
			if last.Definition != r.Definition {
				last.Definition = ""
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// joins tells whether a later date continues a run.
func (r *Run) joins(next *Run) bool {
	if r.State != next.State || r.RowSet != next.RowSet {
		return false
	}
	switch r.State {
	case OtherLogic, Accepted:
		return r.Definition == next.Definition && r.Backfill == next.Backfill
	case InputRebuilt:
		return slices.EqualFunc(r.Inputs, next.Inputs, func(a, b Rebuilt) bool { return a.Table == b.Table && a.Field == b.Field })
	}
	return true
}

// rebuilt names the inputs that were rebuilt after a date's values.
func (j *Judge) rebuilt(hits map[int][]hit, date int) []Rebuilt {
	var out []Rebuilt
	for i, h := range hits {
		if h[date] == noHit {
			continue
		}
		in := &j.inputs.all[i]
		r := Rebuilt{Table: in.table, Field: in.field}
		if h[date].source >= 0 {
			r.Backfill = in.from[h[date].source].facts.recs[h[date].record].Backfill
		}
		if k := slices.IndexFunc(out, func(o Rebuilt) bool { return o.Table == r.Table && o.Field == r.Field }); k < 0 {
			out = append(out, r)
		} else if out[k].Backfill == "" {
			out[k].Backfill = r.Backfill
		}
	}
	slices.SortFunc(out, func(a, b Rebuilt) int {
		return strings.Compare(a.Table+"\x00"+a.Field, b.Table+"\x00"+b.Field)
	})
	return out
}
