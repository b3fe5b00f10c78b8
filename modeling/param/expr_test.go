package param_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

func parse(t testing.TB, d param.Dialect, s string) *param.Expr {
	t.Helper()
	e, diags := param.Parse(d, param.Text(s))
	if e == nil {
		t.Fatal(diags)
	}
	return e
}

func at(t testing.TB, date, clock string) param.Instant {
	t.Helper()
	i, diags := param.Moment{Bizdate: date, At: clock, Zone: "America/New_York"}.Instant()
	if diags != nil {
		t.Fatal(diags)
	}
	return i
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect param.Dialect
		in      string
		want    string
	}{
		{param.Dataphin, "${yyyymmdd - 1}", "${yyyyMMdd-1}"},
		{param.Dataphin, "${yyyyMMdd-1}", "${yyyyMMdd-1}"},
		{param.Dataphin, "$[yyyymmdd -1]", "${yyyyMMdd}"},
		{param.Dataphin, "$[yyyymm]", "$[yyyyMM]"},
		{param.Dataphin, "$[yyyy-MM-dd HH:mm-5/24/60]", "$[yyyy-MM-dd HH:mi-5/1440]"},
		{param.Dataphin, "$[HH -1/24]", "$[HH-60/1440]"},
		{param.Dataphin, "${yyyy+01}", "${yyyy+1}"},
		{param.Dataphin, "${yyyymm+0}", "${yyyyMM}"},
		{param.Dataphin, "a${mm}b", "a${MM}b"},
		{param.Dataphin, "$KeyB", "$keyb"},
		{param.DataWorks, "$[yyyymmdd-7*1]", "${yyyymmdd-6}"},
		{param.DataWorks, "$[yyyymmddhh24-1-1/24+1-30/1440]", "$[yyyymmddhh24-90/1440]"},
		{param.DataWorks, "$[hh]", "$[hh12]"},
		{param.DataWorks, "$[add_months(yyyymmdd,-12*2)]", "$[add_months(yyyymmdd,-24)]"},
		{param.DataWorks, "${yyyymm-3*2}", "${yyyymm-6}"},
	} {
		if d := cmp.Diff(c.want, parse(t, c.dialect, c.in).Canonical()); d != "" {
			t.Errorf("%s: %s", c.in, d)
		}
	}
}

// corpus holds value expressions of both dialects.
var corpus = []string{
	"", "plain", "$other", "$", "$$", "$a b", "${yyyymmdd}", "$[yyyymmdd -1]", "${yyyy-mm -1}", "${yyyy+1}",
	"$[HH:mm:ss-5/24/60]", "$[yyyy-MM-dd HH:mm+45/1440]", "p_${yyyy_mm}$[dd]x", "${yyyy}${mm}${dd}", "$${yyyy}", "${yyyymmdd",
	"$[yyyymmddhh24miss]", "$[yyyymmdd-1-1/24]", "$[add_months(yyyymmdd,-12*2)]", "${yy}-${mm}", "$[hh12:mi-15/24/60]",
	"${}", "$[-1]", "${yyyyxx}", "${yyyymmdd-9223372036854775808}", "$[add_months(,)]", "${ }", "日${dd}", "\x00$[\xff]",
}

// FuzzParse checks, for any text, that parsing ends, that errors have places
// and known codes, and that the canonical form means the same.
func FuzzParse(f *testing.F) {
	for _, s := range corpus {
		f.Add(s, int32(16000), uint32(9000))
	}
	f.Fuzz(func(t *testing.T, s string, day int32, sec uint32) {
		date := bizdate.Date(day % 800000)
		i := param.Instant{Bizdate: date, Scheduled: bizdate.Instant(date+1, bizdate.TimeOfDay(sec%86400), time.UTC)}
		for _, d := range []param.Dialect{param.Dataphin, param.DataWorks} {
			e, diags := param.Parse(d, param.Text(s))
			for _, dg := range diags {
				if dg.Line < 1 || dg.Column < 1 || dg.Column > len(s)+1 || dg.Hint == "" {
					t.Fatalf("bad place or hint: %+v", dg)
				}
			}
			if (e == nil) != diags.HasErrors() {
				t.Fatalf("%q: expression and errors disagree: %v", s, diags)
			}
			if e == nil {
				continue
			}
			c, diags := param.Parse(d, param.Text(e.Canonical()))
			if diags != nil {
				t.Fatalf("%q: canonical %q: %v", s, e.Canonical(), diags)
			}
			if c.Canonical() != e.Canonical() {
				t.Fatalf("%q: canonical %q is not a fixed point: %q", s, e.Canonical(), c.Canonical())
			}
			v, d1 := e.Eval(i)
			w, d2 := c.Eval(i)
			if v != w || len(d1) != len(d2) {
				t.Fatalf("%q = %q %v, canonical %q = %q %v", s, v, d1, e.Canonical(), w, d2)
			}
			if form, ok := e.DateForm(); ok && d1 == nil {
				from, to, ok := form.Dates(v)
				if !ok || date < from || date > to {
					t.Fatalf("%q at %s = %q, which inverts to %s..%s %v (%+v)", s, date, v, from, to, ok, form)
				}
			}
		}
	})
}

func TestPositions(t *testing.T) {
	t.Parallel()
	_, diags := param.Parse(param.Dataphin, param.Source{Text: "é${yyyy}\n ${yyyyQ} ${dd-1/7}", Pos: diag.Pos{File: "m.yml", Line: 4, Column: 9}})
	var got []string
	for _, d := range diags {
		got = append(got, d.Code+" "+d.Pos.String())
	}
	if d := cmp.Diff([]string{"token m.yml:5:8", "offset m.yml:5:15"}, got); d != "" {
		t.Error(d)
	}
	_, diags = param.Parse(param.Dataphin, param.Source{Text: "é${Q}", Pos: diag.Pos{File: "m.yml", Line: 4, Column: 9}})
	if d := cmp.Diff("m.yml:4:12", diags[0].Pos.String()); d != "" {
		t.Error(d)
	}
}

func TestDateForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect param.Dialect
		in      string
		want    string // grain layout days months, or ""
		at      string // a value
		from    string // the first and last date that give it
		to      string
	}{
		{param.Dataphin, "${yyyy-mm-dd}", "day {yyyy}-{MM}-{dd} 0 0", "2024-02-29", "2024-02-29", "2024-02-29"},
		{param.Dataphin, "${yyyy-MM-dd - 1}", "day {yyyy}-{MM}-{dd} -1 0", "2024-02-29", "2024-03-01", "2024-03-01"},
		{param.Dataphin, "$[yyyymmdd-1]", "day {yyyy}{MM}{dd} 0 0", "20240229", "2024-02-29", "2024-02-29"},
		{param.Dataphin, "$[yyyymmdd]", "day {yyyy}{MM}{dd} 1 0", "20240229", "2024-02-28", "2024-02-28"},
		{param.Dataphin, "ds=${yyyy}/${mm}/${dd}", "day ds={yyyy}/{MM}/{dd} 0 0", "ds=2024/02/29", "2024-02-29", "2024-02-29"},
		{param.Dataphin, "$[yyyy]${mmdd}", "", "", "", ""},
		{param.Dataphin, "${yyyymm-1}01", "month {yyyy}{MM}01 0 -1", "20240101", "2024-02-01", "2024-02-29"},
		{param.Dataphin, "$[yyyy-mm]", "month {yyyy}-{MM} 1 0", "2024-02", "2024-01-31", "2024-02-28"},
		{param.Dataphin, "${yyyy+1}", "year {yyyy} 0 12", "2024", "2023-01-01", "2023-12-31"},
		{param.DataWorks, "$[add_months(yyyymmdd,-1)]", "day {yyyy}{MM}{dd} 1 -1", "20230228", "2023-03-27", "2023-03-30"},
		{param.DataWorks, "$[add_months(yyyymmdd,1)]", "day {yyyy}{MM}{dd} 1 1", "20230330", "", ""},
		{param.DataWorks, "${yy}${yyyy}", "year {yy}{yyyy} 0 0", "242024", "2024-01-01", "2024-12-31"},
		{param.DataWorks, "${yymmdd}", "", "", "", ""},
		{param.Dataphin, "${mmdd}", "", "", "", ""},
		{param.Dataphin, "${yyyymmdd-1/24}", "", "", "", ""},
		{param.Dataphin, "$[yyyyMMddHH]", "", "", "", ""},
		{param.Dataphin, "plain", "", "", "", ""},
		{param.Dataphin, "$ref", "", "", "", ""},
		{param.Dataphin, "a{b}\\${yyyy}", `year a\{b\}\\{yyyy} 0 0`, `a{b}\2024`, "2024-01-01", "2024-12-31"},
	} {
		form, ok := parse(t, c.dialect, c.in).DateForm()
		got := ""
		if ok {
			got = fmt.Sprintf("%s %s %d %d", form.Grain, form.Layout, form.Days, form.Months)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.in, d)
			continue
		}
		if !ok {
			continue
		}
		from, to, ok := form.Dates(c.at)
		got = ""
		if ok {
			got = from.String() + " " + to.String()
		}
		want := ""
		if c.from != "" {
			want = c.from + " " + c.to
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: dates of %s: %s", c.in, c.at, d)
		}
		for _, bad := range []string{"", "x", c.at + "0", "0000"} {
			if from, to, ok := form.Dates(bad); ok {
				t.Errorf("%s: dates of %q: %s %s", c.in, bad, from, to)
			}
		}
	}
	if n, ok := mustForm(t, "$[yyyymmdd-8]").DayOffset(); n != -7 || !ok {
		t.Error(n, ok)
	}
	if _, ok := mustForm(t, "${yyyymm}").DayOffset(); ok {
		t.Error("a month has no day offset")
	}
}

func mustForm(t *testing.T, s string) param.DateForm {
	t.Helper()
	f, ok := parse(t, param.Dataphin, s).DateForm()
	if !ok {
		t.Fatal(s)
	}
	return f
}

// TestDatesInvertsEval compares Dates with a search over all dates.
func TestDatesInvertsEval(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []string{"${yyyymmdd-3}", "$[yyyymm]", "${yyyymm+5}", "${yyyy-1}", "$[add_months(yyyymmdd,-13)]", "$[add_months(yyyymmdd,1)]", "$[add_months(yyyymm,-2)]"} {
		e := parse(t, param.DataWorks, s)
		form, ok := e.DateForm()
		if !ok {
			t.Fatal(s)
		}
		for range 20 {
			day := bizdate.Of(2020, 1, 1) + bizdate.Date(r.IntN(2000))
			v, _ := e.Eval(param.Instant{Bizdate: day})
			from, to, ok := form.Dates(v)
			if !ok || day < from || day > to {
				t.Fatalf("%s: %s at %s: %s..%s", s, v, day, from, to)
			}
			for d := from - 3; d <= to+3; d++ {
				w, _ := e.Eval(param.Instant{Bizdate: d})
				if (w == v) != (d >= from && d <= to) {
					t.Fatalf("%s: %s at %s, but %s at %s (%s..%s)", s, v, day, w, d, from, to)
				}
			}
		}
	}
}

func TestUsesSchedule(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"${yyyymmddHH}": false, "$[yyyymmdd]": false, "$[yyyymm]": false, "$[HH]": true, "$[yyyymmdd-1/24]": true, "x": false,
	} {
		if got := parse(t, param.Dataphin, s).UsesSchedule(); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m    param.Moment
		want string
	}{
		{param.Moment{Bizdate: "2024-03-09", At: "02:30", Zone: "America/New_York"}, "2024-03-09 2024-03-10T03:00:00-04:00"},
		{param.Moment{Scheduled: "2024-03-10T12:00", Zone: "Asia/Tokyo"}, "2024-03-09 2024-03-10T12:00:00+09:00"},
		{param.Moment{Scheduled: "2024-03-10 12:00:01"}, "2024-03-09 2024-03-10T12:00:01Z"},
		{param.Moment{Scheduled: "2024-03-10T20:00:00Z", Zone: "Asia/Tokyo"}, "2024-03-10 2024-03-11T05:00:00+09:00"},
		{param.Moment{Scheduled: "2024-03-10"}, "2024-03-09 2024-03-10T00:00:00Z"},
		{param.Moment{}, "bad_date"},
		{param.Moment{Bizdate: "2024-02-30"}, "bad_date"},
		{param.Moment{Bizdate: "2024-02-03", At: "24:00"}, "bad_time"},
		{param.Moment{Bizdate: "2024-02-03", Zone: "Mars/Base"}, "bad_zone"},
		{param.Moment{Bizdate: "2024-02-03", Scheduled: "2024-02-03T00:00"}, "usage"},
	} {
		i, diags := c.m.Instant()
		got := ""
		if diags != nil {
			got = diags[0].Code
		} else {
			got = i.Bizdate.String() + " " + i.Scheduled.Format(time.RFC3339)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v: %s", c.m, d)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	e := parse(b, param.Dataphin, "${yyyy-mm-dd-1}")
	i := at(b, "2024-03-09", "02:30")
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := e.Eval(i); diags != nil {
			b.Fatal(diags)
		}
	}
}

func BenchmarkEvalElapsed(b *testing.B) {
	e := parse(b, param.Dataphin, "$[yyyy-MM-dd HH:mi-1/24]")
	i := at(b, "2024-03-09", "02:30")
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := e.Eval(i); diags != nil {
			b.Fatal(diags)
		}
	}
}
