package param

import (
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// Grain is the calendar unit that a date form tells apart.
type Grain string

// The grains.
const (
	GrainDay   Grain = "day"
	GrainMonth Grain = "month"
	GrainYear  Grain = "year"
)

// DateForm is a value that is a pure function of the business date d: Layout
// printed at (d + Days) moved by Months. Two values of one Grain and Layout
// are equal exactly if they name the same day, month or year, so that
// partitions can be matched with filters by arithmetic (semantics §3.7).
type DateForm struct {
	Grain  Grain
	Layout string // canonical, with tokens in braces: "{yyyy}-{MM}-{dd}"
	Days   int    // calendar days added first; $[…] counts 1
	Months int    // calendar months added then, clamped to the month's end

	elems []elem
}

// DayOffset gives n of a day-grained form at d + n days, which is invertible:
// partition ${yyyy-mm-dd+a} holds the value ${yyyy-mm-dd+b} of date d at the
// slot d + b − a.
func (f DateForm) DayOffset() (int, bool) { return f.Days, f.Grain == GrainDay && f.Months == 0 }

// DateForm gives the form of a value that holds year, month and day, year and
// month, or a year, and no time of day, fraction or late-bound value; text
// around it is kept in Layout. For any other value ok is false and the
// planner evaluates date by date.
func (e *Expr) DateForm() (form DateForm, ok bool) {
	if e.ref != "" {
		return DateForm{}, false
	}
	var has [tokMM + 1]bool
	first := true
	for _, p := range e.parts {
		switch p.kind {
		case partText:
			form.elems = append(form.elems, elem{text: p.text})
		case partTime:
			n := p.time.normal()
			days := n.days
			if n.base == baseSched {
				days++ // the scheduled date is the business date + 1
			}
			if n.finest > tokDay || n.minutes != 0 || !first && (days != form.Days || n.months != form.Months) {
				return DateForm{}, false
			}
			if n.months != 0 && n.days != 0 {
				return DateForm{}, false // months move before days in a timeExpr
			}
			form.Days, form.Months, first = days, n.months, false
			for _, el := range n.layout {
				has[el.tok] = true
				form.elems = append(form.elems, el)
			}
		default:
			return DateForm{}, false
		}
	}
	switch {
	case has[tokYear] && has[tokMonth] && has[tokDay]:
		form.Grain = GrainDay
	case has[tokYear] && has[tokMonth] && !has[tokDay]:
		form.Grain = GrainMonth
	case has[tokYear] && !has[tokMonth] && !has[tokDay]:
		form.Grain = GrainYear
	default:
		return DateForm{}, false
	}
	var b strings.Builder
	for _, el := range form.elems {
		if el.tok == tokText {
			b.WriteString(layoutEscaper.Replace(el.text))
		} else {
			b.WriteString("{" + canonicalToken(Dataphin, el.tok) + "}")
		}
	}
	form.Layout = b.String()
	return form, true
}

var layoutEscaper = strings.NewReplacer(`\`, `\\`, "{", `\{`, "}", `\}`)

// Dates gives the business dates, both included, whose value is v; ok is
// false if no date gives it.
func (f DateForm) Dates(v string) (from, to bizdate.Date, ok bool) {
	y, m, d := 0, 1, 1
	rest := v
	for _, e := range f.elems {
		switch e.tok {
		case tokText:
			if rest, ok = strings.CutPrefix(rest, e.text); !ok {
				return 0, 0, false
			}
		case tokYear:
			y, rest, ok = digits(rest, 4)
		case tokYear2:
			_, rest, ok = digits(rest, 2)
		case tokMonth:
			m, rest, ok = digits(rest, 2)
		default:
			d, rest, ok = digits(rest, 2)
		}
		if !ok {
			return 0, 0, false
		}
	}
	shown := bizdate.Of(y, time.Month(m), d)
	if y == 0 || rest != "" || string(appendLayout(nil, f.elems, shown, 0)) != v {
		return 0, 0, false // left-over text, a date that does not exist, or pieces that contradict each other
	}
	switch f.Grain {
	case GrainDay:
		if f.Months != 0 {
			return f.clamped(shown)
		}
		from, to = shown, shown
	case GrainMonth:
		from = bizdate.Of(y, time.Month(m-f.Months), 1)
		to = bizdate.Of(y, time.Month(m-f.Months+1), 0)
	default:
		from = bizdate.Of(y, time.Month(1-f.Months), 1)
		to = bizdate.Of(y, time.Month(13-f.Months), 0)
	}
	return from - bizdate.Date(f.Days), to - bizdate.Date(f.Days), true
}

// clamped inverts a day moved by months: the month's last day may stand for
// several dates, and a date of a longer month for none.
func (f DateForm) clamped(shown bizdate.Date) (from, to bizdate.Date, ok bool) {
	near := shown.AddMonths(-f.Months)
	for d := near - 3; d <= near+3; d++ {
		if d.AddMonths(f.Months) != shown {
			continue
		}
		if !ok {
			from, ok = d-bizdate.Date(f.Days), true
		}
		to = d - bizdate.Date(f.Days)
	}
	return from, to, ok
}

func digits(s string, n int) (v int, rest string, ok bool) {
	if len(s) < n {
		return 0, s, false
	}
	for i := range n {
		if !isDigit(s[i]) {
			return 0, s, false
		}
		v = v*10 + int(s[i]-'0')
	}
	return v, s[n:], true
}
