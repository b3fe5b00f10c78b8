package sqlast

import "strings"

// join analyses a JOIN of any kind.
func (a *analyzer) join(r *astRef, outer *scope) (*from, *relation) {
	left, lrel := a.from(r.Left, outer)
	right, rrel := a.from(r.Right, &scope{parent: outer, rel: lrel, ctes: outer.ctes})
	if r.RefType == "POSITIONAL" {
		a.unsplit("positional_join", r.Loc, "POSITIONAL JOIN pairs rows by their physical position")
	}
	both := &relation{
		cols:    append(append([]visible(nil), lrel.cols...), rrel.cols...),
		sources: append(append([]*source(nil), lrel.sources...), rrel.sources...),
	}
	using := r.Using
	if r.RefType == "NATURAL" {
		using = sharedNames(lrel, rrel)
	}
	var on []*expr
	lcol, rcol := map[string]*expr{}, map[string]*expr{}
	for _, u := range using {
		l, rt := a.usingColumn(u, lrel, r.Loc), a.usingColumn(u, rrel, r.Loc)
		if l == nil || rt == nil {
			continue
		}
		lcol[strings.ToLower(u)], rcol[strings.ToLower(u)] = l, rt
		on = append(on, a.fn("=", "BOOLEAN", l, rt))
	}
	on = append(on, a.conjuncts(r.Condition, &scope{parent: outer, rel: both, ctes: outer.ctes})...)

	kind := strings.ToLower(r.JoinType)
	if kind == "outer" {
		kind = "full"
	}
	asof := r.RefType == "ASOF"
	if kind == "inner" && !asof {
		if r.RefType == "CROSS" && right.one && len(on) == 0 {
			kind = "cross"
		} else {
			f := &from{inner: []*from{left, right}, on: on, one: left.one && right.one && len(on) == 0, most1: left.most1 && right.most1}
			f.keys = a.innerKeys(left, right, on)
			return f, merged(lrel, rrel, lcol, rcol, kind, a)
		}
	}
	a.joins++
	j := &join{n: a.joins, kind: kind, alias: rightAlias(r.Right), left: left, right: right, on: on, loc: a.loc(r.Loc)}
	if asof {
		j.kind = "asof " + kind
	}
	j.neutral = !asof && (kind == "cross" || kind == "left" && (right.most1 || a.provesUnique(right, on, true)))
	j.row = !j.neutral
	f := &from{join: j, most1: left.most1 && (right.most1 || j.neutral)}
	f.one = left.one && j.neutral
	switch {
	case kind == "semi" || kind == "anti":
		f.keys = loosened(left.keys)
		return f, lrel
	case j.neutral:
		f.keys = left.keys
	case kind == "left" || asof && kind == "inner":
		if asof || a.provesUnique(right, on, false) {
			f.keys = loosened(left.keys)
		} else {
			f.keys = a.combined(j, left.keys, right.keys)
		}
	case kind == "right":
		f.keys = a.combined(j, right.keys, left.keys)
		if a.provesUnique(left, on, false) {
			f.keys = append(f.keys, loosened(right.keys)...)
		}
	}
	if kind == "left" || kind == "cross" || kind == "full" || asof {
		rrel = a.wrapped(j, rrel)
	}
	if kind == "right" || kind == "full" {
		lrel = a.wrapped(j, lrel)
	}
	for k := range lcol {
		lcol[k], rcol[k] = a.usingColumn(k, lrel, r.Loc), a.usingColumn(k, rrel, r.Loc)
	}
	return f, merged(lrel, rrel, lcol, rcol, kind, a)
}

func rightAlias(r *astRef) string {
	switch {
	case r.Alias != "":
		return r.Alias
	case r.Type == "BASE_TABLE":
		return r.Table
	case r.Type == "TABLE_FUNCTION" && r.Function != nil:
		return r.Function.Function
	case r.Type == "JOIN":
		return rightAlias(r.Left)
	}
	return ""
}

func sharedNames(l, r *relation) []string {
	var out []string
	for _, c := range l.cols {
		if hasName(r.cols, c.name) {
			out = append(out, c.name)
		}
	}
	return out
}

func (a *analyzer) usingColumn(name string, rel *relation, loc uint64) *expr {
	sc := &scope{rel: rel}
	if e := sc.unqualified(a, name, loc); e != nil {
		return e
	}
	for _, s := range rel.sources {
		if s.open != nil {
			return s.open
		}
	}
	a.unknownColumn([]string{name}, sc, loc)
	return nil
}

// merged makes what both sides offer together. A USING column appears once, at
// the left side's place: it is the left one, the right one for RIGHT, both for
// FULL (README split 4).
func merged(l, r *relation, lcol, rcol map[string]*expr, kind string, a *analyzer) *relation {
	out := &relation{sources: append(append([]*source(nil), l.sources...), r.sources...)}
	for _, c := range l.cols {
		k := strings.ToLower(c.name)
		if x, ok := lcol[k]; ok && x != nil && rcol[k] != nil && c.e == x {
			switch kind {
			case "right":
				c.e = rcol[k]
			case "full":
				c.e = a.fn("coalesce", sameType(x, rcol[k]), x, rcol[k])
			}
			c.src = nil
		}
		out.cols = append(out.cols, c)
	}
	for _, c := range r.cols {
		if x, ok := rcol[strings.ToLower(c.name)]; ok && c.e == x {
			continue
		}
		out.cols = append(out.cols, c)
	}
	return out
}

func (a *analyzer) wrapped(j *join, rel *relation) *relation {
	out := &relation{}
	bySource := map[*source]*source{}
	for _, s := range rel.sources {
		n := &source{alias: s.alias, path: s.path, closed: s.closed}
		if s.open != nil {
			n.open = a.via(j, s.open)
		}
		bySource[s] = n
		for _, c := range s.cols {
			n.cols = append(n.cols, visible{name: c.name, e: a.via(j, c.e), src: n})
		}
		out.sources = append(out.sources, n)
	}
	for _, c := range rel.cols {
		out.cols = append(out.cols, visible{name: c.name, e: a.via(j, c.e), src: bySource[c.src]})
	}
	return out
}

func loosened(keys []uniqueKey) []uniqueKey {
	out := make([]uniqueKey, len(keys))
	for i, k := range keys {
		out[i] = uniqueKey{exprs: k.exprs, nulls: k.nulls}
	}
	return out
}

// combined pairs the keys of both sides; those of the second one come through
// the join.
func (a *analyzer) combined(j *join, first, second []uniqueKey) []uniqueKey {
	var out []uniqueKey
	for _, x := range first {
		for _, y := range second {
			if len(out) >= 8 {
				return out
			}
			k := uniqueKey{exprs: append([]*expr(nil), x.exprs...), nulls: x.nulls || y.nulls}
			for _, e := range y.exprs {
				if j != nil {
					e = a.via(j, e)
				}
				k.exprs = append(k.exprs, e)
			}
			out = append(out, k)
		}
	}
	return out
}

func (a *analyzer) innerKeys(left, right *from, on []*expr) []uniqueKey {
	var out []uniqueKey
	if right.one && len(on) == 0 {
		out = append(out, left.keys...)
	} else if right.most1 || a.provesUnique(right, on, false) {
		out = append(out, loosened(left.keys)...)
	}
	if left.most1 || a.provesUnique(left, on, false) {
		out = append(out, loosened(right.keys)...)
	}
	if len(out) == 0 {
		out = a.combined(nil, left.keys, right.keys)
	}
	return out
}

// provesUnique tells whether the conditions pin every column of one unique key
// of f by `=` against something that does not read f (README split 1).
func (a *analyzer) provesUnique(f *from, on []*expr, strict bool) bool {
	insts := map[*instance]bool{}
	f.eachInstance(func(i *instance) { insts[i] = true })
	pinned := map[*expr]bool{}
	pin := func(k, other *expr, nullsMatch bool) {
		if readsAny(other, insts) || !keyUncast(k, other) || nullsMatch && nullability(k) != NotNull {
			return
		}
		pinned[k] = true
	}
	for _, c := range on {
		if c.op != opFn || len(c.args) != 2 || c.text != "=" && c.text != "is not distinct from" {
			continue
		}
		l, r := c.args[0], c.args[1]
		if l.op == opFn && r.op == opFn && l.text == "row" && r.text == "row" && len(l.args) == len(r.args) {
			// The engine compares rows with NULL equal to NULL.
			for i := range l.args {
				pin(l.args[i], r.args[i], true)
				pin(r.args[i], l.args[i], true)
			}
			continue
		}
		pin(l, r, c.text != "=")
		pin(r, l, c.text != "=")
	}
	for _, k := range f.keys {
		if strict && !k.strict {
			continue
		}
		all := true
		for _, e := range k.exprs {
			all = all && pinned[e]
		}
		if all {
			return true
		}
	}
	return false
}

func nullability(e *expr) Nullability {
	if e.op == opCol && e.inst.table != nil {
		if c, ok := e.inst.table.column(e.text); ok {
			return c.Nullability
		}
	}
	return NullUnknown
}

// keyUncast tells whether comparing key column k with other leaves k as it is,
// or widens it one to one. An implicit cast of a text key to a number makes
// '7' and '07' one value (README split 1).
func keyUncast(k, other *expr) bool {
	if k.op == opConst {
		return false
	}
	if other.op == opText || other.op == opConst && (other.text == "NULL" || strings.HasPrefix(other.text, "'")) {
		return true // an untyped literal takes the key's type
	}
	t, o := k.typ, other.typ
	switch {
	case t == o && t != "":
		return true
	case t == "VARCHAR":
		// A column whose type nobody declared is taken for a text one; a
		// number or an unknown expression is not.
		return o == "" && other.raw().op == opCol
	case t == "":
		return other.raw().op == opCol || other.op == opParam
	case isInteger(t):
		return isInteger(o) || o == "VARCHAR" || o == ""
	case isDecimal(t):
		return isInteger(o) || isDecimal(o) || o == "" && other.raw().op == opCol || other.op == opParam
	case t == "DATE":
		return o == "DATE" || o == "VARCHAR" || o == "" || strings.HasPrefix(o, "TIMESTAMP")
	case isFloating(t):
		return isFloating(o) || isInteger(o)
	}
	return o == "" || o == "VARCHAR" || strings.HasPrefix(t, "TIMESTAMP") && (o == "DATE" || strings.HasPrefix(o, "TIMESTAMP"))
}
