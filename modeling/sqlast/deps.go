package sqlast

// deps collects what expressions and row trees depend on.
type deps struct {
	p      params
	cols   map[*instance]map[string]bool
	rows   map[*instance]bool // instances whose rows matter
	joins  map[*join]bool     // row-neutral joins needed
	params map[string]bool
	nondet string
	exprs  map[*expr]bool
	levels map[*level]bool
	froms  map[*from]bool
}

func newDeps(p params) *deps {
	return &deps{p: p, cols: map[*instance]map[string]bool{}, rows: map[*instance]bool{}, joins: map[*join]bool{},
		params: map[string]bool{}, exprs: map[*expr]bool{}, levels: map[*level]bool{}, froms: map[*from]bool{}}
}

func (d *deps) because(reason string) {
	if d.nondet == "" {
		d.nondet = reason
	}
}

// expr adds an expression's own derivation, the row-neutral joins it needs
// included (README split, `fields`).
func (d *deps) expr(e *expr) {
	if e == nil || d.exprs[e] {
		return
	}
	d.exprs[e] = true
	if e.nondet != "" {
		d.because(e.nondet)
	}
	switch e.op {
	case opCol:
		d.column(e)
	case opParam, opText:
		names, _ := d.p.describe(e.text)
		for _, n := range names {
			d.params[n] = true
		}
	case opWindow:
		e.level.windowUse = true
	case opSub:
		if e.text == "exists" && e.level.limit != nil && e.level.offset == nil && e.level.sample == "" {
			// LIMIT in EXISTS decides nothing.
			saved := d.nondet
			d.level(e.level)
			d.nondet = saved
		} else {
			d.level(e.level)
		}
		if e.text != "exists" {
			for _, o := range e.level.outputs {
				d.expr(o.e)
			}
		}
	case opVia:
		if e.join.neutral && !e.join.row {
			d.join(e.join)
		} else if e.join.kind != "left" && e.join.kind != "right" && e.join.kind != "full" {
			d.asof(e.join)
		}
	}
	for _, x := range e.args {
		d.expr(x)
	}
}

func (d *deps) column(e *expr) {
	if e.inst.table == nil {
		for _, x := range e.inst.args {
			d.expr(x)
		}
		return
	}
	m := d.cols[e.inst]
	if m == nil {
		m = map[string]bool{}
		d.cols[e.inst] = m
	}
	m[e.text] = true
}

func (d *deps) join(j *join) {
	if d.joins[j] {
		return
	}
	d.joins[j] = true
	for _, e := range j.on {
		d.expr(e)
	}
	d.from(j.right)
}

// asof: ties among the second side's rows are resolved by chance.
func (d *deps) asof(j *join) {
	pinned := map[*expr]bool{}
	for _, c := range j.on {
		for _, x := range c.args {
			pinned[x] = true
		}
	}
	for _, k := range j.right.keys {
		all := true
		for _, e := range k.exprs {
			all = all && pinned[e]
		}
		if all {
			return
		}
	}
	d.because("ASOF JOIN takes any of several equally near rows")
}

// level adds everything that decides which rows a query gives.
func (d *deps) level(l *level) {
	if l == nil || d.levels[l] {
		return
	}
	d.levels[l] = true
	if l.nondet != "" {
		d.because(l.nondet)
	}
	for _, e := range l.conditions() {
		d.expr(e)
	}
	if l.setop != "" {
		d.level(l.left)
		d.level(l.right)
		return
	}
	d.from(l.from)
}

// conditions gives the expressions of one level that decide its rows.
func (l *level) conditions() []*expr {
	var out []*expr
	for _, es := range [][]*expr{l.where, l.groups, l.having, l.qualify, l.on, l.unnest, {l.limit}, {l.offset}} {
		for _, e := range es {
			if e != nil {
				out = append(out, e)
			}
		}
	}
	if l.limited() || len(l.on) > 0 {
		for _, o := range l.orders {
			out = append(out, o.e)
		}
	}
	if l.distinct {
		for _, o := range l.outputs {
			out = append(out, o.e)
		}
	}
	if l.setop != "" && l.setop != "union all" && l.left != nil && l.right != nil {
		for _, side := range []*level{l.left, l.right} {
			for _, o := range side.outputs {
				out = append(out, o.e)
			}
		}
	}
	return out
}

func (d *deps) from(f *from) {
	if f == nil || d.froms[f] {
		return
	}
	d.froms[f] = true
	if f.sample {
		d.because("it takes a sample")
	}
	if f.inst != nil {
		d.rows[f.inst] = true
		for _, e := range f.inst.args {
			d.expr(e)
		}
	}
	d.level(f.level)
	for _, x := range f.inner {
		d.from(x)
	}
	for _, e := range f.on {
		d.expr(e)
	}
	if j := f.join; j != nil {
		d.from(j.left)
		if j.row {
			d.from(j.right)
			for _, e := range j.on {
				d.expr(e)
			}
		}
	}
}

// eachInstance calls f for every instance of a FROM tree, nested queries and
// row-neutral joins included.
func (f *from) eachInstance(call func(*instance)) {
	f.walk(func(x *from) {
		if x.inst != nil {
			call(x.inst)
		}
	})
}

// walk visits a FROM tree with the trees of its nested queries.
func (f *from) walk(call func(*from)) {
	if f == nil {
		return
	}
	call(f)
	f.level.walkFrom(call)
	for _, x := range f.inner {
		x.walk(call)
	}
	if f.join != nil {
		f.join.left.walk(call)
		f.join.right.walk(call)
	}
}

func (l *level) walkFrom(call func(*from)) {
	if l == nil {
		return
	}
	l.from.walk(call)
	l.left.walkFrom(call)
	l.right.walkFrom(call)
}

// deep visits an expression with the insides of its subqueries.
func deep(e *expr, seen map[*expr]bool, call func(*expr)) {
	if e == nil || seen[e] {
		return
	}
	seen[e] = true
	call(e)
	for _, x := range e.args {
		deep(x, seen, call)
	}
	if e.inst != nil {
		for _, x := range e.inst.args {
			deep(x, seen, call)
		}
	}
	if e.op == opSub {
		deepLevel(e.level, seen, call)
	}
}

func deepLevel(l *level, seen map[*expr]bool, call func(*expr)) {
	if l == nil {
		return
	}
	for _, e := range l.conditions() {
		deep(e, seen, call)
	}
	for _, o := range l.outputs {
		deep(o.e, seen, call)
	}
	deepLevel(l.left, seen, call)
	deepLevel(l.right, seen, call)
	deepFrom(l.from, seen, call)
}

func deepFrom(f *from, seen map[*expr]bool, call func(*expr)) {
	f.walkOwn(func(x *from) {
		for _, e := range x.on {
			deep(e, seen, call)
		}
		if x.inst != nil {
			for _, e := range x.inst.args {
				deep(e, seen, call)
			}
		}
		if x.join != nil {
			for _, e := range x.join.on {
				deep(e, seen, call)
			}
		}
		deepLevel(x.level, seen, call)
	})
}

// walkOwn visits a FROM tree without entering nested queries.
func (f *from) walkOwn(call func(*from)) {
	if f == nil {
		return
	}
	call(f)
	for _, x := range f.inner {
		x.walkOwn(call)
	}
	if f.join != nil {
		f.join.left.walkOwn(call)
		f.join.right.walkOwn(call)
	}
}

// readsAny tells whether e reads a column of one of the instances, also from
// inside a subquery.
func readsAny(e *expr, insts map[*instance]bool) bool {
	found := false
	deep(e, map[*expr]bool{}, func(x *expr) {
		if x.inst != nil && insts[x.inst] {
			found = true
		}
	})
	return found
}

// markRow makes the row-neutral joins that decide rows part of the row set:
// those that a condition of the level, a row-changing join or a correlated
// FROM item reads, and those that the ON of such a join reads in turn.
func (l *level) markRow() {
	own := map[*join]bool{}
	l.walkFrom(func(f *from) {
		if f.join != nil {
			own[f.join] = true
		}
	})
	if len(own) == 0 {
		return
	}
	seen := map[*expr]bool{}
	var visit func(*expr)
	visit = func(x *expr) {
		if x.op != opVia || !own[x.join] || x.join.row {
			return
		}
		x.join.row = true
		for _, e := range x.join.on {
			deep(e, seen, visit)
		}
		rowsOf(x.join.right, seen, visit)
	}
	for _, e := range l.conditions() {
		deep(e, seen, visit)
	}
	rowsOf(l.from, seen, visit)
}

// rowsOf visits the expressions of a FROM tree that decide its rows.
func rowsOf(f *from, seen map[*expr]bool, call func(*expr)) {
	if f == nil {
		return
	}
	for _, e := range f.on {
		deep(e, seen, call)
	}
	if f.inst != nil {
		for _, e := range f.inst.args {
			deep(e, seen, call)
		}
	}
	rowsOfLevel(f.level, seen, call)
	for _, x := range f.inner {
		rowsOf(x, seen, call)
	}
	if j := f.join; j != nil {
		rowsOf(j.left, seen, call)
		if j.row {
			for _, e := range j.on {
				deep(e, seen, call)
			}
			rowsOf(j.right, seen, call)
		}
	}
}

func rowsOfLevel(l *level, seen map[*expr]bool, call func(*expr)) {
	if l == nil {
		return
	}
	for _, e := range l.conditions() {
		deep(e, seen, call)
	}
	rowsOfLevel(l.left, seen, call)
	rowsOfLevel(l.right, seen, call)
	rowsOf(l.from, seen, call)
}
