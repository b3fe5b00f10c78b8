package fields

import (
	"slices"
	"strings"
)

func compareNames(a, b string) int { return strings.Compare(a, b) }

// targetResult tells of the requested table what is written and why.
func (c *closure) targetResult(o ownSet, selected []int32) TableResult {
	m, t := c.m, c.target
	if o.whole {
		return c.wholeResult(t, 0, []Reason{{Code: Selected}})
	}
	res := TableResult{Table: m.tables[t].Name}
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if !o.has(f) {
			continue
		}
		field := Field{Name: m.name[f]}
		if slices.Contains(selected, f) {
			field.Reasons = append(field.Reasons, Reason{Code: Selected})
		}
		if kind, ok := o.accepted[f]; ok {
			field.Reasons = append(field.Reasons, Reason{Code: Recommended, Note: kind})
		}
		if slices.Contains(o.system, f) {
			field.Reasons = append(field.Reasons, Reason{Code: System})
		}
		by, ok := o.mate[f]
		if !ok {
			by, ok = o.kept[f]
			field.Kept = ok
		}
		if ok {
			field.Reasons = append(field.Reasons, c.coLocated(by))
		}
		res.Fields = append(res.Fields, field)
	}
	res.Nodes = c.writes(t, func(f int32) bool { return slices.Contains(o.written, f) }, false, &o)
	return res
}

func (c *closure) coLocated(by mate) Reason {
	return Reason{Code: CoLocated, Via: c.m.ref(by.field), Node: c.m.nodeName(by.node)}
}

// wholeResult tells of a table that is written whole for the same reasons
// throughout.
func (c *closure) wholeResult(t int32, level int, because []Reason) TableResult {
	m := c.m
	res := TableResult{Table: m.tables[t].Name, Level: level, Whole: true, Because: because}
	res.Fields = make([]Field, 0, m.first[t+1]-m.first[t])
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if m.kind[f] == kindComputed {
			res.Fields = append(res.Fields, Field{Name: m.name[f], Reasons: because})
		}
	}
	res.Nodes = c.writes(t, nil, true, nil)
	return res
}

// writes lists the nodes of a table that are written: all of a whole table
// (and all where a key column is written), else those that store a written
// field.
func (c *closure) writes(t int32, written func(int32) bool, whole bool, o *ownSet) []Write {
	m := c.m
	key := false
	for f := m.first[t]; !whole && f < m.first[t+1] && m.kind[f] == kindKey; f++ {
		key = key || written(f)
	}
	out := make([]Write, 0, m.nodeFirst[t+1]-m.nodeFirst[t])
	for n := m.nodeFirst[t]; n < m.nodeFirst[t+1]; n++ {
		w := Write{Node: m.nodeName(n)}
		w.Column = !whole && !key && c.byColumn(n, o)
		if !whole && !key && !slices.ContainsFunc(m.nodeField[n], written) {
			continue
		}
		w.Fields = make([]string, 0, len(m.nodeField[n]))
		for _, f := range m.nodeField[n] {
			if whole || !w.Column || written(f) {
				w.Fields = append(w.Fields, m.name[f])
			} else {
				w.Kept = append(w.Kept, m.name[f])
			}
		}
		out = append(out, w)
	}
	return out
}

// result tells of one downstream table what is written and why.
func (s *spread) result(t int32, level int) TableResult {
	c, m := s.c, s.c.m
	lo := m.first[t]
	readers := make([][]Reason, m.first[t+1]-lo)
	var because []Reason
	s.triggers(t, func(f int32, via Ref, _ int32) {
		if f < 0 {
			because = append(because, Reason{Code: RowSet, Via: via})
		} else {
			readers[f-lo] = append(readers[f-lo], Reason{Code: Reader, Via: via})
		}
	})
	if s.whole[t] {
		if len(because) == 0 {
			// Only fields read what is written, yet all of it is taken.
			if c.isFullOnly(t) {
				because = []Reason{{Code: RowSet, Note: noteFullOnly}}
			} else {
				because = []Reason{{Code: Selected, Note: noteAll}}
			}
		}
		res := c.wholeResult(t, level, because)
		i := 0
		for f := lo; f < m.first[t+1]; f++ {
			if m.kind[f] != kindComputed {
				continue
			}
			if r := readers[f-lo]; len(r) > 0 {
				res.Fields[i].Reasons = append(r, because...)
			}
			i++
		}
		return res
	}
	res := TableResult{Table: m.tables[t].Name, Level: level, Fields: make([]Field, 0, m.first[t+1]-lo)}
	kept := map[int32]mate{}
	if c.req.Column != nil {
		s.keptMates(t, kept)
	}
	for f := lo; f < m.first[t+1]; f++ {
		by, isKept := kept[f]
		if !s.written[f] && !isKept {
			continue
		}
		field := Field{Name: m.name[f], Reasons: readers[f-lo], Kept: isKept}
		if !isKept {
			by = s.mates[f]
		}
		if isKept || by.node >= 0 && len(field.Reasons) == 0 {
			field.Reasons = append(field.Reasons, c.coLocated(by))
		}
		res.Fields = append(res.Fields, field)
	}
	res.Nodes = c.writes(t, func(f int32) bool { return s.written[f] }, false, nil)
	return res
}

// keptMates finds the fields that a column refresh keeps beside written ones.
func (s *spread) keptMates(t int32, kept map[int32]mate) {
	m := s.c.m
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if !s.written[f] {
			continue
		}
		for _, n := range m.fieldNode[f] {
			for _, g := range m.nodeField[n] {
				if _, twice := kept[g]; !twice && !s.written[g] {
					kept[g] = mate{f, n}
				}
			}
		}
	}
}
