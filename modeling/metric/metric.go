// Package metric composes summary tables out of metrics: atomic metrics (an
// aggregate over one logical table) × business filters × statistical periods,
// and composites of them, become one SELECT with one scan (design "Logical
// tables in a project").
//
// Invariants:
//   - the text of a metric's column depends on the metric, its filters and its
//     period alone, so that a change of one of them changes the fields that
//     use it and no other (semantics §4.5);
//   - the same definitions give the same text, byte for byte;
//   - a composed table has a row for every group that has a row of the fact in
//     at least one of its periods;
//   - everything that is written in a file keeps its place: diagnostics about
//     the generated SELECT point at the YAML.
package metric

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Set is a project's metrics, checked and ready to be composed. It is
// read-only after New.
type Set struct {
	tables     func(string) *modeling.Table
	atomics    map[string]*modeling.Atomic
	filters    map[string]*modeling.MetricFilter
	periods    map[string]*modeling.Period
	derived    map[string]*modeling.Derived
	composites map[string]*modeling.Composite
	// bad are the metrics with errors of their own, by folded name.
	bad map[string]bool
}

func fold(s string) string { return strings.ToLower(s) }

// New indexes and checks the definitions; tables finds a logical table by
// name, nil for none. Diagnostics: duplicate_name, bad_value, bad_expr,
// not_aggregate, unknown_table, unknown_metric, unknown_filter,
// unknown_period, other_table, period_twice, cycle, too_complex.
func New(m *modeling.Metrics, tables func(string) *modeling.Table) (*Set, diag.List) {
	if m == nil {
		m = &modeling.Metrics{}
	}
	s := &Set{
		tables: tables, atomics: map[string]*modeling.Atomic{}, filters: map[string]*modeling.MetricFilter{},
		periods: map[string]*modeling.Period{}, derived: map[string]*modeling.Derived{},
		composites: map[string]*modeling.Composite{}, bad: map[string]bool{},
	}
	c := &checker{s: s}
	c.index(m)
	c.circles()
	c.sizes()
	for _, k := range s.names() {
		c.uses(k)
	}
	c.spread()
	c.diags.Sort()
	return s, c.diags
}

// names gives the folded names of all metrics, sorted.
func (s *Set) names() []string {
	var out []string
	for k := range s.atomics {
		out = append(out, k)
	}
	for k := range s.derived {
		out = append(out, k)
	}
	for k := range s.composites {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// known tells whether a metric of that name exists.
func (s *Set) known(name string) bool {
	k := fold(name)
	return s.atomics[k] != nil || s.derived[k] != nil || s.composites[k] != nil
}

// Description gives what is said of a metric, "" for nothing.
func (s *Set) Description(name string) string {
	k := fold(name)
	switch {
	case s.atomics[k] != nil:
		return s.atomics[k].Description
	case s.derived[k] != nil:
		return s.derived[k].Description
	case s.composites[k] != nil:
		return s.composites[k].Description
	}
	return ""
}

// pos gives a metric's place.
func (s *Set) pos(k string) diag.Pos {
	switch {
	case s.atomics[k] != nil:
		return s.atomics[k].Pos
	case s.derived[k] != nil:
		return s.derived[k].Pos
	case s.composites[k] != nil:
		return s.composites[k].Pos
	}
	return diag.Pos{}
}

// spelled gives a metric's name as it was defined.
func (s *Set) spelled(k string) string {
	switch {
	case s.atomics[k] != nil:
		return s.atomics[k].Name
	case s.derived[k] != nil:
		return s.derived[k].Name
	case s.composites[k] != nil:
		return s.composites[k].Name
	}
	return k
}

// period finds a built-in or a defined period; "" is 1d.
func (s *Set) period(name string) (modeling.Period, bool) {
	if p, ok := Builtin(cmp.Or(name, "1d")); ok {
		return p, true
	}
	if p := s.periods[fold(name)]; p != nil {
		return *p, true
	}
	return modeling.Period{}, false
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
