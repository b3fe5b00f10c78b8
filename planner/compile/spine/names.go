package spine

import "strings"

// readsOutside tells whether a subquery reads columns of the query around it.
// A name that cannot be placed counts as its own only if one of its sources
// has columns that are not known.
func (s *shape) readsOutside(q node, env scope) bool {
	aliases := map[string]bool{markerTable: true}
	own := map[string]bool{}
	known := true
	walk(q, func(n node) bool {
		switch str(n, "type") {
		case "BASE_TABLE", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "JOIN", "PIVOT":
			if str(n, "class") != "" {
				break
			}
			for _, k := range []string{"alias", "table_name", "schema_name"} {
				if a := str(n, k); a != "" {
					aliases[strings.ToLower(a)] = true
				}
			}
			if f := funcName(sub(n, "function")); f != "" {
				aliases[f] = true
			}
			for _, a := range list(n, "column_name_alias") {
				if c, ok := a.(string); ok {
					own[strings.ToLower(c)] = true
				}
			}
			if str(n, "type") != "JOIN" {
				cols, ok := s.columnsOf(n, env, 0)
				known = known && ok
				for _, c := range cols {
					own[c] = true
				}
			}
		}
		for _, x := range nodes(sub(n, "cte_map"), "map") {
			aliases[strings.ToLower(str(x, "key"))] = true
			known = false
		}
		if a := str(n, "alias"); a != "" && str(n, "class") != "" {
			own[strings.ToLower(a)] = true
		}
		return true
	})
	outside := false
	walk(q, func(n node) bool {
		ns := names(n)
		switch {
		case len(ns) == 0:
		case len(ns) == 1:
			l := strings.ToLower(ns[0])
			outside = outside || known && !own[l] && !aliases[l] && !clockWord(l)
		default:
			l := strings.ToLower(ns[0])
			outside = outside || !aliases[l] && !own[l]
		}
		return str(n, "class") != "LAMBDA"
	})
	return outside
}

// columnsOf gives the lower-case columns of a source, and whether all are
// known.
func (s *shape) columnsOf(r node, env scope, depth int) ([]string, bool) {
	if depth > 50 {
		return nil, false
	}
	switch str(r, "type") {
	case "BASE_TABLE":
		if x := env[strings.ToLower(str(r, "table_name"))]; x != nil && str(r, "schema_name") == "" {
			return s.outputsOf(x.query, x.env, depth+1)
		}
		if s.p.in.Body.Schema == nil {
			return nil, false
		}
		t, ok := s.p.in.Body.Schema.Lookup(tableName(r))
		if !ok {
			return nil, false
		}
		var out []string
		for _, c := range t.Columns {
			out = append(out, strings.ToLower(c.Name))
		}
		return out, true
	case "SUBQUERY":
		return s.outputsOf(subqueryNode(r), env, depth+1)
	case "JOIN":
		l, ok1 := s.columnsOf(sub(r, "left"), env, depth+1)
		m, ok2 := s.columnsOf(sub(r, "right"), env, depth+1)
		return append(l, m...), ok1 && ok2
	case "EMPTY":
		return nil, true
	}
	return nil, false
}

// outputsOf gives the column names of a query, and whether all are known.
func (s *shape) outputsOf(q node, env scope, depth int) ([]string, bool) {
	if depth > 50 || q == nil {
		return nil, false
	}
	if str(q, "type") != "SELECT_NODE" {
		if l := sub(q, "left"); l != nil {
			return s.outputsOf(l, env, depth+1)
		}
		return nil, false
	}
	var out []string
	for _, e := range nodes(q, "select_list") {
		switch {
		case str(e, "alias") != "":
			out = append(out, strings.ToLower(str(e, "alias")))
		case str(e, "class") == "STAR":
			cols, ok := s.columnsOf(sub(q, "from_table"), env, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, cols...)
		case len(names(e)) > 0:
			ns := names(e)
			out = append(out, strings.ToLower(ns[len(ns)-1]))
		}
	}
	return out, true
}
