package lineage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/plan"
)

// Reads tells which business dates of an input a node reads on its own dates
// (semantics §3.7).
type Reads struct {
	Runs []plan.MapRun // ascending, dates that read nothing are left out
	// Same says that a date reads its own business date or nothing.
	Same bool
	// How tells where this comes from: partitions, declared, default.
	How string
	// Why is a sentence for people.
	Why string
}

// Deriver derives slots, remembering what it has derived: most tables of a
// project filter by the same few expressions. It is not safe for concurrent
// use.
type Deriver struct {
	model *Model
	dates []bizdate.Date // ascending
	memo  map[string][]plan.MapRun
	// layouts are those of sources, common the parameters that they may name.
	layouts map[*modeling.Source]*SourceLayout
	common  *param.Set
}

// NewDeriver makes a Deriver for the selected business dates.
func NewDeriver(m *Model, dates []bizdate.Date) *Deriver {
	sorted := slices.Clone(dates)
	slices.Sort(sorted)
	return &Deriver{model: m, dates: slices.Compact(sorted), memo: map[string][]plan.MapRun{}, layouts: map[*modeling.Source]*SourceLayout{}}
}

// Reads derives the slots of an input: from the partitions that the SQL
// filters by parameters, else from the declared dependency, else the same
// business date.
func (d *Deriver) Reads(n *Node, in Input) Reads {
	if runs, ok := d.fromPartitions(n, in); ok {
		return Reads{Runs: runs, Same: same(runs), How: "partitions", Why: "the SQL filters " + in.Name + " by its partition"}
	}
	if len(in.Declared) > 0 {
		lo, hi := 0, 0
		for i, dep := range in.Declared {
			l, h := dayOffsets(dep)
			if i == 0 {
				lo, hi = l, h
			}
			lo, hi = min(lo, l), max(hi, h)
		}
		runs := d.constant(lo, hi)
		return Reads{Runs: runs, Same: lo == 0 && hi == 0, How: "declared", Why: "declared under depends_on"}
	}
	return Reads{Runs: d.constant(0, 0), Same: true, How: "default", Why: "the same business date"}
}

// dayOffsets gives the business-date offsets of a declared dependency. Hours
// are rounded outwards to whole days.
func dayOffsets(dep modeling.Dependency) (lo, hi int) {
	if dep.Unit != modeling.Hourly {
		return dep.From, dep.To
	}
	lo, hi = dep.From/24, dep.To/24
	if dep.From%24 < 0 {
		lo--
	}
	return lo, hi
}

func (d *Deriver) constant(lo, hi int) []plan.MapRun {
	if len(d.dates) == 0 {
		return nil
	}
	return []plan.MapRun{{From: d.dates[0], To: d.dates[len(d.dates)-1], Lo: lo, Hi: hi}}
}

func same(runs []plan.MapRun) bool {
	return !slices.ContainsFunc(runs, func(r plan.MapRun) bool { return r.Lo != 0 || r.Hi != 0 })
}

// bound is a predicate ready to be evaluated.
type bound struct {
	op     string
	values []*param.Expr
	part   *Partition
}

// fromPartitions derives the slots of all references to an input; false when
// a reference cannot be derived.
func (d *Deriver) fromPartitions(n *Node, in Input) ([]plan.MapRun, bool) {
	if n.Analysis == nil || len(in.References) == 0 {
		return nil, false
	}
	parts, sched, ok := d.model.upstreamPartition(in)
	if !ok {
		return nil, false
	}
	var all []plan.MapRun
	for _, r := range in.References {
		bounds, sig, ok := d.bounds(n, n.Analysis.References[r].Predicates, parts)
		if !ok {
			return nil, false
		}
		runs := d.solved(n, bounds, sig, sched)
		if runs == nil {
			return nil, false
		}
		all = union(all, runs, d.dates)
	}
	return all, true
}

// solved gives the runs of bounds with their signature, from memory where they
// are known; nil when the bounds do not tell.
func (d *Deriver) solved(n *Node, bounds []bound, sig string, sched bizdate.Schedule) []plan.MapRun {
	key := n.Schedule.String() + "\x00" + sched.String() + "\x00" + sig
	runs, known := d.memo[key]
	if !known {
		var good bool
		if runs, good = d.solve(n, bounds, sched); !good {
			runs = nil
		}
		d.memo[key] = runs
	}
	return runs
}

// upstreamPartition gives the partition columns and schedule of an input.
func (m *Model) upstreamPartition(in Input) ([]Partition, bizdate.Schedule, bool) {
	if in.Node >= 0 {
		up := m.Nodes[in.Node]
		if up.IsTable() {
			return up.Partition, up.Schedule, len(up.Partition) > 0
		}
		return up.Partition, up.Schedule, len(up.Partition) > 0
	}
	return nil, bizdate.Schedule{}, false
}

// bounds turns the predicates on partition columns into evaluable bounds and
// their signature; false when none is usable.
func (d *Deriver) bounds(n *Node, preds []sqlast.Predicate, parts []Partition) ([]bound, string, bool) {
	var out []bound
	var sig strings.Builder
	for _, p := range preds {
		i := slices.IndexFunc(parts, func(x Partition) bool { return strings.EqualFold(x.Name, p.Column) })
		if i < 0 || p.ColumnCast != "" && !strings.EqualFold(p.ColumnCast, parts[i].Type) {
			continue
		}
		b := bound{op: strings.ToLower(p.Op), part: &parts[i]}
		for _, v := range p.Values {
			if v.Complex {
				b.values = nil
				break
			}
			e := constantOr(n.Params, v.Text)
			if e == nil {
				b.values = nil
				break
			}
			b.values = append(b.values, e)
		}
		if len(b.values) == 0 {
			continue
		}
		out = append(out, b)
		fmt.Fprintf(&sig, "%s\x01%s\x01", parts[i].Expr.Canonical(), b.op)
		for _, e := range b.values {
			sig.WriteString(e.Canonical() + "\x01")
		}
	}
	return out, sig.String(), len(out) > 0
}

// constantOr parses a literal's text with its placeholders; nil when it does
// not depend on the slot alone.
func constantOr(set *param.Set, text string) *param.Expr {
	e, diags := set.ParseValue(param.Text(text))
	if diags.HasErrors() {
		return nil
	}
	return e
}

const (
	noLow  = bizdate.Date(-1 << 30)
	noHigh = bizdate.Date(1<<30 - 1)
)

// solve evaluates the bounds on every selected date.
func (d *Deriver) solve(n *Node, bounds []bound, up bizdate.Schedule) ([]plan.MapRun, bool) {
	runs := []plan.MapRun{}
	zone := d.model.Zone
	var slots []bizdate.Slot
	for _, date := range d.dates {
		if !n.Schedule.Scheduled(date) {
			continue // a dry-run success reads nothing
		}
		slots = n.Schedule.AppendSlots(slots[:0], date, zone, nil)
		first := true
		var lo, hi bizdate.Date
		for _, s := range slots {
			l, h, ok := slotRange(bounds, param.At(s), up, zone)
			if !ok {
				return nil, false
			}
			if l > h {
				continue
			}
			if first {
				lo, hi, first = l, h, false
			}
			lo, hi = min(lo, l), max(hi, h)
		}
		if first {
			continue
		}
		if lo == noLow { // everything before: of that, the backfill's own dates matter
			lo = min(d.dates[0], hi)
		}
		if hi == noHigh {
			hi = max(d.dates[len(d.dates)-1], lo)
		}
		if lo, hi = realDates(up, lo, hi); lo <= hi {
			runs = appendRun(runs, date, int(lo-date), int(hi-date), d.dates)
		}
	}
	return runs, true
}

// slotRange gives the upstream business dates that one slot of the reader
// reads; lo > hi reads nothing; false when the bounds do not tell.
func slotRange(bounds []bound, at param.Instant, up bizdate.Schedule, zone *time.Location) (lo, hi bizdate.Date, ok bool) {
	lo, hi = noLow, noHigh
	for _, b := range bounds {
		if !b.part.Dated {
			continue
		}
		l, h, good := datedRange(b, at)
		if !good {
			return 0, 0, false
		}
		lo, hi = max(lo, l), min(hi, h)
	}
	for _, b := range bounds {
		if b.part.Dated {
			continue
		}
		l, h, good := searchedRange(b, at, up, zone, lo, hi)
		if !good {
			return 0, 0, false
		}
		lo, hi = max(lo, l), min(hi, h)
	}
	return lo, hi, lo > noLow || hi < noHigh
}

// datedRange inverts a partition value that is a function of the date.
func datedRange(b bound, at param.Instant) (lo, hi bizdate.Date, ok bool) {
	var los, his []bizdate.Date
	for _, e := range b.values {
		v, diags := e.Eval(at)
		if diags.HasErrors() {
			return 0, 0, false
		}
		l, h, found := b.part.Form.Dates(v)
		if !found {
			if b.op == "=" || b.op == "in" {
				continue // no slot ever has this value
			}
			return 0, 0, false
		}
		los, his = append(los, l), append(his, h)
	}
	if len(los) == 0 {
		return 1, 0, true
	}
	switch b.op {
	case "=", "in":
		return slices.Min(los), slices.Max(his), true
	case "between":
		if len(los) != 2 {
			return 0, 0, false
		}
		return los[0], his[1], true
	case "<":
		return noLow, los[0] - 1, true
	case "<=":
		return noLow, his[0], true
	case ">":
		return his[0] + 1, noHigh, true
	case ">=":
		return los[0], noHigh, true
	}
	return 0, 0, false
}

// searchDays is how many days around the reader's date are searched for
// partitions that are not a function of the date alone.
const searchDays = 3

// searchedRange compares the values with the partitions of the upstream's
// slots around the date, as text of equal length.
func searchedRange(b bound, at param.Instant, up bizdate.Schedule, zone *time.Location, lo, hi bizdate.Date) (bizdate.Date, bizdate.Date, bool) {
	values := make([]string, len(b.values))
	for i, e := range b.values {
		v, diags := e.Eval(at)
		if diags.HasErrors() {
			return 0, 0, false
		}
		values[i] = v
	}
	from, to := max(at.Bizdate-searchDays, lo), min(at.Bizdate+searchDays, hi)
	first, l, h := true, bizdate.Date(1), bizdate.Date(0)
	var slots []bizdate.Slot
	for date := from; date <= to; date++ {
		slots = up.AppendSlots(slots[:0], date, zone, nil)
		for _, s := range slots {
			v, diags := b.part.Expr.Eval(param.At(s))
			if diags.HasErrors() {
				return 0, 0, false
			}
			in, comparable := matches(b.op, v, values)
			if !comparable {
				return 0, 0, false
			}
			if !in {
				continue
			}
			if first {
				l, first = date, false
			}
			h = date
		}
	}
	if first {
		return 0, 0, false // outside the window: not known
	}
	return l, h, true
}

// matches compares texts; order needs equal lengths, as fixed formats have.
func matches(op, v string, values []string) (in, comparable bool) {
	if op == "=" || op == "in" {
		return slices.Contains(values, v), true
	}
	for _, x := range values {
		if len(x) != len(v) {
			return false, false
		}
	}
	switch op {
	case "between":
		return len(values) == 2 && values[0] <= v && v <= values[1], len(values) == 2
	case "<":
		return v < values[0], true
	case "<=":
		return v <= values[0], true
	case ">":
		return v > values[0], true
	case ">=":
		return v >= values[0], true
	}
	return false, false
}

// realDates narrows a range to the dates on which a weekly or monthly node
// really runs: a month's partition is built by its one real slot.
func realDates(s bizdate.Schedule, lo, hi bizdate.Date) (bizdate.Date, bizdate.Date) {
	if s.Cycle != bizdate.Weekly && s.Cycle != bizdate.Monthly {
		return lo, hi
	}
	const most = 3660
	for i := 0; lo <= hi && i < most && !s.Scheduled(lo); i++ {
		lo++
	}
	for i := 0; lo <= hi && i < most && !s.Scheduled(hi); i++ {
		hi--
	}
	return lo, hi
}

// appendRun adds a date's offsets, joined to the run before when they are
// equal and no selected date lies between.
func appendRun(runs []plan.MapRun, date bizdate.Date, lo, hi int, dates []bizdate.Date) []plan.MapRun {
	if n := len(runs); n > 0 && runs[n-1].Lo == lo && runs[n-1].Hi == hi {
		i, _ := slices.BinarySearch(dates, date)
		if i > 0 && runs[n-1].To == dates[i-1] {
			runs[n-1].To = date
			return runs
		}
	}
	return append(runs, plan.MapRun{From: date, To: date, Lo: lo, Hi: hi})
}

// union gives, date by date, the hull of two maps.
func union(a, b []plan.MapRun, dates []bizdate.Date) []plan.MapRun {
	if a == nil {
		return b
	}
	var out []plan.MapRun
	for _, date := range dates {
		al, ah, aok := at(a, date)
		bl, bh, bok := at(b, date)
		switch {
		case aok && bok:
			out = appendRun(out, date, min(al, bl), max(ah, bh), dates)
		case aok:
			out = appendRun(out, date, al, ah, dates)
		case bok:
			out = appendRun(out, date, bl, bh, dates)
		}
	}
	return out
}

func at(runs []plan.MapRun, date bizdate.Date) (lo, hi int, ok bool) {
	i, found := slices.BinarySearchFunc(runs, date, func(r plan.MapRun, d bizdate.Date) int {
		switch {
		case r.To < d:
			return -1
		case r.From > d:
			return 1
		}
		return 0
	})
	if !found {
		return 0, 0, false
	}
	return runs[i].Lo, runs[i].Hi, true
}
