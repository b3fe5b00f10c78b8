package sqlast

import (
	"encoding/json"
	"strings"
)

// expr resolves one expression.
func (a *analyzer) expr(e *astExpr, sc *scope) *expr {
	if e == nil {
		return nil
	}
	a.size++
	if a.size > maxNodes {
		a.unsplit("too_complex", noLocation, "the query unfolds to more than %d expressions", maxNodes)
		return a.mk(expr{op: opConst, text: "NULL"})
	}
	switch e.Class {
	case "COLUMN_REF":
		return a.column(e.Names, sc, e.Loc)
	case "CONSTANT":
		return a.constant(e.Value)
	case "PARAMETER":
		if t, ok := a.prep.template(e.Identifier); ok {
			return a.mk(expr{op: opParam, text: t})
		}
		return a.mk(expr{op: opParam, text: "$" + strings.ToLower(e.Identifier)})
	case "FUNCTION":
		return a.function(e, sc)
	case "WINDOW":
		return a.window(e, sc)
	case "OPERATOR":
		return a.operator(e, sc)
	case "COMPARISON":
		return a.fn(comparison(e.Type), "BOOLEAN", a.expr(e.Left, sc), a.expr(e.Right, sc))
	case "CONJUNCTION":
		label := "and"
		if e.Type == "CONJUNCTION_OR" {
			label = "or"
		}
		return a.fn(label, "BOOLEAN", a.exprs(e.Children, sc)...)
	case "BETWEEN":
		return a.fn("between", "BOOLEAN", a.expr(e.Input, sc), a.expr(e.Lower, sc), a.expr(e.Upper, sc))
	case "CAST":
		return a.cast(e, sc)
	case "CASE":
		var args, values []*expr
		for _, c := range e.Checks {
			w, t := a.expr(c.When, sc), a.expr(c.Then, sc)
			args, values = append(args, w, t), append(values, t)
		}
		if e.Else != nil {
			x := a.expr(e.Else, sc)
			args, values = append(args, x), append(values, x)
		}
		return a.fn("case", resultType("case", values), args...)
	case "SUBQUERY":
		return a.subquery(e, sc)
	case "LAMBDA": // outside a lambda function the arrow is JSON access
		return a.fn("->", "", a.expr(e.Lhs, sc), a.expr(e.Expr, sc))
	case "COLLATE":
		return a.fn("collate "+quoteIdent(e.Collation), "VARCHAR", a.expr(e.Child, sc))
	case "STAR":
		return a.starArgument(e, sc)
	case "POSITIONAL_REFERENCE":
		if sc.rel != nil && e.Index >= 1 && e.Index <= len(sc.rel.cols) {
			return sc.rel.cols[e.Index-1].e
		}
	case "DEFAULT":
		return a.mk(expr{op: opConst, text: "DEFAULT"})
	}
	a.unsplit("unsupported_syntax", e.Loc, "expression of class %s is not understood", e.Class)
	return a.mk(expr{op: opConst, text: "NULL"})
}

func (a *analyzer) exprs(es []*astExpr, sc *scope) []*expr {
	out := make([]*expr, 0, len(es))
	for _, e := range es {
		if e != nil && e.Class == "STAR" && !e.Columns {
			for _, c := range a.expandStar(e, sc) {
				out = append(out, c.e)
			}
			continue
		}
		out = append(out, a.expr(e, sc))
	}
	return out
}

func (a *analyzer) starArgument(e *astExpr, sc *scope) *expr {
	if e.Columns {
		a.unsplit("dynamic_columns", e.Loc, "COLUMNS(…) chooses columns by the engine's rules")
	}
	cols := a.expandStar(e, sc)
	args := make([]*expr, len(cols))
	for i, c := range cols {
		args[i] = c.e
	}
	return a.fn("star", "", args...)
}

func comparison(t string) string {
	switch t {
	case "COMPARE_EQUAL":
		return "="
	case "COMPARE_NOTEQUAL":
		return "<>"
	case "COMPARE_LESSTHAN":
		return "<"
	case "COMPARE_GREATERTHAN":
		return ">"
	case "COMPARE_LESSTHANOREQUALTO":
		return "<="
	case "COMPARE_GREATERTHANOREQUALTO":
		return ">="
	case "COMPARE_DISTINCT_FROM":
		return "is distinct from"
	case "COMPARE_NOT_DISTINCT_FROM":
		return "is not distinct from"
	}
	return strings.ToLower(t)
}

// constant writes a literal canonically, type included.
func (a *analyzer) constant(v *astValue) *expr {
	if v == nil || v.IsNull {
		return a.mk(expr{op: opConst, text: "NULL"})
	}
	t := typeName(v.Type)
	raw := string(v.Value)
	switch {
	case t == "VARCHAR":
		var s string
		if err := json.Unmarshal(v.Value, &s); err != nil {
			return a.mk(expr{op: opConst, text: raw})
		}
		if r := a.prep.restore(s); r != s {
			return a.mk(expr{op: opText, text: r})
		}
		return a.mk(expr{op: opConst, text: quoteText(s), typ: "VARCHAR"})
	case isDecimal(t):
		return a.mk(expr{op: opConst, text: decimalText(raw, t), typ: t})
	case t == "INTEGER" || t == "BIGINT":
		return a.mk(expr{op: opConst, text: raw, typ: t})
	}
	return a.mk(expr{op: opConst, text: t + " " + raw, typ: t})
}

// decimalText puts the point into an unscaled decimal: 15 of scale 1 is 1.5.
func decimalText(raw, typ string) string {
	open, comma := strings.IndexByte(typ, '('), strings.IndexByte(typ, ',')
	if open < 0 || comma < 0 || strings.ContainsAny(raw, "{\"") {
		return typ + " " + raw
	}
	scale := atoi(strings.TrimSuffix(typ[comma+1:], ")"))
	sign := ""
	if strings.HasPrefix(raw, "-") {
		sign, raw = "-", raw[1:]
	}
	for len(raw) <= scale {
		raw = "0" + raw
	}
	return sign + raw[:len(raw)-scale] + "." + raw[len(raw)-scale:]
}

func (a *analyzer) cast(e *astExpr, sc *scope) *expr {
	x := a.expr(e.Child, sc)
	t := typeName(e.CastType)
	if t == "BOOLEAN" && x.op == opConst && !e.TryCast && (x.text == "'t'" || x.text == "'f'") {
		return a.mk(expr{op: opConst, text: map[string]string{"'t'": "TRUE", "'f'": "FALSE"}[x.text], typ: "BOOLEAN"})
	}
	label := "cast:" + t
	if e.TryCast {
		label = "try_cast:" + t
	}
	return a.fn(label, t, x)
}

func (a *analyzer) operator(e *astExpr, sc *scope) *expr {
	args := a.exprs(e.Children, sc)
	switch e.Type {
	case "COMPARE_IN":
		return a.fn("in", "BOOLEAN", args...)
	case "COMPARE_NOT_IN":
		return a.fn("not", "BOOLEAN", a.fn("in", "BOOLEAN", args...))
	case "OPERATOR_NOT":
		return a.fn("not", "BOOLEAN", args...)
	case "OPERATOR_IS_NULL":
		return a.fn("is null", "BOOLEAN", args...)
	case "OPERATOR_IS_NOT_NULL":
		return a.fn("is not null", "BOOLEAN", args...)
	case "OPERATOR_COALESCE":
		return a.fn("coalesce", resultType("coalesce", args), args...)
	case "STRUCT_EXTRACT":
		if len(args) == 2 && args[1].op == opConst {
			args[1] = a.mk(expr{op: opConst, text: strings.ToLower(args[1].text), typ: "VARCHAR"})
		}
	}
	return a.fn(strings.ToLower(e.Type), "", args...)
}

// call makes a scalar function's node.
func (a *analyzer) call(name string, args []*expr) *expr {
	x := expr{op: opFn, text: name, args: args, typ: resultType(name, args)}
	if isVolatile(name, len(args)) {
		x.nondet = name + "() differs from run to run"
	}
	return a.mk(x)
}

func (a *analyzer) function(e *astExpr, sc *scope) *expr {
	name := strings.ToLower(a.prep.restore(e.Function))
	if aggregateKind(name) != aggNone && sc.grouped != nil {
		inner := *sc // inside an aggregate a name means the column
		inner.grouped = nil
		sc = &inner
	}
	children := a.arguments(name, e.Children, sc)
	if q := a.methodTarget(e, sc); q != nil {
		children = append([]*expr{q}, children...)
	} else if e.Schema != "" && !equalFold(e.Schema, "main") {
		name = quoteIdent(e.Schema) + "." + name
	}
	if len(e.Children) > 0 && e.Children[0] != nil && e.Children[0].Class == "STAR" && isLike(name) {
		a.unsplit("dynamic_columns", e.Loc, "a star filtered by a pattern chooses columns by their names")
	}
	kind := aggregateKind(name)
	if kind == aggNone && (e.Filter != nil || e.Distinct || e.OrderBys != nil && len(e.OrderBys.Orders) > 0) {
		kind = aggOrdered // an aggregate that is not known
	}
	if kind != aggNone {
		return a.aggregate(name, kind, children, e, sc)
	}
	for i, c := range e.Children { // struct_pack(a := …): names are values
		if c != nil && c.Alias != "" && i < len(children) && len(children) == len(e.Children) {
			children[i] = a.fn("named "+quoteIdent(c.Alias), children[i].typ, children[i])
		}
	}
	if name == "unnest" {
		if l := sc.level; l != nil && sc.select_ {
			l.unnest = append(l.unnest, children...)
		}
		if len(children) != 1 || strings.HasPrefix(children[0].typ, "STRUCT") {
			a.unsplit("dynamic_columns", e.Loc, "unnest of a struct gives a column for each of its fields")
		}
	}
	if name == "list_sort" || name == "array_sort" || name == "list_reverse_sort" || name == "array_reverse_sort" {
		children = a.sortedList(children)
	}
	return a.call(name, children)
}

// sortedList: the parser writes list(x ORDER BY x) as list_sort(list(x)); the
// list under a sort has no order of its own to depend on.
func (a *analyzer) sortedList(args []*expr) []*expr {
	if len(args) == 0 || args[0].op != opAgg || args[0].text != "list" && args[0].text != "array_agg" {
		return args
	}
	x := *args[0]
	x.text += " to sort"
	return append([]*expr{a.mk(x)}, args[1:]...)
}

func isLike(name string) bool {
	switch name {
	case "~~", "!~~", "~~*", "!~~*", "~~~", "regexp_full_match", "not_like_escape", "like_escape", "ilike_escape", "not_ilike_escape":
		return true
	}
	return false
}

// methodTarget finds x in the method call x.f(…), which the parser takes for a
// function in schema x.
func (a *analyzer) methodTarget(e *astExpr, sc *scope) *expr {
	if e.Schema == "" || equalFold(e.Schema, "main") || equalFold(e.Schema, "pg_catalog") {
		return nil
	}
	names := []string{e.Schema}
	if e.Catalog != "" {
		names = []string{e.Catalog, e.Schema}
	}
	if !a.resolves(names, sc) {
		return nil
	}
	return a.column(names, sc, e.Loc)
}

func (a *analyzer) resolves(names []string, sc *scope) bool {
	for s := sc; s != nil; s = s.parent {
		if _, _, ok := a.findColumn(s, names, noLocation); ok {
			return true
		}
	}
	return false
}

// arguments resolves a function's arguments, lambdas with their parameters.
func (a *analyzer) arguments(name string, children []*astExpr, sc *scope) []*expr {
	lambda := takesLambda(name)
	plain := true
	for _, c := range children {
		plain = plain && (c == nil || c.Class != "LAMBDA")
	}
	if plain {
		return a.exprs(children, sc)
	}
	var out []*expr
	for _, c := range children {
		if c.Class != "LAMBDA" {
			out = append(out, a.exprs([]*astExpr{c}, sc)...)
			continue
		}
		params := lambdaParams(c.Lhs)
		if !lambda && (len(params) != 1 || a.resolves(params, sc)) {
			out = append(out, a.expr(c, sc))
			continue
		}
		inner := sc.child()
		inner.lambda, inner.depth, inner.level, inner.select_ = params, sc.depth+1, sc.level, sc.select_
		out = append(out, a.fn("lambda", "", a.expr(c.Expr, inner)))
	}
	return out
}

func lambdaParams(e *astExpr) []string {
	if e == nil {
		return nil
	}
	if e.Class == "COLUMN_REF" {
		return []string{strings.ToLower(e.Names[len(e.Names)-1])}
	}
	var out []string
	for _, c := range e.Children {
		out = append(out, lambdaParams(c)...)
	}
	return out
}

func (a *analyzer) aggregate(name string, kind aggKind, children []*expr, e *astExpr, sc *scope) *expr {
	label := name
	if e.Distinct {
		label += " distinct"
	}
	args := append([]*expr(nil), children...)
	if e.Filter != nil {
		args = append(args, a.fn("filter", "", a.expr(e.Filter, sc)))
	}
	var by []*expr
	if e.OrderBys != nil {
		for _, k := range a.orderKeys(e.OrderBys.Orders, sc) {
			by = append(by, k.e)
			args = append(args, a.fn("order"+k.dir, "", k.e))
		}
	}
	l := sc.level
	if l == nil {
		return a.fn(label, resultType(name, children), args...)
	}
	x := a.mk(expr{op: opAgg, text: label, args: args, level: l, typ: resultType(name, children)})
	a.pending = append(a.pending, pendingOrder{x: x, name: name, kind: kind, args: children, by: by, level: l})
	a.aggregates[l]++
	return x
}

// orderDir writes a direction canonically; the engine's default direction is
// ascending everywhere, where NULLs go is not.
func orderDir(o astOrder) string {
	d := " asc"
	if o.Type == "DESCENDING" {
		d = " desc"
	}
	if o.NullOrder != "" && o.NullOrder != "ORDER_DEFAULT" {
		d += " " + strings.ToLower(strings.ReplaceAll(o.NullOrder, "_", " "))
	}
	return d
}

func (a *analyzer) orderKeys(orders []astOrder, sc *scope) []orderKey {
	out := make([]orderKey, 0, len(orders))
	for _, o := range orders {
		out = append(out, orderKey{a.expr(o.Expr, sc), orderDir(o)})
	}
	return out
}

func (a *analyzer) window(e *astExpr, sc *scope) *expr {
	name := strings.ToLower(e.Function)
	label := name
	if e.Distinct {
		label += " distinct"
	}
	if e.IgnoreNulls {
		label += " ignore nulls"
	}
	children := a.exprs(e.Children, sc)
	args := append([]*expr(nil), children...)
	add := func(label string, x *astExpr) {
		if x != nil {
			args = append(args, a.fn(label, "", a.expr(x, sc)))
		}
	}
	add("offset", e.OffsetExpr)
	add("default", e.DefaultExpr)
	add("filter", e.WindowFilter)
	var part, by []*expr
	for _, p := range e.Partitions {
		x := a.expr(p, sc)
		part = append(part, x)
		args = append(args, a.fn("partition", "", x))
	}
	for _, k := range a.orderKeys(e.Orders, sc) {
		by = append(by, k.e)
		args = append(args, a.fn("order"+k.dir, "", k.e))
	}
	if argBy := a.orderKeys(e.ArgOrders, sc); len(argBy) > 0 {
		by = orderExprs(argBy) // they, not the window's, order the arguments
		for _, k := range argBy {
			args = append(args, a.fn("argument_order"+k.dir, "", k.e))
		}
	}
	add("start", e.StartExpr)
	add("end", e.EndExpr)
	label += " " + strings.ToLower(e.Start+" "+e.End)
	if e.ExcludeClause != "" && e.ExcludeClause != "NO_OTHER" {
		label += " exclude " + strings.ToLower(e.ExcludeClause)
	}
	l := sc.level
	if l == nil {
		return a.fn(label, "", args...)
	}
	l.windows = true
	x := a.mk(expr{op: opWindow, text: label, args: args, level: l, typ: resultType(name, children)})
	rows := strings.HasSuffix(e.Start, "_ROWS") || strings.HasSuffix(e.End, "_ROWS")
	a.pending = append(a.pending, pendingOrder{x: x, name: name, kind: aggregateKind(name), args: children, by: by,
		part: part, level: l, window: true, rows: rows})
	return x
}

func (a *analyzer) subquery(e *astExpr, sc *scope) *expr {
	if e.Subquery == nil || e.Subquery.Node == nil {
		return a.mk(expr{op: opConst, text: "NULL"})
	}
	l := a.query(e.Subquery.Node, sc, sc.ctes)
	x := expr{op: opSub, level: l, text: strings.ToLower(e.SubqueryType)}
	if e.Child != nil {
		x.text += " " + comparison(e.ComparisonType)
		x.args = []*expr{a.expr(e.Child, sc)}
	}
	if x.text == "scalar" && len(l.outputs) == 1 {
		x.typ = l.outputs[0].e.typ
	}
	return a.mk(x)
}
