package sqlast

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// relation is what a FROM tree offers to names.
type relation struct {
	cols    []visible // in star order, USING columns merged
	sources []*source
}

// visible is one column that an unqualified name may mean.
type visible struct {
	name string // as declared
	e    *expr
	src  *source // nil for a merged USING column
}

// source is one FROM item.
type source struct {
	alias  string   // lower case
	path   []string // lower-case schema parts before the table name, outermost first
	cols   []visible
	open   *expr  // columns unknown: every name means this
	closed string // unknown table: why nothing can be resolved
}

func (s *source) find(name string) *expr {
	for _, c := range s.cols {
		if equalFold(c.name, name) {
			return c.e
		}
	}
	return s.open
}

// cteEnv is the chain of CTEs visible at a place.
type cteEnv struct {
	name    string // lower case
	aliases []string
	body    *astQuery
	env     *cteEnv // visible in the body
	scope   *scope  // for correlation of the body
	next    *cteEnv
}

func (c *cteEnv) find(name string) *cteEnv {
	for ; c != nil; c = c.next {
		if c.name == name {
			return c
		}
	}
	return nil
}

// scope resolves names: the FROM items and aliases of one SELECT, then the
// enclosing ones.
type scope struct {
	parent  *scope
	rel     *relation
	aliases map[string]*expr // select aliases that may be used here
	ctes    *cteEnv
	level   *level
	lambda  []string // parameter names of a lambda, lower case
	depth   int      // lambda depth
	select_ bool     // in the select list: unnest makes rows
	grouped map[*expr]bool
}

func (s *scope) child() *scope {
	return &scope{parent: s, ctes: s.ctes, depth: s.depth}
}

// findColumn resolves a name inside one scope only. The rest of the names are
// struct fields.
func (a *analyzer) findColumn(s *scope, names []string, loc uint64) (*expr, []string, bool) {
	if len(s.lambda) > 0 {
		for i, l := range s.lambda {
			if l == strings.ToLower(names[0]) {
				return a.mk(expr{op: opFn, text: "lambda_" + itoa(s.depth) + "_" + itoa(i)}), names[1:], true
			}
		}
		return nil, nil, false
	}
	if s.rel == nil {
		return nil, nil, false
	}
	// table.column wins over struct.field (README split 4); the longest
	// qualification comes first.
	for n := min(len(names)-1, 3); n >= 1; n-- {
		for _, src := range s.rel.sources {
			if !src.matches(names[:n]) {
				continue
			}
			if e := src.find(names[n]); e != nil {
				return e, names[n+1:], true
			}
		}
	}
	e, alias := s.unqualified(a, names[0], loc), s.aliases[strings.ToLower(names[0])]
	switch {
	case e != nil && alias != nil && s.grouped != nil && !s.grouped[e]:
		// HAVING and QUALIFY over groups: a column that is no group key can
		// only be meant as the alias.
		return alias, names[1:], true
	case e != nil:
		return e, names[1:], true
	case alias != nil:
		return alias, names[1:], true
	}
	for _, src := range s.rel.sources {
		if src.matches(names[:1]) && len(names) == 1 && len(src.cols) > 0 {
			args := make([]*expr, len(src.cols))
			for i, c := range src.cols {
				args[i] = c.e
			}
			return a.fn("row_of", "", args...), nil, true
		}
	}
	for _, src := range s.rel.sources {
		if src.open != nil {
			return src.open, nil, true
		}
	}
	return nil, nil, false
}

func (s *source) matches(q []string) bool {
	if !equalFold(s.alias, q[len(q)-1]) {
		return false
	}
	for i := 1; i < len(q); i++ {
		p := len(s.path) - i
		if p < 0 || !equalFold(s.path[p], q[len(q)-1-i]) {
			return false
		}
	}
	return true
}

func (s *scope) unqualified(a *analyzer, name string, loc uint64) *expr {
	var found *expr
	for _, c := range s.rel.cols {
		if !equalFold(c.name, name) {
			continue
		}
		if found != nil && found != c.e {
			a.problem("ambiguous_column", loc, "column %q exists in several tables", name).
				hint("qualify it with the table's alias")
			return found
		}
		found = c.e
	}
	return found
}

// column resolves a column reference.
func (a *analyzer) column(names []string, sc *scope, loc uint64) *expr {
	clean := make([]string, len(names))
	var frags []*expr
	for i, n := range names {
		clean[i] = a.prep.restore(n)
		if clean[i] != n {
			frags = append(frags, a.mk(expr{op: opText, text: clean[i]}))
		}
	}
	if len(frags) > 0 {
		// A parameter inside a name: which column it is, is unknown here.
		a.unsplit("dynamic_columns", loc, "a parameter is part of the name %s", strings.Join(clean, "."))
		return a.fn("name", "", frags...)
	}
	for s := sc; s != nil; s = s.parent {
		e, fields, ok := a.findColumn(s, names, loc)
		if !ok {
			continue
		}
		for _, f := range fields {
			e = a.fn("struct_extract", "", e, a.mk(expr{op: opConst, text: quoteText(strings.ToLower(f)), typ: "VARCHAR"}))
		}
		return e
	}
	if len(names) == 1 && isNiladic(strings.ToLower(names[0])) {
		return a.call(strings.ToLower(names[0]), nil)
	}
	a.unknownColumn(names, sc, loc)
	return a.mk(expr{op: opConst, text: "NULL"})
}

func (a *analyzer) unknownColumn(names []string, sc *scope, loc uint64) {
	var candidates []string
	for s := sc; s != nil; s = s.parent {
		if s.rel == nil {
			continue
		}
		for _, src := range s.rel.sources {
			if src.closed != "" {
				return // the unknown table is reported already
			}
			for _, c := range src.cols {
				if len(names) > 1 {
					candidates = append(candidates, src.alias+"."+c.name)
				} else {
					candidates = append(candidates, c.name)
				}
			}
		}
	}
	name := strings.Join(names, ".")
	a.problem("unknown_column", loc, "unknown column %q", name).
		hint("%s", diag.DidYouMean(name, candidates, "check the spelling, or declare the column in the source's schema"))
}
