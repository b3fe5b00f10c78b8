package planner

import (
	"context"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/stale"
)

// NothingStale is the code of the warning of a plan of what is stale that has
// nothing to do: it holds no node.
const NothingStale = "nothing_stale"

// stalePasses gives the passes of a plan of what is stale: which nodes, fields
// and dates follows from the ledger instead of the request.
func stalePasses() []pass {
	return []pass{
		{"request", passRequest},
		{"stale dates", passStaleDates},
		{"stale", passStale},
		{"left out", passLeaveOut},
		{"left out", passLeaveOut},
		{"sources", passSources},
		{"dependencies", passDependencies},
		{"preflight", passPreflight},
		{"strategy", passStrategy},
		{"stale reasons", passStaleReasons},
		{"compile", passCompile},
		{"running", passRunning},
		{"partitions", passPartitions},
		{"prepare", passPrepare},
		{"estimate", passEstimate},
		{"name", passName},
	}
}

// part is some dates of a node on which the same is written.
type part struct {
	dates   []bizdate.Date // ascending
	whole   bool
	fields  []fields.Field
	writes  []fields.Write
	because string
	whys    map[string]string // by materialization node
}

// checkStale refuses options that contradict a plan of what is stale.
func (b *build) checkStale() {
	if !b.req.Stale {
		return
	}
	for _, c := range []struct {
		flag  string
		given bool
	}{
		{"--fields", b.req.FieldsGiven}, {"--upstream", b.req.Upstream != 0}, {"--downstream", b.req.Downstream != 0},
		{"--recommended", b.req.Recommended != ""}, {"--dry-run-this-node", b.req.DryRunThisNode},
		{"--names-file, --ids-file and --outputs-file", b.req.lists()},
		{"--from-time and --to-time", b.req.WindowFrom != "" || b.req.WindowTo != ""},
	} {
		if c.given {
			b.errorf("usage", "--stale and %s contradict each other", c.flag).
				Hint = "--stale finds fields, nodes and dates by itself; name tables and dates to narrow it"
		}
	}
}

// passStaleDates reads the dates to look at: the selected ones, if any are.
func passStaleDates(_ context.Context, b *build) error {
	s := b.req.Selection
	if b.req.Groups == 0 {
		b.req.Groups = 1
	}
	b.plan.Order = string(s.Direction)
	if b.plan.Order == "" {
		b.plan.Order = string(bizdate.Asc)
	}
	if s.Start == "" && s.End == "" && len(s.Lists) == 0 && len(s.Weekdays) == 0 && len(s.MonthDays) == 0 {
		return nil
	}
	dates, diags := s.Select(bizdate.Clock{Now: b.deps.Now, RunAt: b.req.RunAt, Zone: b.deps.Model.Zone})
	b.diags = append(b.diags, diags...)
	slices.Sort(dates)
	b.dates = dates
	return nil
}

// everyDate is wider than any business date.
const everyDate = 4_000_000 // days

// loadStale reads the records that the matrix needs: of the tables looked at
// (all, where none is named) and of what they read.
func (b *build) loadStale(ctx context.Context) error {
	from, to := bizdate.Date(-everyDate), bizdate.Date(everyDate)
	if len(b.dates) > 0 {
		from, to = b.dates[0]-staleLookBack, b.dates[len(b.dates)-1]+lookAhead
	}
	var nodes []string
	wanted := map[int]bool{}
	for _, n := range b.targets {
		wanted[n.Position] = true
		for _, in := range n.Inputs {
			wanted[in.Node] = true
		}
	}
	for _, n := range b.deps.Model.Nodes {
		if len(b.targets) > 0 && !wanted[n.Position] {
			continue
		}
		if !n.IsTable() {
			nodes = append(nodes, n.Name)
			continue
		}
		for _, m := range n.Table.Nodes {
			nodes = append(nodes, m.Name)
		}
	}
	return b.load(ctx, nodes, from, to)
}

// staleLookBack is how many days before the selection inputs are looked at.
const staleLookBack = 400

// facts gives what was loaded as the matrix takes it.
func (b *build) facts() stale.Facts {
	f := stale.Facts{Definitions: map[string]plan.Definition{}}
	for id, d := range b.defs {
		f.Definitions[id] = d
	}
	for id, d := range b.plan.Definitions {
		f.Definitions[id] = d
	}
	for _, list := range b.records {
		for i := range list {
			r := &list[i]
			s := stale.Record{Node: r.Node, From: r.Date, To: r.DateTo, Fields: r.Fields, Definition: r.Definition,
				Build: r.Build, Began: r.Began, Backfill: r.Backfill, BuiltAt: r.BuiltAt}
			if r.SlotFrom != r.Date.String() {
				s.Slot = r.SlotFrom
			}
			f.Records = append(f.Records, s)
		}
	}
	for _, a := range b.accepted {
		f.Acceptances = append(f.Acceptances, stale.Acceptance{Table: a.Table, Fields: a.Fields, Before: a.Before, Definition: a.Definition})
	}
	return f
}

// passStale finds what is stale, table by table in dependency order. What the
// plan refreshes makes its readers stale, too.
func passStale(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	if err := b.loadStale(ctx); err != nil {
		return err
	}
	x := stale.New(b.deps.Model, b.facts())
	nodes, dates, derive := b.lookedAt(x)
	for i, n := range nodes {
		b.pickStale(x, n, dates[i], derive)
	}
	if len(b.picked) == 0 {
		b.idle = true
		what := ""
		if len(b.targets) > 0 {
			what = " in " + namesText(b.targets)
		}
		d := b.warnf(NothingStale, "nothing is stale%s", what)
		d.Detail = "on every date that was looked at, the stored values were built by today's logic from today's inputs"
		d.Hint = "`retrofill fields TABLE` shows field by date"
		if len(b.dates) == 0 {
			d.Hint = "without dates, those are looked at on which the table was built; select dates to find others"
		}
		return nil
	}
	b.staleDates()
	return nil
}

// lookedAt gives the tables to look at in dependency order, their dates, and a
// deriver that knows all of them.
func (b *build) lookedAt(x *stale.Index) ([]*lineage.Node, [][]bizdate.Date, *lineage.Deriver) {
	var nodes []*lineage.Node
	var dates [][]bizdate.Date
	all := map[bizdate.Date]bool{}
	held := map[int]string{} // paused, or below
	for _, n := range b.deps.Model.Nodes {
		if !n.IsTable() {
			continue
		}
		for _, in := range n.Inputs {
			if by, ok := held[in.Node]; ok && in.Node >= 0 && in.Node != n.Position {
				held[n.Position] = by
			}
		}
		if b.isPaused(n) && !b.req.IncludePaused && b.req.PausedTasks != "run" && !b.isNamed(n) {
			held[n.Position] = n.Name
		}
		if len(b.targets) > 0 && !b.isTarget(n) {
			continue
		}
		if b.excluded != nil && b.excluded.Has(n.Position) {
			b.plan.LeftOut = append(b.plan.LeftOut, plan.LeftOut{Node: n.Name, Reason: "excluded", Detail: "--exclude " + strings.Join(b.req.Exclude, " ")})
			continue
		}
		if n.Analysis == nil || n.Diagnostics.HasErrors() {
			if b.isTarget(n) {
				b.diags = append(b.diags, n.Diagnostics...)
			}
			b.plan.LeftOut = append(b.plan.LeftOut, plan.LeftOut{Node: n.Name, Reason: "broken", Detail: "it cannot be analysed; `retrofill validate` tells why"})
			continue
		}
		if by, ok := held[n.Position]; ok {
			l := plan.LeftOut{Node: n.Name, Reason: "paused"}
			if by != n.Name {
				l.Reason, l.Detail = "below_paused", "below "+by
			}
			b.plan.LeftOut = append(b.plan.LeftOut, l)
			continue
		}
		list := StaleDates(x, n, b.dates)
		if len(list) == 0 {
			continue
		}
		for _, d := range list {
			all[d] = true
		}
		nodes, dates = append(nodes, n), append(dates, list)
	}
	union := make([]bizdate.Date, 0, len(all))
	for d := range all {
		union = append(union, d)
	}
	return nodes, dates, lineage.NewDeriver(b.deps.Model, union)
}

// StaleDates gives the dates of a table to look at: those selected on which it
// is scheduled, or all recorded ones when none is selected.
func StaleDates(x *stale.Index, n *lineage.Node, selected []bizdate.Date) []bizdate.Date {
	if len(selected) == 0 {
		return x.Recorded(n)
	}
	return slices.DeleteFunc(slices.Clone(selected), func(d bizdate.Date) bool { return !n.Schedule.Scheduled(d) })
}

// pickStale adds a table to the plan if anything of it is stale.
func (b *build) pickStale(x *stale.Index, n *lineage.Node, dates []bizdate.Date, derive *lineage.Deriver) {
	j := x.Judge(n, dates, derive)
	t := j.Table()
	reads := slices.ContainsFunc(n.Inputs, func(in lineage.Input) bool { return in.Node == n.Position })
	paused := b.pausedFields(n)
	var parts []part
	for before := -1; ; {
		parts = parts[:0]
		total := 0
		for _, s := range t.Stale() {
			if s.Fields = slices.DeleteFunc(s.Fields, func(f string) bool { return slices.Contains(paused, f) }); len(s.Fields) == 0 && !s.Rows {
				continue
			}
			p, ok := b.stalePart(n, s)
			if !ok {
				return
			}
			if held := writtenOf(p.fields, paused); len(held) > 0 {
				b.plan.LeftOut = append(b.plan.LeftOut, plan.LeftOut{Node: n.Name, Reason: "paused", Detail: "paused fields would be written: " + strings.Join(held, ", ")})
				return
			}
			parts = append(parts, p)
			total += len(p.dates) * len(p.fields)
			for _, w := range p.writes {
				x.Planned(w.Node, w.Fields, p.whole, p.dates)
			}
		}
		if !reads || total == before {
			break // what it writes makes no other date of itself stale
		}
		before = total
		t = j.Table()
	}
	if len(parts) == 0 {
		return
	}
	p := &picked{node: n, why: "stale", parts: parts, whole: true}
	for i := range parts {
		p.whole = p.whole && parts[i].whole
		p.real = append(p.real, parts[i].dates...)
	}
	for _, x := range parts {
		p.join(x)
	}
	slices.Sort(p.real)
	b.say(p, t)
	b.picked, b.byNode[n] = append(b.picked, p), p
}

// pausedFields gives the fields that are not to be written (semantics §4.7).
func (b *build) pausedFields(n *lineage.Node) []string {
	if b.req.IncludePaused || b.isNamed(n) {
		return nil
	}
	var out []string
	for _, f := range n.Table.Fields {
		if f.Paused {
			out = append(out, f.Name)
		}
	}
	return out
}

// writtenOf gives the fields of a list that are written.
func writtenOf(list []fields.Field, of []string) []string {
	var out []string
	for _, f := range list {
		if !f.Kept && slices.Contains(of, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}

// join adds a part's fields and writes to those of the node.
func (p *picked) join(x part) {
	for _, f := range x.fields {
		if i := slices.IndexFunc(p.fields, func(y fields.Field) bool { return y.Name == f.Name }); i < 0 {
			p.fields = append(p.fields, f)
		} else if p.fields[i].Kept && !f.Kept {
			p.fields[i] = f
		}
	}
	for _, w := range x.writes {
		i := slices.IndexFunc(p.writes, func(y fields.Write) bool { return y.Node == w.Node })
		if i < 0 {
			w.Fields, w.Kept = slices.Clone(w.Fields), slices.Clone(w.Kept)
			p.writes = append(p.writes, w)
			continue
		}
		have := &p.writes[i]
		have.Column = have.Column && w.Column
		for _, f := range w.Fields {
			if !slices.Contains(have.Fields, f) {
				have.Fields = append(have.Fields, f)
			}
		}
		have.Kept = slices.DeleteFunc(have.Kept, func(f string) bool { return slices.Contains(have.Fields, f) })
	}
}

// stalePart closes the stale fields of some dates over co-location, and chooses
// for each node between column refresh and rewrite.
func (b *build) stalePart(n *lineage.Node, s stale.Part) (part, bool) {
	t := FieldTable(b.deps.Model, n)
	m, err := fields.New([]fields.Table{t})
	if err != nil {
		b.errorf("internal", "%v", err)
		return part{}, false
	}
	whole := s.Rows || t.FullOnly
	all := b.dates
	b.dates = s.Dates // what whyNotColumn looks at
	defer func() { b.dates = all }()
	res, diags := m.Close(fields.Request{
		Table: n.Name, Full: whole, Select: s.Fields, Dates: s.Dates,
		Column: func(table, node string) bool { return b.byColumn(table, node) },
	})
	if diags.HasErrors() {
		b.diags = append(b.diags, diags...)
		return part{}, false
	}
	p := part{dates: s.Dates, whole: whole, fields: res.Target.Fields, writes: res.Target.Nodes, whys: map[string]string{}}
	for i := range p.writes {
		w := &p.writes[i]
		if w.Column && len(w.Kept) == 0 && b.req.Refresh != "column" {
			w.Column = false // keeps nothing: the rewrite of the same cells is cheaper
		}
		why := b.staleBecause(n, *w, whole, s.Rows)
		p.whys[w.Node] = why
		if p.because == "" || w.Column {
			p.because = why
		}
	}
	return p, true
}

// staleBecause tells why a node is written as it is.
func (b *build) staleBecause(n *lineage.Node, w fields.Write, whole, rows bool) string {
	switch {
	case rows:
		return "its rows are stale"
	case whole:
		return "the table can only be refreshed as a whole"
	case w.Column:
		return "key declared, rows unchanged"
	}
	if why := b.whyNotColumn(n, w.Node); why != "" {
		return why
	}
	return "every field of the node is refreshed"
}

// staleDates makes the plan's dates: those on which anything is stale. A node
// that has nothing to do on one of them succeeds without executing.
func (b *build) staleDates() {
	all := map[bizdate.Date]bool{}
	for _, p := range b.picked {
		for _, d := range p.real {
			all[d] = true
		}
	}
	b.dates = b.dates[:0:0]
	for d := range all {
		b.dates = append(b.dates, d)
	}
	slices.Sort(b.dates)
	b.plan.Dates = slices.Clone(b.dates)
	b.req.Selection.Direction.Sort(b.plan.Dates)
	cut, diags := groups.Split(b.plan.Dates, b.req.Groups, b.req.Selection.Direction)
	b.diags = append(b.diags, diags...)
	b.plan.Groups = cut
	for _, p := range b.picked {
		real := p.realDates()
		p.real = p.real[:0]
		for _, d := range b.plan.Dates {
			if real[d] {
				p.real = append(p.real, d)
			} else {
				p.dry = append(p.dry, d)
			}
		}
		p.dryWhy = "current"
	}
	if len(b.targets) == 0 {
		for _, p := range b.picked {
			b.targets = append(b.targets, p.node) // for names and messages
		}
	}
}
