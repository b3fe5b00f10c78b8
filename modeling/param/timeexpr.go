package param

import (
	"strconv"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// timeExpr is one ${…} or $[…]: layout at base, moved by whole months, then
// whole days (calendar, the clock reading stays), then minutes (elapsed time).
type timeExpr struct {
	base    base
	layout  []elem
	months  int
	days    int
	minutes int64
	finest  token
}

// The offsets beyond which no date between 0001 and 9999 can be the result.
const (
	maxMonths  = 10000 * 12
	maxDays    = 10000 * 366
	maxMinutes = int64(maxDays) * 1440
)

var (
	firstDate = bizdate.Of(1, 1, 1)
	lastDate  = bizdate.Of(9999, 12, 31)
)

// parseTime reads the body of ${…} or $[…] (semantics §2.2–2.4).
func parseTime(d Dialect, b base, body string) (t *timeExpr, warn, fail *problem) {
	if d == DataWorks && b == baseSched && strings.HasPrefix(body, "add_months(") {
		return parseAddMonths(body)
	}
	format, tail := splitOffset(body)
	tailOff := len(format)
	if tail != "" {
		if d != DataWorks {
			format = strings.TrimRight(format, " ")
		}
		if strings.HasSuffix(format, "-") {
			return nil, nil, &problem{code: "syntax", off: tailOff - 1, summary: "two operators follow each other", hint: offsetHint(d, b)}
		}
	} else if s := strings.TrimRight(format, " "); len(s) > 0 && s[len(s)-1] == '-' {
		return nil, nil, &problem{code: "syntax", off: len(s) - 1, summary: "an operator without a number", hint: offsetHint(d, b)}
	}
	layout, warn, fail := parseLayout(d, b, format)
	if fail != nil {
		return nil, nil, fail
	}
	t = &timeExpr{base: b, layout: layout, finest: finest(layout)}
	if tail == "" {
		return t, warn, nil
	}
	if fail = t.parseOffset(d, tail); fail != nil {
		fail.off += tailOff
		return nil, nil, fail
	}
	return t, warn, nil
}

// splitOffset cuts a body before its offset: the first sign that a number
// follows, or the first +, which no format can hold.
func splitOffset(body string) (format, tail string) {
	for i := 0; i < len(body); i++ {
		if body[i] == '+' {
			return body[:i], body[i:]
		}
		if rest := strings.TrimLeft(body[i+1:], " "); body[i] == '-' && rest != "" && isDigit(rest[0]) {
			return body[:i], body[i:]
		}
	}
	return body, ""
}

// parseAddMonths reads `add_months(fmt,n)` (dataworks, semantics §2.4).
func parseAddMonths(body string) (t *timeExpr, warn, fail *problem) {
	const open = len("add_months(")
	syntax := func(off int, summary string) *problem {
		return &problem{code: "syntax", off: off, summary: summary, hint: "write $[add_months(fmt,n)], n an integer or a product, without blanks"}
	}
	inner, ok := strings.CutSuffix(body[open:], ")")
	if !ok {
		return nil, nil, syntax(len(body), "add_months does not end with )")
	}
	comma := strings.LastIndexByte(inner, ',')
	if comma < 0 {
		return nil, nil, syntax(len(body), "add_months has no number of months")
	}
	layout, warn, fail := parseLayout(DataWorks, baseSched, inner[:comma])
	if fail != nil {
		fail.off += open
		return nil, nil, fail
	}
	arg, off := inner[comma+1:], open+comma+1
	if arg != "" && isDigit(arg[0]) {
		arg = "+" + arg
	}
	terms, at, ok := parseTerms(arg, false)
	if !ok || len(terms) == 0 {
		return nil, nil, syntax(off+at, "the number of months is malformed")
	}
	n, whole := terms[0].integer()
	if len(terms) != 1 || !whole {
		return nil, nil, &problem{code: "offset", off: off, summary: "the number of months is not an integer", hint: "write n, -n or a product such as 12*2"}
	}
	if n > maxMonths || n < -maxMonths {
		return nil, nil, outOfRange(off)
	}
	return &timeExpr{base: baseSched, layout: layout, finest: finest(layout), months: int(n)}, warn, nil
}

// term is one signed summand of an offset: n, a*b, n/24, …
type term struct {
	neg bool
	num []int64
	ops []byte
	dec bool // a number with a decimal point
}

// saturated is larger than every legal offset and leaves room for sums.
const saturated = int64(1) << 50

// parseTerms reads `±term±term…`. Blanks are allowed around the sign where
// the dialect says so. At tells where it stopped when not ok.
func parseTerms(s string, blanks bool) (out []term, at int, ok bool) {
	i := 0
	skip := func() {
		for blanks && i < len(s) && s[i] == ' ' {
			i++
		}
	}
	for i < len(s) {
		if s[i] != '+' && s[i] != '-' {
			return nil, i, false
		}
		t := term{neg: s[i] == '-'}
		i++
		skip()
		for {
			start := i
			for i < len(s) && (isDigit(s[i]) || s[i] == '.' && i > start) {
				t.dec = t.dec || s[i] == '.'
				i++
			}
			if i == start {
				return nil, i, false
			}
			n, err := strconv.ParseInt(s[start:i], 10, 64)
			if err != nil || n > saturated {
				n = saturated // reported as `range`, unless the shape is wrong
			}
			t.num = append(t.num, n)
			if i == len(s) || s[i] != '*' && s[i] != '/' {
				break
			}
			t.ops = append(t.ops, s[i])
			i++
		}
		out = append(out, t)
		skip()
	}
	return out, i, true
}

// integer gives the value of n or a*b.
func (t term) integer() (int64, bool) {
	n := t.num[0]
	switch {
	case t.dec:
		return 0, false
	case string(t.ops) == "*":
		if m := t.num[1]; m != 0 && n > saturated/m {
			n = saturated
		} else {
			n *= m
		}
	case len(t.ops) > 0:
		return 0, false
	}
	if t.neg {
		n = -n
	}
	return n, true
}

// minutes gives the elapsed minutes of n/24, n/24/60 or n/1440.
func (t term) minutes() (int64, bool) {
	n := t.num[0]
	switch {
	case t.dec:
		return 0, false
	case string(t.ops) == "/" && t.num[1] == 24:
		n = min(n, saturated/60) * 60
	case string(t.ops) == "/" && t.num[1] == 1440, string(t.ops) == "//" && t.num[1] == 24 && t.num[2] == 60:
	default:
		return 0, false
	}
	if t.neg {
		n = -n
	}
	return n, true
}

// parseOffset reads the offset at the end of a body (semantics §2.4).
func (t *timeExpr) parseOffset(d Dialect, tail string) *problem {
	if d != DataWorks {
		tail = strings.TrimRight(tail, " ")
	}
	terms, at, ok := parseTerms(tail, d != DataWorks)
	if !ok {
		return &problem{code: "syntax", off: at, summary: "the offset is malformed", hint: offsetHint(d, t.base)}
	}
	unsupported := func(why string) *problem {
		return &problem{code: "offset", summary: "the offset " + strconv.Quote(tail) + " " + why, hint: offsetHint(d, t.base)}
	}
	sums := d == DataWorks && t.base == baseSched
	if len(terms) > 1 && !sums {
		return unsupported("is a sum")
	}
	var whole, elapsed int64
	integer := false
	for _, tm := range terms {
		for i, op := range tm.ops {
			if op == '/' && tm.num[i+1] == 0 {
				return unsupported("divides by zero")
			}
		}
		n, isInt := tm.integer()
		m, isFraction := tm.minutes()
		switch {
		case isInt && d != DataWorks && len(tm.ops) > 0:
			return unsupported("is a product, which only the dataworks dialect has")
		case isInt:
			whole, integer = clampAdd(whole, n), true
		case isFraction && d == DataWorks && t.base == baseBiz:
			return unsupported("is a fraction of a day, which the business date does not take here")
		case isFraction:
			elapsed = clampAdd(elapsed, m)
		default:
			return unsupported("is not a number of days, hours or minutes")
		}
	}
	coarse := t.finest < tokDay
	if integer && coarse && sums {
		return unsupported("is an integer on a format without a day")
	}
	if whole > maxDays || whole < -maxDays || elapsed > maxMinutes || elapsed < -maxMinutes {
		return outOfRange(0)
	}
	switch {
	case !coarse:
		t.days = int(whole)
	case t.finest == tokMonth:
		t.months = int(whole)
	default:
		t.months = 12 * int(whole)
	}
	if t.months > maxMonths || t.months < -maxMonths {
		return outOfRange(0)
	}
	t.minutes = elapsed
	return nil
}

func clampAdd(a, b int64) int64 { return min(max(a+b, -saturated), saturated) }

func outOfRange(off int) *problem {
	return &problem{code: "range", off: off, summary: "the result lies outside the years 0001 to 9999", hint: "use a smaller offset"}
}

func offsetHint(d Dialect, b base) string {
	switch {
	case d != DataWorks:
		return "an offset is one ±n, ±n/24 (hours) or ±n/1440 (minutes) at the end"
	case b == baseBiz:
		return "an offset in ${…} is ±n or ±a*b at the end, without blanks"
	}
	return "an offset in $[…] is a sum of ±n or ±a*b (days), ±n/24 (hours) and ±n/1440 (minutes), without blanks; months are add_months(fmt,n)"
}

// appendTo appends the value at an instant; false means out of range.
func (t *timeExpr) appendTo(b []byte, at Instant) ([]byte, bool) {
	day, sec := at.Bizdate, 0
	if t.base == baseSched {
		// The date is the business date's successor even where the zone skips
		// it, so that two slots never share a date.
		day++
		h, m, s := at.Scheduled.Clock()
		sec = h*3600 + m*60 + s
	}
	if t.months != 0 {
		day = day.AddMonths(t.months)
	}
	day += bizdate.Date(t.days)
	if t.minutes != 0 {
		from := at.Scheduled
		if t.base == baseBiz || t.months != 0 || t.days != 0 {
			from = bizdate.Instant(day, bizdate.TimeOfDay(sec), at.Scheduled.Location())
		}
		if day < firstDate-1 || day > lastDate+1 {
			return b, false // keeps the addition far from overflow
		}
		to := addMinutes(from, t.minutes)
		h, m, s := to.Clock()
		day, sec = bizdate.FromTime(to), h*3600+m*60+s
	}
	if day < firstDate || day > lastDate {
		return b, false
	}
	return appendLayout(b, t.layout, day, sec), true
}

// addMinutes moves an instant; time.Duration alone ends at 292 years.
func addMinutes(t time.Time, n int64) time.Time {
	return time.Unix(t.Unix()+60*n, 0).In(t.Location())
}

// normal gives an equal expression on the business date where one exists: a
// format of days on the scheduled base is the business date plus one day.
func (t *timeExpr) normal() timeExpr {
	n := *t
	if n.base == baseSched && n.finest == tokDay && n.months == 0 && n.minutes == 0 {
		n.base, n.days = baseBiz, n.days+1
	}
	return n
}

// canonical writes the expression in its dialect with every choice of
// spelling made.
func (t *timeExpr) canonical(d Dialect) string {
	n := t.normal()
	var f strings.Builder
	for _, e := range n.layout {
		if e.tok == tokText {
			f.WriteString(e.text)
		} else {
			f.WriteString(canonicalToken(d, e.tok))
		}
	}
	body := f.String()
	switch {
	case n.months == 0:
	case d == DataWorks && n.base == baseSched:
		body = "add_months(" + body + "," + strconv.Itoa(n.months) + ")"
	case n.finest == tokMonth:
		body += signed(int64(n.months))
	default:
		body += signed(int64(n.months / 12))
	}
	if n.days != 0 {
		body += signed(int64(n.days))
	}
	if n.minutes != 0 {
		body += signed(n.minutes) + "/1440"
	}
	if n.base == baseSched {
		return "$[" + body + "]"
	}
	return "${" + body + "}"
}

func signed(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10)
	}
	return "+" + strconv.FormatInt(n, 10)
}
