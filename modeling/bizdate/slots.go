package bizdate

import (
	"time"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Slots gives the slots of business date d in zone z, in time order. They lie
// on the local date d+1. A daily, weekly or monthly schedule has exactly one,
// also on dates on which it is not scheduled (semantics §3.4, §3.5). A
// sub-daily one has every instant of that date whose clock reading is on the
// grid: gap readings are left out, repeated ones occur twice. w keeps only
// clock readings inside it; nil = all.
func (s Schedule) Slots(d Date, z *time.Location, w *Window) []Slot {
	return s.AppendSlots(nil, d, z, w)
}

// AppendSlots appends the slots of business date d to dst; see Slots.
func (s Schedule) AppendSlots(dst []Slot, d Date, z *time.Location, w *Window) []Slot {
	local := d + 1
	if !s.Cycle.SubDaily() {
		if w != nil && !w.Contains(s.At) {
			return dst
		}
		return append(dst, Slot{Date: d, At: Instant(local, s.At, z)})
	}
	grid := s.grid(w)
	from, until := instant(local, 0, z), instant(local+1, 0, z)
	for from < until {
		seg := segmentAt(from, z)
		end := until
		if !seg.forever {
			end = min(end, seg.end)
		}
		// The clock readings of [from, end), counted from the local midnight.
		// Some may lie on another date, where a change of clocks crosses
		// midnight: those are not slots of this one.
		shift := seg.offset - int64(local)*daySeconds
		lo, hi := max(from+shift, 0), min(end+shift, daySeconds)
		for r := grid.first(lo); r < hi && r <= grid.last; r += grid.step {
			dst = append(dst, Slot{Date: d, At: time.Unix(r-shift, 0).In(z), SubDaily: true})
		}
		from = end
	}
	return dst
}

// grid is the clock readings start, start+step, … that are at least least and
// at most last, in seconds of the day.
type grid struct{ start, step, least, last int64 }

// grid gives the schedule's clock readings inside w.
func (s Schedule) grid(w *Window) grid {
	g := grid{step: int64(s.step()) * 60, last: int64(LastMinute)}
	if s.Hours != nil {
		g.start, g.last = int64(s.Hours.From), int64(s.Hours.To)
	}
	g.least = g.start
	if w != nil {
		g.least = max(g.least, int64(w.From))
		g.last = min(g.last, int64(w.To))
	}
	return g
}

// first gives the grid's first reading at or after lo.
func (g grid) first(lo int64) int64 {
	lo = max(lo, g.least)
	return g.start + (lo-g.start+g.step-1)/g.step*g.step
}

// SlotsOf gives the slots of all dates, date by date; the window applies to
// each date. Diagnostic: empty, if there is no slot at all.
func (s Schedule) SlotsOf(dates []Date, z *time.Location, w *Window) ([]Slot, diag.List) {
	var out []Slot
	for _, d := range dates {
		out = s.AppendSlots(out, d, z, w)
	}
	if len(out) > 0 {
		return out, nil
	}
	e := diag.Errorf("empty", "the selected dates have no slot").WithDetail("schedule: %s", s)
	if w != nil {
		e = diag.Errorf("empty", "no slot lies in the time window %s", w).WithDetail("schedule: %s", s).
			WithHint("widen --from-time and --to-time; both ends are included")
	}
	return nil, diag.List{e}
}

// Intervals gives, for each slot of business date d, the interval from it to
// the next slot, which may lie on a later date. The intervals of consecutive
// dates leave no hole.
func (s Schedule) Intervals(d Date, z *time.Location) []Interval {
	slots := s.Slots(d, z, nil)
	if len(slots) == 0 {
		return nil
	}
	n := len(slots)
	// A zone skips single dates (Samoa, 2011-12-30); a grid that lies in the
	// gap of a day has no slot there either.
	for next, tries := d+1, 0; len(slots) == n && tries < 8; next, tries = next+1, tries+1 {
		slots = s.AppendSlots(slots, next, z, nil)
	}
	out := make([]Interval, 0, n)
	for i := 0; i < n && i+1 < len(slots); i++ {
		out = append(out, Interval{Start: slots[i].At, End: slots[i+1].At})
	}
	return out
}

// Scheduled tells whether the schedule really runs for business date d, that
// is, on d+1; otherwise the instance is a dry-run success with the reason "not
// scheduled" (semantics §3.5).
func (s Schedule) Scheduled(d Date) bool {
	switch s.Cycle {
	case Weekly:
		return onWeekday(d+1, s.Weekdays)
	case Monthly:
		return onMonthDay(d+1, s.MonthDays)
	}
	return true
}

// Runs splits dates into those with a real run and those whose instance is a
// dry-run success (not scheduled), in the given order. It warns no_real_run if
// there are dates but no real run (semantics §3.5).
func (s Schedule) Runs(dates []Date) (scheduled, dry []Date, diags diag.List) {
	for _, d := range dates {
		if s.Scheduled(d) {
			scheduled = append(scheduled, d)
		} else {
			dry = append(dry, d)
		}
	}
	if len(scheduled) == 0 && len(dry) > 0 {
		w := diag.Warnf("no_real_run", "no selected business date has a real run").
			WithDetail("schedule: %s; a business date runs on the day after it", s)
		if next, ok := s.next(dry[len(dry)-1]); ok {
			w = w.WithHint("select for example %s, which runs on %s", next, next+1)
		}
		diags = append(diags, w)
	}
	return scheduled, dry, diags
}

// next gives the first business date from d on that has a real run.
func (s Schedule) next(d Date) (Date, bool) {
	// 29 February may be eight years away (around 1900 and 2100).
	for n := d; n < d+9*366; n++ {
		if s.Scheduled(n) {
			return n, true
		}
	}
	return 0, false
}

// Impact says which daily, weekly and monthly nodes below an hourly node run
// when the hourly node's backfill is cut to a window (semantics §6.5).
type Impact string

// The impacts: all nodes run, whatever the window (the zero value counts as
// this), or only those whose scheduled time lies in the window.
const (
	ImpactAll      Impact = "all"
	ImpactInWindow Impact = "in-window"
)

// ParseImpact reads all or in-window; an empty text is all. Diagnostic:
// bad_impact.
func ParseImpact(s string) (Impact, diag.List) {
	switch Impact(s) {
	case "", ImpactAll:
		return ImpactAll, nil
	case ImpactInWindow:
		return ImpactInWindow, nil
	}
	return "", diag.List{diag.Errorf("bad_impact", "hourly impact %q is not known", s).WithHint("write all or in-window")}
}

// Runs tells whether a node with schedule s runs when the hourly window w is
// given; nil = no window. A sub-daily node runs: the window cuts its slots.
func (i Impact) Runs(s Schedule, w *Window) bool {
	return i != ImpactInWindow || w == nil || s.Cycle.SubDaily() || w.Contains(s.At)
}
