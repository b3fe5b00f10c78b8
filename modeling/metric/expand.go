package metric

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// context is what narrows a metric from outside: filters and a period.
type context struct {
	filters []filterUse
	period  *modeling.Period
	at      diag.Pos // of the period
}

// filterUse is a filter with the place that asks for it.
type filterUse struct {
	name string
	pos  diag.Pos
}

// with narrows by a derived metric too; false when it has a period and there
// is one already.
func (c context) with(d *modeling.Derived, p *modeling.Period) (context, bool) {
	out := context{filters: slices.Clone(c.filters), period: c.period, at: c.at}
	for i, f := range d.Filters {
		if !slices.ContainsFunc(out.filters, func(u filterUse) bool { return strings.EqualFold(u.name, f) }) {
			out.filters = append(out.filters, filterUse{f, d.FilterPos[i]})
		}
	}
	if d.Period == "" {
		return out, true
	}
	if out.period != nil {
		return out, false
	}
	out.period, out.at = p, d.PeriodPos
	return out, true
}

// leaf is an atomic metric with all that narrows it.
type leaf struct {
	atomic  *modeling.Atomic
	filters []string
	period  modeling.Period
}

// leaves gives the atomic metrics behind a metric; problem names a metric that
// gets two periods.
func (s *Set) leaves(k string, c context) (out []leaf, problem string) {
	if a := s.atomics[k]; a != nil {
		l := leaf{atomic: a, period: c.effective()}
		for _, f := range c.filters {
			l.filters = append(l.filters, f.name)
		}
		return []leaf{l}, ""
	}
	inner := c
	if d := s.derived[k]; d != nil {
		p, _ := s.period(d.Period)
		var ok bool
		if inner, ok = c.with(d, &p); !ok {
			return nil, d.Name
		}
	}
	for _, u := range s.parts(k) {
		if s.bad[u] {
			continue
		}
		more, problem := s.leaves(u, inner)
		if problem != "" {
			return nil, problem
		}
		out = append(out, more...)
	}
	return out, ""
}

// effective gives the period, 1d where none is said.
func (c context) effective() modeling.Period {
	if c.period != nil {
		return *c.period
	}
	p, _ := Builtin("1d")
	return p
}

// text is a generated text with the places of its parts.
type text struct {
	strings.Builder
	spans []modeling.Span
}

// from writes a part that comes from a place.
func (t *text) from(pos diag.Pos, s string) {
	start := t.Len()
	t.WriteString(s)
	t.spans = append(t.spans, modeling.Span{Start: start, End: t.Len(), Pos: pos})
}

// around records that what fn writes comes from a place, in front of the
// places inside it.
func (t *text) around(pos diag.Pos, fn func()) {
	i, start := len(t.spans), t.Len()
	t.spans = append(t.spans, modeling.Span{})
	fn()
	t.spans[i] = modeling.Span{Start: start, End: t.Len(), Pos: pos}
}

// writer writes the columns of one composed table.
type writer struct {
	s      *Set
	layout layout
	main   *modeling.Period // the scan's own period
	out    *text
}

// metric writes a metric's expression. Inside another one a composite stands
// in brackets.
func (w *writer) metric(k string, c context, inside bool) {
	s := w.s
	switch {
	case s.atomics[k] != nil:
		w.atomic(s.atomics[k], c)
	case s.derived[k] != nil:
		d := s.derived[k]
		p, _ := s.period(d.Period)
		inner, _ := c.with(d, &p)
		w.metric(fold(d.Metric), inner, inside)
	case s.composites[k] != nil:
		x := s.composites[k]
		if inside {
			w.out.WriteString("(")
		}
		at := 0
		for _, m := range s.words(x.Expr) {
			w.out.from(x.ExprPos, inner(x.Expr[at:m.start], at == 0, false))
			w.metric(fold(m.name), c, true)
			at = m.end
		}
		w.out.from(x.ExprPos, inner(x.Expr[at:], false, true))
		if inside {
			w.out.WriteString(")")
		}
	}
}

// inner flattens a piece of an expression and keeps the blank at its ends,
// unless it begins or ends the expression.
func inner(s string, first, last bool) string {
	f := flat(s)
	if f == "" {
		if s != "" && !first && !last {
			return " "
		}
		return ""
	}
	if !first && strings.TrimLeft(s, " \t\n\r") != s {
		f = " " + f
	}
	if !last && strings.TrimRight(s, " \t\n\r") != s {
		f += " "
	}
	return f
}

// atomic writes an aggregate with the conditions of its period and filters.
func (w *writer) atomic(a *modeling.Atomic, c context) {
	w.out.from(a.ExprPos, flat(a.Expr))
	type condition struct {
		sql    string
		pos    diag.Pos
		filter bool
	}
	var conds []condition
	p := c.effective()
	if w.main == nil || !samePeriod(p, *w.main) {
		sql, _ := w.layout.within(p)
		pos := c.at
		if pos.Line == 0 {
			pos = a.Pos
		}
		conds = append(conds, condition{sql: sql, pos: pos})
	}
	for _, u := range c.filters {
		if f := w.s.filters[fold(u.name)]; f != nil {
			conds = append(conds, condition{flat(f.Where), f.WherePos, true})
		}
	}
	if len(conds) == 0 {
		return
	}
	w.out.WriteString(" FILTER (WHERE ")
	for i, x := range conds {
		if i > 0 {
			w.out.WriteString(" AND ")
		}
		if x.filter && len(conds) > 1 {
			x.sql = bracketed(x.sql)
		}
		w.out.from(x.pos, x.sql)
	}
	w.out.WriteString(")")
}
