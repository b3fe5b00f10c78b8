package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// Explanation answers why a node, one of its fields or one of its dates is in
// a plan, or why it is not.
type Explanation struct {
	Asked string        `json:"asked"`
	Node  string        `json:"node"` // table, task or source
	Kind  string        `json:"kind"` // of the node; "source" for a source
	Field string        `json:"field,omitempty"`
	Date  *bizdate.Date `json:"date,omitempty"`
	Slot  string        `json:"slot,omitempty"` // id, where the question names one
	In    bool          `json:"in_plan"`
	// Reason is one word for programs. In the plan: selected, downstream,
	// upstream, recommended, stale, written, key, real, dry_run, not_scheduled.
	// Not in it: excluded, paused, below_paused, not_listed, broken,
	// not_selected, not_a_child, beyond_levels, reads_nothing_written, not_read,
	// unrelated, kept, registered_field, current, outside_dates,
	// outside_window, source.
	Reason string `json:"reason"`
	// Because is the answer in one sentence.
	Because string `json:"because"`
	Facts   []Fact `json:"facts"`
	Hint    string `json:"hint,omitempty"`
}

// Fact is one line below the answer.
type Fact struct {
	Name string `json:"name"` // path, writes, step, needs, needed by, reads, in the way
	Text string `json:"text"`
}

// explainer is what one answer is made from.
type explainer struct {
	plan  *plan.Plan
	model *lineage.Model
	req   *Request
	index map[string]int // plan node by name
	start []*lineage.Node
	// down and up are distances from the current nodes, by position; 0 = none.
	down, up []int
}

// Explain answers why NODE, TABLE.FIELD, NODE@DATE or TABLE.FIELD@DATE is in
// the plan that a request gave, or why it is not. A materialization node or
// the table that a task writes stands for its node. It looks at nothing but its
// arguments. Diagnostics: unknown_node, unknown_field, bad_date, all errors.
func Explain(p *plan.Plan, m *lineage.Model, req Request, asked string) (Explanation, diag.List) {
	x := &explainer{plan: p, model: m, req: &req, index: map[string]int{}}
	for i := range p.Nodes {
		x.index[p.Nodes[i].Name] = i
		if n := m.Node(p.Nodes[i].Name); n != nil && p.Nodes[i].Level == 0 {
			x.start = append(x.start, n)
		}
	}
	if len(x.start) == 0 { // all of them are left out
		for _, name := range req.Nodes {
			if n := m.Node(name); n != nil {
				x.start = append(x.start, n)
			}
		}
	}
	x.measure()
	e := Explanation{Asked: asked, Facts: []Fact{}}
	n, diags := x.parse(asked, &e)
	if diags.HasErrors() {
		return e, diags
	}
	if n == nil {
		x.source(&e)
		return e, nil
	}
	e.Node, e.Kind = n.Name, string(n.Kind)
	i, in := x.index[n.Name]
	switch {
	case e.Field != "" && x.registered(&e, n):
	case !in:
		x.out(&e, n)
	default:
		pn := &p.Nodes[i]
		if e.Field == "" {
			x.node(&e, pn)
		} else {
			x.field(&e, n, pn)
		}
		if e.Date != nil && e.In {
			x.date(&e, i)
		}
	}
	return e, nil
}

// parse finds what is asked for; a nil node without an error is a source.
func (x *explainer) parse(asked string, e *Explanation) (*lineage.Node, diag.List) {
	name, when, dated := strings.Cut(strings.TrimSpace(asked), "@")
	if dated {
		if diags := x.when(when, e); diags.HasErrors() {
			return nil, diags
		}
	}
	if n, ok := x.find(name); ok {
		if n == nil {
			e.Node = name
		}
		return n, nil
	}
	if k := strings.LastIndexByte(name, '.'); k > 0 {
		if n, ok := x.find(name[:k]); ok && n != nil {
			return n, x.fieldOf(n, name[k+1:], e)
		}
	}
	candidates := x.model.Names()
	for _, s := range x.model.Project.Sources {
		candidates = append(candidates, s.Table)
	}
	return nil, diag.List{diag.Errorf("unknown_node", "--explain: there is no node, field or source %q", name).
		WithHint("%s", diag.DidYouMean(name, candidates, "give NODE, TABLE.FIELD or NODE@DATE; `retrofill ls` lists the nodes"))}
}

// when reads a business date, or the instant of a slot, as its id has it.
func (x *explainer) when(text string, e *Explanation) diag.List {
	if len(text) > len("2006-01-02") {
		at, diags := bizdate.ParseInstant(text, x.model.Zone)
		if !diags.HasErrors() {
			at = at.In(x.model.Zone)
			d := bizdate.FromTime(at) - 1 // the date of a slot is the day before it
			e.Date, e.Slot = &d, bizdate.Slot{Date: d, At: at, SubDaily: true}.ID()
		}
		return diags
	}
	d, err := bizdate.Parse(text)
	if err != nil {
		return diag.List{diag.Errorf("bad_date", "--explain: %q is not a date", text).WithHint("write NODE@YYYY-MM-DD with an existing business date, or an instance's slot")}
	}
	e.Date = &d
	return nil
}

// find gives the node behind a name; nil and true for a source.
func (x *explainer) find(name string) (*lineage.Node, bool) {
	if n := x.model.Node(name); n != nil {
		return n, true
	}
	if rest, ok := strings.CutPrefix(name, x.model.Project.Name+"."); ok {
		if n := x.model.Node(rest); n != nil {
			return n, true
		}
	}
	if i := x.model.Producer(name); i >= 0 {
		return x.model.Nodes[i], true
	}
	for _, n := range x.model.Nodes {
		if n.IsTable() {
			for _, w := range n.Table.Nodes {
				if strings.EqualFold(w.Name, name) {
					return n, true
				}
			}
		}
	}
	for _, s := range x.model.Project.Sources {
		if strings.EqualFold(s.Table, name) {
			return nil, true
		}
	}
	return nil, false
}

func (x *explainer) fieldOf(n *lineage.Node, name string, e *Explanation) diag.List {
	known := n.ReadableNames()
	if n.IsTable() {
		for _, f := range n.Table.Fields {
			known = append(known, f.Name)
		}
		known = append(known, n.Table.Key...)
	}
	for _, f := range known {
		if strings.EqualFold(f, name) {
			e.Field = f
			return nil
		}
	}
	return diag.List{diag.Errorf("unknown_field", "--explain: %s has no field %q", n.Name, name).
		WithHint("%s", diag.DidYouMean(name, known, "`retrofill show "+n.Name+"` lists the fields"))}
}

func (e *Explanation) fact(name, format string, args ...any) {
	e.Facts = append(e.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

func (e *Explanation) answer(in bool, reason, format string, args ...any) {
	e.In, e.Reason, e.Because = in, reason, fmt.Sprintf(format, args...)
}

// node says why a node is in the plan.
func (x *explainer) node(e *Explanation, pn *plan.Node) {
	switch {
	case pn.Why == "stale":
		var why []string
		for _, f := range pn.Fields {
			if f.Written && f.Because != "" && !slices.Contains(why, f.Because) {
				why = append(why, f.Because)
			}
		}
		e.answer(true, "stale", "it is stale on the selected dates: %s", cmp.Or(someOf(why), pn.Because))
	case pn.Level == 0 && pn.Why == "selected" && !slices.ContainsFunc(x.req.Nodes, func(s string) bool { return strings.EqualFold(s, pn.Name) }):
		e.answer(true, "selected", "--select '%s' takes it as a current node", strings.Join(x.req.Select, "' '"))
	case pn.Level == 0 && pn.Why == "selected":
		e.answer(true, "selected", "it is a current node: the command names it")
	case pn.Level < 0:
		e.answer(true, "upstream", "%s above %s: %s", levelsText(-pn.Level), x.current(), strings.TrimPrefix(pn.Why, "upstream: "))
	case pn.Level > 0:
		e.answer(true, "downstream", "%s below %s: %s", levelsText(pn.Level), x.current(), pn.Why)
	default:
		e.answer(true, "recommended", "%s", pn.Why)
	}
	if pn.Level > 0 {
		if path := x.path(pn.Name); len(path) > 2 {
			e.fact("path", "%s", strings.Join(path, " → "))
		}
	}
	x.writes(e, pn, "")
	if pn.Writes == nil && pn.Because != "" {
		e.fact("runs", "%s: %s", pn.Strategy, pn.Because)
	}
	for _, s := range pn.Steps {
		e.fact("step", "%s, %s: %s", instancesText(s.Instances), dateRanges(s.Dates), stepText(s))
	}
	if pn.SkipIf != "" {
		e.fact("skip if", "%s", pn.SkipIf)
	}
	if pn.Paused {
		e.fact("paused", "its instances stay pending until it is unpaused")
	}
	for _, need := range pn.Needs {
		because := ""
		if need.Because != "" {
			because = " (" + need.Because + ")"
		}
		e.fact("needs", "%s, %s%s", need.Node, strings.ReplaceAll(need.Kind, "_", " "), because)
	}
	var readers []string
	for _, r := range x.plan.Nodes {
		if r.Name != pn.Name && slices.ContainsFunc(r.Needs, func(d plan.Edge) bool { return d.Node == pn.Name }) {
			readers = append(readers, r.Name)
		}
	}
	if len(readers) > 0 {
		e.fact("needed by", "%s", someOf(readers))
	}
}

// writes says what is written of a node, or of one field.
func (x *explainer) writes(e *Explanation, pn *plan.Node, field string) {
	for _, w := range pn.Writes {
		if field != "" && !containsFold(w.Fields, field) {
			continue
		}
		because := cmp.Or(w.Because, pn.Because)
		if because != "" {
			because = " (" + because + ")"
		}
		if field != "" {
			e.fact("written in", "%s: %s%s", w.Node, action(w.Action), because)
			continue
		}
		e.fact("writes", "%s: %s%s: %s", w.Node, action(w.Action), because, someOf(w.Fields))
	}
}

// field says why a field of a node of the plan is written or not.
func (x *explainer) field(e *Explanation, n *lineage.Node, pn *plan.Node) {
	for _, f := range pn.Fields {
		if !strings.EqualFold(f.Name, e.Field) {
			continue
		}
		why := cmp.Or(f.Because, strings.ReplaceAll(strings.Join(f.Reasons, ", "), "_", " "))
		if !f.Written {
			e.answer(false, "kept", "it is stored beside written fields in %s: it is copied, not computed", someOf(f.Nodes))
			e.fact("because", "%s", why)
			return
		}
		if why == "selected" {
			why = "--fields selects it"
		}
		e.answer(true, "written", "%s", why)
		x.writes(e, pn, f.Name)
		e.fact("table", "%s is in the plan: %s", pn.Name, pn.Why)
		return
	}
	if containsFold(n.Table.Key, e.Field) {
		e.answer(true, "key", "it is a key column: every materialization node that is rewritten holds it")
		x.writes(e, pn, "")
		return
	}
	for _, r := range x.plan.Recommended {
		if strings.EqualFold(r.Table, n.Name) && strings.EqualFold(r.Field, e.Field) && !r.Taken {
			e.answer(false, "recommended", "it is recommended and was not taken: %s", cmp.Or(r.Detail, strings.ReplaceAll(r.Reason, "_", " ")))
			e.Hint = "add --recommended all, or --recommended " + r.Field
			return
		}
	}
	switch {
	case slices.ContainsFunc(n.Table.Fields, func(f modeling.FieldSpec) bool { return f.Paused && strings.EqualFold(f.Name, e.Field) }):
		e.answer(false, "paused", "the field is paused in the project")
	case x.req.Stale:
		e.answer(false, "current", "it is current on the selected dates")
	case pn.Level > 0:
		x.readsInstead(e, n, e.Field)
	case pn.Level < 0:
		e.answer(false, "not_read", "nothing that the plan writes reads it")
	default:
		e.answer(false, "not_selected", "--fields selects %s, and none of it requires this field", someOf(x.req.Fields))
		e.Hint = "add it to --fields"
	}
	e.fact("table", "%s is in the plan: %s", pn.Name, pn.Why)
	if w := written(pn); len(w) > 0 {
		e.fact("written", "%s", someOf(w))
	}
}

// registered answers for a registered field; false = it is none.
func (x *explainer) registered(e *Explanation, n *lineage.Node) bool {
	if !n.IsTable() {
		return false
	}
	from, registered := "", false
	if r, ok := n.RegisteredField(e.Field); ok {
		from, registered = r.Table+"."+r.Column, true
	}
	for _, f := range n.Table.Fields {
		if strings.EqualFold(f.Name, e.Field) && f.Registered != "" {
			from, registered = cmp.Or(from, f.Registered), true
		}
	}
	if !registered {
		return false
	}
	e.answer(false, "registered_field", "it is a registered field, mapped from %s: others fill it, and no backfill of %s writes it", from, n.Name)
	if k := strings.LastIndexByte(from, '.'); k > 0 {
		if i := x.model.Producer(from[:k]); i >= 0 {
			up := x.model.Nodes[i].Name
			if _, in := x.index[up]; in {
				e.fact("filled by", "%s, which is in the plan", up)
			} else {
				e.fact("filled by", "%s, which is not in the plan", up)
				e.Hint = "backfill " + up + " to fill it"
			}
		}
	}
	return true
}

// date says what happens on a date of a node of the plan.
func (x *explainer) date(e *Explanation, i int) {
	d, pn := *e.Date, &x.plan.Nodes[i]
	what := e.Because
	if !slices.Contains(x.plan.Dates, d) {
		x.outsideDates(e, d)
		e.Facts = []Fact{{"node", what}}
		return
	}
	ex, err := plan.NewExpander(x.plan)
	if err != nil {
		e.answer(false, "broken", "%v", err)
		return
	}
	k := ex.Step(i, d)
	if k < 0 {
		e.answer(false, "current", "no step of it covers %s", d)
		return
	}
	if slots := ex.Slots(i, d); e.Slot != "" {
		if !slices.ContainsFunc(slots, func(s bizdate.Slot) bool { return !s.SubDaily || s.ID() == e.Slot }) {
			e.answer(false, "outside_window", "%s has no slot %s in this plan; on %s it has %s", pn.Name, e.Slot, d, instancesText(len(slots)))
			e.Facts = []Fact{{"node", what}}
			return
		}
	} else if len(slots) == 0 {
		e.answer(false, "outside_window", "none of its slots of %s lies in the time window", d)
		return
	}
	s := &pn.Steps[k]
	facts := []Fact{{"node", what}}
	for _, f := range e.Facts {
		switch f.Name {
		case "step", "runs":
		case "writes", "written in":
			if s.Strategy == plan.DryRun || s.Writes != nil {
				continue
			}
			facts = append(facts, f)
		default:
			facts = append(facts, f)
		}
	}
	e.Facts = facts
	switch {
	case s.Strategy == plan.DryRun && strings.HasPrefix(s.Because, "not scheduled"):
		e.answer(true, "not_scheduled", "on %s its instance succeeds without running: %s", d, s.Because)
		return
	case s.Strategy == plan.DryRun && x.req.Stale && s.Because == "current":
		e.answer(true, "current", "on %s its instance succeeds without running: nothing of it is stale there", d)
		return
	case s.Strategy == plan.DryRun:
		e.answer(true, "dry_run", "on %s its instance succeeds without running: %s", d, s.Because)
		return
	}
	if e.Field != "" && s.Writes != nil && !slices.ContainsFunc(s.Writes, func(w plan.Write) bool { return containsFold(w.Fields, e.Field) }) {
		e.answer(false, "current", "on %s other fields of %s are refreshed, this one is current", d, pn.Name)
		return
	}
	e.answer(true, "real", "on %s it runs: %s", d, stepText(*s))
	for _, w := range s.Writes {
		e.fact("writes", "%s: %s: %s", w.Node, action(w.Action), someOf(w.Fields))
	}
	for _, need := range pn.Needs {
		if lo, hi := x.plan.Reads(need, d); lo <= hi && (lo != d || hi != d) {
			e.fact("reads", "%s of %s", dateRanges([]plan.DateRange{{From: lo, To: hi}}), need.Node)
		}
	}
}

// outsideDates says why a date is none of the plan's.
func (x *explainer) outsideDates(e *Explanation, d bizdate.Date) {
	dates := slices.Clone(x.plan.Dates)
	slices.Sort(dates)
	s := x.req.Selection
	switch {
	case len(dates) == 0:
		e.answer(false, "outside_dates", "the plan has no dates")
	case x.req.Stale && len(s.Lists) == 0 && (s.Start == "" || s.Start <= d.String()) && (s.End == "" || d.String() <= s.End):
		e.answer(false, "current", "nothing that the plan looks at is stale on %s, or nothing of it was ever built there", d)
		return
	case s.Start <= d.String() && d.String() <= s.End && len(s.Weekdays)+len(s.MonthDays) > 0:
		rule := "--weekdays " + strings.Join(s.Weekdays, ",")
		if len(s.Weekdays) == 0 {
			rule = "--monthdays " + strings.Join(s.MonthDays, ",")
		} else if len(s.MonthDays) > 0 {
			rule += " with --monthdays " + strings.Join(s.MonthDays, ",")
		}
		e.answer(false, "outside_dates", "%s, a %s, lies in the range, but %s leaves it out", d, d.Weekday(), rule)
	default:
		e.answer(false, "outside_dates", "%s is none of the selected dates, %s", d, rangesText(dates))
	}
	e.Hint = "select it with --start-date and --end-date, or --dates"
}
