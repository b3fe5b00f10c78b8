package spine

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// shape finds in the syntax tree what a form cannot compute.
type shape struct {
	p    *prepared
	tree node
	// marked says that tree is the marked one, whose places are known.
	marked   bool
	found    *Refusal
	fix      *repair // what would mend the first finding, nil = nothing known
	warnings diag.List
}

func (s *shape) pos(n node) diag.Pos {
	if !s.marked {
		return s.p.code.src.At(0)
	}
	if i := firstMarker(n); i >= 0 && i < len(s.p.code.markers) {
		if l := location(n); l < 0 {
			return s.p.code.markers[i].pos
		}
	}
	return s.p.code.at(s.p.places, location(n))
}

func (s *shape) markerPos(n any) diag.Pos {
	if i := firstMarker(n); i >= 0 && i < len(s.p.code.markers) {
		return s.p.code.markers[i].pos
	}
	return s.p.code.src.At(0)
}

// repairable notes the repair of the refusal that follows, if it is the first.
func (s *shape) repairable(r repair) {
	if s.found == nil {
		s.fix = &r
	}
}

func (s *shape) refuse(k Kind, pos diag.Pos, format string, args ...any) {
	if s.found == nil {
		s.found = refuse(k, pos, format, args...)
	}
}

// general finds what no form over many dates can keep: samples, values that no
// slot decides, rows that no order decides, reading the node's own table.
func (p *prepared) general() (*Refusal, diag.List) {
	s := &shape{p: p, tree: p.literalTree}
	if p.tree != nil {
		s.tree, s.marked = p.tree, true
	}
	walk(s.tree, func(n node) bool {
		s.sample(n)
		s.volatile(n)
		s.self(n)
		s.ties(n)
		return true
	})
	s.limits(s.tree, false)
	if s.found == nil && p.in.Body.Nondeterministic != "" {
		s.refuse(Nondeterministic, s.p.code.src.At(0), "%s", p.in.Body.Nondeterministic)
	}
	return s.found, s.warnings
}

func (s *shape) sample(n node) {
	if n["sample"] != nil {
		s.refuse(Sample, s.pos(n), "a sample: which rows it takes cannot be repeated date by date")
	}
}

func (s *shape) volatile(n node) {
	name := funcName(n)
	if name == "" && str(n, "class") == "WINDOW" {
		name = strings.ToLower(str(n, "function_name"))
	}
	if ns := names(n); len(ns) == 1 && clockWord(ns[0]) {
		name = strings.ToLower(ns[0])
	}
	if name != "" && volatileFunction(name, len(list(n, "children"))) {
		s.refuse(Nondeterministic, s.pos(n), "%s() is decided by no date: it reads the clock, chance or the session", name)
	}
}

func (s *shape) self(n node) {
	if str(n, "type") != "BASE_TABLE" {
		return
	}
	table, qualified := str(n, "table_name"), str(n, "schema_name")+"."+str(n, "table_name")
	for _, own := range s.p.in.Body.Self {
		own = strings.ReplaceAll(own, `"`, "")
		if strings.EqualFold(own, table) || strings.EqualFold(own, qualified) {
			s.refuse(SelfDependency, s.pos(n), "the SELECT reads its own table %s: a date needs the one before it", own)
		}
	}
}

// ties warns about window functions whose ORDER BY holds no known unique key.
func (s *shape) ties(n node) {
	if str(n, "class") != "WINDOW" {
		return
	}
	name := strings.ToLower(strings.TrimPrefix(str(n, "function_name"), ""))
	if name == "" {
		name = strings.ToLower(strings.TrimPrefix(str(n, "type"), "WINDOW_"))
	}
	if !ordersRows(name) {
		return
	}
	ordered := map[string]bool{}
	for _, part := range nodes(n, "partitions") {
		if ns := names(part); len(ns) > 0 {
			ordered[strings.ToLower(ns[len(ns)-1])] = true
		}
	}
	for _, o := range nodes(n, "orders") {
		if ns := names(sub(o, "expression")); len(ns) > 0 {
			ordered[strings.ToLower(ns[len(ns)-1])] = true
		}
	}
	if s.uniqueAmong(ordered) {
		return
	}
	s.warnings = append(s.warnings, diag.Warnf(string(Nondeterministic), "%s: its ORDER BY is not known to be total; rows that tie may differ from a run by date", name).At(s.pos(n)))
}

func (s *shape) uniqueAmong(columns map[string]bool) bool {
	found := false
	walk(s.tree, func(n node) bool {
		if str(n, "type") != "BASE_TABLE" || s.p.in.Body.Schema == nil {
			return true
		}
		t, ok := s.p.in.Body.Schema.Lookup(tableName(n))
		if !ok {
			return true
		}
		for _, key := range t.Unique {
			all := len(key) > 0
			for _, k := range key {
				all = all && columns[strings.ToLower(k)]
			}
			found = found || all
		}
		return true
	})
	return found
}

func tableName(n node) string {
	name := str(n, "table_name")
	if schema := str(n, "schema_name"); schema != "" {
		name = schema + "." + name
	}
	return name
}

type modifiers struct {
	order, distinct, limit, percent bool
	limitNode                       node
	orders                          []node
}

func modifiersOf(q node) modifiers {
	var m modifiers
	for _, x := range nodes(q, "modifiers") {
		switch str(x, "type") {
		case "ORDER_MODIFIER":
			m.orders = append(m.orders, nodes(x, "orders")...)
			m.order = len(m.orders) > 0
		case "DISTINCT_MODIFIER":
			m.distinct = true
		case "LIMIT_MODIFIER":
			m.limit, m.limitNode = true, x
		case "LIMIT_PERCENT_MODIFIER":
			m.limit, m.percent, m.limitNode = true, true, x
		}
	}
	return m
}

// limits refuses LIMIT without ORDER BY where several rows may come.
func (s *shape) limits(v any, exists bool) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			s.limits(e, exists)
		}
	case map[string]any:
		if isQuery(x) {
			m := modifiersOf(x)
			if m.limit && !m.order && !exists && !s.oneRow(x) && !s.orderedBelow(x) {
				pos := s.pos(m.limitNode)
				if l := sub(m.limitNode, "limit"); l != nil {
					pos = s.pos(l)
				}
				s.refuse(Nondeterministic, pos, "LIMIT without ORDER BY: which rows stay is open")
			}
			exists = false
		}
		if str(x, "class") == "SUBQUERY" {
			exists = str(x, "subquery_type") == "EXISTS"
		}
		for _, k := range keysOf(x) {
			s.limits(x[k], exists)
		}
	}
}

func (s *shape) oneRow(q node) bool {
	if str(q, "type") != "SELECT_NODE" {
		return false
	}
	if f := sub(q, "from_table"); f == nil || str(f, "type") == "EMPTY" {
		return true
	}
	return len(list(q, "group_expressions")) == 0 && hasAggregate(q)
}

func (s *shape) orderedBelow(q node) bool {
	f := sub(q, "from_table")
	if str(f, "type") != "SUBQUERY" {
		return false
	}
	return modifiersOf(subqueryNode(f)).order
}

// hasAggregate tells whether the SELECT's own level aggregates.
func hasAggregate(q node) bool {
	return ownAggregate(q, func(string, node) bool { return true }) != nil
}

// ownAggregate finds an aggregate call of the SELECT's own level.
func ownAggregate(q node, is func(name string, n node) bool) node {
	var found node
	visit := func(n node) bool {
		if found != nil || isQuery(n) || str(n, "class") == "SUBQUERY" {
			return false
		}
		if str(n, "type") == "GROUPING_FUNCTION" && is("grouping", n) {
			found = n
		}
		if name := funcName(n); aggregateFunction(name) && is(name, n) {
			found = n
		}
		return found == nil
	}
	for _, k := range []string{"select_list", "having", "qualify", "modifiers"} {
		walk(q[k], visit)
	}
	return found
}
