package fields

import "slices"

// spread is the set of what is written of every table, grown from the target
// along readers to a fixpoint. It only grows, so cycles between tables
// (through other slots) end as well.
type spread struct {
	c       *closure
	written []bool  // by field
	whole   []bool  // by table
	hit     []bool  // by table, the target included
	mates   []mate  // by field; node −1 = not by co-location
	blocked []bool  // by table: never taken; nil = none
	hits    []int32 // tables in the order they were reached
	queue   []int32 // fields, and ^table for a table that became whole
}

func (c *closure) spread(start ownSet, blocked []bool) *spread {
	m := c.m
	s := &spread{c: c, blocked: blocked,
		written: make([]bool, len(m.name)),
		whole:   make([]bool, len(m.tables)),
		hit:     make([]bool, len(m.tables)),
		mates:   make([]mate, len(m.name)),
	}
	s.hit[c.target] = true
	if start.whole {
		s.takeWhole(c.target)
	}
	for _, f := range start.written {
		if !s.written[f] { // not write: Readers may start from a registered field
			s.written[f] = true
			s.mates[f] = mate{-1, -1}
			s.queue = append(s.queue, f)
		}
	}
	for i := 0; i < len(s.queue); i++ {
		if x := s.queue[i]; x < 0 {
			for _, r := range m.feeds[^x] {
				s.reach(r, -1)
			}
		} else {
			s.spreadField(x)
		}
	}
	return s
}

func (s *spread) spreadField(f int32) {
	m := s.c.m
	if t := m.owner[f]; t != s.c.target && !s.whole[t] {
		for _, n := range m.fieldNode[f] {
			if s.c.byColumn(n, nil) {
				continue
			}
			for _, g := range m.nodeField[n] {
				s.write(g, mate{f, n})
			}
		}
	}
	for _, r := range m.readers[f] {
		if r < 0 {
			s.reach(^r, -1)
		} else {
			s.reach(m.owner[r], r)
		}
	}
}

// reach takes a reader: its field f, or all of it (f < 0: its row set reads
// what is written).
func (s *spread) reach(t, f int32) {
	if t == s.c.target || s.blocked != nil && s.blocked[t] {
		return
	}
	if !s.hit[t] {
		s.hit[t] = true
		s.hits = append(s.hits, t)
	}
	if f < 0 || s.c.req.DownstreamWhole || s.c.isFullOnly(t) {
		s.takeWhole(t)
		return
	}
	s.write(f, mate{-1, -1})
}

// takeWhole writes key and all fields but registered ones.
func (s *spread) takeWhole(t int32) {
	if s.whole[t] {
		return
	}
	s.whole[t] = true
	s.queue = append(s.queue, ^t)
	m := s.c.m
	for f := m.first[t]; f < m.first[t+1]; f++ {
		s.write(f, mate{-1, -1})
	}
}

func (s *spread) write(f int32, by mate) {
	if s.written[f] || s.c.m.kind[f] == kindRegistered {
		return
	}
	s.written[f] = true
	s.mates[f] = by
	s.queue = append(s.queue, f)
}

// triggers calls f for each thing that makes table t a reader: a field of its
// (or −1 for the row set) and the Ref that it reads and that is written.
func (s *spread) triggers(t int32, yield func(field int32, via Ref, owner int32)) {
	m := s.c.m
	for _, r := range m.rowReads[t] {
		if s.written[r] {
			yield(-1, m.ref(r), m.owner[r])
		}
	}
	for _, u := range m.from[t] {
		if s.whole[u] {
			yield(-1, Ref{m.tables[u].Name, AnyField}, u)
		}
	}
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if !s.written[f] {
			continue
		}
		for _, r := range m.reads[f] {
			if s.written[r] {
				yield(f, m.ref(r), m.owner[r])
			}
		}
	}
}

// levels gives the distance of every table from the target along hits, −1 for
// tables that are not hit.
func (s *spread) levels() []int {
	m := s.c.m
	level := make([]int, len(m.tables))
	for i := range level {
		level[i] = -1
	}
	level[s.c.target] = 0
	readers := make(map[int32][]int32, len(s.hits))
	for _, t := range s.hits {
		s.triggers(t, func(_ int32, _ Ref, owner int32) {
			if l := readers[owner]; len(l) == 0 || l[len(l)-1] != t {
				readers[owner] = append(l, t)
			}
		})
	}
	bfs(level, s.c.target, func(t int32) []int32 { return readers[t] })
	return level
}

// bfs fills level with distances from start, which has one already.
func bfs(level []int, start int32, next func(int32) []int32) {
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		for _, r := range next(queue[0]) {
			if level[r] < 0 {
				level[r] = level[queue[0]] + 1
				queue = append(queue, r)
			}
		}
	}
}

// downstream fills res.Downstream and res.LeftOut (semantics §4.7).
func (c *closure) downstream(start ownSet, res *Result) {
	m := c.m
	blocked := make([]bool, len(m.tables))
	for t := range m.tables {
		blocked[t] = c.req.Below != nil && !c.req.Below(m.tables[t].Name)
	}
	s := c.spread(start, blocked)
	level := s.levels()
	cut := false
	for _, t := range s.hits {
		if c.req.Downstream != All && level[t] > c.req.Downstream {
			blocked[t], cut = true, true
		}
	}
	if cut {
		s = c.spread(start, blocked)
		level = s.levels()
	}
	if !c.req.IncludePaused {
		if left := s.leftOut(); len(left) > 0 {
			for _, l := range left {
				blocked[m.tableID[l.Table]] = true
			}
			before := s.hits
			s = c.spread(start, blocked)
			level = s.levels()
			for _, t := range before {
				// Reached only through what is left out: listed as well.
				if !s.hit[t] && !blocked[t] {
					left = append(left, LeftOut{Table: m.tables[t].Name})
				}
			}
			slices.SortFunc(left, func(a, b LeftOut) int { return compareNames(a.Table, b.Table) })
			res.LeftOut = left
		}
	}
	slices.SortFunc(s.hits, func(a, b int32) int {
		if level[a] != level[b] {
			return level[a] - level[b]
		}
		return int(a - b)
	})
	res.Downstream = make([]TableResult, 0, len(s.hits))
	for _, t := range s.hits {
		res.Downstream = append(res.Downstream, s.result(t, level[t]))
	}
}

// leftOut gives the downstream tables with a paused field to be written, and
// everything below such a field.
func (s *spread) leftOut() []LeftOut {
	m := s.c.m
	out := map[int32]*LeftOut{}
	held := make([]bool, len(m.name))
	var queue []int32
	hold := func(f int32) {
		if s.written[f] && !held[f] {
			held[f] = true
			queue = append(queue, f)
		}
	}
	for _, t := range s.hits {
		for _, n := range m.tables[t].Paused {
			if f := m.field(t, n); f >= 0 && s.written[f] {
				if out[t] == nil {
					out[t] = &LeftOut{Table: m.tables[t].Name}
				}
				out[t].Paused = append(out[t].Paused, n)
				hold(f)
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, r := range m.readers[queue[i]] {
			t := ^r
			if r >= 0 {
				t = m.owner[r]
			}
			if t == s.c.target || !s.hit[t] || r >= 0 && !s.written[r] {
				continue
			}
			if out[t] == nil {
				out[t] = &LeftOut{Table: m.tables[t].Name, Via: m.ref(queue[i])}
			}
			if r >= 0 {
				hold(r)
				continue
			}
			for f := m.first[t]; f < m.first[t+1]; f++ {
				hold(f)
			}
		}
	}
	var list []LeftOut
	for _, l := range out {
		slices.Sort(l.Paused)
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b LeftOut) int { return compareNames(a.Table, b.Table) })
	return list
}
