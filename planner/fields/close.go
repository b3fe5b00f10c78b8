package fields

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Close computes what a field backfill takes along (semantics §4.1–4.8). All
// problems of the request are reported together; with an error among them the
// result holds only Refusal. Kinds: unknown_table, unknown_field,
// registered_field, empty_selection, full_table_only, not_recommended.
// Time is linear in the fields and references reached.
func (m *Model) Close(req Request) (Result, diag.List) {
	t, selected, refusal, problems := m.check(&req)
	if problems.HasErrors() {
		return Result{Refusal: refusal}, problems
	}
	c := &closure{m: m, req: &req, target: t, fullOnly: map[int32]bool{}}
	res := Result{Recommended: []Recommendation{}, Downstream: []TableResult{}, Upstream: []UpstreamResult{}}
	start := c.own(selected, nil, req.Full)
	final := start
	if !req.Full {
		offers := c.offers(start)
		accepted, rest, bad := c.accept(offers, start)
		if bad.HasErrors() {
			return Result{}, bad
		}
		res.Accepted = accepted
		var seeds []int32
		kinds := map[int32]string{}
		also := map[int32]bool{}
		for _, a := range accepted {
			u := m.tableID[a.Table]
			f := m.field(u, a.Field)
			if u != t {
				also[u] = true
				continue
			}
			seeds = append(seeds, f)
			kinds[f] = a.Kind
		}
		if len(seeds) > 0 {
			final = c.own(selected, seeds, false)
			final.accepted = kinds
		}
		for _, r := range rest {
			u := m.tableID[r.Table]
			if !also[u] && (u != t || !final.writes(m.field(u, r.Field))) {
				res.Recommended = append(res.Recommended, r)
			}
		}
		for _, u := range sortedKeys(also) {
			res.Also = append(res.Also, c.wholeResult(u, 0, []Reason{{Code: Recommended, Note: PrimaryPKChange}}))
		}
	}
	res.Target = c.targetResult(final, selected)
	if req.Downstream != 0 {
		c.downstream(start, &res)
	}
	if req.Upstream != 0 {
		c.upstream(start, &res)
	}
	return res, nil
}

// closure is one run of Close.
type closure struct {
	m        *Model
	req      *Request
	target   int32
	fullOnly map[int32]bool
}

// isFullOnly tells whether table t is full-table-only on its dates.
func (c *closure) isFullOnly(t int32) bool {
	if v, ok := c.fullOnly[t]; ok {
		return v
	}
	tab := &c.m.tables[t]
	v := tab.FullOnly
	if !v && (tab.KeyChanged != nil || tab.RowSetChanged != nil || len(tab.Changed) > 0) {
		v = len(c.m.fullOnlyReasons(t, c.req.datesOf(tab.Name))) > 0
	}
	c.fullOnly[t] = v
	return v
}

// ownSet is the closure inside one table.
type ownSet struct {
	whole    bool
	chosen   []int32          // seeds by hand and accepted
	system   []int32          // seeds by the system
	accepted map[int32]string // accepted field → kind
	written  []int32          // ascending
	mate     map[int32]mate   // why a field came along
	kept     map[int32]mate   // column refresh: co-located, not written
	rewrite  map[int32]bool   // nodes that a column refresh may not take
}

type mate struct {
	field, node int32
}

func (o *ownSet) has(f int32) bool {
	_, kept := o.kept[f]
	return kept || slices.Contains(o.written, f)
}

// writes tells whether a field is written; one that a column refresh keeps is
// in the set, but its logic may still be worth taking along.
func (o *ownSet) writes(f int32) bool { return slices.Contains(o.written, f) }

// own closes seeds inside the target table: a node with one written field
// gives all its fields, to a fixpoint (semantics §4.3); with column refresh a
// node's other fields are kept instead. A key column is in every node.
func (c *closure) own(selected, accepted []int32, whole bool) ownSet {
	m, t := c.m, c.target
	o := ownSet{whole: whole, mate: map[int32]mate{}, kept: map[int32]mate{}, rewrite: map[int32]bool{}}
	if whole {
		for f := m.first[t]; f < m.first[t+1]; f++ {
			if m.kind[f] == kindComputed {
				o.written = append(o.written, f)
			}
		}
		return o
	}
	o.chosen = append(append(o.chosen, selected...), accepted...)
	for _, n := range m.tables[t].CycleChanged {
		if f := m.field(t, n); f >= 0 && m.kind[f] == kindComputed {
			o.system = append(o.system, f)
			for _, n := range m.fieldNode[f] {
				o.rewrite[n] = true
			}
		}
	}
	in := map[int32]bool{}
	var queue []int32
	add := func(f int32) bool {
		if in[f] {
			return false
		}
		in[f] = true
		queue = append(queue, f)
		return true
	}
	for _, f := range append(slices.Clone(o.chosen), o.system...) {
		add(f)
	}
	take := func(f, n int32) {
		for _, g := range m.nodeField[n] {
			if c.byColumn(n, &o) {
				if _, twice := o.kept[g]; !twice {
					o.kept[g] = mate{f, n}
				}
			} else if add(g) {
				o.mate[g] = mate{f, n}
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		f := queue[i]
		if m.kind[f] == kindKey {
			for n := m.nodeFirst[t]; n < m.nodeFirst[t+1]; n++ {
				o.rewrite[n] = true // matching rows by a key that changes is no column refresh
			}
			for n := m.nodeFirst[t]; n < m.nodeFirst[t+1]; n++ {
				take(f, n)
			}
		}
		for _, n := range m.fieldNode[f] {
			take(f, n)
		}
	}
	slices.Sort(queue)
	o.written = queue
	for _, f := range queue {
		delete(o.kept, f)
	}
	return o
}

func (c *closure) byColumn(n int32, o *ownSet) bool {
	if c.req.Column == nil || o != nil && o.rewrite[n] {
		return false
	}
	return c.req.Column(c.m.tables[c.m.nodeTable(n)].Name, c.m.nodeName(n))
}

// offers gives the recommended fields that are not written yet, own fields
// in declared order first (semantics §4.4).
func (c *closure) offers(o ownSet) []Recommendation {
	m, t := c.m, c.target
	tab := &m.tables[t]
	var out []Recommendation
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if m.kind[f] != kindComputed || o.writes(f) {
			continue
		}
		if on := Meets(tab.Changed[m.name[f]], c.req.Dates); len(on) > 0 {
			out = append(out, Recommendation{m.ref(f), LogicChanged, on})
		}
	}
	p, ok := m.tableID[tab.Primary]
	if tab.Primary == "" || !ok || p == t {
		return out
	}
	on := m.keyChanged(p, c.req.datesOf(tab.Primary))
	if len(on) == 0 {
		return out
	}
	for _, k := range m.tables[p].Key {
		out = append(out, Recommendation{Ref{tab.Primary, k}, PrimaryPKChange, on})
	}
	for _, k := range tab.Key {
		if f := m.field(t, k); !o.writes(f) {
			out = append(out, Recommendation{Ref{tab.Name, k}, ChildPKChange, on})
		}
	}
	return out
}

// accept sorts the offers into taken and left ones. A name that is neither
// offered nor in the set already is an error.
func (c *closure) accept(offers []Recommendation, o ownSet) (taken, rest []Recommendation, problems diag.List) {
	used := map[string]bool{}
	matches := func(r Recommendation) bool {
		if c.req.Accept.All {
			return true
		}
		hit := false
		for _, n := range c.req.Accept.Names {
			if n == r.String() || r.Table == c.req.Table && n == r.Field {
				used[n] = true
				hit = true
			}
		}
		return hit
	}
	var names []string
	for _, r := range offers {
		names = append(names, r.String())
		if r.Table == c.req.Table {
			names = append(names, r.Field)
		}
		if matches(r) {
			taken = append(taken, r)
		} else {
			rest = append(rest, r)
		}
	}
	for _, n := range c.req.Accept.Names {
		bare := strings.TrimPrefix(n, c.req.Table+".")
		if f := c.m.field(c.target, bare); used[n] || f >= 0 && o.has(f) {
			continue
		}
		problems = append(problems, diag.Errorf("not_recommended", "%q is not among the recommended fields", n).
			WithDetail("recommended: %s", strings.Join(names, ", ")).
			WithHint("%s", diag.DidYouMean(n, names, "name it with --fields, or leave it out of --recommended")))
	}
	return taken, rest, problems
}

func sortedKeys(m map[int32]bool) []int32 {
	out := make([]int32, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
