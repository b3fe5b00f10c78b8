package sqlast

import "strings"

// Non-determinism (README split 5): what depends on the order of rows where
// nothing fixes that order.

// pendingOrder is an aggregate or window function that may depend on the order
// of its rows; it is judged when its level is complete.
type pendingOrder struct {
	x      *expr
	name   string
	kind   aggKind
	args   []*expr
	by     []*expr // ORDER BY
	part   []*expr // PARTITION BY
	level  *level
	window bool
	rows   bool // a ROWS frame, which cuts between peers
}

// finish completes a level: how many rows it has at most, its keys, what is
// not determined.
func (a *analyzer) finish(l *level) {
	if l.setop == "" {
		filtered := len(l.where) > 0 || len(l.having) > 0 || len(l.qualify) > 0 || l.limited() || l.sample != ""
		switch {
		case len(l.unnest) > 0:
		case l.grouped && len(l.groups) == 0 && l.groupSets == "":
			l.most1 = true
			l.one = len(l.having) == 0 && len(l.qualify) == 0 && !l.limited() && l.sample == ""
		case l.groupSets == "(constant)":
			l.most1 = true
		case !l.grouped:
			l.most1 = l.from.most1
			l.one = l.from.one && !filtered
		}
	}
	input := a.inputKeys(l)
	l.keys = a.outputKeys(l, input)
	fixed := a.fixed(l)
	if l.limited() && l.nondet == "" && !l.most1 && !total(l.keys, orderExprs(l.orders), fixed) {
		l.nondet = "LIMIT whose ORDER BY holds no unique key"
	}
	if len(l.on) > 0 && l.nondet == "" && !total(input, append(orderExprs(l.orders), l.on...), fixed) {
		l.nondet = "DISTINCT ON whose ORDER BY holds no unique key"
	}
	var rest []pendingOrder
	for _, p := range a.pending {
		if p.level != l {
			rest = append(rest, p)
			continue
		}
		if r := judge(p, l, input, fixed); r != "" {
			p.x.nondet = r
		}
	}
	a.pending = rest
	l.markRow()
}

func orderExprs(ks []orderKey) []*expr {
	out := make([]*expr, len(ks))
	for i, k := range ks {
		out[i] = k.e
	}
	return out
}

// inputKeys gives the keys of the rows that windows and DISTINCT ON work on.
func (a *analyzer) inputKeys(l *level) []uniqueKey {
	switch {
	case l.setop != "":
		return nil
	case l.grouped:
		if l.groupSets != "" {
			return nil
		}
		return []uniqueKey{{exprs: varying(l.groups), strict: true}}
	case len(l.unnest) > 0:
		return nil
	}
	return l.from.keys
}

func (a *analyzer) outputKeys(l *level, input []uniqueKey) []uniqueKey {
	keys := append([]uniqueKey(nil), input...)
	var all []*expr
	for _, o := range l.outputs {
		all = append(all, o.e)
	}
	if l.distinct || l.setop == "union" || l.setop == "intersect" || l.setop == "except" {
		keys = append(keys, uniqueKey{exprs: varying(all), strict: true})
	}
	if len(l.on) > 0 {
		keys = append(keys, uniqueKey{exprs: varying(l.on), strict: true})
	}
	return keys
}

// varying drops constants, which tell no rows apart.
func varying(es []*expr) []*expr {
	var out []*expr
	seen := map[*expr]bool{}
	for _, e := range es {
		if !seen[e] && !e.isConstant() {
			seen[e] = true
			out = append(out, e)
		}
	}
	return out
}

// fixed gives the expressions that have one value within the level: compared
// by `=` with something that no row of the level decides.
func (a *analyzer) fixed(l *level) map[*expr]bool {
	out := map[*expr]bool{}
	if l.from == nil {
		return out
	}
	insts := map[*instance]bool{}
	l.from.eachInstance(func(i *instance) { insts[i] = true })
	take := func(es []*expr) {
		for _, c := range es {
			if c.op != opFn || c.text != "=" || len(c.args) != 2 {
				continue
			}
			if !readsAny(c.args[1], insts) {
				out[c.args[0]] = true
			}
			if !readsAny(c.args[0], insts) {
				out[c.args[1]] = true
			}
		}
	}
	take(l.where)
	l.from.walkOwn(func(f *from) { take(f.on) })
	return out
}

// total tells whether ordering by these expressions leaves no ties.
func total(keys []uniqueKey, by []*expr, fixed map[*expr]bool) bool {
	has := map[*expr]bool{}
	for _, e := range by {
		has[e] = true
	}
	for _, k := range keys {
		all := true
		for _, e := range k.exprs {
			if fixed[e] {
				continue
			}
			all = all && has[e] && !(k.nulls && nullability(e.raw()) == Nullable)
		}
		if all {
			return true
		}
	}
	return false
}

// judge gives the reason why p is not determined, or "".
func judge(p pendingOrder, l *level, input []uniqueKey, fixed map[*expr]bool) string {
	within := append(append([]*expr(nil), p.by...), p.part...)
	keys := input
	if !p.window {
		keys = l.from.keys // aggregates work on the rows before grouping
		within = append(within, l.groups...)
	}
	ordered := total(keys, within, fixed) || l.from.most1 && !p.window
	if p.window {
		if ordersRows(p.name) && p.kind != aggOrdered || p.name == "first" || p.name == "last" {
			if !ordered {
				return p.name + "() over rows whose order has ties"
			}
			return ""
		}
		if p.rows && !ordered {
			return p.name + "() over a ROWS frame whose order has ties"
		}
	}
	floating := false
	for _, x := range p.args {
		floating = floating || isFloating(x.typ)
	}
	switch p.kind {
	case aggOrdered:
		if !ordered && !orderedByValue(p) {
			return p.name + "() takes rows in an order that is not fixed"
		}
	case aggByOther:
		if len(p.args) > 1 && !total(keys, append(within, p.args[1]), fixed) {
			return p.name + "() over ties"
		}
	case aggFloating:
		if floating && !ordered {
			return "a floating-point " + p.name + "() depends on the order of rows"
		}
	case aggInexact:
		if !ordered {
			return p.name + "() computes in floating point, which depends on the order of rows"
		}
	case aggRandom:
		return p.name + "() is an approximation"
	}
	return ""
}

// orderedByValue tells whether ties are equal in everything the aggregate sees.
func orderedByValue(p pendingOrder) bool {
	has := map[*expr]bool{}
	for _, e := range p.by {
		has[e] = true
	}
	for _, x := range p.args {
		if !has[x] && !x.isConstant() {
			return false
		}
	}
	return len(p.by) > 0 && !strings.HasPrefix(p.name, "json_group_object")
}
