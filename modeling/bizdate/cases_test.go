package bizdate

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Head is what every case has; the other keys differ by op. Unknown keys
// are errors, so that no key of a case goes unread.
type Head struct {
	ID      string   `yaml:"id"`
	Op      string   `yaml:"op"`
	Why     string   `yaml:"why"`
	Decided bool     `yaml:"decided"`
	Error   string   `yaml:"error"`
	Warn    []string `yaml:"warn"`
}

// check compares the diagnostics with the case; it tells whether there is a
// result to compare.
func (h Head) check(t *testing.T, diags diag.List) bool {
	t.Helper()
	if got := strings.Join(diags.Errors().Codes(), ","); got != h.Error {
		t.Fatalf("errors %q, want %q", got, h.Error)
	}
	if got, want := strings.Join(diags.Warnings().Codes(), ","), strings.Join(h.Warn, ","); got != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
	return h.Error == ""
}

// eachCase runs one function per op over a case file, with its defaults filled
// in where the op has the key.
func eachCase(t *testing.T, name string, ops map[string]func(*testing.T, []byte)) {
	data, err := os.ReadFile("../../fixtures/cases/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Topic    string         `yaml:"topic"`
		Format   int            `yaml:"format"`
		Defaults map[string]any `yaml:"defaults"`
		Cases    []yaml.MapSlice
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, raw := range file.Cases {
		values := raw.ToMap()
		op := fmt.Sprint(values["op"])
		if op == "select" {
			for k, v := range file.Defaults {
				if _, given := values[k]; !given {
					values[k] = v
				}
			}
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(values["id"]), func(t *testing.T) {
			t.Parallel()
			run := ops[op]
			if run == nil {
				t.Fatalf("unknown op %q", op)
			}
			run(t, text)
		})
	}
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var c T
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return c
}

// texts reads a list or one text, of any scalars.
type texts []string

func (l *texts) UnmarshalYAML(b []byte) error {
	var many []any
	if err := yaml.Unmarshal(b, &many); err == nil {
		for _, v := range many {
			*l = append(*l, fmt.Sprint(v))
		}
		return nil
	}
	var one string
	if err := yaml.Unmarshal(b, &one); err != nil {
		return err
	}
	*l = texts{one}
	return nil
}

func TestDateCases(t *testing.T) {
	t.Parallel()
	eachCase(t, "dates.yaml", map[string]func(*testing.T, []byte){
		"select": selectCase, "slots": slotsCase, "runs": runsCase, "impact": impactCase,
	})
}

func selectCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head       `yaml:",inline"`
		Mode       Mode      `yaml:"mode"`
		Start      string    `yaml:"start"`
		End        string    `yaml:"end"`
		Dates      texts     `yaml:"dates"`
		Weekdays   texts     `yaml:"weekdays"`
		MonthDays  texts     `yaml:"monthdays"`
		MonthEnd   bool      `yaml:"month_end"`
		Order      Direction `yaml:"order"`
		Now        string    `yaml:"now"`
		RunAt      string    `yaml:"run_at"`
		Zone       string    `yaml:"zone"`
		Want       texts     `yaml:"want"`
		WantCount  int       `yaml:"want_count"`
		WantFirst  string    `yaml:"want_first"`
		WantLast   string    `yaml:"want_last"`
		AllowRange bool      `yaml:"allow_long_range"`
	}](t, text)
	zone := mustZone(t, c.Zone)
	clock := Clock{Now: mustInstant(t, c.Now, zone), Zone: zone}
	if c.RunAt != "" {
		at := mustInstant(t, c.RunAt, zone)
		clock.RunAt = &at
	}
	if c.MonthEnd {
		c.MonthDays = append(c.MonthDays, "last")
	}
	got, diags := Selection{Mode: c.Mode, Start: c.Start, End: c.End, Weekdays: c.Weekdays, MonthDays: c.MonthDays,
		Lists: c.Dates, Direction: c.Order, AllowLongRange: c.AllowRange}.Select(clock)
	if c.check(t, diags) {
		compare(t, dateTexts(got), c.Want, c.WantCount, c.WantFirst, c.WantLast)
	}
}

// compare checks a list against `want`, or against count and ends.
func compare(t *testing.T, got, want []string, count int, first, last string) {
	t.Helper()
	if want != nil {
		if d := cmp.Diff([]string(want), got); d != "" {
			t.Error(d)
		}
		if count == 0 && first == "" && last == "" {
			return
		}
	}
	if len(got) == 0 || count > 0 && len(got) != count || first != "" && got[0] != first || last != "" && got[len(got)-1] != last {
		t.Errorf("got %d items %v, want %d: %s … %s", len(got), got, count, first, last)
	}
}

func dateTexts(dates []Date) []string {
	out := []string{}
	for _, d := range dates {
		out = append(out, d.String())
	}
	return out
}

// caseSchedule is a schedule in the words of the cases.
type caseSchedule struct {
	Every    string `yaml:"every"`
	Interval string `yaml:"interval"`
	From     string `yaml:"from"`
	To       string `yaml:"to"`
	At       string `yaml:"at"`
	Days     texts  `yaml:"days"`
}

func (c caseSchedule) parse() (Schedule, diag.List) {
	cycles := map[string]Cycle{"minute": Minute, "hour": Hourly, "day": Daily, "week": Weekly, "month": Monthly}
	t := ScheduleText{Cycle: string(cycles[c.Every]), At: c.At, Every: c.Interval, From: c.From, To: c.To}
	if c.Every == "week" {
		t.Weekdays = c.Days
	} else {
		t.MonthDays = c.Days
	}
	return t.Parse(nil)
}

// parseCaseWindow reads a case's `window`.
func parseCaseWindow(t *testing.T, w []string) (*Window, diag.List) {
	t.Helper()
	if w == nil {
		return nil, nil
	}
	if len(w) != 2 {
		t.Fatalf("window %v", w)
	}
	parsed, diags := ParseWindow(w[0], w[1])
	return &parsed, diags
}

func slotsCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head      `yaml:",inline"`
		Bizdate   string       `yaml:"bizdate"`
		Bizdates  texts        `yaml:"bizdates"`
		Schedule  caseSchedule `yaml:"schedule"`
		Window    []string     `yaml:"window"`
		Want      texts        `yaml:"want"`
		WantCount int          `yaml:"want_count"`
		WantFirst string       `yaml:"want_first"`
		WantLast  string       `yaml:"want_last"`
	}](t, text)
	if c.Bizdate != "" {
		c.Bizdates = append(c.Bizdates, c.Bizdate)
	}
	var dates []Date
	for _, d := range c.Bizdates {
		dates = append(dates, mustDate(t, d))
	}
	s, diags := c.Schedule.parse()
	w, more := parseCaseWindow(t, c.Window)
	diags = append(diags, more...)
	var got []string
	if !diags.HasErrors() {
		slots, more := s.SlotsOf(dates, time.UTC, w)
		diags = append(diags, more...)
		for _, s := range slots {
			got = append(got, s.At.Format("2006-01-02T15:04"))
		}
	}
	if c.check(t, diags) {
		compare(t, got, c.Want, c.WantCount, c.WantFirst, c.WantLast)
	}
}

func runsCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head     `yaml:",inline"`
		Schedule caseSchedule `yaml:"schedule"`
		Start    string       `yaml:"start"`
		End      string       `yaml:"end"`
		Dates    texts        `yaml:"dates"`
		WantReal texts        `yaml:"want_real"`
		WantDry  int          `yaml:"want_dry"`
	}](t, text)
	s, diags := c.Schedule.parse()
	dates, more := Selection{Start: c.Start, End: c.End, Lists: c.Dates, AllowLongRange: true}.
		Select(Clock{Now: Of(2999, 1, 1).UTC()})
	diags = append(diags, more...)
	runs, dry, more := s.Runs(dates)
	diags = append(diags, more...)
	if !c.check(t, diags) {
		return
	}
	if d := cmp.Diff([]string(c.WantReal), dateTexts(runs), cmp.Transformer("nonNil", func(l []string) string { return strings.Join(l, " ") })); d != "" {
		t.Error(d)
	}
	if len(dry) != c.WantDry {
		t.Errorf("%d dry runs, want %d", len(dry), c.WantDry)
	}
}

func impactCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head   `yaml:",inline"`
		Window []string     `yaml:"window"`
		Impact string       `yaml:"impact"`
		Node   caseSchedule `yaml:"node"`
		Want   string       `yaml:"want"`
	}](t, text)
	impact, ok := map[string]Impact{"always": ImpactAll, "inside": ImpactInWindow}[c.Impact]
	if !ok {
		t.Fatalf("unknown impact %q", c.Impact)
	}
	if c.Node.Every == "week" && c.Node.Days == nil {
		c.Node.Days = texts{"mon"} // the days do not matter here
	}
	if c.Node.Every == "month" && c.Node.Days == nil {
		c.Node.Days = texts{"1"}
	}
	s, diags := c.Node.parse()
	w, more := parseCaseWindow(t, c.Window)
	if !c.check(t, append(diags, more...)) {
		return
	}
	if got := map[bool]string{true: "run", false: "no_run"}[impact.Runs(s, w)]; got != c.Want {
		t.Errorf("got %s, want %s", got, c.Want)
	}
}

func TestZoneCases(t *testing.T) {
	t.Parallel()
	eachCase(t, "zones.yaml", map[string]func(*testing.T, []byte){
		"daily": zoneDailyCase, "day": zoneDayCase, "sub_daily": zoneSubDailyCase,
		"partition": zonePartitionCase, "intervals": zoneIntervalsCase,
	})
}

const rfc = "2006-01-02T15:04:05-07:00"

func zoneDailyCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head  `yaml:",inline"`
		Zone  string     `yaml:"zone"`
		At    string     `yaml:"at"`
		Start string     `yaml:"start"`
		End   string     `yaml:"end"`
		Want  [][]string `yaml:"want"`
	}](t, text)
	s, diags := ScheduleText{At: c.At}.Parse(nil)
	if !c.check(t, diags) {
		return
	}
	var got [][]string
	for d := mustDate(t, c.Start); d <= mustDate(t, c.End); d++ {
		for _, slot := range s.Slots(d-1, mustZone(t, c.Zone), nil) { // the cases name local dates
			got = append(got, []string{(slot.Date + 1).String(), slot.At.Format(rfc)})
		}
	}
	if d := cmp.Diff(c.Want, got); d != "" {
		t.Error(d)
	}
}

func zoneDayCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head        `yaml:",inline"`
		Zone        string  `yaml:"zone"`
		Date        string  `yaml:"date"`
		WantStart   string  `yaml:"want_start"`
		WantEnd     string  `yaml:"want_end"`
		WantMinutes float64 `yaml:"want_minutes"`
	}](t, text)
	c.check(t, nil)
	day := DayInterval(mustDate(t, c.Date), mustZone(t, c.Zone))
	if got := day.Start.Format(rfc); got != c.WantStart {
		t.Errorf("start %s, want %s", got, c.WantStart)
	}
	if got := day.End.Format(rfc); got != c.WantEnd {
		t.Errorf("end %s, want %s", got, c.WantEnd)
	}
	if got := day.Minutes(); got != c.WantMinutes {
		t.Errorf("%v minutes, want %v", got, c.WantMinutes)
	}
}

func zoneSubDailyCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head         `yaml:",inline"`
		Zone         string   `yaml:"zone"`
		Date         string   `yaml:"date"`
		EveryMinutes int      `yaml:"every_minutes"`
		Window       []string `yaml:"window"`
		Want         []string `yaml:"want"`
		WantRun      []string `yaml:"want_run"`
		WantCount    *int     `yaml:"want_count"`
	}](t, text)
	s, diags := ScheduleText{Cycle: string(Minute), Every: fmt.Sprint(c.EveryMinutes)}.Parse(nil)
	w, more := parseCaseWindow(t, c.Window)
	if !c.check(t, append(diags, more...)) {
		return
	}
	var got []string
	for _, slot := range s.Slots(mustDate(t, c.Date)-1, mustZone(t, c.Zone), w) {
		got = append(got, slot.ID())
	}
	if c.WantCount != nil && len(got) != *c.WantCount {
		t.Errorf("%d slots, want %d", len(got), *c.WantCount)
	}
	if c.Want != nil {
		if d := cmp.Diff(c.Want, got); d != "" {
			t.Error(d)
		}
	}
	if !strings.Contains(strings.Join(got, " ")+" ", strings.Join(c.WantRun, " ")) {
		t.Errorf("%v does not hold %v", got, c.WantRun)
	}
}

func zonePartitionCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head        `yaml:",inline"`
		Zone        string             `yaml:"zone"`
		Start       string             `yaml:"start"`
		End         string             `yaml:"end"`
		WantDates   int                `yaml:"want_dates"`
		WantMinutes float64            `yaml:"want_minutes"`
		WantOdd     map[string]float64 `yaml:"want_odd"`
	}](t, text)
	c.check(t, nil)
	first := mustDate(t, c.Start)
	days := DayIntervals(first, mustDate(t, c.End), mustZone(t, c.Zone))
	sum, odd := 0.0, map[string]float64{}
	for i, day := range days {
		if i > 0 && !day.Start.Equal(days[i-1].End) {
			t.Errorf("hole or overlap before day %d", i)
		}
		sum += day.Minutes()
		if day.Minutes() != 1440 {
			odd[(first + Date(i)).String()] = day.Minutes()
		}
	}
	if len(days) != c.WantDates || sum != c.WantMinutes {
		t.Errorf("%d days of %v minutes, want %d of %v", len(days), sum, c.WantDates, c.WantMinutes)
	}
	if d := cmp.Diff(c.WantOdd, odd); d != "" {
		t.Error(d)
	}
}

func zoneIntervalsCase(t *testing.T, text []byte) {
	c := decode[struct {
		Head         `yaml:",inline"`
		Zone         string  `yaml:"zone"`
		Date         string  `yaml:"date"`
		EveryMinutes int     `yaml:"every_minutes"`
		WantCount    int     `yaml:"want_count"`
		WantOdd      [][]any `yaml:"want_odd"`
	}](t, text)
	s, diags := ScheduleText{Cycle: string(Minute), Every: fmt.Sprint(c.EveryMinutes)}.Parse(nil)
	c.check(t, diags)
	got := s.Intervals(mustDate(t, c.Date)-1, mustZone(t, c.Zone))
	if len(got) != c.WantCount {
		t.Errorf("%d intervals, want %d", len(got), c.WantCount)
	}
	var odd []string
	for _, i := range got {
		if m := i.Minutes(); m != float64(c.EveryMinutes) {
			odd = append(odd, fmt.Sprint(i.Start.Format(rfc), " ", i.End.Format(rfc), " ", m))
		}
	}
	var want []string
	for _, o := range c.WantOdd {
		want = append(want, strings.TrimSpace(fmt.Sprintln(o...)))
	}
	if d := cmp.Diff(want, odd); d != "" {
		t.Error(d)
	}
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func mustDate(t testing.TB, s string) Date {
	t.Helper()
	d, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustInstant(t testing.TB, s string, z *time.Location) time.Time {
	t.Helper()
	at, diags := ParseInstant(s, z)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return at
}
