package fields

import "slices"

// Readers gives the tables that read one field, directly or through other
// fields, at most levels down (All = every level), by name. It follows the
// field alone: node mates and pauses do not count. A registered field and a
// key column can be followed as well. Nil for an unknown table or field.
func (m *Model) Readers(table, field string, levels int) []string {
	c, start, ok := m.follow(table, field)
	if !ok || levels == 0 {
		return nil
	}
	c.req.Downstream = levels
	var res Result
	c.downstream(start, &res)
	var out []string
	for _, d := range res.Downstream {
		out = append(out, d.Table)
	}
	slices.Sort(out)
	return out
}

// Sources gives the tables that one field and its table's row set read, at
// most levels up, by name; otherwise as Readers.
func (m *Model) Sources(table, field string, levels int) []string {
	c, start, ok := m.follow(table, field)
	if !ok || levels == 0 {
		return nil
	}
	c.req.Upstream = levels
	var res Result
	c.upstream(start, &res)
	var out []string
	for _, u := range res.Upstream {
		out = append(out, u.Table)
	}
	slices.Sort(out)
	return out
}

func (m *Model) follow(table, field string) (*closure, ownSet, bool) {
	t, ok := m.tableID[table]
	if !ok {
		return nil, ownSet{}, false
	}
	f := m.field(t, field)
	if f < 0 {
		return nil, ownSet{}, false
	}
	req := &Request{Table: table, IncludePaused: true, Column: func(string, string) bool { return true }}
	return &closure{m: m, req: req, target: t, fullOnly: map[int32]bool{}}, ownSet{written: []int32{f}}, true
}
