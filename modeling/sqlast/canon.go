package sqlast

import (
	"fmt"
	"sort"
	"strings"
)

// Canonical texts. A text names every instance by table and by its number
// within the row set or within the text itself, never by alias; joins that a
// field needs follow its expression as `j1 := …`.

// levelUse is a level as the place of aggregates or of windows. They are
// numbered from the inside out and apart, so that a new outer one renames none.
type levelUse struct {
	l       *level
	windows bool
}

// printer writes one canonical text.
type printer struct {
	p       params
	parent  *printer
	names   map[*instance]string
	levels  map[levelUse]int
	joins   map[*join]string
	count   map[string]int
	nLevel  *[2]int   // grouped levels, levels with windows
	defs    *[]string // definitions of the joins named so far
	size    *int
	inlined map[*expr]string
}

func newPrinter(p params) *printer {
	return &printer{p: p, names: map[*instance]string{}, levels: map[levelUse]int{}, joins: map[*join]string{},
		count: map[string]int{}, nLevel: new([2]int), defs: new([]string), size: new(int), inlined: map[*expr]string{}}
}

// child shares the names given so far but keeps its own later ones to itself.
func (p *printer) child() *printer {
	c := newPrinter(p.p)
	c.parent = p
	if p.parent != nil {
		*c.nLevel = *p.nLevel
	}
	c.size = p.size
	return c
}

func (p *printer) instance(i *instance) string {
	for q := p; q != nil; q = q.parent {
		if n, ok := q.names[i]; ok {
			return n
		}
	}
	base := i.function
	if i.table != nil {
		parts := i.table.parts()
		for k, s := range parts {
			parts[k] = quoteIdent(s)
		}
		base = strings.Join(parts, ".")
	}
	n := 1
	for q := p; q == p || q != nil && q.parent != nil; q = q.parent {
		n += q.count[base]
	}
	p.count[base]++
	name := base
	switch {
	case p.parent != nil: // not of the row set: numbered within the text
		name = fmt.Sprintf("%s~%d", base, n)
	case n > 1:
		name = fmt.Sprintf("%s#%d", base, n)
	}
	p.names[i] = name
	return name
}

func (p *printer) level(u levelUse) string {
	for q := p; q != nil; q = q.parent {
		if n, ok := q.levels[u]; ok {
			switch {
			case q.parent != nil:
				return fmt.Sprintf("~%d", n)
			case n == 1:
				return ""
			}
			return fmt.Sprintf("@%d", n)
		}
	}
	kind := 0
	if u.windows {
		kind = 1
	}
	p.nLevel[kind]++
	p.levels[u] = p.nLevel[kind]
	return p.level(u)
}

// join names a join and writes its definition once.
func (p *printer) join(j *join) string {
	for q := p; q != nil; q = q.parent {
		if n, ok := q.joins[j]; ok {
			return n
		}
	}
	n := 1
	for q := p; q != nil; q = q.parent {
		n += len(q.joins)
	}
	name := fmt.Sprintf("j%d", n)
	p.joins[j] = name
	slot := len(*p.defs)
	*p.defs = append(*p.defs, "")
	rows := p.from(j.right)
	conds := make([]string, len(j.on))
	for i, e := range j.on {
		conds[i] = p.expr(e)
	}
	sort.Strings(conds)
	(*p.defs)[slot] = fmt.Sprintf("%s := %s join %s on %s", name, j.kind, rows, strings.Join(conds, " and "))
	return name
}

// full writes an expression with the definitions of the joins it needs.
func (p *printer) full(e *expr) string {
	c := p.child()
	s := c.expr(e)
	if len(*c.defs) > 0 {
		s += "\n  " + strings.Join(*c.defs, "\n  ")
	}
	return s
}

func (p *printer) expr(e *expr) string {
	if s, ok := p.inlined[e]; ok {
		return s
	}
	s := p.write(e)
	*p.size += len(s)
	if *p.size < maxText {
		p.inlined[e] = s
		return s
	}
	return ""
}

// tooLong tells whether the text outgrew its bounds and must not be used.
func (p *printer) tooLong() bool { return *p.size >= maxText }

func (p *printer) write(e *expr) string {
	if p.tooLong() {
		return ""
	}
	switch e.op {
	case opConst:
		return e.text
	case opParam:
		if !strings.Contains(e.text, "${") {
			return e.text
		}
		_, s := p.p.describe(e.text)
		return "param(" + s + ")"
	case opText:
		_, s := p.p.describe(e.text)
		return "text(" + s + ")"
	case opCol:
		if e.inst.table == nil { // its arguments are the column's derivation
			return p.callText(p.instance(e.inst), e.inst.args) + "." + e.text
		}
		return p.instance(e.inst) + "." + quoteIdent(e.text)
	case opVia:
		if e.join.neutral && !e.join.row {
			j := p.join(e.join)
			return j + ":" + p.expr(e.args[0])
		}
		if e.args[0].raw().op == opCol {
			return p.expr(e.args[0])
		}
		return "outer(" + p.expr(e.args[0]) + ")"
	case opAgg, opWindow:
		return p.callText(e.text+p.level(levelUse{e.level, e.op == opWindow}), e.args)
	case opSub:
		return p.subquery(e)
	}
	return p.function(e)
}

func (p *printer) function(e *expr) string {
	switch e.text {
	case "=", "<>", "<", ">", "<=", ">=", "and", "or", "is distinct from", "is not distinct from",
		"+", "-", "*", "/", "//", "%", "||", "^", "**", "->", "->>", "~~":
		if len(e.args) > 1 {
			parts := make([]string, len(e.args))
			for i, x := range e.args {
				parts[i] = p.expr(x)
			}
			if e.text == "=" || e.text == "<>" { // the sides mean no order
				sort.Strings(parts)
			}
			return "(" + strings.Join(parts, " "+e.text+" ") + ")"
		}
	}
	if t, ok := strings.CutPrefix(e.text, "cast:"); ok {
		return "cast(" + p.expr(e.args[0]) + " as " + t + ")"
	}
	if t, ok := strings.CutPrefix(e.text, "try_cast:"); ok {
		return "try_cast(" + p.expr(e.args[0]) + " as " + t + ")"
	}
	return p.callText(e.text, e.args)
}

func (p *printer) callText(name string, args []*expr) string {
	parts := make([]string, len(args))
	for i, x := range args {
		parts[i] = p.expr(x)
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

func (p *printer) subquery(e *expr) string {
	rows := p.top(e.level)
	var args []string
	for _, x := range e.args {
		args = append(args, p.expr(x))
	}
	var outs []string
	if e.text != "exists" {
		for _, o := range e.level.outputs {
			outs = append(outs, p.expr(o.e))
		}
	}
	return e.text + "(" + strings.Join(args, ", ") + " select " + strings.Join(outs, ", ") + " " + rows + ")"
}

// number gives a level its numbers, after those inside it.
func (p *printer) number(l *level) {
	if l.grouped {
		p.level(levelUse{l, false})
	}
	if l.windows && l.windowUse {
		p.level(levelUse{l, true})
	}
}

// top writes the rows of a query that no condition around it may be merged
// with: there its own windows decide nothing, and a projection around one
// source is that source.
func (p *printer) top(l *level) string {
	if l.setop == "" && l.projects() && len(l.where) == 0 {
		var s string
		switch f := l.from; {
		case f.level != nil:
			s = p.top(f.level)
		case f.inst != nil || f.join != nil:
			s = p.from(f)
		default:
			s = p.rows(l)
		}
		p.number(l)
		return s
	}
	return p.rows(l)
}

// rows writes what decides the rows of a level.
func (p *printer) rows(l *level) string {
	if p.tooLong() {
		return ""
	}
	if l.setop != "" {
		left, right := p.top(l.left), p.top(l.right)
		s := l.setop + "(" + left + p.columns(l.left, l) + "; " + right + p.columns(l.right, l) + ")"
		return "{" + s + p.tailOf(l) + "}"
	}
	var items []string
	var conds []*expr
	p.collect(l.from, &items, &conds)
	conds = append(conds, l.where...)
	p.number(l)
	sort.Strings(items) // inner joins commute
	var b strings.Builder
	b.WriteString("{from ")
	b.WriteString(strings.Join(items, ", "))
	if len(conds) > 0 {
		b.WriteString(" where ")
		b.WriteString(strings.Join(p.sorted(conds), " and "))
	}
	b.WriteString(p.tailOf(l))
	b.WriteString("}")
	return b.String()
}

// columns writes a set operation's side where its columns decide rows.
func (p *printer) columns(side, l *level) string {
	if l.setop == "union all" {
		return ""
	}
	parts := make([]string, len(side.outputs))
	for i, o := range side.outputs {
		parts[i] = p.full(o.e)
	}
	return " select " + strings.Join(parts, ", ")
}

// tailOf writes everything of a level that comes after WHERE.
func (p *printer) tailOf(l *level) string {
	var b strings.Builder
	if l.grouped {
		if l.groupSets == "" || l.groupSets == "(constant)" {
			b.WriteString(" group by [" + strings.Join(p.sorted(varying(l.groups)), ", ") + "]" + l.groupSets)
		} else {
			parts := make([]string, len(l.groups))
			for i, g := range l.groups {
				parts[i] = p.full(g)
			}
			b.WriteString(" group by [" + strings.Join(parts, ", ") + "] sets " + l.groupSets)
		}
	}
	if len(l.having) > 0 {
		b.WriteString(" having " + strings.Join(p.sorted(l.having), " and "))
	}
	if len(l.qualify) > 0 {
		b.WriteString(" qualify " + strings.Join(p.sorted(l.qualify), " and "))
	}
	if len(l.unnest) > 0 {
		b.WriteString(" unnest " + strings.Join(p.list(l.unnest), ", "))
	}
	if l.distinct {
		var outs []*expr
		for _, o := range l.outputs {
			outs = append(outs, o.e)
		}
		b.WriteString(" distinct " + strings.Join(p.sorted(varying(outs)), ", "))
	}
	if len(l.on) > 0 {
		b.WriteString(" distinct on " + strings.Join(p.sorted(l.on), ", "))
	}
	if l.limited() || len(l.on) > 0 {
		parts := make([]string, len(l.orders))
		for i, o := range l.orders {
			parts[i] = p.full(o.e) + o.dir
		}
		b.WriteString(" order by " + strings.Join(parts, ", "))
	}
	if l.limit != nil {
		b.WriteString(" limit " + p.full(l.limit))
		if l.percent {
			b.WriteString(" percent")
		}
	}
	if l.offset != nil {
		b.WriteString(" offset " + p.full(l.offset))
	}
	if l.sample != "" {
		b.WriteString(" sample " + l.sample)
	}
	return b.String()
}

func (p *printer) list(es []*expr) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = p.full(e)
	}
	return out
}

// sorted writes expressions whose order means nothing.
func (p *printer) sorted(es []*expr) []string {
	return sortedUnique(p.list(es))
}

// from writes a FROM tree as one item.
func (p *printer) from(f *from) string {
	if f.level != nil {
		return p.top(f.level)
	}
	var items []string
	var conds []*expr
	p.collect(f, &items, &conds)
	if len(items) == 1 && len(conds) == 0 {
		return items[0]
	}
	sort.Strings(items)
	s := "{from " + strings.Join(items, ", ")
	if len(conds) > 0 {
		s += " where " + strings.Join(p.sorted(conds), " and ")
	}
	return s + "}"
}

// collect flattens inner joins and plain nested queries; row-neutral joins that
// the rows do not need are left out.
func (p *printer) collect(f *from, items *[]string, conds *[]*expr) {
	switch {
	case f.inst != nil:
		s := p.instance(f.inst)
		if f.inst.table == nil {
			s += "(" + strings.Join(p.list(f.inst.args), ", ") + ")"
		}
		if f.inst.rows > 0 {
			s += fmt.Sprintf(" %d rows", f.inst.rows)
		}
		if f.text != "" {
			s += " at " + f.text
		}
		*items = append(*items, s)
	case f.level != nil && f.level.plain():
		p.collect(f.level.from, items, conds)
		*conds = append(*conds, f.level.where...)
	case f.level != nil:
		*items = append(*items, p.rows(f.level))
	case f.join != nil && !f.join.row:
		p.collect(f.join.left, items, conds)
	case f.join != nil:
		left, right := p.from(f.join.left), p.from(f.join.right)
		*items = append(*items, fmt.Sprintf("%s(%s, %s, on %s)", f.join.kind, left, right, strings.Join(p.sorted(f.join.on), " and ")))
	case f.sample:
		*items = append(*items, "sample("+p.from(f.inner[0])+", "+f.text+")")
	default:
		for _, x := range f.inner {
			p.collect(x, items, conds)
		}
		*conds = append(*conds, f.on...)
	}
}
