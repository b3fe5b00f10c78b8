package metric

import (
	"strconv"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
)

// The units of periods.
const (
	day   = "day"
	week  = "week"
	month = "month"
	year  = "year"
)

// maxUnits bounds how far back a period reaches, in its unit.
const maxUnits = 3660

// Builtin gives a built-in statistical period: `<n>d` (the last n days, the
// business date included), `prev_<n>d` (the n days before it), `wtd`, `mtd`,
// `ytd` (from the start of its week, month or year to it) and `prev_week`,
// `prev_month`, `prev_year` (the whole one before).
func Builtin(name string) (modeling.Period, bool) {
	p := modeling.Period{Name: fold(name), Unit: day}
	switch p.Name {
	case "wtd":
		p.Unit = week
	case "mtd":
		p.Unit = month
	case "ytd":
		p.Unit = year
	case "prev_week", "prev_month", "prev_year":
		p.Unit, p.From, p.To = strings.TrimPrefix(p.Name, "prev_"), -1, -1
	default:
		digits, previous := strings.CutPrefix(p.Name, "prev_")
		digits, days := strings.CutSuffix(digits, "d")
		n, err := strconv.Atoi(digits)
		if !days || err != nil || n < 1 || n > maxUnits || strconv.Itoa(n) != digits {
			return modeling.Period{}, false
		}
		if p.From = 1 - n; previous {
			p.From, p.To = -n, -1
		}
	}
	return p, true
}

// Range gives the business dates of a period at the business date d, both
// included. Weeks start on Monday.
func Range(p modeling.Period, d bizdate.Date) (first, last bizdate.Date) {
	start, end := bounds(p)
	return start.on(d), end.on(d) - 1
}

// bound is the first day of a calendar unit, n units from that of the
// business date; a day n days from it.
type bound struct {
	unit string
	n    int
}

// bounds gives the first day of a period and the day after its last.
func bounds(p modeling.Period) (start, end bound) {
	unit := p.Unit
	if unit == "" {
		unit = day
	}
	end = bound{unit, p.To + 1}
	if p.To == 0 {
		end = bound{day, 1} // up to the business date, whatever the unit
	}
	return bound{unit, p.From}, end
}

func (b bound) on(d bizdate.Date) bizdate.Date {
	y, m, _ := d.Civil()
	switch b.unit {
	case week:
		monday := d - bizdate.Date((int(d.Weekday())+6)%7)
		return monday + bizdate.Date(7*b.n)
	case month:
		return bizdate.Of(y, m+time.Month(b.n), 1)
	case year:
		return bizdate.Of(y+b.n, time.January, 1)
	}
	return d + bizdate.Date(b.n)
}

// The least and greatest number of days of 0 to 11 months in a row.
var (
	leastDays = [12]int{0, 28, 59, 89, 120, 150, 181, 212, 242, 273, 303, 334}
	mostDays  = [12]int{0, 31, 62, 92, 123, 153, 184, 215, 245, 276, 306, 337}
)

// span gives the range of days from the business date to the bound, over all
// dates. n is ≤ 0 for months and years.
func (b bound) span() (lo, hi int) {
	k := -b.n
	switch b.unit {
	case week:
		return 7*b.n - 6, 7 * b.n
	case month:
		return -(366*(k/12) + mostDays[k%12] + 30), -(365*(k/12) + leastDays[k%12])
	case year:
		return -(366*k + 365), -365 * k
	}
	return b.n, b.n
}

// before tells whether a is never later than b, whatever the business date.
func before(a, b bound) bool {
	switch {
	case a.unit == b.unit:
		return a.n <= b.n
	case a.unit == year && b.unit == month:
		return 12*a.n <= b.n
	case a.unit == month && b.unit == year:
		return a.n+11 <= 12*b.n
	}
	_, hi := a.span()
	lo, _ := b.span()
	return hi <= lo
}

// covers tells whether p holds every date of q, whatever the business date.
func covers(p, q modeling.Period) bool {
	ps, pe := bounds(p)
	qs, qe := bounds(q)
	return before(ps, qs) && before(qe, pe)
}

// samePeriod tells whether two periods, named as they may be, are one.
func samePeriod(p, q modeling.Period) bool {
	ps, pe := bounds(p)
	qs, qe := bounds(q)
	return ps == qs && pe == qe
}
