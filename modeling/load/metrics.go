package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/metric"
	"github.com/retrofill/retrofill/modeling/param"
)

// metricKinds are the keys that name a definition, with the keys that each of
// them needs and allows.
var metricKinds = [...]struct {
	key, need string
	allow     []string
}{
	{"derived", "metric", []string{"filters", "period"}}, // before period, which it may have
	{"atomic", "expr", []string{"table"}},
	{"filter", "where", []string{"table"}},
	{"composite", "expr", nil},
	{"period", "", []string{"unit", "from", "to"}},
}

// metrics builds the definitions of one file.
func (b *builder) metrics(r rawMetrics) *modeling.Metrics {
	m := &modeling.Metrics{}
	for _, x := range r.Metrics {
		kind, ok := b.metricKind(x)
		if !ok {
			continue
		}
		table := x.Table
		if !x.has("table") {
			table = r.Table
		}
		switch kind {
		case "atomic", "filter":
			if table.Text == "" {
				b.report(diag.Errorf("missing_key", "the %s names no table", kind).At(x.at(kind)).
					WithHint("add `table:` here or at the top of the file"))
				continue
			}
			if kind == "atomic" {
				m.Atomics = append(m.Atomics, modeling.Atomic{Name: x.Atomic.Text, Table: table.Text, Expr: x.Expr.Text, Description: x.Describe.Text,
					Pos: x.Atomic.Pos, TablePos: table.Pos, ExprPos: x.Expr.Pos})
				continue
			}
			m.Filters = append(m.Filters, modeling.MetricFilter{Name: x.Filter.Text, Table: table.Text, Where: x.Where.Text, Description: x.Describe.Text,
				Pos: x.Filter.Pos, TablePos: table.Pos, WherePos: x.Where.Pos})
		case "period":
			from := int(x.From)
			if !x.has("from") {
				from = int(x.To)
			}
			m.Periods = append(m.Periods, modeling.Period{Name: x.Period.Text, Unit: cmp.Or(x.Unit.Text, "day"), From: from, To: int(x.To),
				Description: x.Describe.Text, Pos: x.Period.Pos})
		case "derived":
			d := modeling.Derived{Name: x.Derived.Text, Metric: x.Metric.Text, Period: x.Period.Text, Description: x.Describe.Text,
				Pos: x.Derived.Pos, MetricPos: x.Metric.Pos, PeriodPos: x.Period.Pos}
			d.Filters, d.FilterPos = b.names(x.Filters, "filter")
			m.Derived = append(m.Derived, d)
		case "composite":
			m.Composites = append(m.Composites, modeling.Composite{Name: x.Composite.Text, Expr: x.Expr.Text, Description: x.Describe.Text,
				Pos: x.Composite.Pos, ExprPos: x.Expr.Pos})
		}
	}
	return m
}

// metricKind tells what a definition is and checks that its keys go together.
func (b *builder) metricKind(x rawMetric) (string, bool) {
	i := slices.IndexFunc(metricKinds[:], func(k struct {
		key, need string
		allow     []string
	}) bool {
		return x.has(k.key)
	})
	if i < 0 {
		b.report(diag.Errorf("missing_key", "a definition says what it is").At(x.Pos).
			WithHint("write one of atomic, filter, period, derived, composite with its name"))
		return "", false
	}
	k := metricKinds[i]
	ok := true
	for _, w := range x.keys {
		if w.Text != k.key && w.Text != k.need && w.Text != "description" && !slices.Contains(k.allow, w.Text) && knownMetricKey(w.Text) {
			b.report(diag.Errorf("bad_value", "%q does not go with %s", w.Text, k.key).At(w.Pos).
				WithHint("a definition is one of atomic, filter, period, derived, composite; write two for two"))
			ok = false
		}
	}
	if k.need != "" && !x.has(k.need) {
		b.report(diag.Errorf("missing_key", "key %q is missing beside %s", k.need, k.key).At(x.at(k.key)).WithHint("add `%s:`", k.need))
		ok = false
	}
	name := map[string]word{"atomic": x.Atomic, "filter": x.Filter, "period": x.Period, "derived": x.Derived, "composite": x.Composite}[k.key]
	return k.key, b.goodName(name, k.key) && ok
}

// knownMetricKey keeps keys that were reported as unknown from being reported
// twice.
func knownMetricKey(name string) bool {
	for _, k := range metricFile().parts {
		if k.name == "definition" {
			return slices.ContainsFunc(k.keys, func(x partKey) bool { return x.name == name })
		}
	}
	return false
}

// joinMetrics puts the definitions of two files together; nil = none.
func joinMetrics(all, more *modeling.Metrics) *modeling.Metrics {
	switch {
	case more == nil:
		return all
	case all == nil:
		return more
	}
	all.Atomics = append(all.Atomics, more.Atomics...)
	all.Filters = append(all.Filters, more.Filters...)
	all.Periods = append(all.Periods, more.Periods...)
	all.Derived = append(all.Derived, more.Derived...)
	all.Composites = append(all.Composites, more.Composites...)
	return all
}

// composition reads what a table is composed of.
func (b *builder) composition(r rawTable, g group, t *modeling.Table) {
	if !r.has("compose") {
		return
	}
	x := r.Compose
	c := &modeling.Compose{From: x.From.Text, Pos: r.at("compose"), FromPos: x.From.Pos}
	c.Grain, c.GrainPos = b.names(x.Grain, "field")
	c.Metrics, c.MetricPos = b.names(x.Metrics, "metric")
	c.Filters, c.FilterPos = b.names(x.Filters, "filter")
	t.Compose, t.SQLFile = c, g.yaml.path
	other := g.sql.path
	for _, f := range g.variants {
		other = cmp.Or(other, f.path)
	}
	if other != "" {
		b.report(diag.Errorf("bad_value", "the table is composed and has %s too", other).At(r.at("compose")).
			WithHint("keep one of the two"))
		t.SQL, t.SQLByEngine = "", nil
	}
	if !r.has("key") {
		t.Key, t.KeyPos = slices.Clone(c.Grain), c.GrainPos
		return
	}
	same := len(t.Key) == len(c.Grain)
	for _, k := range t.Key {
		same = same && slices.ContainsFunc(c.Grain, func(g string) bool { return strings.EqualFold(g, k) })
	}
	if !same && len(c.Grain) > 0 {
		b.report(diag.Errorf("bad_value", "the key of a composed table is its grain").At(r.at("key")).
			WithHint("write key: [%s], or leave it out", strings.Join(c.Grain, ", ")))
	}
}

// compose writes the SELECTs of composed tables, for every engine of the
// project, and takes the metrics' descriptions over.
func (b *builder) compose(p *modeling.Project) {
	tables := make(map[string]*modeling.Table, len(p.Tables))
	for _, t := range p.Tables {
		tables[fold(t.Name)] = t
	}
	set, diags := metric.New(p.Metrics, func(name string) *modeling.Table { return tables[fold(name)] })
	b.diags = append(b.diags, diags...)
	dialect, diags := param.ParseDialect(p.Dialect)
	if diags.HasErrors() {
		return // reported with the project file
	}
	engines := []string{"duckdb"}
	for _, e := range p.Engines {
		if !slices.Contains(engines, e.Type) {
			engines = append(engines, e.Type)
		}
	}
	for _, t := range p.Tables {
		if t.Compose == nil || t.Compose.From == "" || len(t.Compose.Grain) == 0 || len(t.Compose.Metrics) == 0 {
			continue
		}
		sql, spans, diags := set.Select(t, dialect, engines[0])
		b.diags = append(b.diags, diags...)
		t.SQL, t.Compose.Spans = sql, spans
		for _, e := range engines[1:] {
			if other, _, _ := set.Select(t, dialect, e); other != sql {
				if t.SQLByEngine == nil {
					t.SQLByEngine = map[string]string{}
				}
				t.SQLByEngine[e] = other
			}
		}
		for _, m := range t.Compose.Metrics {
			describeField(t, m, set.Description(m))
		}
	}
}

// describeField gives a field the description of its metric, unless the table says
// something of its own.
func describeField(t *modeling.Table, field, text string) {
	if text == "" {
		return
	}
	i := slices.IndexFunc(t.Fields, func(f modeling.FieldSpec) bool { return strings.EqualFold(f.Name, field) })
	if i < 0 {
		t.Fields = append(t.Fields, modeling.FieldSpec{Name: field, Description: text, Pos: t.Compose.Pos})
	} else if t.Fields[i].Description == "" {
		t.Fields[i].Description = text
	}
}
