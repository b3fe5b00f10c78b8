package param

import (
	"maps"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Dialect gives the grammar of the set.
func (s *Set) Dialect() Dialect { return s.dialect }

// Lookup gives an effective parameter, built-ins included; letter case does
// not count.
func (s *Set) Lookup(name string) (Param, bool) {
	p, ok := s.params[strings.ToLower(name)]
	if !ok {
		return Param{}, false
	}
	return *p, true
}

// Params gives the user-given parameters in order of declaration.
func (s *Set) Params() []Param {
	out := make([]Param, len(s.order))
	for i, k := range s.order {
		out[i] = *s.params[k]
	}
	return out
}

// Builtins gives the built-in parameters that no user value replaces, by name.
func (s *Set) Builtins() []Param {
	var out []Param
	for _, k := range slices.Sorted(maps.Keys(s.params)) {
		if p := s.params[k]; p.Origin == FromBuiltin {
			out = append(out, *p)
		}
	}
	return out
}

// Shadowed gives the user-given parameters that replace a built-in name, so
// that the plan can say so (semantics §2.5).
func (s *Set) Shadowed() []Param {
	return slices.DeleteFunc(s.Params(), func(p Param) bool { return !p.Shadows })
}

// UndeclaredOverrides gives the names of overrides that this node neither
// declares nor has built in; the planner warns for one that no node knows.
func (s *Set) UndeclaredOverrides() []string { return slices.Clone(s.extra) }

// Eval gives the value of a parameter at an instant. Codes: undefined, range,
// unbound.
func (s *Set) Eval(name string, at Instant, late Late) (string, diag.List) {
	p, ok := s.params[strings.ToLower(name)]
	if !ok || p.Expr == nil {
		return "", diag.List{s.undefined(name, diag.Pos{})}
	}
	return p.Expr.EvalLate(at, late)
}

// Check evaluates all user-given parameters at an instant, used or not, and
// gives what fails; late-bound ones are left out. Values move with the slot in
// one direction, so the first and the last slot speak for those between.
func (s *Set) Check(at Instant) diag.List {
	var out diag.List
	for _, k := range s.order {
		p := s.params[k]
		if p.Expr == nil || len(p.Expr.Late()) > 0 {
			continue
		}
		_, diags := p.Expr.Eval(at)
		for _, d := range diags {
			d.Summary = "parameter " + p.Name + ": " + d.Summary
			out = append(out, d)
		}
	}
	return out
}

// ParseValue reads a value in the context of the set, for partition columns
// and `params --expr`: everything that Parse takes, $name resolved, and
// ${name} of a declared or built-in name. Late-bound values are refused with
// code late_bound: a partition must be known when the plan is made.
func (s *Set) ParseValue(src Source) (*Expr, diag.List) {
	named := func(key string) (*Expr, bool) {
		p, ok := s.params[key]
		if !ok || p.Expr == nil {
			return nil, false
		}
		return p.Expr, true
	}
	e, diags := parseValue(s.dialect, src, named)
	if e == nil {
		return nil, diags
	}
	if e.ref != "" {
		target, ok := named(e.ref)
		if !ok {
			return nil, append(diags, s.undefined(e.ref, src.At(0)))
		}
		e = &Expr{dialect: s.dialect, src: src, parts: slices.Clone(target.parts)}
		for i := range e.parts {
			e.parts[i].off = 0
		}
	}
	for _, l := range e.Late() {
		return nil, append(diags, diag.Errorf("late_bound", "%s is known only while the backfill runs", l.Key).At(src.At(0)).
			WithHint("use a value that the slot alone decides, such as ${yyyymmdd} or ${slotutc}"))
	}
	return e, diags
}

func (s *Set) undefined(name string, pos diag.Pos) diag.Diagnostic {
	return diag.Errorf("undefined", "parameter %s is not defined", name).At(pos).
		WithHint("%s", diag.DidYouMean(name, s.known(), "declare it under params, or mark it `verbatim: true` to keep it as written"))
}

// known gives all names, for suggestions.
func (s *Set) known() []string {
	var out []string
	for _, p := range s.params {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}
