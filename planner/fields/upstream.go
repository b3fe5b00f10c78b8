package fields

import "slices"

// climb is the set of what is read, grown from the target upwards to a
// fixpoint: what written fields and row sets read, and in each table above
// what that requires.
type climb struct {
	c       *closure
	need    []bool // by field: read, or written because a mate is read
	mates   []mate // by field; node −1 = read
	rows    []bool // by table: its rows or key are read
	whole   []bool // by table: taken whole, since full-table-only
	hit     []bool // by table
	hits    []int32
	blocked []bool
	because [][]Reason         // by field: who reads it
	rowWhy  map[int32][]Reason // by table: who takes its rows
	parents map[int32][]int32  // table → tables that it reads
	queue   []int32
}

// upstream fills res.Upstream: only what the selected and required fields and
// the row set read (semantics §4.7).
func (c *closure) upstream(start ownSet, res *Result) {
	m := c.m
	u := c.climb(start, nil)
	level := u.levels()
	if c.req.Upstream != All {
		blocked := make([]bool, len(m.tables))
		cut := false
		for _, t := range u.hits {
			if level[t] > c.req.Upstream {
				blocked[t], cut = true, true
			}
		}
		if cut {
			u = c.climb(start, blocked)
			level = u.levels()
		}
	}
	slices.SortFunc(u.hits, func(a, b int32) int {
		if level[a] != level[b] {
			return level[a] - level[b]
		}
		return int(a - b)
	})
	res.Upstream = make([]UpstreamResult, 0, len(u.hits))
	for _, t := range u.hits {
		res.Upstream = append(res.Upstream, u.result(t, level[t]))
	}
}

func (c *closure) climb(start ownSet, blocked []bool) *climb {
	m := c.m
	u := &climb{c: c, blocked: blocked,
		need:    make([]bool, len(m.name)),
		mates:   make([]mate, len(m.name)),
		because: make([][]Reason, len(m.name)),
		rows:    make([]bool, len(m.tables)),
		whole:   make([]bool, len(m.tables)),
		hit:     make([]bool, len(m.tables)),
		rowWhy:  map[int32][]Reason{},
		parents: map[int32][]int32{},
	}
	u.hit[c.target] = true
	u.readRows(c.target)
	for _, f := range start.written {
		u.readField(f)
	}
	for i := 0; i < len(u.queue); i++ {
		f := u.queue[i]
		u.readField(f)
		if u.whole[m.owner[f]] {
			continue
		}
		for _, n := range m.fieldNode[f] {
			if !u.rows[m.owner[f]] && c.byColumn(n, nil) {
				continue
			}
			for _, g := range m.nodeField[n] {
				u.want(g, mate{f, n})
			}
		}
	}
	return u
}

// readField follows what one computed field reads.
func (u *climb) readField(f int32) {
	m := u.c.m
	for _, r := range m.reads[f] {
		u.read(r, m.owner[f], Reason{Code: Reader, Via: m.ref(f)})
	}
}

// readRows follows what a table's row set reads.
func (u *climb) readRows(t int32) {
	m := u.c.m
	why := Reason{Code: RowSet, Via: Ref{m.tables[t].Name, AnyField}}
	for _, p := range m.from[t] {
		if u.reach(p, t) {
			u.takeRows(p, why)
		}
	}
	for _, r := range m.rowReads[t] {
		u.read(r, t, why)
	}
}

// read takes field r of an upstream table of t.
func (u *climb) read(r, t int32, why Reason) {
	m := u.c.m
	p := m.owner[r]
	if !u.reach(p, t) {
		return
	}
	if m.kind[r] == kindKey {
		u.takeRows(p, why)
		return
	}
	u.because[r] = append(u.because[r], why)
	u.want(r, mate{-1, -1})
}

// takeRows takes the rows of an upstream table. They may be others than those
// stored, so its nodes are rewritten: a column refresh would keep the old ones.
func (u *climb) takeRows(p int32, why Reason) {
	if !u.rows[p] {
		u.rows[p] = true
		m := u.c.m
		for f := m.first[p]; f < m.first[p+1]; f++ {
			if u.need[f] && m.kind[f] == kindComputed {
				u.queue = append(u.queue, f) // its node's other fields come along now
			}
		}
	}
	if l := u.rowWhy[p]; !slices.Contains(l, why) {
		u.rowWhy[p] = append(l, why)
	}
}

// reach notes that t reads p; false if p is the target or cut off.
func (u *climb) reach(p, t int32) bool {
	if p == u.c.target || u.blocked != nil && u.blocked[p] {
		return false
	}
	if l := u.parents[t]; len(l) == 0 || l[len(l)-1] != p {
		u.parents[t] = append(l, p)
	}
	if u.hit[p] {
		return true
	}
	u.hit[p] = true
	u.hits = append(u.hits, p)
	u.readRows(p)
	if u.c.isFullOnly(p) {
		u.whole[p] = true
		m := u.c.m
		for f := m.first[p]; f < m.first[p+1]; f++ {
			if m.kind[f] == kindComputed {
				u.want(f, mate{-1, -1})
			}
		}
	}
	return true
}

func (u *climb) want(f int32, by mate) {
	if u.need[f] {
		return
	}
	u.need[f] = true
	u.mates[f] = by
	if u.c.m.kind[f] == kindComputed {
		u.queue = append(u.queue, f)
	}
}

func (u *climb) levels() []int {
	level := make([]int, len(u.c.m.tables))
	for i := range level {
		level[i] = -1
	}
	level[u.c.target] = 0
	bfs(level, u.c.target, func(t int32) []int32 { return u.parents[t] })
	return level
}

func (u *climb) result(t int32, level int) UpstreamResult {
	c, m := u.c, u.c.m
	res := UpstreamResult{Rows: u.rows[t] || u.whole[t]}
	res.Table, res.Level, res.Whole, res.Because = m.tables[t].Name, level, u.whole[t], u.rowWhy[t]
	if u.whole[t] {
		res.Because = append(slices.Clone(res.Because), Reason{Code: RowSet, Note: noteFullOnly})
	}
	res.Fields = []Field{}
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if !u.need[f] {
			continue
		}
		if m.kind[f] == kindRegistered {
			res.Registered = append(res.Registered, m.name[f])
			continue
		}
		field := Field{Name: m.name[f], Reasons: u.because[f]}
		if by := u.mates[f]; by.node >= 0 && len(field.Reasons) == 0 {
			field.Reasons = append(field.Reasons, c.coLocated(by))
		} else if len(field.Reasons) == 0 {
			field.Reasons = res.Because
		}
		res.Fields = append(res.Fields, field)
	}
	var own *ownSet
	if u.rows[t] {
		own = &ownSet{rewrite: map[int32]bool{}}
		for n := m.nodeFirst[t]; n < m.nodeFirst[t+1]; n++ {
			own.rewrite[n] = true
		}
	}
	res.Nodes = c.writes(t, func(f int32) bool { return u.need[f] && m.kind[f] == kindComputed }, u.whole[t], own)
	return res
}
