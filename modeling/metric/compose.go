package metric

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

// Select writes the SELECT of a composed table t (t.Compose must be set) for
// an engine type: the grain, then the metrics in the order written, over one
// scan of the fact, grouped by the grain. It is "" where the composition has
// errors. The spans tell which part comes from where. Diagnostics:
// unknown_table, no_day_partition, bad_period, unknown_metric, unknown_filter,
// other_table, duplicate_field, cycle, and the warning non_additive.
func (s *Set) Select(t *modeling.Table, dialect param.Dialect, engine string) (string, []modeling.Span, diag.List) {
	c := &composer{s: s, t: t, c: t.Compose}
	fact := s.tables(c.c.From)
	switch {
	case fact == nil:
		c.report(diag.Errorf("unknown_table", "the project has no logical table %q", c.c.From).At(c.c.FromPos).
			WithHint("name the logical table that the metrics are over"))
		return "", nil, c.diags
	case strings.EqualFold(fact.Name, t.Name):
		c.report(diag.Errorf("cycle", "%s is composed from itself", t.Name).At(c.c.FromPos).
			WithHint("name the logical table that the metrics are over"))
		return "", nil, c.diags
	}
	if metrics, filters := c.metrics(fact), c.filters(fact); !metrics || !filters {
		return "", nil, c.diags
	}
	l, why := layoutOf(fact, dialect, engine)
	if why != "" {
		c.report(diag.Errorf("no_day_partition", "no periods can be taken of %s: %s", fact.Name, why).At(c.c.FromPos).
			WithHint(`the fact needs a partition such as {ds: "${yyyy-mm-dd}"}`))
		return "", nil, c.diags
	}
	if !c.periods(fact, l) {
		return "", nil, c.diags
	}
	c.additive(fact, l)
	out := c.write(fact, l)
	return out.String(), out.spans, c.diags
}

// composer makes one composed table.
type composer struct {
	s     *Set
	t     *modeling.Table
	c     *modeling.Compose
	diags diag.List
}

func (c *composer) report(d diag.Diagnostic) { c.diags = append(c.diags, d) }

// metrics checks that every listed metric is a sound one of the fact, and
// that no name is given twice.
func (c *composer) metrics(fact *modeling.Table) bool {
	sound := true
	for i, g := range c.c.Grain {
		for _, p := range c.t.Partition {
			if strings.EqualFold(p.Name, g) {
				c.report(diag.Errorf("partition_in_select", "%q is a partition column of %s", g, c.t.Name).At(c.c.GrainPos[i]).
					WithHint("remove it from the grain: retrofill adds partition columns by their expressions"))
				sound = false
			}
		}
	}
	for i, name := range c.c.Metrics {
		pos, k := c.c.MetricPos[i], fold(name)
		switch {
		case slices.ContainsFunc(c.c.Grain, func(g string) bool { return strings.EqualFold(g, name) }):
			c.report(diag.Errorf("duplicate_field", "metric %q is named like a field of the grain", name).At(pos).
				WithHint("define the metric under another name"))
			sound = false
		case !c.s.known(name):
			c.report(c.s.unknownMetric(name, pos))
			sound = false
		case c.s.bad[k]:
			sound = false // reported where it is defined
		default:
			leaves, _ := c.s.leaves(k, context{})
			for _, l := range leaves {
				if strings.EqualFold(l.atomic.Table, fact.Name) {
					continue
				}
				c.report(diag.Errorf("other_table", "metric %q is over %s, not over %s", name, l.atomic.Table, fact.Name).At(pos).
					WithHint("one composed table scans one table: take metrics over %s, or compose another table", fact.Name))
				sound = false
				break
			}
			sound = sound && len(leaves) > 0
		}
	}
	return sound
}

func (c *composer) filters(fact *modeling.Table) bool {
	sound := true
	for i, name := range c.c.Filters {
		f := c.s.filters[fold(name)]
		switch {
		case f == nil:
			c.report(c.s.unknownFilter(name, c.c.FilterPos[i]))
			sound = false
		case !strings.EqualFold(f.Table, fact.Name):
			c.report(diag.Errorf("other_table", "filter %q is over %s, not over %s", name, f.Table, fact.Name).At(c.c.FilterPos[i]).
				WithHint("define a filter over %s", fact.Name))
			sound = false
		default:
			sound = sound && unfit(f.Where) == ""
		}
	}
	return sound
}

// all gives the leaves of all metrics of the table.
func (c *composer) all() []leaf {
	var out []leaf
	for _, name := range c.c.Metrics {
		leaves, _ := c.s.leaves(fold(name), context{})
		out = append(out, leaves...)
	}
	return out
}

func (c *composer) periods(fact *modeling.Table, l layout) bool {
	sound := true
	for i, name := range c.c.Metrics {
		leaves, _ := c.s.leaves(fold(name), context{})
		for _, x := range leaves {
			if why := l.refuse(x.period); why != "" {
				c.report(diag.Errorf("bad_period", "the period %s of metric %q cannot be taken of %s: %s", x.period.Name, name, fact.Name, why).
					At(c.c.MetricPos[i]).WithHint("the partition of %s decides which periods there are; 1d always works", fact.Name))
				sound = false
				break
			}
		}
	}
	return sound
}

// additive warns of a quotient whose divisor the table does not hold: such a
// rate cannot be summed up, and without its divisor not be weighted either.
func (c *composer) additive(fact *modeling.Table, l layout) {
	has := map[string]bool{}
	for _, name := range c.c.Metrics {
		has[c.plain(fold(name), context{}, l)] = true
	}
	for i, name := range c.c.Metrics {
		var missing []string
		c.divisors(fold(name), context{}, func(k string, in context) {
			if m := c.s.spelled(k); !has[c.plain(k, in, l)] && !slices.Contains(missing, m) {
				missing = append(missing, m)
			}
		})
		if len(missing) == 0 {
			continue
		}
		c.report(diag.Warnf("non_additive", "metric %q is a quotient, but %s does not hold what it is divided by: %s", name, c.t.Name, strings.Join(missing, ", ")).
			At(c.c.MetricPos[i]).WithDetail("a quotient cannot be summed up over groups or periods, only weighted by its divisor").
			WithHint("add a metric for %s, of the same period and filters, to %s", strings.Join(missing, ", "), c.t.Name))
	}
}

// divisors visits the metrics that a metric divides by.
func (c *composer) divisors(k string, in context, visit func(k string, in context)) {
	s := c.s
	if d := s.derived[k]; d != nil {
		p, _ := s.period(d.Period)
		inner, _ := in.with(d, &p)
		c.divisors(fold(d.Metric), inner, visit)
	}
	if x := s.composites[k]; x != nil {
		for _, w := range s.words(x.Expr) {
			if w.divisor {
				visit(fold(w.name), in)
			}
			c.divisors(fold(w.name), in, visit)
		}
	}
}

// plain writes a metric with all its conditions, for comparison.
func (c *composer) plain(k string, in context, l layout) string {
	w := writer{s: c.s, layout: l, out: &text{}}
	w.metric(k, in, false)
	return w.out.String()
}

// write writes the SELECT.
func (c *composer) write(fact *modeling.Table, l layout) *text {
	var periods []modeling.Period
	for _, x := range c.all() {
		if !slices.ContainsFunc(periods, func(p modeling.Period) bool { return samePeriod(p, x.period) }) {
			periods = append(periods, x.period)
		}
	}
	conditions, main := l.rows(periods)
	out := &text{}
	w := writer{s: c.s, layout: l, main: main, out: out}
	out.WriteString("SELECT\n")
	for i, g := range c.c.Grain {
		if i > 0 {
			out.WriteString(",\n")
		}
		out.WriteString("  ")
		out.from(c.c.GrainPos[i], ident(g))
	}
	for i, m := range c.c.Metrics {
		out.WriteString(",\n  ")
		out.around(c.c.MetricPos[i], func() {
			w.metric(fold(m), context{}, false)
			out.WriteString(" AS " + ident(c.s.spelled(fold(m))))
		})
	}
	out.WriteString("\nFROM ")
	out.from(c.c.FromPos, ident(fact.Name))
	out.WriteString("\nWHERE ")
	for i, x := range conditions {
		if i > 0 {
			out.WriteString("\n  AND ")
		}
		out.from(c.c.FromPos, x)
	}
	for _, name := range c.c.Filters {
		f := c.s.filters[fold(name)]
		out.WriteString("\n  AND ")
		out.from(f.WherePos, bracketed(flat(f.Where)))
	}
	out.WriteString("\nGROUP BY ")
	for i, g := range c.c.Grain {
		if i > 0 {
			out.WriteString(", ")
		}
		out.from(c.c.GrainPos[i], ident(g))
	}
	out.WriteString("\n")
	return out
}
