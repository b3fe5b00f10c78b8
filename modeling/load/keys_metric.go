package load

// What the files of metrics and `compose` say, as written; metrics.go turns it
// into modeling values.
type (
	rawMetrics struct {
		place
		Table   word
		Metrics []rawMetric
	}
	rawMetric struct {
		place
		Atomic, Filter, Period, Derived, Composite word
		Table, Expr, Where, Metric, Unit, Describe word
		Filters                                    []word
		From, To                                   int64
	}
	rawCompose struct {
		place
		From                    word
		Grain, Metrics, Filters []word
	}
)

// units are the calendar units of periods.
var units = [...]string{"day", "week", "month", "year"}

// metricFile is the key table of metrics/**/*.yml.
func metricFile() value[rawMetrics] {
	return object("a metrics file", "Metrics, filters and periods, any number in a file.",
		key("table", text(), "", "Logical table of the atomic metrics and filters of this file that name none.", func(m *rawMetrics) *word { return &m.Table }),
		key("metrics", list(metricValue(), 1), required, "The definitions, in any order.", func(m *rawMetrics) *[]rawMetric { return &m.Metrics }),
	)
}

func metricValue() value[rawMetric] {
	return object("definition", "Exactly one of atomic, filter, period, derived, composite, which names it, and the keys that go with it.",
		key("atomic", text(), "", "Name of an atomic metric; with `expr` and `table`.", func(m *rawMetric) *word { return &m.Atomic }),
		key("filter", text(), "", "Name of a business filter; with `where` and `table`.", func(m *rawMetric) *word { return &m.Filter }),
		key("period", text(), "", "Name of a statistical period; with `unit`, `from`, `to`. Of a derived metric: its period.", func(m *rawMetric) *word { return &m.Period }),
		key("derived", text(), "", "Name of a derived metric; with `metric`, `filters`, `period`.", func(m *rawMetric) *word { return &m.Derived }),
		key("composite", text(), "", "Name of a composite metric; with `expr`.", func(m *rawMetric) *word { return &m.Composite }),
		key("description", text(), "", "For people; it becomes the description of the field.", func(m *rawMetric) *word { return &m.Describe }),
		key("table", text(), "`table` of the file", "Logical table of an atomic metric or filter.", func(m *rawMetric) *word { return &m.Table }),
		key("expr", text(), "", "Atomic: one aggregate call over fields of the table, such as `sum(distance)`. Composite: an expression over names of metrics, such as `on_time / legs`.", func(m *rawMetric) *word { return &m.Expr }),
		key("where", text(), "", "Filter: a predicate over fields of the table.", func(m *rawMetric) *word { return &m.Where }),
		key("metric", text(), "", "Derived: the atomic or composite metric that is narrowed.", func(m *rawMetric) *word { return &m.Metric }),
		key("filters", list(text(), 1), "none", "Derived: filters that rows must pass.", func(m *rawMetric) *[]word { return &m.Filters }),
		key("unit", oneOf(units[:]...), "day", "Period: its calendar unit; weeks start on Monday.", func(m *rawMetric) *word { return &m.Unit }),
		key("from", integer(-3660, 0), "`to`", "Period: its first unit, counted from the one of the business date (0).", func(m *rawMetric) *int64 { return &m.From }),
		key("to", integer(-3660, 0), "0", "Period: its last unit; 0 ends at the business date, included.", func(m *rawMetric) *int64 { return &m.To }),
	)
}

func composeValue() value[rawCompose] {
	return object("compose", "A summary table as one SELECT over one scan of a fact. Its key is the grain.",
		key("from", text(), required, "The logical table that is scanned.", func(c *rawCompose) *word { return &c.From }),
		key("grain", list(text(), 1), required, "Fields to group by.", func(c *rawCompose) *[]word { return &c.Grain }),
		key("metrics", list(text(), 1), required, "Metrics over `from`, each a field of the table. An atomic one counts the business date alone.", func(c *rawCompose) *[]word { return &c.Metrics }),
		key("filters", list(text(), 1), "none", "Business filters that every row must pass.", func(c *rawCompose) *[]word { return &c.Filters }),
	)
}
