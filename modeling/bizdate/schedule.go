package bizdate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Cycle is how often a node is scheduled.
type Cycle string

// The cycles. The zero value counts as daily.
const (
	Minute  Cycle = "minute"
	Hourly  Cycle = "hourly"
	Daily   Cycle = "daily"
	Weekly  Cycle = "weekly"
	Monthly Cycle = "monthly"
)

// SubDaily tells whether slots of this cycle are instants (semantics §1).
func (c Cycle) SubDaily() bool { return c == Minute || c == Hourly }

// Schedule says when a node runs, on the local clock of the project's zone.
// The zero value is daily at 00:00.
type Schedule struct {
	Cycle Cycle `json:"cycle,omitempty"`
	// At is the time of day of a daily, weekly or monthly schedule.
	At TimeOfDay `json:"at,omitempty"`
	// Every is the step of a sub-daily schedule, in minutes; 0 = one hour for
	// hourly, one minute for minute schedules.
	Every int `json:"every,omitempty"`
	// Hours is the part of the day on which a sub-daily schedule runs; its
	// start is where the steps are counted from. nil = the whole day.
	Hours *Window `json:"hours,omitempty"`
	// Weekdays are the run days of a weekly schedule.
	Weekdays []Weekday `json:"weekdays,omitempty"`
	// MonthDays are the run days of a monthly schedule.
	MonthDays []MonthDay `json:"monthdays,omitempty"`
}

// step gives the sub-daily step in minutes.
func (s Schedule) step() int {
	switch {
	case s.Every > 0:
		return s.Every
	case s.Cycle == Minute:
		return 1
	}
	return 60
}

// String describes the schedule in a few words: "daily at 02:00", "hourly,
// every 120 minutes from 08:30 to 13:00", "weekly on mon, thu at 00:00".
func (s Schedule) String() string {
	if s.Cycle.SubDaily() {
		t := string(s.Cycle) + ", every " + strconv.Itoa(s.step()) + " minutes"
		if s.Hours != nil {
			t += " from " + s.Hours.From.String() + " to " + s.Hours.To.String()
		}
		return t
	}
	t := string(s.Cycle)
	if t == "" {
		t = string(Daily)
	}
	switch s.Cycle {
	case Weekly:
		t += " on " + ruleText(s.Weekdays, nil)
	case Monthly:
		t += " on " + ruleText(nil, s.MonthDays)
	}
	return t + " at " + s.At.String()
}

// ScheduleText is a schedule as written in a project file. Empty texts and
// lists are "not written".
type ScheduleText struct {
	// Cycle is minute, hourly, daily, weekly or monthly; default daily.
	Cycle string
	// At is HH:MM or HH:MM:SS.
	At string
	// Every is a number in the cycle's own unit ("2" = two hours when hourly)
	// or with a unit, "15m", "2h".
	Every string
	// From and To are HH:MM, both included.
	From, To            string
	Weekdays, MonthDays []string
}

// Parse checks the texts and gives the schedule with all problems found; pos
// tells where a key (cycle, at, every, from, to, weekdays, monthdays) is
// written and may be nil. Diagnostics: bad_cycle, bad_time, bad_interval,
// end_before_start, no_rule, bad_weekday, bad_monthday, and bad_schedule for a
// key that the cycle does not have.
func (t ScheduleText) Parse(pos func(key string) diag.Pos) (Schedule, diag.List) {
	p := scheduleParser{text: t, pos: pos}
	s := Schedule{Cycle: p.cycle()}
	if len(p.diags) > 0 {
		return Schedule{}, p.diags // what the other keys mean depends on it
	}
	p.foreignKeys(s.Cycle)
	if s.Cycle.SubDaily() {
		s.Every = p.every(s.Cycle)
		s.Hours = p.hours()
	} else {
		s.At = p.at()
	}
	if s.Cycle == Weekly {
		s.Weekdays = list(&p, "weekdays", t.Weekdays, "bad_weekday", "weekday", "write mon, tue, wed, thu, fri, sat, sun", ParseWeekday)
	}
	if s.Cycle == Monthly {
		s.MonthDays = list(&p, "monthdays", t.MonthDays, "bad_monthday", "day of the month", "write 1 to 31, or last", ParseMonthDay)
	}
	if p.diags.HasErrors() {
		return Schedule{}, p.diags
	}
	return s, p.diags
}

type scheduleParser struct {
	text  ScheduleText
	pos   func(string) diag.Pos
	diags diag.List
}

func (p *scheduleParser) add(key string, d diag.Diagnostic) {
	if p.pos != nil {
		d = d.At(p.pos(key))
	}
	p.diags = append(p.diags, d)
}

func (p *scheduleParser) cycle() Cycle {
	known := []string{string(Minute), string(Hourly), string(Daily), string(Weekly), string(Monthly)}
	c := strings.TrimSpace(p.text.Cycle)
	if c == "" {
		return Daily
	}
	if !slices.Contains(known, c) {
		p.add("cycle", diag.Errorf("bad_cycle", "schedule cycle %q is not known", c).
			WithHint("%s", diag.DidYouMean(c, known, "write "+strings.Join(known, ", "))))
	}
	return Cycle(c)
}

// foreignKeys refuses keys that would be ignored without a word.
func (p *scheduleParser) foreignKeys(c Cycle) {
	t := p.text
	for _, k := range []struct {
		key     string
		written bool
		allowed bool
		hint    string
	}{
		{"at", t.At != "", !c.SubDaily(), "use from for the first slot of the day and every for the step"},
		{"every", t.Every != "", c.SubDaily(), "only hourly and minute schedules have a step"},
		{"from", t.From != "", c.SubDaily(), "only hourly and minute schedules have a first slot of the day; use at"},
		{"to", t.To != "", c.SubDaily(), "only hourly and minute schedules have a last slot of the day"},
		{"weekdays", len(splitAll(t.Weekdays)) > 0, c == Weekly, "use cycle: weekly"},
		{"monthdays", len(splitAll(t.MonthDays)) > 0, c == Monthly, "use cycle: monthly"},
	} {
		if k.written && !k.allowed {
			p.add(k.key, diag.Errorf("bad_schedule", "%s does not apply to a %s schedule", k.key, c).WithHint("%s", k.hint))
		}
	}
}

func (p *scheduleParser) at() TimeOfDay {
	if p.text.At == "" {
		return 0
	}
	t, err := ParseTimeOfDay(p.text.At)
	if err != nil {
		p.add("at", diag.Errorf("bad_time", "%q is not a time of day", p.text.At).WithHint("write HH:MM or HH:MM:SS, quoted in YAML"))
	}
	return t
}

func (p *scheduleParser) every(c Cycle) int {
	text := strings.TrimSpace(p.text.Every)
	unit := 1
	if c == Hourly {
		unit = 60
	}
	if text == "" {
		return unit
	}
	number := text
	if n, ok := strings.CutSuffix(text, "m"); ok {
		number, unit = n, 1
	} else if n, ok := strings.CutSuffix(text, "h"); ok {
		number, unit = n, 60
	}
	n, err := strconv.ParseUint(number, 10, 12)
	minutes := int(n) * unit
	switch {
	case err != nil || n == 0 || minutes > 24*60:
		p.add("every", diag.Errorf("bad_interval", "%q is not a step inside a day", text).
			WithHint("write 2h, 15m, or a number in the cycle's unit; at most 24h"))
	case c == Hourly && minutes%60 != 0:
		p.add("every", diag.Errorf("bad_interval", "an hourly schedule cannot step by %d minutes", minutes).
			WithHint("use cycle: minute with every: %dm", minutes))
	}
	return minutes
}

func (p *scheduleParser) hours() *Window {
	if p.text.From == "" && p.text.To == "" {
		return nil
	}
	w, diags := ParseWindow(p.text.From, p.text.To)
	for _, d := range diags {
		key := "from"
		if p.text.From == "" {
			key = "to"
		} else if d.Code == "bad_time" {
			if _, err := ParseTimeOfDay(p.text.From); err == nil && len(p.text.From) == 5 {
				key = "to"
			}
		}
		p.add(key, d)
	}
	return &w
}

// list reads the run days of a weekly or monthly schedule.
func list[T comparable](p *scheduleParser, key string, texts []string, code, noun, hint string, parse func(string) (T, error)) []T {
	items := splitAll(texts)
	if len(items) == 0 {
		p.add(key, diag.Errorf("no_rule", "the schedule names no %s", noun).WithHint("add %s: %s", key, hint))
		return nil
	}
	days, d := parseItems(items, code, noun, hint, parse)
	if d != nil {
		p.add(key, *d)
		return nil
	}
	var unique []T
	for _, day := range days {
		if !slices.Contains(unique, day) {
			unique = append(unique, day)
		}
	}
	return unique
}
