package metric

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
)

// A period at a business date D, which it includes where it ends at 0.
func TestRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ period, at, first, last string }{
		{"1d", "2024-03-15", "2024-03-15", "2024-03-15"},
		{"7d", "2024-03-03", "2024-02-26", "2024-03-03"},
		{"30d", "2024-03-01", "2024-02-01", "2024-03-01"},
		{"prev_1d", "2024-03-01", "2024-02-29", "2024-02-29"},
		{"prev_7d", "2024-03-15", "2024-03-08", "2024-03-14"},
		{"wtd", "2024-03-11", "2024-03-11", "2024-03-11"}, // a Monday
		{"wtd", "2024-03-10", "2024-03-04", "2024-03-10"}, // a Sunday
		{"prev_week", "2024-03-10", "2024-02-26", "2024-03-03"},
		{"mtd", "2024-03-01", "2024-03-01", "2024-03-01"},
		{"mtd", "2024-02-29", "2024-02-01", "2024-02-29"},
		{"prev_month", "2024-03-31", "2024-02-01", "2024-02-29"},
		{"prev_month", "2024-01-15", "2023-12-01", "2023-12-31"},
		{"ytd", "2024-12-31", "2024-01-01", "2024-12-31"},
		{"prev_year", "2024-02-29", "2023-01-01", "2023-12-31"},
	} {
		p, ok := Builtin(c.period)
		if !ok {
			t.Errorf("%s is not built in", c.period)
			continue
		}
		d, err := bizdate.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if first, last := Range(p, d); first.String() != c.first || last.String() != c.last {
			t.Errorf("%s at %s: %s..%s, want %s..%s", c.period, c.at, first, last, c.first, c.last)
		}
	}
	for _, name := range []string{"", "d", "0d", "07d", "-7d", "7", "prev_0d", "3661d", "qtd", "prev_"} {
		if p, ok := Builtin(name); ok {
			t.Errorf("%q is built in: %+v", name, p)
		}
	}
}

// some are periods of every shape.
func some() []modeling.Period {
	var out []modeling.Period
	for _, unit := range []string{day, week, month, year} {
		for _, r := range [][2]int{{0, 0}, {-1, 0}, {-1, -1}, {-3, -2}, {-5, 0}, {-14, -2}, {-31, -31}, {-61, -1}} {
			if unit == year && r[0] < -5 {
				continue
			}
			out = append(out, modeling.Period{Name: fmt.Sprintf("%s%d..%d", unit, r[0], r[1]), Unit: unit, From: r[0], To: r[1]})
		}
	}
	return out
}

// dates are days of more than a leap cycle, with a century.
func dates() []bizdate.Date {
	var out []bizdate.Date
	for d := bizdate.Of(1999, 1, 1); d < bizdate.Of(2029, 3, 1); d++ {
		out = append(out, d)
	}
	return out
}

// What covers claims holds on every date, and it claims what can be claimed.
func TestCovers(t *testing.T) {
	t.Parallel()
	all := dates()
	for _, p := range some() {
		for _, q := range some() {
			always := true
			for _, d := range all {
				pf, pl := Range(p, d)
				qf, ql := Range(q, d)
				if always = pf <= qf && ql <= pl; !always {
					break
				}
			}
			claimed := covers(p, q)
			if claimed && !always {
				t.Errorf("%s is said to cover %s", p.Name, q.Name)
			}
			ps, _ := bounds(p)
			qs, _ := bounds(q)
			if !claimed && always && (ps.unit == qs.unit || ps.unit == day || qs.unit == day) {
				t.Errorf("%s covers %s", p.Name, q.Name)
			}
		}
		s, e := bounds(p)
		for _, b := range []bound{s, e} {
			lo, hi := b.span()
			for _, d := range all {
				if off := int(b.on(d) - d); off < lo || off > hi {
					t.Errorf("%s: %v is %d days from %s, outside %d..%d", p.Name, b, off, d, lo, hi)
					break
				}
			}
		}
	}
}

// Periods that are said to fill a range do, on every date.
func TestJoined(t *testing.T) {
	t.Parallel()
	all := dates()
	claims := 0
	for _, p := range some() {
		for _, q := range some() {
			ps, pe := bounds(p)
			qs, qe := bounds(q)
			if !before(ps, qs) || !before(pe, qe) || !joined([]modeling.Period{q, p}, ps, qe) {
				continue
			}
			claims++
			for _, d := range all {
				_, last := Range(p, d)
				if first, _ := Range(q, d); first > last+1 {
					t.Errorf("%s and %s leave a gap at %s", p.Name, q.Name, d)
					break
				}
			}
		}
	}
	if claims < 20 {
		t.Errorf("only %d pairs are joined", claims)
	}
}

// The bounds that the SELECT writes give the partition values of the period's
// dates; around gives a range that holds every period.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"${yyyy-mm-dd}", "${yyyymmdd}", "p${yyyy/mm/dd}x", "$[yyyymmdd-1]"} {
		for _, dialect := range []param.Dialect{param.Dataphin, param.DataWorks} {
			fact := &modeling.Table{Name: "f", Partition: []modeling.PartitionColumn{{Name: "ds", Expr: expr, Type: "VARCHAR"}}}
			l, why := layoutOf(fact, dialect, "duckdb")
			if why != "" {
				t.Fatalf("%s %s: %s", dialect, expr, why)
			}
			for _, p := range some() {
				if p.Unit == week {
					continue // written with date_trunc
				}
				cond, constant := l.within(p)
				if !constant {
					t.Errorf("%s: %s is not constant", p.Name, cond)
				}
				around, _ := l.around([]modeling.Period{p, {Unit: week, From: -2, To: -1}})
				for d := bizdate.Of(2023, 11, 25); d < bizdate.Of(2024, 4, 5); d++ {
					first, last := Range(p, d)
					for _, x := range []bizdate.Date{first - 1, first, (first + last) / 2, last, last + 1} {
						v := eval(t, dialect, expr, x)
						if got, want := holds(t, dialect, cond, v, d), first <= x && x <= last; got != want {
							t.Fatalf("%s at %s: %s for partition %s is %v", p.Name, d, cond, v, got)
						}
						if first <= x && x <= last && !holds(t, dialect, around, v, d) {
							t.Fatalf("%s at %s: %s leaves %s out", p.Name, d, around, v)
						}
					}
				}
			}
		}
	}
}

func eval(t *testing.T, dialect param.Dialect, expr string, d bizdate.Date) string {
	t.Helper()
	v, diags := param.EvalOne(dialect, expr, param.Instant{Bizdate: d, Scheduled: bizdate.Instant(d+1, 0, time.UTC)})
	if diags.HasErrors() {
		t.Fatalf("%s: %v", expr, diags)
	}
	return v
}

// holds evaluates a condition of text comparisons at a business date.
func holds(t *testing.T, dialect param.Dialect, cond, v string, d bizdate.Date) bool {
	t.Helper()
	value := func(s string) string { return eval(t, dialect, strings.Trim(s, "'"), d) }
	if rest, ok := strings.CutPrefix(cond, "ds = "); ok {
		return v == value(rest)
	}
	if rest, ok := strings.CutPrefix(cond, "ds BETWEEN "); ok {
		from, to, _ := strings.Cut(rest, " AND ")
		return value(from) <= v && v <= value(to)
	}
	if rest, ok := strings.CutPrefix(cond, "ds >= "); ok {
		from, to, ok := strings.Cut(rest, " AND ds < ")
		return ok && value(from) <= v && v < value(to)
	}
	t.Fatalf("what is %s?", cond)
	return false
}
