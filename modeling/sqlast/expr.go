package sqlast

import (
	"sort"
	"strconv"
	"strings"
)

// op is the kind of a resolved expression node.
type op int

const (
	opConst  op = iota // literal; text is canonical
	opParam            // bare placeholder or the author's own $x; text is the template
	opText             // string literal that holds placeholders; text is the template
	opCol              // column of an instance
	opFn               // function, operator, cast, CASE…: text is the label
	opAgg              // aggregate of a level
	opWindow           // window function of a level
	opSub              // subquery expression; level is its query
	opVia              // column that came through an outer or one-row join
)

// expr is a resolved expression: every name is a column of an instance, all
// aliases and plain projections are inlined. Nodes are interned, so equal trees
// over the same instances are the same pointer.
type expr struct {
	id     int
	op     op
	text   string
	args   []*expr
	inst   *instance
	join   *join
	level  *level
	typ    string // engine type in upper case, "" unknown
	nondet string // why this node by itself is non-deterministic
}

// instance is one use of a row source: a table, a table function, a VALUES list.
type instance struct {
	n        int
	table    *Table // nil for functions and VALUES
	function string // label of a table function, "values" for VALUES
	args     []*expr
	loc      int // byte offset of the reference in the parser's text, -1 unknown
	alias    string
	rows     int // VALUES: how many
}

// join is an outer join, or a cross join onto exactly one row.
type join struct {
	n       int
	kind    string // left, right, full, semi, anti, cross, asof…
	alias   string
	neutral bool // changes no rows (README split 1, 2)
	row     bool // the row set reads it, so it belongs to the row set
	left    *from
	right   *from
	on      []*expr
	loc     int
}

// from is a node of a FROM tree.
type from struct {
	inst   *instance
	level  *level
	join   *join // all joins but inner and cross ones
	inner  []*from
	on     []*expr // inner joins' conditions
	sample bool
	text   string // canonical text of sample and time travel clauses
	keys   []uniqueKey
	one    bool // exactly one row
	most1  bool // at most one row
}

// uniqueKey is a set of expressions no two rows share. A strict key is one
// that the rules (README split 2) let pass; the others only prove orderings.
type uniqueKey struct {
	exprs  []*expr
	strict bool
	nulls  bool // declared: rows may still share NULLs
}

// level is one SELECT or set operation.
type level struct {
	n         int
	from      *from
	where     []*expr
	grouped   bool // has GROUP BY or aggregates
	groups    []*expr
	groupSets string // canonical grouping sets, "" for one plain set
	having    []*expr
	qualify   []*expr
	windows   bool // has window functions
	windowUse bool // one of them is needed (computed)
	unnest    []*expr
	distinct  bool
	on        []*expr // DISTINCT ON targets
	orders    []orderKey
	limit     *expr
	offset    *expr
	percent   bool
	sample    string
	setop     string // "", union all, union, intersect, …
	byName    bool
	left      *level
	right     *level
	outputs   []output
	keys      []uniqueKey
	one       bool
	most1     bool
	nondet    string // why the rows are not determined
}

type orderKey struct {
	e   *expr
	dir string
}

// output is a column of a level.
type output struct {
	name    string
	e       *expr
	unnamed bool
	loc     int
}

// limited tells whether the level's ORDER BY decides rows.
func (l *level) limited() bool { return l.limit != nil || l.offset != nil }

// plain tells whether the level only projects, filters and joins, so that its
// FROM and filters may be merged into the query around it.
func (l *level) plain() bool { return l.projects() && !(l.windows && l.windowUse) }

// projects is plain but for window functions, which need their input's filters
// kept apart from those above them.
func (l *level) projects() bool {
	return l.setop == "" && !l.grouped && !l.distinct && len(l.on) == 0 && !l.limited() && l.sample == "" &&
		len(l.unnest) == 0 && len(l.qualify) == 0
}

// mk interns a node.
func (a *analyzer) mk(e expr) *expr {
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(e.op)))
	for _, p := range []int{instN(e.inst), joinN(e.join), levelN(e.level)} {
		b.WriteByte('|')
		b.WriteString(strconv.Itoa(p))
	}
	for _, x := range e.args {
		b.WriteByte(',')
		b.WriteString(strconv.Itoa(x.id))
	}
	b.WriteByte('|')
	b.WriteString(e.text)
	k := b.String()
	if got, ok := a.interned[k]; ok {
		return got
	}
	n := new(expr)
	*n = e
	n.id = len(a.interned) + 1
	a.interned[k] = n
	return n
}

func instN(i *instance) int {
	if i == nil {
		return 0
	}
	return i.n
}

func joinN(j *join) int {
	if j == nil {
		return 0
	}
	return j.n
}

func levelN(l *level) int {
	if l == nil {
		return 0
	}
	return l.n
}

func (a *analyzer) fn(label, typ string, args ...*expr) *expr {
	return a.mk(expr{op: opFn, text: label, args: args, typ: typ})
}

// via wraps an expression of the joined side; literals too, since they are
// NULL where nothing matched.
func (a *analyzer) via(j *join, e *expr) *expr {
	return a.mk(expr{op: opVia, join: j, args: []*expr{e}, typ: e.typ})
}

// each calls f for e and everything below it, joins' and subqueries' insides
// left out, until f returns false for a node.
func (e *expr) each(f func(*expr) bool) {
	seen := map[*expr]bool{}
	var walk func(*expr)
	walk = func(x *expr) {
		if seen[x] {
			return
		}
		seen[x] = true
		if !f(x) {
			return
		}
		for _, c := range x.args {
			walk(c)
		}
	}
	walk(e)
}

// isConstant tells whether e reads no column at all.
func (e *expr) isConstant() bool {
	ok := true
	e.each(func(x *expr) bool {
		switch x.op {
		case opCol, opSub, opAgg, opWindow, opVia:
			ok = false
		case opFn:
			ok = ok && x.nondet == ""
		}
		return ok
	})
	return ok
}

// raw strips the joins a column came through.
func (e *expr) raw() *expr {
	for e.op == opVia {
		e = e.args[0]
	}
	return e
}

func sortedUnique(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	out := append([]string(nil), in...)
	sort.Strings(out)
	n := 0
	for i, s := range out {
		if i == 0 || s != out[n-1] {
			out[n] = s
			n++
		}
	}
	return out[:n]
}
