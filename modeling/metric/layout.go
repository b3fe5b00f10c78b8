package metric

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/param"
)

// layout is how a fact's partition column writes a business date: fixed text
// around one date format, moved by days ($[…] writes the day after).
type layout struct {
	column string // as SQL writes it
	typ    string // upper case, "" = VARCHAR
	engine string // engine type, for what standard SQL does not have
	days   int

	before, after string   // text around the format
	tokens        []string // yyyy, mm, dd in the format's order …
	between       []string // … and the text behind each but the last
}

// layoutOf finds the first partition column of a table that holds the business
// date; why says why there is none.
func layoutOf(t *modeling.Table, dialect param.Dialect, engine string) (l layout, why string) {
	why = "it has no partition column that holds a date"
	for _, c := range t.Partition {
		e, diags := param.Parse(dialect, param.Source{Text: c.Expr})
		if e == nil || diags.HasErrors() {
			continue
		}
		form, ok := e.DateForm()
		if !ok {
			continue
		}
		n, byDay := form.DayOffset()
		if !byDay {
			why = fmt.Sprintf("its partition column %s does not tell days apart: %s", c.Name, c.Expr)
			continue
		}
		l = layout{column: ident(c.Name), typ: strings.ToUpper(c.Type), engine: engine, days: n}
		if !l.parse(form.Layout) {
			why = fmt.Sprintf("the date in its partition column %s is not written in one piece: %s", c.Name, c.Expr)
			continue
		}
		if l.typ == "" && form.Layout == "{yyyy}-{MM}-{dd}" {
			l.typ = "DATE"
		}
		return l, ""
	}
	return layout{}, why
}

// parse takes a canonical layout apart: fixed text, {yyyy}, {MM} and {dd} once
// each with separators between them that a placeholder may hold.
func (l *layout) parse(text string) bool {
	var pieces []string // text and token by turns, beginning and ending with text
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
			b.WriteByte(text[i])
		case '{':
			n := strings.IndexByte(text[i:], '}')
			pieces = append(pieces, b.String(), strings.ToLower(text[i+1:i+n]))
			b.Reset()
			i += n
		default:
			b.WriteByte(text[i])
		}
	}
	pieces = append(pieces, b.String())
	if len(pieces) != 7 {
		return false
	}
	l.before, l.after = pieces[0], pieces[6]
	for i := 1; i < 7; i += 2 {
		l.tokens = append(l.tokens, pieces[i])
		if i < 5 {
			if strings.Trim(pieces[i+1], "-/:._,") != "" {
				return false
			}
			l.between = append(l.between, pieces[i+1])
		}
	}
	sorted := slices.Clone(l.tokens)
	slices.Sort(sorted)
	return slices.Equal(sorted, []string{"dd", "mm", "yyyy"})
}

// ordered tells whether the values sort as their dates do.
func (l layout) ordered() bool {
	return l.typ == "DATE" || l.typ == "TIMESTAMP" || slices.Equal(l.tokens, []string{"yyyy", "mm", "dd"})
}

// refuse tells why a period cannot be written over the partition, "" if it can.
func (l layout) refuse(p modeling.Period) string {
	start, end := bounds(p)
	single := start.unit == day && end.unit == day && end.n == start.n+1
	switch {
	case !single && !l.ordered():
		return "its partition values do not sort as their dates do: year, month and day must come in this order"
	case start.unit != day && l.days != 0:
		return "its partition holds another day than the business date"
	case start.unit != day && !slices.Equal(l.tokens, []string{"yyyy", "mm", "dd"}):
		return "year, month and day must come in this order in its partition"
	}
	return ""
}

// literal writes a text with placeholders as a constant of the column's type.
func (l layout) literal(text string) string {
	quoted := "'" + strings.ReplaceAll(l.before, "'", "''") + text + strings.ReplaceAll(l.after, "'", "''") + "'"
	switch l.typ {
	case "", "VARCHAR", "TEXT":
		return quoted
	case "DATE", "TIMESTAMP":
		return l.typ + " " + quoted
	}
	return "CAST(" + quoted + " AS " + l.typ + ")"
}

// format writes the first n tokens as a placeholder that is moved by an
// offset in the unit of the last one.
func (l layout) format(n, offset int) string {
	var b strings.Builder
	b.WriteString("${")
	for i, t := range l.tokens[:n] {
		if i > 0 {
			b.WriteString(l.between[i-1])
		}
		b.WriteString(t)
	}
	if offset != 0 {
		fmt.Fprintf(&b, "%+d", offset)
	}
	return b.String() + "}"
}

// value writes the partition value of a bound. constant is false where it is
// a computation that the slots of the fact cannot be derived from.
func (l layout) value(b bound) (sql string, constant bool) {
	switch b.unit {
	case week:
		return l.weekday(b.n), false
	case month:
		return l.literal(l.format(2, b.n) + l.between[1] + "01"), true
	case year:
		return l.literal(l.format(1, b.n) + l.between[0] + "01" + l.between[1] + "01"), true
	}
	return l.literal(l.format(3, b.n+l.days)), true
}

// weekday writes the Monday of a week: scheduling parameters know no weeks.
func (l layout) weekday(n int) string {
	iso := "${yyyy-mm-dd}"
	if n != 0 {
		iso = fmt.Sprintf("${yyyy-mm-dd%+d}", 7*n)
	}
	monday := "date_trunc('week', DATE '" + iso + "')"
	switch l.typ {
	case "DATE", "TIMESTAMP":
		return "CAST(" + monday + " AS " + l.typ + ")"
	}
	text := ""
	format := func(yyyy, mm, dd string) string {
		f := l.before + yyyy + l.between[0] + mm + l.between[1] + dd + l.after
		return "'" + strings.ReplaceAll(f, "'", "''") + "'"
	}
	switch l.engine {
	case "postgres":
		text = "to_char(" + monday + ", " + format("YYYY", "MM", "DD") + ")"
	case "trino":
		text = "date_format(" + monday + ", " + format("%Y", "%m", "%d") + ")"
	default:
		text = "strftime(" + monday + ", " + format("%Y", "%m", "%d") + ")"
	}
	if l.typ == "" || l.typ == "VARCHAR" || l.typ == "TEXT" {
		return text
	}
	return "CAST(" + text + " AS " + l.typ + ")"
}

// within writes the condition that a row belongs to a period.
func (l layout) within(p modeling.Period) (sql string, constant bool) {
	start, end := bounds(p)
	from, ok := l.value(start)
	if end.unit == day {
		to, _ := l.value(bound{day, end.n - 1})
		if start.unit == day && start.n == end.n-1 {
			return l.column + " = " + to, true
		}
		return l.column + " BETWEEN " + from + " AND " + to, ok
	}
	to, ok2 := l.value(end)
	return l.column + " >= " + from + " AND " + l.column + " < " + to, ok && ok2
}

// rows writes the conditions of the one scan: the range of the widest period,
// or, where no period holds all others, a range around them and the periods,
// unless together they fill that range. main is the period that needs no
// condition of its own.
func (l layout) rows(periods []modeling.Period) (conditions []string, main *modeling.Period) {
	for i, p := range periods {
		if slices.ContainsFunc(periods, func(q modeling.Period) bool { return !covers(p, q) }) {
			continue
		}
		cond, constant := l.within(p)
		if !constant {
			around, _ := l.around(periods)
			conditions = append(conditions, around)
		}
		return append(conditions, cond), &periods[i]
	}
	around, filled := l.around(periods)
	if filled {
		return []string{around}, nil
	}
	var each []string
	for i, p := range periods {
		if slices.ContainsFunc(periods, func(q modeling.Period) bool { return covers(q, p) && !covers(p, q) }) {
			continue
		}
		if slices.ContainsFunc(periods[:i], func(q modeling.Period) bool { return samePeriod(q, p) }) {
			continue
		}
		cond, _ := l.within(p)
		if strings.Contains(cond, " AND ") {
			cond = "(" + cond + ")"
		}
		each = append(each, cond)
	}
	return []string{around, "(" + strings.Join(each, " OR ") + ")"}, nil
}

// around writes a range of constants that holds all periods; the slots of the
// fact that are read are derived from it. filled says that every date of the
// range is in one of the periods, whatever the business date.
func (l layout) around(periods []modeling.Period) (sql string, filled bool) {
	first, last := bound{day, 0}, bound{day, -maxUnits * 366}
	earliest, latest := bounds(periods[0])
	for _, p := range periods {
		s, e := bounds(p)
		lo, _ := s.span()
		_, hi := e.span()
		first.n, last.n = min(first.n, lo), max(last.n, hi)
		if before(s, earliest) {
			earliest = s
		}
		if before(latest, e) {
			latest = e
		}
	}
	from, to := earliest.unit != week, latest.unit != week
	for _, p := range periods {
		s, e := bounds(p)
		from, to = from && before(earliest, s), to && before(e, latest)
	}
	if from {
		first = earliest
	}
	if to {
		last = latest
	}
	filled = from && to && joined(periods, earliest, latest)
	low, _ := l.value(first)
	if last.unit == day {
		high, _ := l.value(bound{day, last.n - 1})
		return l.column + " BETWEEN " + low + " AND " + high, filled
	}
	high, _ := l.value(last)
	return l.column + " >= " + low + " AND " + l.column + " < " + high, filled
}

// joined tells whether periods that start at the earliest bound reach the
// latest one without a gap, whatever the business date.
func joined(periods []modeling.Period, earliest, latest bound) bool {
	reach := earliest
	for more := true; more && reach != latest; {
		more = false
		for _, p := range periods {
			s, e := bounds(p)
			if before(s, reach) && before(reach, e) && e != reach {
				reach, more = e, true
			}
		}
	}
	return reach == latest
}
