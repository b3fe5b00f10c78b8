package plan

import (
	"fmt"
	"strconv"
	"time"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Expander turns the plan's ranges into instances, one node and date at a
// time, so that no more of them exist than are looked at. It is read-only
// after NewExpander and safe for concurrent use.
type Expander struct {
	plan      *Plan
	zone      *time.Location
	window    *bizdate.Window
	schedules []bizdate.Schedule
}

// NewExpander reads the plan's zone, window and schedules once. The plan must
// not change afterwards.
func NewExpander(p *Plan) (*Expander, error) {
	zone, err := bizdate.LoadZone(p.Zone)
	if err != nil {
		return nil, fmt.Errorf("plan: expand: %w", err)
	}
	x := &Expander{plan: p, zone: zone, schedules: make([]bizdate.Schedule, len(p.Nodes))}
	if p.Window != nil {
		w, diags := bizdate.ParseWindow(p.Window.From, p.Window.To)
		if diags.HasErrors() {
			return nil, fmt.Errorf("plan: expand window: %w", diags)
		}
		x.window = &w
	}
	for i := range p.Nodes {
		s, diags := ParseSchedule(p.Nodes[i].Schedule, nil)
		if diags.HasErrors() {
			return nil, fmt.Errorf("plan: expand schedule of %s: %w", p.Nodes[i].Name, diags)
		}
		x.schedules[i] = s
	}
	return x, nil
}

// ParseSchedule gives the calculable form of a project's schedule, with the
// diagnostics of bizdate.ScheduleText; pos tells where a key is written and
// may be nil.
func ParseSchedule(s modeling.Schedule, pos func(key string) diag.Pos) (bizdate.Schedule, diag.List) {
	t := bizdate.ScheduleText{
		Cycle: string(s.Cycle), At: s.At, From: s.From, To: s.To,
		Weekdays: s.Weekdays, MonthDays: s.MonthDays,
	}
	if s.Every > 0 {
		t.Every = strconv.Itoa(s.Every) + "m"
	}
	return t.Parse(pos)
}

// Zone gives the plan's time zone.
func (x *Expander) Zone() *time.Location { return x.zone }

// Schedule gives a node's schedule.
func (x *Expander) Schedule(node int) bizdate.Schedule { return x.schedules[node] }

// Slots gives the slots of a node on a business date, in time order. The
// plan's window cuts sub-daily nodes only: whether a daily node runs beside a
// window was decided by planning (semantics §3.3, §6.5).
func (x *Expander) Slots(node int, d bizdate.Date) []bizdate.Slot {
	s := x.schedules[node]
	if s.Cycle.SubDaily() {
		return s.Slots(d, x.zone, x.window)
	}
	return s.Slots(d, x.zone, nil)
}

// Step gives the index of the step that covers a business date, −1 when none
// does.
func (x *Expander) Step(node int, d bizdate.Date) int {
	for i := range x.plan.Nodes[node].Steps {
		if covers(x.plan.Nodes[node].Steps[i].Dates, d) {
			return i
		}
	}
	return -1
}

// covers searches sorted, disjoint ranges in either direction.
func covers(ranges []DateRange, d bizdate.Date) bool {
	for lo, hi := 0, len(ranges); lo < hi; {
		mid := (lo + hi) / 2
		r := ranges[mid]
		if r.From <= d && d <= r.To {
			return true
		}
		descending := ranges[0].From > ranges[len(ranges)-1].From
		if (d < r.From) != descending {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return false
}

// Expand gives the instances of a node on the date at dateIndex of Plan.Dates,
// in time order. A sub-daily node may have none (an empty window).
func (x *Expander) Expand(dateIndex, node int) ([]Instance, error) {
	if dateIndex < 0 || dateIndex >= len(x.plan.Dates) {
		return nil, fmt.Errorf("plan: expand: no date %d of %d", dateIndex, len(x.plan.Dates))
	}
	if node < 0 || node >= len(x.plan.Nodes) {
		return nil, fmt.Errorf("plan: expand: no node %d of %d", node, len(x.plan.Nodes))
	}
	d := x.plan.Dates[dateIndex]
	step := x.Step(node, d)
	if step < 0 {
		return nil, fmt.Errorf("plan: expand %s@%s: no step covers the date", x.plan.Nodes[node].Name, d)
	}
	slots := x.Slots(node, d)
	out := make([]Instance, len(slots))
	for i, s := range slots {
		out[i] = Instance{Node: node, Step: step, Slot: s}
	}
	return out, nil
}

// Count gives the number of instances of a node on one date.
func (x *Expander) Count(node int, d bizdate.Date) int {
	if !x.schedules[node].Cycle.SubDaily() {
		return 1
	}
	return len(x.Slots(node, d))
}

// Expand gives the instances of one node on one date of the plan; see
// Expander, which is the form for many of them.
func Expand(p *Plan, dateIndex, node int) ([]Instance, error) {
	x, err := NewExpander(p)
	if err != nil {
		return nil, err
	}
	return x.Expand(dateIndex, node)
}

// InstanceID gives the id of an instance inside its backfill: the node's
// name, "@", and the slot's id.
func InstanceID(node, slotID string) string { return node + "@" + slotID }

// Ranges joins dates, in any order and without repeats, into maximal runs of
// consecutive days, ascending.
func Ranges(dates []bizdate.Date) []DateRange {
	sorted := sortedDates(dates)
	out := []DateRange{}
	for _, d := range sorted {
		if n := len(out); n > 0 && (out[n-1].To == d || out[n-1].To+1 == d) {
			out[n-1].To = d
			continue
		}
		out = append(out, DateRange{From: d, To: d})
	}
	return out
}

// Reads gives the business dates of the upstream that a reader's date reads
// through an edge: the same date without a map, nothing when the map does not
// list the date. lo > hi means nothing.
func (p *Plan) Reads(e Edge, d bizdate.Date) (lo, hi bizdate.Date) {
	if e.Map == nil {
		return d, d
	}
	if *e.Map < 0 || *e.Map >= len(p.SlotMaps) {
		return 0, -1
	}
	for _, r := range p.SlotMaps[*e.Map].Runs {
		if r.From <= d && d <= r.To {
			return d + bizdate.Date(r.Lo), d + bizdate.Date(r.Hi)
		}
	}
	return 0, -1
}
