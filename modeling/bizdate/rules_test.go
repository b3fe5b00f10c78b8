package bizdate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/diag"
)

// TestSelectRules holds what cases/README.md says and the case files leave out:
// above all the order of the checks.
func TestSelectRules(t *testing.T) {
	t.Parallel()
	now := mustInstant(t, "2024-06-01T09:00:00", time.UTC)
	past, later := now.Add(-time.Minute), now.Add(48*time.Hour)
	cycle := func(w, m string) Selection {
		return Selection{Mode: ModeCycle, Start: "2024-01-01", End: "2024-01-31", Weekdays: []string{w}, MonthDays: []string{m}}
	}
	for name, c := range map[string]struct {
		s     Selection
		runAt *time.Time
		want  string // dates, or codes
	}{
		"bad date before run time":     {Selection{Start: "2024-13-01", End: "2024-01-01"}, &past, "bad_date"},
		"run time before turned range": {Selection{Start: "2024-01-02", End: "2024-01-01"}, &past, "run_at_not_future"},
		"run time before empty list":   {Selection{Lists: []string{" , "}}, &past, "run_at_not_future"},
		"turned before long":           {Selection{Start: "2024-01-02", End: "1999-01-01"}, nil, "end_before_start"},
		"long before rules":            {Selection{Mode: ModeCycle, Start: "2020-01-01", End: "2024-01-01"}, nil, "too_long"},
		"rules before 1900":            {Selection{Mode: ModeCycle, Start: "1899-12-31", End: "1900-01-01"}, nil, "no_rule"},
		"weekday before month day":     {cycle("xyz", "0"), nil, "bad_weekday"},
		"month day zero":               {cycle("", "0"), nil, "bad_monthday"},
		"month day with a sign":        {cycle("", "+1"), nil, "bad_monthday"},
		"1900 before future in a list": {Selection{Lists: []string{"1899-12-31,2099-01-01"}}, nil, "before_1900"},
		"future before empty":          {Selection{Mode: ModeCycle, Start: "2024-06-01", End: "2024-06-02", MonthDays: []string{"15"}}, nil, "future"},
		"long range allowed":           {Selection{Start: "2022-12-31", End: "2024-01-01", MonthDays: []string{"31"}, AllowLongRange: true, Weekdays: []string{"mon"}, Mode: ModeRange}, nil, "367"},
		"run time opens a list":        {Selection{Lists: []string{"2024-06-03"}}, &later, "2024-06-03"},
		"run time opens up to its day": {Selection{Lists: []string{"2024-06-04"}}, &later, "future"},
		"several items, any case":      {cycle(" MON ,sunday", "02"), nil, "2024-01-01 2024-01-02 2024-01-07 2024-01-08 2024-01-14 2024-01-15 2024-01-21 2024-01-22 2024-01-28 2024-01-29"},
		"several texts, all breaks":    {Selection{Lists: []string{"\ufeff2024-01-03\r\n2024-01-01,,\r2024-01-02\t", "2024-02-29"}}, nil, "2024-01-01 2024-01-02 2024-01-03 2024-02-29"},
		"blanks do not separate":       {Selection{Lists: []string{"2024-01-03 2024-01-04"}}, nil, "bad_date"},
		"an empty end":                 {Selection{Start: "2024-01-03"}, nil, "bad_date"},
		"blanks around a range's end":  {Selection{Start: "2024-01-03 ", End: "2024-01-04"}, nil, "bad_date"},
		"nothing given":                {Selection{}, nil, "no_dates"},
		"rules without a range":        {Selection{Weekdays: []string{"mon"}}, nil, "no_dates"},
		"list and range":               {Selection{Start: "2024-01-03", Lists: []string{"2024-01-03"}}, nil, "conflicting_dates"},
		"year zero":                    {Selection{Lists: []string{"0000-01-01"}}, nil, "bad_date"},
		"repeats, with their warning":  {Selection{Lists: []string{"2024-01-03,2024-01-03,2024-01-03"}, Direction: Desc}, nil, "2024-01-03 duplicate"},
		"repeats of a refused list":    {Selection{Lists: []string{"2099-01-03,2099-01-03"}}, nil, "future"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dates, diags := c.s.Select(Clock{Now: now, RunAt: c.runAt})
			got := strings.Join(append(dateTexts(dates), diags.Codes()...), " ")
			if len(dates) > 100 {
				got = "367"
				if len(dates) != 367 {
					t.Errorf("%d dates", len(dates))
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for _, d := range diags.Errors() {
				if d.Hint == "" || d.Summary == "" {
					t.Errorf("%s has no hint", d)
				}
			}
		})
	}
}

func TestLimitIsTakenInTheZone(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 6, 1, 2, 0, 0, 0, time.UTC)
	for zone, want := range map[string]string{"America/New_York": "2024-05-31", "UTC": "2024-06-01", "Asia/Shanghai": "2024-06-01"} {
		if got := (Clock{Now: now, Zone: mustZone(t, zone)}).Limit().String(); got != want {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
}

func TestParseInstant(t *testing.T) {
	t.Parallel()
	ny := mustZone(t, "America/New_York")
	for text, want := range map[string]string{
		"2024-06-01T09:00":           "2024-06-01T09:00:00-04:00",
		"2024-06-01 09:00:30":        "2024-06-01T09:00:30-04:00",
		"2024-06-01T09:00Z":          "2024-06-01T05:00:00-04:00",
		"2024-06-01T09:00:00Z":       "2024-06-01T05:00:00-04:00",
		"2024-06-01T09:00+02:00":     "2024-06-01T03:00:00-04:00",
		"2024-06-01T09:00:00-07:00":  "2024-06-01T12:00:00-04:00",
		"2024-03-10T02:30":           "2024-03-10T03:00:00-04:00",
		"2024-11-03T01:30":           "2024-11-03T01:30:00-04:00",
		"2024-11-03T01:30:00.25Z":    "2024-11-02T21:30:00-04:00",
		"2024-06-31T09:00":           "bad_date",
		"":                           "bad_date",
		"tomorrow":                   "bad_date",
		"2024-06-01":                 "bad_time",
		"2024-06-01T9:00":            "bad_time",
		"2024-06-01T24:00":           "bad_time",
		"2024-06-01T09:00+2:00":      "bad_time",
		"2024-06-01T09:00+25:00":     "bad_time",
		"2024-06-01T+02:00":          "bad_time",
		"2024-06-01x09:00":           "bad_time",
		"2024-06-01T09:00 Europe/XX": "bad_time",
	} {
		at, diags := ParseInstant(text, ny)
		got := strings.Join(diags.Codes(), ",")
		if got == "" {
			got = at.Format(rfc)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestParseWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"", "", "00:00-23:59"}, {"01:00", "", "01:00-23:59"}, {"", "01:00", "00:00-01:00"},
		{"03:00", "03:00", "03:00-03:00"}, {"00:00", "24:00", "bad_time"}, {"3:00", "04:00", "bad_time"},
		{"03:00:00", "04:00", "bad_time"}, {"05:60", "04:00", "bad_time"}, {"05:00", "04:59", "end_before_start"},
	} {
		w, diags := ParseWindow(c.from, c.to)
		got := strings.Join(diags.Codes(), ",")
		if got == "" {
			got = w.String()
		}
		if got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestScheduleText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text ScheduleText
		want string // String(), or key:code of each diagnostic
	}{
		{ScheduleText{}, "daily at 00:00"},
		{ScheduleText{Cycle: "daily", At: "02:00:05"}, "daily at 02:00:05"},
		{ScheduleText{Cycle: "hourly"}, "hourly, every 60 minutes"},
		{ScheduleText{Cycle: "hourly", Every: "2", From: "08:30", To: "13:00"}, "hourly, every 120 minutes from 08:30 to 13:00"},
		{ScheduleText{Cycle: "hourly", Every: "2h", From: "08:30"}, "hourly, every 120 minutes from 08:30 to 23:59"},
		{ScheduleText{Cycle: "minute", Every: "15"}, "minute, every 15 minutes"},
		{ScheduleText{Cycle: "minute", Every: "90m"}, "minute, every 90 minutes"},
		{ScheduleText{Cycle: "minute"}, "minute, every 1 minutes"},
		{ScheduleText{Cycle: "weekly", Weekdays: []string{"mon, Thursday", "mon"}, At: "03:00"}, "weekly on mon, thu at 03:00"},
		{ScheduleText{Cycle: "monthly", MonthDays: []string{"1", "LAST"}}, "monthly on 1, last at 00:00"},
		{ScheduleText{Cycle: "dayly", At: "99:00"}, "cycle:bad_cycle"},
		{ScheduleText{At: "2:00"}, "at:bad_time"},
		{ScheduleText{At: "24:00"}, "at:bad_time"},
		{ScheduleText{Cycle: "hourly", At: "02:00"}, "at:bad_schedule"},
		{ScheduleText{Every: "15m", From: "01:00", Weekdays: []string{"mon"}, MonthDays: []string{"1"}},
			"every:bad_schedule from:bad_schedule weekdays:bad_schedule monthdays:bad_schedule"},
		{ScheduleText{Cycle: "hourly", Every: "90m"}, "every:bad_interval"},
		{ScheduleText{Cycle: "hourly", Every: "25"}, "every:bad_interval"},
		{ScheduleText{Cycle: "hourly", Every: "24"}, "hourly, every 1440 minutes"},
		{ScheduleText{Cycle: "minute", Every: "0", From: "1:00"}, "every:bad_interval from:bad_time"},
		{ScheduleText{Cycle: "minute", Every: "x", From: "01:00", To: "25:00"}, "every:bad_interval to:bad_time"},
		{ScheduleText{Cycle: "minute", From: "02:00", To: "01:00"}, "from:end_before_start"},
		{ScheduleText{Cycle: "weekly"}, "weekdays:no_rule"},
		{ScheduleText{Cycle: "weekly", Weekdays: []string{"mo"}}, "weekdays:bad_weekday"},
		{ScheduleText{Cycle: "monthly", At: "x"}, "at:bad_time monthdays:no_rule"},
		{ScheduleText{Cycle: "monthly", MonthDays: []string{"32"}}, "monthdays:bad_monthday"},
	} {
		s, diags := c.text.Parse(func(key string) diag.Pos { return diag.Pos{File: key} })
		var got []string
		for _, d := range diags {
			got = append(got, d.File+":"+d.Code)
			if d.Hint == "" {
				t.Errorf("%s has no hint", d)
			}
		}
		if len(diags) == 0 {
			got = []string{s.String()}
			data, err := json.Marshal(s)
			var again Schedule
			if err == nil {
				err = json.Unmarshal(data, &again)
			}
			if d := cmp.Diff(s, again); err != nil || d != "" {
				t.Errorf("%s: %v %s", data, err, d)
			}
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestImpactAtTheMinute(t *testing.T) {
	t.Parallel()
	w := &Window{To: 3 * 3600}
	for _, c := range []struct {
		s    Schedule
		w    *Window
		i    Impact
		want bool
	}{
		{Schedule{At: 3*3600 + 59}, w, ImpactInWindow, true}, // closed to the minute
		{Schedule{At: 3*3600 + 60}, w, ImpactInWindow, false},
		{Schedule{At: 3*3600 + 60}, w, "", true},
		{Schedule{At: 3*3600 + 60}, nil, ImpactInWindow, true},
		{Schedule{Cycle: Monthly, MonthDays: []MonthDay{MonthEnd}}, w, ImpactInWindow, true},
		{Schedule{Cycle: Hourly}, &Window{From: 60, To: 60}, ImpactInWindow, true},
	} {
		if got := c.i.Runs(c.s, c.w); got != c.want {
			t.Errorf("%s in %v: %v", c.s, c.w, got)
		}
	}
	if _, d := ParseImpact("inside"); len(d) != 1 {
		t.Error("inside is no impact of the product")
	}
}

func TestNoRealRunNamesADate(t *testing.T) {
	t.Parallel()
	s := Schedule{Cycle: Monthly, MonthDays: []MonthDay{31}}
	runs, dry, diags := s.Runs([]Date{Of(2024, 4, 1), Of(2024, 4, 2)})
	if len(runs) != 0 || len(dry) != 2 || len(diags) != 1 || !strings.Contains(diags[0].Hint, "2024-05-30") {
		t.Errorf("%v %v %v", runs, dry, diags)
	}
	if _, _, diags := s.Runs(nil); len(diags) != 0 {
		t.Errorf("no dates: %v", diags)
	}
}

func TestSkippedDate(t *testing.T) {
	t.Parallel()
	z := mustZone(t, "Pacific/Apia")
	hourly, skipped := Schedule{Cycle: Hourly}, Of(2011, 12, 30)
	if got := hourly.Slots(skipped-1, z, nil); len(got) != 0 {
		t.Errorf("a skipped date has slots: %v", got)
	}
	if got := hourly.Intervals(skipped-2, z); len(got) != 24 || got[23].Minutes() != 60 {
		t.Errorf("the day before it: %v", got)
	}
	if _, diags := hourly.SlotsOf([]Date{skipped - 1}, z, nil); strings.Join(diags.Codes(), ",") != "empty" {
		t.Error(diags)
	}
}

func TestZonesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Local", "Europe/Nowhere", "../etc/passwd"} {
		if z, err := LoadZone(name); err == nil {
			t.Errorf("%q gives %s", name, z)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "2024-1-01", "２０２４-01-01", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := Parse(s); err == nil && d.String() != s {
			t.Errorf("%q reads as %s", s, d)
		}
		if r, err := ParseRange(s); err == nil && (r.Last < r.First || r.Len() < 1) {
			t.Errorf("%q reads as %v", s, r)
		}
	})
}

func FuzzParseClock(f *testing.F) {
	for _, s := range []string{"00:00", "23:59:59", "24:00", "1:00", "01-00", "01:0", "2024-06-01T09:00", "2024-06-01T09:00Z",
		"2024-06-01 09:00:30+05:45", "2024-03-10T02:30", "2024-06-01T09:00-", "2024-06-01T", "2024-06-01T-05:00"} {
		f.Add(s)
	}
	z, err := LoadZone("America/New_York")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseTimeOfDay(s); err == nil {
			if again, err := ParseTimeOfDay(c.String()); err != nil || again != c || c < 0 || c >= daySeconds {
				t.Errorf("%q reads as %s", s, c)
			}
		}
		if at, diags := ParseInstant(s, z); len(diags) == 0 {
			if again, diags := ParseInstant(at.Format(time.RFC3339Nano), z); len(diags) > 0 || !again.Equal(at) {
				t.Errorf("%q reads as %s, then %s", s, at, again)
			}
		}
	})
}

func FuzzSelect(f *testing.F) {
	f.Add("2024-01-01,2024-01-02\n2024-01-01", "mon", "last", "")
	f.Add("2024-01-01", "", "31,1", "2024-12-31")
	f.Add("\ufeff,\r", "x", "-1", "1900-01-01")
	clock := Clock{Now: Of(2024, 6, 1).UTC()}
	f.Fuzz(func(t *testing.T, a, w, m, b string) {
		for _, s := range []Selection{{Mode: ModeList, Lists: []string{a, b}}, {Mode: ModeRange, Start: a, End: b},
			{Mode: ModeCycle, Start: a, End: b, Weekdays: []string{w}, MonthDays: []string{m}}} {
			dates, diags := s.Select(clock)
			if (len(dates) == 0) != diags.HasErrors() || len(diags.Errors()) > 1 {
				t.Errorf("%+v: %v and %v", s, dates, diags)
			}
			for i, d := range dates {
				if d < Earliest || d > clock.Limit() || i > 0 && d <= dates[i-1] {
					t.Errorf("%+v gives %s", s, d)
				}
			}
		}
	})
}

func FuzzScheduleText(f *testing.F) {
	f.Add("hourly", "", "2h", "08:30", "13:00", "", "")
	f.Add("weekly", "02:00", "", "", "", "mon,thu", "")
	f.Add("monthly", "23:59:59", "", "", "", "", "1,last")
	f.Add("minute", "", "1439", "23:58", "23:59", "", "")
	z, err := LoadZone("Australia/Lord_Howe")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cycle, at, every, from, to, w, m string) {
		s, diags := ScheduleText{Cycle: cycle, At: at, Every: every, From: from, To: to, Weekdays: []string{w}, MonthDays: []string{m}}.Parse(nil)
		if diags.HasErrors() {
			return
		}
		for d := Of(2024, 4, 5); d < Of(2024, 4, 8); d++ {
			day := DayInterval(d+1, z)
			slots := s.Slots(d, z, nil)
			for _, slot := range slots {
				if !day.Contains(slot.At) {
					t.Errorf("%s: slot %s outside %v", s, slot.ID(), day)
				}
			}
			if !s.Cycle.SubDaily() && len(slots) != 1 {
				t.Errorf("%s: %d slots", s, len(slots))
			}
		}
	})
}
