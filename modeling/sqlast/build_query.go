package sqlast

import (
	"fmt"
	"sort"
	"strings"
)

// query analyses one query node. parent is the scope that encloses it (for
// correlation), ctes the CTEs visible there.
func (a *analyzer) query(q *astQuery, parent *scope, ctes *cteEnv) *level {
	a.levels++
	l := &level{n: a.levels}
	if a.levels > maxLevels {
		a.unsplit("too_complex", noLocation, "the query unfolds to more than %d nested queries", maxLevels)
		return l
	}
	for _, c := range q.CTEs.Map {
		ctes = &cteEnv{name: strings.ToLower(c.Key), aliases: c.Value.Aliases, body: c.Value.Query.Node, env: ctes, scope: parent, next: ctes}
	}
	switch q.Type {
	case "SELECT_NODE":
		a.selectNode(l, q, parent, ctes)
	case "SET_OPERATION_NODE":
		a.setOperation(l, q, setopName(q), parent, ctes)
	case "RECURSIVE_CTE_NODE":
		name := strings.ToLower(q.CTEName)
		if usesTable(q.Right, name) || usesTable(q.Left, name) {
			a.unsplit("recursive_cte", noLocation, "the CTE %q is recursive: it mixes rows and values", q.CTEName)
			return l
		}
		op := "union"
		if q.UnionAll {
			op = "union all"
		}
		a.setOperation(l, q, op, parent, ctes)
	default:
		a.unsplit("unsupported_syntax", noLocation, "a query of type %s is not understood", q.Type)
	}
	return l
}

func setopName(q *astQuery) string {
	name := strings.ToLower(strings.TrimSuffix(q.SetOp, "_BY_NAME"))
	if q.SetOpAll {
		name += " all"
	}
	return name
}

func (a *analyzer) selectNode(l *level, q *astQuery, parent *scope, ctes *cteEnv) {
	lateral := &scope{parent: parent, ctes: ctes}
	f, rel := a.from(q.From, lateral)
	l.from = f
	sc := &scope{parent: parent, rel: rel, ctes: ctes, level: l, aliases: map[string]*expr{}}

	// The select list; an alias may be used by what follows it.
	sc.select_ = true
	for _, item := range q.SelectList {
		l.outputs = append(l.outputs, a.selectItem(item, sc)...)
	}
	sc.select_ = false

	if q.Where != nil {
		l.where = a.conjuncts(q.Where, sc)
	}
	a.groupBy(l, q, sc)
	if l.grouped {
		sc.grouped = map[*expr]bool{}
		for _, g := range l.groups {
			sc.grouped[g] = true
		}
	}
	if q.Having != nil {
		l.having = a.conjuncts(q.Having, sc)
	}
	if q.Qualify != nil {
		l.qualify = a.conjuncts(q.Qualify, sc)
	}
	if !l.grouped && (a.aggregates[l] > 0 || q.Having != nil) {
		l.grouped = true // a global aggregate
	}
	sc.grouped = nil
	if present(q.Sample) {
		l.sample = string(q.Sample)
		l.nondet = "it takes a sample"
	}
	a.modifiers(l, q.Modifiers, sc)
	a.finish(l)
}

func present(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// selectItem resolves one item of the select list, stars expanded.
func (a *analyzer) selectItem(item *astExpr, sc *scope) []output {
	if item.Class == "STAR" && !item.Columns {
		cols := a.expandStar(item, sc)
		out := make([]output, len(cols))
		for i, c := range cols {
			out[i] = output{name: c.name, e: c.e, loc: a.loc(item.Loc)}
		}
		return out
	}
	e := a.expr(item, sc)
	o := output{name: a.prep.restore(item.Alias), e: e, loc: a.loc(item.Loc)}
	if o.name == "" {
		o.name, o.unnamed = a.defaultName(item, sc)
	} else if key := strings.ToLower(item.Alias); sc.aliases[key] == nil {
		sc.aliases[key] = e
	}
	return []output{o}
}

// defaultName gives the name of an item without alias: a column's declared
// name or a struct's field.
func (a *analyzer) defaultName(item *astExpr, sc *scope) (string, bool) {
	if item.Class != "COLUMN_REF" {
		return "", true
	}
	last := item.Names[len(item.Names)-1]
	for s := sc; s != nil; s = s.parent {
		if s.rel == nil {
			continue
		}
		for _, src := range s.rel.sources {
			for _, c := range src.cols {
				if equalFold(c.name, last) {
					return c.name, false
				}
			}
		}
	}
	if len(item.Names) == 1 && isNiladic(strings.ToLower(last)) && !a.resolves(item.Names, sc) {
		return "", true
	}
	return last, false
}

// conjuncts resolves a condition and cuts it at its ANDs.
func (a *analyzer) conjuncts(e *astExpr, sc *scope) []*expr {
	if e == nil {
		return nil
	}
	if e.Class == "CONJUNCTION" && e.Type == "CONJUNCTION_AND" {
		var out []*expr
		for _, c := range e.Children {
			out = append(out, a.conjuncts(c, sc)...)
		}
		return out
	}
	x := a.expr(e, sc)
	if x.op == opConst && x.text == "TRUE" {
		return nil
	}
	return []*expr{x}
}

func (a *analyzer) groupBy(l *level, q *astQuery, sc *scope) {
	if q.AggregateHandling == "FORCE_AGGREGATES" { // GROUP BY ALL
		l.grouped = true
		for _, o := range l.outputs {
			if !a.hasAggregate(o.e, l) && !o.e.isConstant() {
				l.groups = append(l.groups, o.e)
			}
		}
		if len(l.groups) == 0 {
			constant := false
			for _, o := range l.outputs {
				constant = constant || !a.hasAggregate(o.e, l)
			}
			if constant {
				l.groupSets = "(constant)"
			}
		}
		return
	}
	if len(q.Groups) == 0 && len(q.GroupSets) == 0 {
		return
	}
	l.grouped = true
	texts := make([]*expr, len(q.Groups))
	for i, g := range q.Groups {
		if n, ok := position(g); ok {
			if n < 1 || n > len(l.outputs) {
				a.problem("bad_position", g.Loc, "GROUP BY %d: the SELECT list has %d items", n, len(l.outputs)).hint("name the column")
				continue
			}
			texts[i] = l.outputs[n-1].e
		} else {
			texts[i] = a.expr(g, sc)
			if texts[i].op == opParam {
				a.unsplit("dynamic_columns", g.Loc, "a parameter as GROUP BY position chooses the column by its value")
			}
		}
	}
	for _, t := range texts {
		if t != nil {
			l.groups = append(l.groups, t)
		}
	}
	if len(q.GroupSets) != 1 || len(q.GroupSets[0]) != len(q.Groups) {
		// Several sets: keyed by expression, so that the order of keys is no
		// logic but the sets are.
		sets := make([]string, 0, len(q.GroupSets))
		for _, s := range q.GroupSets {
			var m []string
			for _, i := range s {
				if i < len(texts) && texts[i] != nil {
					m = append(m, fmt.Sprint(i))
				}
			}
			sets = append(sets, "("+strings.Join(m, ",")+")")
		}
		sort.Strings(sets)
		l.groupSets = strings.Join(sets, ",")
	} else if allConstant(l.groups) {
		l.groupSets = "(constant)"
	}
}

func allConstant(es []*expr) bool {
	for _, e := range es {
		if !e.isConstant() {
			return false
		}
	}
	return true
}

func position(e *astExpr) (int, bool) {
	if e == nil || e.Class != "CONSTANT" || e.Value == nil || e.Value.IsNull {
		return 0, false
	}
	if t := typeName(e.Value.Type); !isInteger(t) {
		return 0, false
	}
	return atoi(string(e.Value.Value)), true
}

func (a *analyzer) hasAggregate(e *expr, l *level) bool {
	found := false
	e.each(func(x *expr) bool {
		found = found || x.op == opAgg && x.level == l
		return !found
	})
	return found
}

// modifiers handles DISTINCT, ORDER BY and LIMIT. An ORDER BY that decides no
// rows is not even resolved.
func (a *analyzer) modifiers(l *level, ms []*astModifier, sc *scope) {
	decides := false
	for _, m := range ms {
		switch m.Type {
		case "DISTINCT_MODIFIER":
			if len(m.DistinctOn) == 0 {
				l.distinct = true
			} else {
				decides = true
				for _, t := range m.DistinctOn {
					l.on = append(l.on, a.byOutput(t, l, sc)...)
				}
			}
		case "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER":
			decides = true
			l.limit, l.offset = a.expr(m.Limit, sc), a.expr(m.Offset, sc)
			l.percent = m.Type == "LIMIT_PERCENT_MODIFIER"
		}
	}
	if !decides {
		return
	}
	for _, m := range ms {
		for _, o := range m.Orders {
			for _, e := range a.byOutput(o.Expr, l, sc) {
				l.orders = append(l.orders, orderKey{e, orderDir(o)})
			}
		}
	}
}

// byOutput resolves an ORDER BY or DISTINCT ON target: a position, ALL, an
// output's name (which wins over a column), else an expression.
func (a *analyzer) byOutput(e *astExpr, l *level, sc *scope) []*expr {
	if n, ok := position(e); ok {
		if n < 1 || n > len(l.outputs) {
			a.problem("bad_position", e.Loc, "ORDER BY %d: the SELECT list has %d items", n, len(l.outputs)).hint("name the column")
			return nil
		}
		return []*expr{l.outputs[n-1].e}
	}
	if e.Class == "STAR" && e.Columns && e.Expr == nil {
		out := make([]*expr, len(l.outputs))
		for i, o := range l.outputs {
			out[i] = o.e
		}
		return out
	}
	if e.Class == "COLUMN_REF" && len(e.Names) == 1 {
		for _, o := range l.outputs {
			if equalFold(o.name, e.Names[0]) {
				return []*expr{o.e}
			}
		}
	}
	x := a.expr(e, sc)
	if x.op == opParam { // its value chooses an output
		out := []*expr{x}
		for _, o := range l.outputs {
			out = append(out, o.e)
		}
		return out
	}
	return []*expr{x}
}

func (a *analyzer) setOperation(l *level, q *astQuery, name string, parent *scope, ctes *cteEnv) {
	l.setop = name
	l.byName = strings.HasSuffix(q.SetOp, "_BY_NAME")
	l.left = a.query(q.Left, parent, ctes)
	l.right = a.query(q.Right, parent, ctes)
	if a.failed() {
		return
	}
	right := l.right.outputs
	if l.byName {
		right = nil
		used := map[int]bool{}
		for _, o := range l.left.outputs {
			m := output{e: a.mk(expr{op: opConst, text: "NULL"})}
			for i, r := range l.right.outputs {
				if equalFold(r.name, o.name) {
					m, used[i] = r, true
					break
				}
			}
			right = append(right, m)
		}
		for i, r := range l.right.outputs {
			if !used[i] {
				l.left.outputs = append(l.left.outputs, output{name: r.name, unnamed: r.unnamed, loc: r.loc, e: a.mk(expr{op: opConst, text: "NULL"})})
				right = append(right, r)
			}
		}
		l.right.outputs = right
	}
	if len(right) != len(l.left.outputs) {
		a.problem("column_count", noLocation, "the sides of %s have %d and %d columns", strings.ToUpper(name), len(l.left.outputs), len(right)).
			hint("give both sides the same columns")
		return
	}
	takesLeft := strings.HasPrefix(name, "except") || strings.HasPrefix(name, "intersect")
	for i, o := range l.left.outputs {
		e := o.e
		if !takesLeft {
			e = a.fn("union", sameType(o.e, right[i].e), o.e, right[i].e)
		}
		l.outputs = append(l.outputs, output{name: o.name, e: e, unnamed: o.unnamed, loc: o.loc})
	}
	rel := &relation{}
	for _, o := range l.outputs {
		rel.cols = append(rel.cols, visible{name: o.name, e: o.e})
	}
	if !l.byName {
		for i, o := range right { // ORDER BY may use the right side's names too
			if o.name != "" && !equalFold(o.name, l.outputs[i].name) && !hasName(rel.cols, o.name) {
				rel.cols = append(rel.cols, visible{name: o.name, e: l.outputs[i].e})
			}
		}
		for i, o := range l.left.outputs { // and the columns under an alias
			if c := o.e.raw(); c.op == opCol && !hasName(rel.cols, c.text) {
				rel.cols = append(rel.cols, visible{name: c.text, e: l.outputs[i].e})
			}
		}
	}
	a.modifiers(l, q.Modifiers, &scope{parent: parent, rel: rel, ctes: ctes})
	a.finish(l)
}

func hasName(cols []visible, name string) bool {
	for _, c := range cols {
		if equalFold(c.name, name) {
			return true
		}
	}
	return false
}

func sameType(x, y *expr) string {
	if x.typ == y.typ {
		return x.typ
	}
	return commonType([]*expr{x, y})
}

// usesTable tells whether a query names a table or CTE called name.
func usesTable(q *astQuery, name string) bool {
	found := false
	walkTables(q, func(r *astRef) {
		if r.Schema == "" && strings.EqualFold(r.Table, name) {
			found = true
		}
	})
	return found
}
