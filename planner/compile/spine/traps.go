package spine

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// scope is the CTEs that a query sees, by lower-case name.
type scope map[string]*cte

type cte struct {
	query node
	env   scope // what its own query sees
	taint int   // 0 unknown, 1 being asked, 2 no, 3 yes
}

// standing is where a query stands.
type standing struct {
	member     bool // below IN, ANY, ALL
	correlated bool // in a subquery that reads the query around it
	expression bool // is itself the query of a subquery expression
	lossy      bool // below a set operation, DISTINCT, or ORDER BY without LIMIT
}

// lateral finds what the engine refuses or computes wrong in a lateral join
// (cases README, spine 8 and 10).
func (p *prepared) lateral() (*Refusal, *repair) {
	s := &shape{p: p, tree: p.tree, marked: true}
	walk(p.tree, func(n node) bool {
		s.tableFunction(n)
		s.columns(n)
		s.window(n)
		s.lambda(n)
		s.constantArgument(n)
		return true
	})
	s.query(p.tree, scope{}, standing{})
	return s.found, s.fix
}

func (s *shape) tableFunction(n node) {
	if str(n, "type") != "TABLE_FUNCTION" {
		return
	}
	f := sub(n, "function")
	if name := funcName(f); !lateralArguments(name) && hasMarker(f) {
		s.refuse(InTableFunction, s.markerPos(f), "an argument of %s() must be the same for all dates", name)
	}
}

func (s *shape) columns(n node) {
	if str(n, "class") == "STAR" && hasMarker(n["expr"]) {
		s.refuse(InIdentifier, s.markerPos(n), "COLUMNS(…) chooses columns before any date is read")
	}
	if funcName(n) != "" && hasMarker(n) { // * LIKE '…'
		for _, c := range nodes(n, "children") {
			if str(c, "class") == "STAR" && strings.HasPrefix(funcName(n), "~~") {
				s.refuse(InIdentifier, s.markerPos(n), "* LIKE chooses columns before any date is read")
			}
		}
	}
}

func (s *shape) window(n node) {
	if str(n, "class") == "WINDOW" && hasMarker(n) {
		s.refuse(Unsupported, s.markerPos(n), "a parameter inside a window call; compute it in a subquery below")
	}
}

func (s *shape) lambda(n node) {
	if str(n, "class") == "LAMBDA" && hasMarker(n["expr"]) && !s.jsonArrow(n) {
		s.refuse(Unsupported, s.markerPos(n), "a parameter inside a lambda or a list comprehension; compute it in a subquery below")
	}
}

// jsonArrow tells a JSON access, which parses like a lambda: its left side is
// no plain name, or its right side is the key alone.
func (s *shape) jsonArrow(n node) bool {
	if e := sub(n, "expr"); e != nil {
		if _, ok := markerOf(e); ok {
			return true
		}
	}
	return len(names(sub(n, "lhs"))) != 1
}

// constantArgument refuses parameters where the engine wants constants.
func (s *shape) constantArgument(n node) {
	name := funcName(n)
	if name == "" || !hasMarker(n) {
		return
	}
	args := nodes(n, "children")
	must := func(from int) {
		for i := from; i < len(args); i++ {
			if hasMarker(args[i]) {
				s.refuse(Unsupported, s.markerPos(args[i]), "argument %d of %s() must be a constant", i+1, name)
			}
		}
	}
	switch name {
	case "string_agg", "group_concat", "listagg", "quantile", "quantile_cont", "quantile_disc", "approx_quantile", "bitstring_agg",
		"list_sort", "array_sort", "list_reverse_sort", "array_reverse_sort", "list_grade_up", "array_grade_up", "list_aggregate",
		"array_aggregate", "list_aggr", "array_aggr", "aggregate", "strptime", "try_strptime", "from_json", "from_json_strict",
		"json_transform", "json_transform_strict", "struct_extract":
		must(1)
	case "regexp_extract", "regexp_extract_all", "regexp_matches", "regexp_full_match":
		must(2)
	case "strftime": // (time, format) or (format, time)
		for _, a := range args {
			if i, ok := markerOf(a); ok && s.p.code.markers[i].kind == literal {
				s.refuse(Unsupported, s.markerPos(a), "the format of strftime() must be a constant")
			}
		}
	case "current_setting":
		must(0)
	}
	// ({'x': 1})['…'] reads a struct's field.
	if name == "array_extract" && len(args) == 2 && funcName(args[0]) == "struct_pack" {
		must(1)
	}
}

// query visits a query in its context.
func (s *shape) query(q node, env scope, c standing) {
	env = s.withCTEs(q, env)
	m := modifiersOf(q)
	if m.percent && s.tainted(q, env) {
		s.refuse(Unsupported, s.pos(sub(m.limitNode, "limit")), "LIMIT n%% in a statement over several dates")
	}
	if m.limit && hasMarker(m.limitNode) {
		s.refuse(Unsupported, s.markerPos(m.limitNode), "a parameter in LIMIT or OFFSET; filter by row_number() in its place")
	}
	// In a subquery expression the row that is lost and the NULL are the same.
	lossy := (m.distinct || m.order && !m.limit) && !c.expression
	switch str(q, "type") {
	case "SELECT_NODE":
		s.selectNode(q, env, c, lossy)
	default:
		c.lossy, c.expression = !c.expression, false
		for _, k := range []string{"left", "right", "child"} {
			if x := sub(q, k); x != nil {
				s.query(x, env, c)
			}
		}
		for _, x := range nodes(q, "children") {
			if isQuery(x) {
				s.query(x, env, c)
			}
		}
		s.expressions(q["modifiers"], env, c)
	}
}

// withCTEs visits the CTEs of a query and gives the scope with them.
func (s *shape) withCTEs(q node, env scope) scope {
	ctes := nodes(sub(q, "cte_map"), "map")
	if name := str(q, "cte_name"); name != "" { // a recursive query sees itself
		inner := scope{}
		for k, v := range env {
			inner[k] = v
		}
		inner[strings.ToLower(name)] = &cte{query: node{}, env: scope{}, taint: 2}
		env = inner
	}
	if len(ctes) == 0 {
		return env
	}
	inner := scope{}
	for k, v := range env {
		inner[k] = v
	}
	for _, x := range ctes {
		body := subqueryNodeOf(sub(x, "value"))
		before := scope{}
		for k, v := range inner {
			before[k] = v
		}
		s.query(body, before, standing{})
		inner[strings.ToLower(str(x, "key"))] = &cte{query: body, env: before}
	}
	return inner
}

func subqueryNodeOf(value node) node {
	if q := sub(value, "query"); q != nil {
		if n := sub(q, "node"); n != nil {
			return n
		}
		return q
	}
	return nil
}

// positions refuses bare numbers that mean the column at that place.
func (s *shape) positions(q node, m modifiers) {
	position := func(e node, clause string) {
		if i, ok := markerOf(e); ok && s.p.code.markers[i].kind == bare {
			s.refuse(InPosition, s.p.code.markers[i].pos, "a number in %s is a column's position; as a parameter it would be a constant", clause)
		}
	}
	for _, o := range m.orders {
		position(sub(o, "expression"), "ORDER BY")
	}
	for _, g := range nodes(q, "group_expressions") {
		position(g, "GROUP BY")
	}
	for _, x := range nodes(q, "modifiers") {
		for _, on := range nodes(x, "distinct_on_targets") {
			position(on, "DISTINCT ON")
		}
	}
}

func (s *shape) selectNode(q node, env scope, c standing, lossy bool) {
	aggregates := hasAggregate(q)
	global := globalAggregate(q)
	counts := ownAggregate(q, func(name string, _ node) bool { return name == "count" || name == "count_star" }) != nil
	if global && s.aggregateTaint(q, env) {
		if (lossy || c.lossy) && !counts && !mayHideNull(q) {
			s.repairable(repair{kind: addCount, node: q})
			s.refuse(WrongOnEngine, s.fromPos(q), "an aggregate over all rows below DISTINCT, ORDER BY or a set operation: the engine loses the row of a date without data")
		}
		if g := ownAggregate(q, func(name string, _ node) bool { return name == "grouping" || name == "grouping_id" }); g != nil && hasEmptySet(q) {
			s.refuse(WrongOnEngine, s.pos(g), "GROUPING() of the total row is wrong for a date without data")
		}
		if z := s.unprotectedZero(q); z != nil {
			s.repairable(repair{kind: coalesceZero, node: z})
			s.refuse(WrongOnEngine, s.pos(z), "%s() over a date without data becomes NULL where it is 0", funcName(z))
		}
	}
	below := c
	below.expression = false
	below.lossy = c.lossy || lossy
	if counts && (aggregates || len(list(q, "group_expressions")) > 0) {
		below.lossy = false
	}
	s.from(sub(q, "from_table"), env, below)
	for _, k := range []string{"select_list", "where_clause", "group_expressions", "having", "qualify", "modifiers"} {
		s.expressions(q[k], env, c)
	}
}

// mayHideNull tells whether the select list holds an expression that is not
// NULL for NULL: beside one the engine keeps the row of a date without data.
func mayHideNull(q node) bool {
	return find(q["select_list"], func(n node) bool {
		switch str(n, "type") {
		case "OPERATOR_COALESCE", "CASE_EXPR", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL":
			return true
		}
		return funcName(n) == "ifnull" || funcName(n) == "concat"
	}) != nil
}

// globalAggregate tells whether the SELECT makes a row of no rows: an aggregate
// without GROUP BY, or the empty one among its grouping sets.
func globalAggregate(q node) bool {
	if hasEmptySet(q) {
		return true
	}
	return len(list(q, "group_expressions")) == 0 && len(list(q, "group_sets")) == 0 && str(q, "aggregate_handling") != "FORCE_AGGREGATES" && hasAggregate(q)
}

func hasEmptySet(q node) bool {
	for _, set := range list(q, "group_sets") {
		if l, ok := set.([]any); ok && len(l) == 0 {
			return true
		}
	}
	return false
}

// aggregateTaint tells whether the rows under an aggregate depend on the date.
func (s *shape) aggregateTaint(q node, env scope) bool {
	return s.tainted(q["from_table"], env) || s.tainted(q["where_clause"], env)
}

func (s *shape) fromPos(q node) (p diag.Pos) {
	if a := ownAggregate(q, func(string, node) bool { return true }); a != nil && location(a) >= 0 {
		return s.pos(a)
	}
	return s.markerPos(q)
}

// unprotectedZero finds an aggregate of value 0 over no rows that no COALESCE
// stands around.
func (s *shape) unprotectedZero(q node) node {
	var found node
	var visit func(v any)
	visit = func(v any) {
		switch x := v.(type) {
		case []any:
			for _, e := range x {
				visit(e)
			}
		case map[string]any:
			if found != nil || isQuery(x) || str(x, "class") == "SUBQUERY" {
				return
			}
			if str(x, "type") == "OPERATOR_COALESCE" || funcName(x) == "ifnull" {
				if c := nodes(x, "children"); len(c) > 0 && zeroOnEmpty(funcName(c[0])) {
					for _, e := range c[1:] {
						visit(e)
					}
					return
				}
			}
			if zeroOnEmpty(funcName(x)) {
				found = x
				return
			}
			for _, k := range keysOf(x) {
				visit(x[k])
			}
		}
	}
	for _, k := range []string{"select_list", "having", "modifiers"} {
		visit(q[k])
	}
	return found
}

// from visits what a SELECT reads.
func (s *shape) from(r node, env scope, c standing) {
	switch str(r, "type") {
	case "BASE_TABLE":
		s.reference(r, env, c)
	case "SUBQUERY":
		q := subqueryNode(r)
		inner := c
		if s.readsOutside(q, env) {
			inner.correlated, inner.lossy = true, false
		}
		s.query(q, env, inner)
	case "JOIN":
		if str(r, "ref_type") == "ASOF" && s.tainted(r["right"], env) {
			s.refuse(WrongOnEngine, s.joinPos(r), "ASOF JOIN onto rows that depend on the date: the engine seeks the nearest row over all dates")
		}
		if kind := strings.ToUpper(str(r, "join_type")); s.tainted(r["left"], env) || s.tainted(r["right"], env) {
			switch {
			case str(r, "ref_type") == "POSITIONAL":
				s.refuse(Unsupported, s.markerPos(r), "a POSITIONAL JOIN of rows that depend on the date")
			case kind == "OUTER" || kind == "FULL" || kind == "ANTI" || kind == "SEMI":
				s.refuse(Unsupported, s.joinSide(r), "a %s JOIN of rows that depend on the date", kind)
			}
		}
		s.from(sub(r, "left"), env, c)
		s.from(sub(r, "right"), env, c)
		s.expressions(r["condition"], env, c)
	case "SHOW_REF":
		if q := sub(r, "query"); q != nil && s.tainted(q, env) {
			s.refuse(WrongOnEngine, s.markerPos(q), "SUMMARIZE of a date without data gives NULL where it is 0")
		}
	case "":
	default:
		for _, k := range []string{"source"} {
			if x := sub(r, k); x != nil {
				s.from(x, env, c)
			}
		}
		s.expressions(r["function"], env, c)
		s.expressions(r["values"], env, c)
		s.expressions(r["expr_list"], env, c)
	}
}

func (s *shape) joinSide(r node) diag.Pos {
	if firstMarker(r["left"]) >= 0 {
		return s.markerPos(r["left"])
	}
	return s.joinPos(r)
}

func (s *shape) joinPos(r node) diag.Pos {
	if p := s.markerPos(r["right"]); firstMarker(r["right"]) >= 0 {
		return p
	}
	return s.pos(sub(r, "right"))
}

// reference judges reading a CTE that depends on the date.
func (s *shape) reference(r node, env scope, c standing) {
	x := env[strings.ToLower(str(r, "table_name"))]
	if str(r, "schema_name") != "" || x == nil || !s.cteTainted(x) {
		return
	}
	name := str(r, "table_name")
	if c.member || c.correlated {
		s.repairable(repair{kind: inlineCTE, node: r})
	}
	switch {
	case c.member:
		s.refuse(WrongOnEngine, s.pos(r), "IN, ANY or ALL over %s, whose rows depend on the date: the engine tests the members of all dates", name)
	case c.correlated:
		s.refuse(Unsupported, s.pos(r), "a correlated subquery reads %s, whose rows depend on the date: the engine fails with an internal error", name)
	}
}

// expressions visits the subqueries of expressions.
func (s *shape) expressions(v any, env scope, c standing) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			s.expressions(e, env, c)
		}
	case map[string]any:
		if str(x, "class") != "SUBQUERY" {
			for _, k := range keysOf(x) {
				s.expressions(x[k], env, c)
			}
			return
		}
		q := subqueryNode(x)
		inner := standing{member: c.member || str(x, "subquery_type") == "ANY" || str(x, "subquery_type") == "ALL", correlated: c.correlated, expression: true}
		if !inner.member && s.readsOutside(q, env) {
			inner.correlated = true
		}
		s.query(q, env, inner)
		s.expressions(x["child"], env, c)
	}
}

// tainted tells whether what v computes depends on the date.
func (s *shape) tainted(v any, env scope) bool {
	found := false
	walk(v, func(n node) bool {
		if found {
			return false
		}
		if _, ok := markerOf(n); ok {
			found = true
		}
		if str(n, "type") == "BASE_TABLE" && str(n, "schema_name") == "" {
			if x := env[strings.ToLower(str(n, "table_name"))]; x != nil && s.cteTainted(x) {
				found = true
			}
		}
		return !found
	})
	return found
}

func (s *shape) cteTainted(x *cte) bool {
	if x.taint == 0 {
		x.taint = 1
		if s.tainted(x.query, x.env) {
			x.taint = 3
		} else {
			x.taint = 2
		}
	}
	return x.taint == 3
}
