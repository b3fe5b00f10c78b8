package metric

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// checker finds the problems of definitions.
type checker struct {
	s     *Set
	diags diag.List
}

func (c *checker) report(d diag.Diagnostic) { c.diags = append(c.diags, d) }

// index puts every definition under its name and checks it by itself.
func (c *checker) index(m *modeling.Metrics) {
	type first struct {
		what, name string
		pos        diag.Pos
	}
	taken := map[string]first{}
	claim := func(space, what, name string, pos diag.Pos) bool {
		k := space + fold(name)
		if f, twice := taken[k]; twice {
			c.report(diag.Errorf("duplicate_name", "%s %q is named like %s %q", what, name, f.what, f.name).At(pos).
				WithDetail("the other one is at %s", f.pos).WithHint("rename one of the two (letter case does not count)"))
			return false
		}
		taken[k] = first{what, name, pos}
		return true
	}
	for i := range m.Filters {
		f := &m.Filters[i]
		if !claim("filter ", "filter", f.Name, f.Pos) {
			continue
		}
		c.s.filters[fold(f.Name)] = f
		c.table(f.Table, f.TablePos, f.Pos)
		c.plain("filter", f.Name, f.Where, f.WherePos)
	}
	for i := range m.Periods {
		p := &m.Periods[i]
		if _, builtin := Builtin(p.Name); builtin {
			c.report(diag.Errorf("duplicate_name", "period %q is built in", p.Name).At(p.Pos).WithHint("give yours another name"))
			continue
		}
		if !claim("period ", "period", p.Name, p.Pos) {
			continue
		}
		c.s.periods[fold(p.Name)] = p
		if p.From > p.To || p.To > 0 || p.From < -maxUnits {
			c.report(diag.Errorf("bad_value", "period %q runs from %d to %d", p.Name, p.From, p.To).At(p.Pos).
				WithHint("from and to count units before the business date: %d ≤ from ≤ to ≤ 0", -maxUnits))
		}
	}
	for i := range m.Atomics {
		a := &m.Atomics[i]
		if !claim("", "metric", a.Name, a.Pos) {
			continue
		}
		k := fold(a.Name)
		c.s.atomics[k] = a
		ok := c.table(a.Table, a.TablePos, a.Pos)
		if !c.plain("metric", a.Name, a.Expr, a.ExprPos) {
			ok = false
		} else if !oneCall(a.Expr) {
			ok = false
			c.report(diag.Errorf("not_aggregate", "metric %q is not one aggregate call: %s", a.Name, flat(a.Expr)).At(a.ExprPos).
				WithHint("write one such as count(*) or sum(field); what combines several is a composite metric, a condition is a filter"))
		}
		c.s.bad[k] = !ok
	}
	for i := range m.Derived {
		d := &m.Derived[i]
		if claim("", "metric", d.Name, d.Pos) {
			c.s.derived[fold(d.Name)] = d
		}
	}
	for i := range m.Composites {
		x := &m.Composites[i]
		if claim("", "metric", x.Name, x.Pos) {
			c.s.composites[fold(x.Name)] = x
			c.s.bad[fold(x.Name)] = !c.plain("metric", x.Name, x.Expr, x.ExprPos)
		}
	}
}

func (c *checker) table(name string, pos, otherwise diag.Pos) bool {
	if pos.Line == 0 {
		pos = otherwise
	}
	if c.s.tables(name) != nil {
		return true
	}
	c.report(diag.Errorf("unknown_table", "the project has no logical table %q", name).At(pos).
		WithHint("metrics are defined over logical tables; `retrofill ls` lists them"))
	return false
}

// plain checks that a text can stand inside an expression: something in it,
// brackets in pairs, no statement end, no comment, no subquery.
func (c *checker) plain(what, name, text string, pos diag.Pos) bool {
	why := unfit(text)
	if why != "" {
		c.report(diag.Errorf("bad_expr", "the expression of %s %q %s", what, name, why).At(pos).
			WithHint("write one SQL expression over the fields of its table"))
	}
	return why == ""
}

// maxParts bounds the aggregates that a metric is made of, repeats counted.
const maxParts = 1000

// sizes refuses metrics that would become unreadably long SELECTs.
func (c *checker) sizes() {
	size := map[string]int{}
	var of func(string) int
	of = func(k string) int {
		if n, ok := size[k]; ok {
			return n
		}
		size[k] = 1 // in a circle
		n := 0
		switch s := c.s; {
		case s.derived[k] != nil:
			n = of(fold(s.derived[k].Metric))
		case s.composites[k] != nil:
			for _, w := range s.words(s.composites[k].Expr) {
				n = min(n+of(fold(w.name)), maxParts+1)
			}
		}
		size[k] = max(n, 1)
		return size[k]
	}
	for _, k := range c.s.names() {
		if of(k) > maxParts && !c.s.bad[k] {
			c.s.bad[k] = true
			if slices.ContainsFunc(c.s.parts(k), func(u string) bool { return of(u) > maxParts }) {
				continue // said of the part
			}
			c.report(diag.Errorf("too_complex", "metric %q is made of more than %d aggregates", c.s.spelled(k), maxParts).At(c.s.pos(k)).
				WithHint("compute its parts as fields of a logical table, and define metrics over that"))
		}
	}
}

// circles reports metrics that are made of themselves, once a ring.
func (c *checker) circles() {
	state := map[string]int{} // 1 on the path, 2 done
	var path []string
	var visit func(string)
	visit = func(k string) {
		state[k] = 1
		path = append(path, k)
		for _, u := range c.s.parts(k) {
			switch state[u] {
			case 0:
				visit(u)
			case 1:
				ring := slices.Clone(path[slices.Index(path, u):])
				var names []string
				for _, r := range ring {
					c.s.bad[r] = true
					names = append(names, c.s.spelled(r))
				}
				c.report(diag.Errorf("cycle", "metric %q is made of itself", names[0]).At(c.s.pos(ring[0])).
					WithDetail("%s → %s", strings.Join(names, " → "), names[0]).WithHint("take one of them out of the circle"))
			}
		}
		path = path[:len(path)-1]
		state[k] = 2
	}
	for _, k := range c.s.names() {
		if state[k] == 0 {
			visit(k)
		}
	}
}

// parts gives the known metrics that a metric is made of directly, folded.
func (s *Set) parts(k string) []string {
	var out []string
	if d := s.derived[k]; d != nil && s.known(d.Metric) {
		out = append(out, fold(d.Metric))
	}
	if x := s.composites[k]; x != nil {
		for _, w := range s.words(x.Expr) {
			if s.known(w.name) && !slices.Contains(out, fold(w.name)) {
				out = append(out, fold(w.name))
			}
		}
	}
	return out
}

// uses checks what a derived or composite metric refers to, and that all of it
// is of one table.
func (c *checker) uses(k string) {
	s := c.s
	if s.bad[k] {
		return
	}
	ok := true
	fail := func(d diag.Diagnostic) { c.report(d); ok = false }
	if d := s.derived[k]; d != nil {
		if !s.known(d.Metric) {
			fail(s.unknownMetric(d.Metric, d.MetricPos))
		}
		for i, f := range d.Filters {
			switch x := s.filters[fold(f)]; {
			case x == nil:
				fail(s.unknownFilter(f, d.FilterPos[i]))
			case unfit(x.Where) != "":
				ok = false // reported with the filter
			}
		}
		if _, found := s.period(d.Period); !found {
			fail(diag.Errorf("unknown_period", "there is no period %q", d.Period).At(d.PeriodPos).
				WithHint("%s", diag.DidYouMean(d.Period, s.periodNames(), "built in are 1d, 7d, 30d (any number), prev_7d, wtd, mtd, ytd, prev_week, prev_month, prev_year")))
		}
	}
	if x := s.composites[k]; x != nil {
		words := s.words(x.Expr)
		if len(words) == 0 {
			fail(diag.Errorf("bad_expr", "composite metric %q reads no metric", x.Name).At(x.ExprPos).
				WithHint("write an expression over other metrics, such as on_time / legs"))
		}
		for _, w := range words {
			if !s.known(w.name) {
				fail(s.unknownMetric(w.name, x.ExprPos))
			}
		}
	}
	if s.bad[k] = !ok; ok {
		s.bad[k] = !c.leaves(k)
	}
}

// spread makes what is made of a bad metric bad too.
func (c *checker) spread() {
	names := c.s.names()
	for more := true; more; {
		more = false
		for _, k := range names {
			if !c.s.bad[k] && slices.ContainsFunc(c.s.parts(k), func(u string) bool { return c.s.bad[u] }) {
				c.s.bad[k], more = true, true
			}
		}
	}
}

// leaves checks the atomic metrics behind a metric together.
func (c *checker) leaves(k string) bool {
	s := c.s
	leaves, problem := s.leaves(k, context{})
	if problem != "" {
		c.report(diag.Errorf("period_twice", "metric %q puts a period on a metric that has one: %s", s.spelled(k), problem).At(s.pos(k)).
			WithHint("leave the period out here, or define the inner metric without one"))
		return false
	}
	if len(leaves) == 0 {
		return true // what it is made of was reported
	}
	table := leaves[0].atomic.Table
	for _, l := range leaves {
		if !strings.EqualFold(l.atomic.Table, table) {
			c.report(diag.Errorf("other_table", "metric %q mixes tables: %s is over %s, %s over %s", s.spelled(k),
				leaves[0].atomic.Name, table, l.atomic.Name, l.atomic.Table).At(s.pos(k)).
				WithHint("one scan reads one table: join the two in a logical table and define the metrics over that"))
			return false
		}
		for _, f := range l.filters {
			if x := s.filters[fold(f)]; x != nil && !strings.EqualFold(x.Table, table) {
				c.report(diag.Errorf("other_table", "metric %q is over %s, but its filter %q is over %s", s.spelled(k), table, x.Name, x.Table).At(s.pos(k)).
					WithHint("define a filter over %s", table))
				return false
			}
		}
	}
	return true
}

func (s *Set) unknownMetric(name string, pos diag.Pos) diag.Diagnostic {
	var names []string
	for _, k := range s.names() {
		names = append(names, s.spelled(k))
	}
	return diag.Errorf("unknown_metric", "there is no metric %q", name).At(pos).
		WithHint("%s", diag.DidYouMean(name, names, "define it in a file under metrics"))
}

func (s *Set) unknownFilter(name string, pos diag.Pos) diag.Diagnostic {
	var names []string
	for _, k := range sortedKeys(s.filters) {
		names = append(names, s.filters[k].Name)
	}
	return diag.Errorf("unknown_filter", "there is no filter %q", name).At(pos).
		WithHint("%s", diag.DidYouMean(name, names, "define it in a file under metrics"))
}

func (s *Set) periodNames() []string {
	out := []string{"wtd", "mtd", "ytd", "prev_week", "prev_month", "prev_year"}
	for _, k := range sortedKeys(s.periods) {
		out = append(out, s.periods[k].Name)
	}
	return out
}
