package sqlast

import (
	"encoding/json"
	"sort"
	"strings"
)

// Predicates that limit the rows read through a reference to constants and
// parameters, for semantics §3.7. A condition is pushed towards the tables as
// far as it surely limits what is read there.

// predicates collects them per use of a table.
type predicates struct {
	a      *analyzer
	byInst map[*instance][]Predicate
	levels map[*level]bool
}

func newPredicates(a *analyzer) *predicates {
	return &predicates{a: a, byInst: map[*instance][]Predicate{}, levels: map[*level]bool{}}
}

// level pushes the conditions of the surrounding query and its own ones.
func (p *predicates) level(l *level, outer []*expr) {
	if l == nil || p.levels[l] {
		return
	}
	p.levels[l] = true
	if l.setop != "" {
		p.setop(l, outer)
		return
	}
	conds := append(p.through(l, append(append([]*expr(nil), outer...), l.having...)), l.where...)
	p.from(l.from, conds)
	for _, o := range l.outputs {
		p.inside(o.e, conds)
	}
	for _, e := range l.conditions() {
		p.inside(e, conds)
	}
}

func (p *predicates) setop(l *level, outer []*expr) {
	if l.limited() {
		outer = nil
	}
	side := func(s *level, pick int) []*expr {
		var out []*expr
		for _, c := range outer {
			out = append(out, p.branch(c, l, pick))
		}
		return out
	}
	p.level(l.left, side(l.left, 0))
	p.level(l.right, side(l.right, 1))
}

// branch rewrites a condition over a set operation's columns into one over
// the columns of one side.
func (p *predicates) branch(c *expr, l *level, pick int) *expr {
	swap := func(x *expr) *expr {
		for i, o := range l.outputs {
			if o.e == x {
				return []*level{l.left, l.right}[pick].outputs[i].e
			}
		}
		return x
	}
	if c.op != opFn {
		return c
	}
	args := make([]*expr, len(c.args))
	for i, x := range c.args {
		if args[i] = swap(x); args[i] == x && x.op == opFn && len(x.args) == 1 {
			args[i] = p.a.fn(x.text, x.typ, swap(x.args[0]))
		}
	}
	return p.a.fn(c.text, c.typ, args...)
}

// through keeps the conditions that may be checked before the level's
// grouping, windows and DISTINCT ON: those over a key of each of them.
func (p *predicates) through(l *level, conds []*expr) []*expr {
	if l.limited() || l.sample != "" {
		return nil
	}
	if !l.grouped && len(l.on) == 0 && !(l.windows && l.windowUse) {
		return append([]*expr(nil), conds...)
	}
	var out []*expr
	for _, c := range conds {
		col := predicateColumn(c)
		if col == nil {
			continue
		}
		ok := true
		if l.grouped {
			ok = ok && (l.groupSets == "" || l.groupSets == "(constant)") && contains(l.groups, col)
		}
		if len(l.on) > 0 {
			ok = ok && contains(l.on, col)
		}
		if l.windows && l.windowUse {
			ok = ok && partitionedBy(l, col)
		}
		if ok {
			out = append(out, c)
		}
	}
	return out
}

func contains(es []*expr, e *expr) bool {
	for _, x := range es {
		if x == e || x.raw() == e {
			return true
		}
	}
	return false
}

// partitionedBy tells whether every window of the level has col in its
// PARTITION BY.
func partitionedBy(l *level, col *expr) bool {
	ok := true
	visit := func(x *expr) {
		if x.op != opWindow || x.level != l {
			return
		}
		found := false
		for _, c := range x.args {
			found = found || c.op == opFn && c.text == "partition" && c.args[0].raw() == col
		}
		ok = ok && found
	}
	seen := map[*expr]bool{}
	for _, o := range l.outputs {
		deep(o.e, seen, visit)
	}
	for _, e := range l.qualify {
		deep(e, seen, visit)
	}
	return ok
}

// inside handles the subqueries of an expression.
func (p *predicates) inside(e *expr, conds []*expr) {
	e.each(func(x *expr) bool {
		if x.op == opSub {
			p.level(x.level, conds)
		}
		return true
	})
}

func (p *predicates) from(f *from, conds []*expr) {
	if f == nil {
		return
	}
	switch {
	case f.inst != nil:
		if f.inst.table != nil {
			p.byInst[f.inst] = p.of(f.inst, conds)
		}
	case f.level != nil:
		p.level(f.level, conds)
	case f.join != nil:
		j := f.join
		both := append(append([]*expr(nil), conds...), j.on...)
		left, right := conds, both
		switch strings.TrimPrefix(j.kind, "asof ") {
		case "right":
			left, right = both, conds
		case "full":
			right = conds
		case "semi", "inner":
			left = both
		}
		p.from(j.left, left)
		p.from(j.right, right)
		for _, e := range j.on {
			p.inside(e, both)
		}
	case f.sample:
		p.from(f.inner[0], nil)
	default:
		all := append(append([]*expr(nil), conds...), f.on...)
		for _, x := range f.inner {
			p.from(x, all)
		}
		for _, e := range f.on {
			p.inside(e, all)
		}
	}
}

// found is a predicate with the column it is about.
type found struct {
	col  *expr
	pred Predicate
}

// of gives the predicates about one instance, those that follow through
// equalities of columns included.
func (p *predicates) of(i *instance, conds []*expr) []Predicate {
	var all []found
	var equal [][2]*expr
	for _, c := range conds {
		if c.op == opFn && c.text == "=" && len(c.args) == 2 {
			for _, pair := range rowPairs(c) {
				l, r := pair[0].raw(), pair[1].raw()
				if l.op == opCol && r.op == opCol {
					equal = append(equal, [2]*expr{l, r})
				} else if fs := p.read(p.a.fn("=", "BOOLEAN", pair[0], pair[1])); fs != nil {
					all = append(all, *fs)
				}
			}
			continue
		}
		if fs := p.read(c); fs != nil {
			all = append(all, *fs)
		}
	}
	known := map[string]bool{}
	key := func(f found) string {
		b, err := json.Marshal(f.pred.Values)
		if err != nil {
			return ""
		}
		return itoa(f.col.id) + f.pred.Op + f.pred.ColumnCast + string(b)
	}
	for _, f := range all {
		known[key(f)] = true
	}
	for n := 0; n < len(all) && len(all) < 200; n++ {
		for _, eq := range equal {
			for k := range eq {
				if eq[k] != all[n].col {
					continue
				}
				d := all[n]
				d.col, d.pred.Column, d.pred.Derived = eq[1-k], eq[1-k].text, true
				if !known[key(d)] {
					known[key(d)] = true
					all = append(all, d)
				}
			}
		}
	}
	var out []Predicate
	for _, f := range all {
		if f.col.inst == i {
			out = append(out, f.pred)
		}
	}
	return out
}

// rowPairs takes (a, b) = (c, d) apart.
func rowPairs(c *expr) [][2]*expr {
	l, r := c.args[0], c.args[1]
	if l.op == opFn && r.op == opFn && l.text == "row" && r.text == "row" && len(l.args) == len(r.args) {
		var out [][2]*expr
		for i := range l.args {
			out = append(out, [2]*expr{l.args[i], r.args[i]})
		}
		return out
	}
	return [][2]*expr{{l, r}}
}

// predicateColumn gives the column that a comparison with constants is about.
func predicateColumn(c *expr) *expr {
	f := (&predicates{}).read(c)
	if f == nil {
		return nil
	}
	return f.col
}

// read recognises `column op constant`.
func (p *predicates) read(c *expr) *found {
	if c.op != opFn || len(c.args) < 2 {
		return nil
	}
	op, args := c.text, c.args
	switch op {
	case "=", "<", "<=", ">", ">=":
		if len(args) != 2 {
			return nil
		}
		if args[0].isConstant() {
			args = []*expr{args[1], args[0]}
			op = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
		}
	case "in", "between":
	default:
		return nil
	}
	col, cast := args[0].raw(), ""
	if t, ok := strings.CutPrefix(col.text, "cast:"); ok && col.op == opFn {
		col, cast = col.args[0].raw(), t
	}
	if col.op != opCol || col.inst.table == nil {
		return nil
	}
	f := &found{col: col, pred: Predicate{Column: col.text, ColumnCast: cast, Op: op}}
	for _, x := range args[1:] {
		if !x.isConstant() {
			return nil
		}
		f.pred.Values = append(f.pred.Values, valueOf(x))
	}
	return f
}

func valueOf(e *expr) Value {
	switch e.op {
	case opText:
		return Value{Text: e.text, Quoted: true}
	case opParam:
		return Value{Text: e.text}
	case opConst:
		if strings.HasPrefix(e.text, "'") {
			return Value{Text: unquoteIdent(e.text), Quoted: true}
		}
		return Value{Text: e.text}
	}
	if t, ok := strings.CutPrefix(e.text, "cast:"); ok {
		v := valueOf(e.args[0])
		if v.Cast == "" && !v.Complex {
			v.Cast = t
			return v
		}
	}
	return Value{Text: newPrinter(params{}).expr(e), Complex: true}
}

// fill gives each reference the predicates that hold in all of its uses.
func (p *predicates) fill(refs []Reference, byInst map[*instance]int) {
	uses := make([]int, len(refs))
	count := make([]map[string]int, len(refs))
	preds := make([]map[string]Predicate, len(refs))
	for i := range refs {
		count[i], preds[i] = map[string]int{}, map[string]Predicate{}
	}
	for inst, n := range byInst {
		uses[n]++
		seen := map[string]bool{}
		for _, x := range p.byInst[inst] {
			b, err := json.Marshal([]any{x.Column, x.ColumnCast, x.Op, x.Values})
			if err != nil || seen[string(b)] {
				continue
			}
			seen[string(b)] = true
			count[n][string(b)]++
			if old, ok := preds[n][string(b)]; !ok || old.Derived {
				preds[n][string(b)] = x
			}
		}
	}
	for i := range refs {
		var keys []string
		for k, c := range count[i] {
			if c == uses[i] {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		for _, k := range keys {
			refs[i].Predicates = append(refs[i].Predicates, preds[i][k])
		}
	}
}
