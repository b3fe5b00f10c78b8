package bizdate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/diag"
)

// MaxDays is the longest range of one backfill, both ends counted, unless
// long ranges are allowed (semantics §3.1).
const MaxDays = 366

// Direction is the run order of dates: asc or desc. The zero value is
// ascending.
type Direction string

// The directions (semantics §6.2).
const (
	Asc  Direction = "asc"
	Desc Direction = "desc"
)

// ParseDirection reads asc or desc; an empty text is asc. Diagnostic: bad_order.
func ParseDirection(s string) (Direction, diag.List) {
	switch Direction(s) {
	case "", Asc:
		return Asc, nil
	case Desc:
		return Desc, nil
	}
	return "", diag.List{diag.Errorf("bad_order", "order %q is not known", s).WithHint("write asc or desc")}
}

// Sort puts dates in the direction's order, in place.
func (o Direction) Sort(dates []Date) {
	slices.Sort(dates)
	if o == Desc {
		slices.Reverse(dates)
	}
}

// Mode says how a Selection names its dates.
type Mode string

// The modes (semantics §3.1). With the zero value the mode follows from what
// is given.
const (
	ModeRange Mode = "range" // Start..End
	ModeCycle Mode = "cycle" // those of Start..End that a rule keeps
	ModeList  Mode = "list"  // Lists
)

// Selection is a request for business dates as a person wrote it (semantics
// §3.1). Nothing of it is checked before Select.
type Selection struct {
	Mode       Mode
	Start, End string // YYYY-MM-DD, both ends included
	// Weekdays (mon…sun) and MonthDays (1…31, last) keep only some dates of
	// the range: the union of both. An item may hold several, with commas.
	Weekdays, MonthDays []string
	// Lists are texts of dates separated by commas or line breaks. Files and
	// standard input are read by the caller.
	Lists []string
	// Direction is the order of the result.
	Direction Direction
	// AllowLongRange lifts the limit of MaxDays.
	AllowLongRange bool
}

// Clock is what a selection knows of time.
type Clock struct {
	Now time.Time
	// RunAt is when the backfill is to start; nil = now.
	RunAt *time.Time
	// Zone decides which date "today" is; nil = UTC.
	Zone *time.Location
}

// zone gives the clock's zone, UTC by default.
func (c Clock) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// Limit gives the latest business date that may be selected: the date of
// RunAt, else of Now, in the zone (semantics §3.2).
func (c Clock) Limit() Date {
	if c.RunAt != nil {
		return FromTime(c.RunAt.In(c.zone()))
	}
	return FromTime(c.Now.In(c.zone()))
}

// Select gives the selected business dates in run order, without repeats.
//
// The checks run in a fixed order and the first kind that fails is the only
// error; it names every offender of its kind: bad_date, run_at_not_future,
// end_before_start, too_long, no_rule, bad_weekday, bad_monthday, before_1900,
// future, empty (semantics §3.1, §3.2). A date that is listed twice warns
// duplicate. Only without a Mode: no_dates, conflicting_dates.
func (s Selection) Select(c Clock) ([]Date, diag.List) {
	if s.Mode == "" {
		mode, d := s.infer()
		if d != nil {
			return nil, diag.List{*d}
		}
		s.Mode = mode
	}
	var (
		dates []Date
		warns diag.List
		err   *diag.Diagnostic
	)
	switch s.Mode {
	case ModeRange, ModeCycle:
		dates, err = s.fromRange(c)
	case ModeList:
		dates, warns, err = s.fromList(c)
	default:
		d := diag.Errorf("bad_mode", "date selection mode %q is not known", s.Mode).WithHint("write range, cycle or list")
		err = &d
	}
	if err != nil {
		return nil, diag.List{*err}
	}
	if s.Direction == Desc {
		slices.Reverse(dates)
	}
	return dates, warns
}

// infer derives the mode from what is given.
func (s Selection) infer() (Mode, *diag.Diagnostic) {
	ends := s.Start != "" || s.End != ""
	rules := len(s.Weekdays) > 0 || len(s.MonthDays) > 0
	switch {
	case len(s.Lists) > 0 && (ends || rules):
		d := diag.Errorf("conflicting_dates", "both a list of dates and a range are given").
			WithHint("use --dates alone, or --start-date and --end-date, with --weekdays or --monthdays to keep only some")
		return "", &d
	case len(s.Lists) > 0:
		return ModeList, nil
	case rules && ends:
		return ModeCycle, nil
	case ends:
		return ModeRange, nil
	}
	d := diag.Errorf("no_dates", "no business dates are selected").
		WithHint("give --start-date and --end-date, or --dates")
	return "", &d
}

// fromRange handles ranges and cycles; the result ascends.
func (s Selection) fromRange(c Clock) ([]Date, *diag.Diagnostic) {
	for _, end := range []struct{ have, lack, flag string }{{s.Start, s.End, "--end-date"}, {s.End, s.Start, "--start-date"}} {
		if strings.TrimSpace(end.lack) != "" {
			continue
		}
		if _, err := Parse(end.have); err == nil {
			d := diag.Errorf("bad_date", "the range has no %s", end.flag).WithHint("give %s too; both are included, equal dates are one day", end.flag)
			return nil, &d
		}
	}
	start, errS := Parse(s.Start)
	end, errE := Parse(s.End)
	var bad []string
	if errS != nil {
		bad = append(bad, s.Start)
	}
	if errE != nil {
		bad = append(bad, s.End)
	}
	if len(bad) > 0 {
		return nil, badDates(bad)
	}
	if d := c.checkRunAt(); d != nil {
		return nil, d
	}
	if end < start {
		d := diag.Errorf("end_before_start", "the range ends on %s, before it starts on %s", end, start).
			WithHint("swap the dates; --order desc runs a range backwards")
		return nil, &d
	}
	days := Range{First: start, Last: end}.Len()
	if days > MaxDays && !s.AllowLongRange {
		d := diag.Errorf("too_long", "%s to %s are %d days, at most %d are allowed", start, end, days, MaxDays).
			WithHint("shorten the range, or add --allow-long-range")
		return nil, &d
	}
	weekdays, monthdays, d := s.rules()
	if d != nil {
		return nil, d
	}
	if d := c.checkBounds(start, end); d != nil {
		return nil, d
	}
	dates := make([]Date, 0, days)
	for d := start; d <= end; d++ {
		if s.Mode == ModeRange || onWeekday(d, weekdays) || onMonthDay(d, monthdays) {
			dates = append(dates, d)
		}
	}
	if len(dates) == 0 {
		d := diag.Errorf("empty", "no date from %s to %s matches the rule", start, end).
			WithDetail("rule: %s", ruleText(weekdays, monthdays)).
			WithHint("widen the range or choose other days; a day that a month does not have is skipped, not moved")
		return nil, &d
	}
	return dates, nil
}

// rules reads the cycle's rules; a range has none.
func (s Selection) rules() ([]Weekday, []MonthDay, *diag.Diagnostic) {
	if s.Mode == ModeRange {
		return nil, nil, nil
	}
	wItems, mItems := splitAll(s.Weekdays), splitAll(s.MonthDays)
	if len(wItems)+len(mItems) == 0 {
		d := diag.Errorf("no_rule", "no weekday and no day of the month is chosen").
			WithHint("give --weekdays mon,thu or --monthdays 1,15,last, or leave both out to take the whole range")
		return nil, nil, &d
	}
	weekdays, d := parseItems(wItems, "bad_weekday", "weekday", "write mon, tue, wed, thu, fri, sat, sun", ParseWeekday)
	if d != nil {
		return nil, nil, d
	}
	monthdays, d := parseItems(mItems, "bad_monthday", "day of the month", "write 1 to 31, or last", ParseMonthDay)
	return weekdays, monthdays, d
}

// parseItems parses all items, or gives one diagnostic that names all bad ones.
func parseItems[T any](items []string, code, noun, hint string, parse func(string) (T, error)) ([]T, *diag.Diagnostic) {
	out := make([]T, 0, len(items))
	var bad []string
	for _, it := range items {
		v, err := parse(it)
		if err != nil {
			bad = append(bad, it)
			continue
		}
		out = append(out, v)
	}
	if len(bad) > 0 {
		d := diag.Errorf(code, "%s is no %s", quoteSome(bad), noun).WithHint("%s", hint)
		return nil, &d
	}
	return out, nil
}

// fromList handles lists; the result ascends.
func (s Selection) fromList(c Clock) ([]Date, diag.List, *diag.Diagnostic) {
	var (
		dates []Date
		bad   []string
	)
	for _, it := range splitAll(s.Lists) {
		d, err := Parse(it)
		if err != nil {
			bad = append(bad, it)
			continue
		}
		dates = append(dates, d)
	}
	if len(bad) > 0 {
		return nil, nil, badDates(bad)
	}
	if d := c.checkRunAt(); d != nil {
		return nil, nil, d
	}
	if len(dates) == 0 {
		d := diag.Errorf("empty", "the list holds no date").
			WithHint("write dates as YYYY-MM-DD, separated by commas or line breaks")
		return nil, nil, &d
	}
	slices.Sort(dates)
	if d := c.checkBounds(dates[0], dates[len(dates)-1]); d != nil {
		return nil, nil, d
	}
	var twice []string
	unique := dates[:1]
	for _, d := range dates[1:] {
		if d != unique[len(unique)-1] {
			unique = append(unique, d)
			continue
		}
		if t := d.String(); len(twice) == 0 || twice[len(twice)-1] != t {
			twice = append(twice, t)
		}
	}
	var warns diag.List
	if len(twice) > 0 {
		warns = append(warns, diag.Warnf("duplicate", "%s: listed more than once, runs once", some(twice)))
	}
	return unique, warns, nil
}

// checkRunAt refuses a start that is not later than now (semantics §6.5).
func (c Clock) checkRunAt() *diag.Diagnostic {
	if c.RunAt == nil || c.RunAt.After(c.Now) {
		return nil
	}
	const form = "2006-01-02 15:04:05 -07:00"
	d := diag.Errorf("run_at_not_future", "the run time %s is not after now, %s",
		c.RunAt.In(c.zone()).Format(form), c.Now.In(c.zone()).Format(form)).
		WithHint("give a later --run-at, or leave it out to run at once")
	return &d
}

// checkBounds checks the first and the last date of a selection.
func (c Clock) checkBounds(first, last Date) *diag.Diagnostic {
	if first < Earliest {
		d := diag.Errorf("before_1900", "%s is before %s, the earliest business date", first, Earliest).
			WithHint("start at %s or later", Earliest)
		return &d
	}
	if limit := c.Limit(); last > limit {
		what := "today"
		if c.RunAt != nil {
			what = "the date of --run-at"
		}
		d := diag.Errorf("future", "%s is after %s, %s in %s", last, limit, what, c.zone()).
			WithHint("end at %s, or give a --run-at on or after %s", limit, last)
		return &d
	}
	return nil
}

func badDates(bad []string) *diag.Diagnostic {
	d := diag.Errorf("bad_date", "%s is not a date", quoteSome(bad)).
		WithHint("write an existing date as YYYY-MM-DD; separate several with commas or line breaks")
	return &d
}

// splitAll cuts texts at commas and line breaks, trims the items and drops
// empty ones. A byte order mark, as editors put into files, is no item.
func splitAll(texts []string) []string {
	var out []string
	for _, t := range texts {
		t = strings.TrimPrefix(t, "\ufeff")
		for _, it := range strings.FieldsFunc(t, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
			if it = strings.TrimSpace(it); it != "" {
				out = append(out, it)
			}
		}
	}
	return out
}

func ruleText(weekdays []Weekday, monthdays []MonthDay) string {
	var parts []string
	for _, w := range weekdays {
		parts = append(parts, w.String())
	}
	for _, m := range monthdays {
		parts = append(parts, m.String())
	}
	return strings.Join(parts, ", ")
}

// quoteSome quotes each item and lists the first few.
func quoteSome(items []string) string {
	q := make([]string, len(items))
	for i, it := range items {
		if r := []rune(it); len(r) > 40 {
			it = string(r[:40]) + "…"
		}
		q[i] = fmt.Sprintf("%q", it)
	}
	return some(q)
}

// some lists the first ten items and counts the rest.
func some(items []string) string {
	const shown = 10
	if len(items) <= shown {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:shown], ", "), len(items)-shown)
}
