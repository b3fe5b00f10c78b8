package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// passFields closes the selected fields over co-location and over readers and
// sources of the requested levels (semantics §4, §5.1).
func passFields(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	nodes := b.reach()
	// What is taken as a whole needs no comparison with what built it.
	compare := b.req.FieldsGiven || b.req.Upstream != 0 || b.downstream() != 0
	tables := make([]fields.Table, 0, len(nodes))
	changed := map[string]changes{}
	for _, n := range nodes {
		t := FieldTable(b.deps.Model, n)
		if n.IsTable() && n.Analysis != nil && compare {
			c := b.changesOf(n)
			changed[n.Name] = c
			t.KeyChanged, t.RowSetChanged = when(c.key), when(c.rowSet)
			t.Changed = map[string]fields.When{}
			for f, list := range c.fields {
				if w := when(b.unaccepted(n, f, list)); w != nil {
					t.Changed[f] = w
				}
			}
			if b.req.FieldsGiven && b.isTarget(n) {
				t.Differences = b.differences(ctx, n, c)
			}
		}
		tables = append(tables, t)
	}
	m, err := fields.New(tables)
	if err != nil {
		return fmt.Errorf("planner: index fields: %w", err)
	}
	b.model = m
	for _, t := range b.targets {
		b.closeTarget(t, changed)
	}
	sortPicked(b.picked)
	for _, p := range b.picked {
		b.diags = append(b.diags, p.node.Diagnostics...)
		for _, in := range p.node.Inputs {
			if in.Node >= 0 && len(in.References) > 0 {
				b.diags = append(b.diags, b.deps.Model.Nodes[in.Node].Diagnostics.Errors()...)
			}
		}
		if p.node.IsTable() && p.node.Analysis == nil && !p.node.Diagnostics.HasErrors() {
			b.errorf("broken_table", "%s cannot be analysed", p.node.Name).Pos = p.node.Pos()
		}
	}
	b.leftUnknown()
	return nil
}

// leftUnknown warns of tables that may be downstream but cannot be analysed:
// what they read is not known, so that they are silently out of reach.
func (b *build) leftUnknown() {
	if b.downstream() == 0 {
		return
	}
	for _, n := range b.deps.Model.Nodes {
		if b.listed != nil && !b.listed.Has(n.Position) || !n.IsTable() || n.Analysis != nil || slices.ContainsFunc(b.picked, func(p *picked) bool { return p.node == n }) {
			continue
		}
		d := diag.Warnf("broken_downstream", "%s has problems of its own and is left out: whether it reads what is refreshed is not known", n.Name).
			At(n.Pos()).WithHint("`retrofill validate` shows the problems; mend them and plan again, or refresh %s later", n.Name)
		b.diags = append(b.diags, d)
	}
}

// taskOutput stands for what a task writes: readers of its output tables read
// this one field of it.
const taskOutput = "(output)"

// FieldTable describes a node for the field closure. What is read of a task's
// output table counts as read of the task.
func FieldTable(m *lineage.Model, n *lineage.Node) fields.Table {
	t := fields.Table{Name: n.Name}
	producer := func(name string) string {
		if i := m.Producer(name); i >= 0 {
			return m.Nodes[i].Name
		}
		return name
	}
	ref := func(table, column string) []fields.Ref {
		i := m.Producer(table)
		if i >= 0 && !m.Nodes[i].IsTable() {
			return []fields.Ref{{Table: m.Nodes[i].Name, Field: taskOutput}}
		}
		refs := []fields.Ref{{Table: table, Field: column}}
		if i < 0 {
			return refs
		}
		if r, ok := m.Nodes[i].RegisteredField(column); ok { // what fills it is read
			if k := m.Producer(r.Table); k >= 0 {
				refs = append(refs, fields.Ref{Table: m.Nodes[k].Name, Field: taskOutput})
			}
		}
		return refs
	}
	everything := func() {
		for _, in := range n.Inputs {
			t.From = append(t.From, producer(in.Name))
			t.RowSetReads = append(t.RowSetReads, fields.Ref{Table: producer(in.Name), Field: fields.AnyField})
		}
	}
	if !n.IsTable() {
		t.FullOnly = true
		t.Fields = []string{taskOutput}
		everything()
		return t
	}
	t.Key, t.Primary = n.Table.Key, n.Table.Parent
	if up := m.Node(t.Primary); t.Primary != "" && up != nil {
		t.Primary = up.Name // as declared
	}
	for _, f := range n.FieldNames() {
		if !containsFold(t.Key, f) {
			t.Fields = append(t.Fields, f)
		}
	}
	for _, f := range n.Table.Fields {
		if f.Registered != "" {
			t.Registered = append(t.Registered, f.Name)
		}
		if f.Paused {
			t.Paused = append(t.Paused, f.Name)
		}
	}
	for _, m := range n.Table.Nodes {
		t.Nodes = append(t.Nodes, fields.Node{Name: m.Name, Fields: m.Fields})
	}
	a := n.Analysis
	if a == nil {
		t.FullOnly = true
		return t
	}
	for _, in := range n.Inputs {
		if in.Parameter || len(in.Declared) > 0 {
			t.From = append(t.From, producer(in.Name))
		}
	}
	if a.Unsplittable != nil {
		t.FullOnly = true
		everything()
		return t
	}
	for _, s := range a.RowSet.Sources {
		t.From = append(t.From, producer(s))
	}
	for _, r := range a.RowSet.Reads {
		t.RowSetReads = append(t.RowSetReads, ref(r.Table, r.Column)...)
	}
	t.Reads = map[string][]fields.Ref{}
	for _, f := range a.Fields {
		for _, r := range f.Reads {
			t.Reads[f.Name] = append(t.Reads[f.Name], ref(r.Table, r.Column)...)
		}
	}
	return t
}

// differences puts the definition changes that refuse specified fields in
// words (semantics §4.2).
func (b *build) differences(ctx context.Context, n *lineage.Node, c changes) map[string]string {
	out := map[string]string{}
	say := func(reason string, list []change, what string) {
		first, ok := firstChange(list, b.dates)
		if !ok {
			return
		}
		var dates []bizdate.Date
		for _, d := range b.dates { // those that the same definition built
			if slices.ContainsFunc(list, func(x change) bool {
				return x.from <= d && d <= x.to && x.record.Definition == first.record.Definition && x.record.Backfill == first.record.Backfill
			}) {
				dates = append(dates, d)
			}
		}
		text := fmt.Sprintf("%s of %s differs from the one that %s built %s with", what, n.Name, first.record.Backfill, rangesText(dates))
		out[reason] = text + b.difference(ctx, n, first.record, strings.TrimPrefix(what, "the "))
	}
	say(fields.PKChanged, c.key, "the key")
	for _, k := range n.Table.Key {
		if len(c.key) == 0 {
			say(fields.PKChanged, c.fields[k], "the key")
		}
	}
	say(fields.RowSetChanged, c.rowSet, "the row set")
	if n.Analysis.Unsplittable != nil {
		out[fields.Unsplittable] = n.Analysis.Unsplittable.Reason
	}
	return out
}

// closeTarget picks a current node with what its closure gives. A node that is
// taken whole below another one brings nothing new below itself.
func (b *build) closeTarget(t *lineage.Node, changed map[string]changes) {
	if p := b.byNode[t]; p != nil && p.whole && b.req.Upstream == 0 && b.downstream() == AllLevels && b.below == nil {
		p.level, p.why = 0, "selected"
		return
	}
	b.close(t, changed)
}

// close runs the closure of one current node and picks what it gives.
func (b *build) close(t *lineage.Node, changed map[string]changes) {
	req := fields.Request{
		Table: t.Name, Full: !b.req.FieldsGiven, Dates: b.dates,
		Accept: fields.ParseAccept(b.req.Recommended), Upstream: b.req.Upstream, Downstream: b.downstream(),
		DownstreamWhole: b.req.DownstreamWhole, IncludePaused: b.req.IncludePaused,
	}
	req.Accept.Names = append(req.Accept.Names, b.req.RecommendedNames...)
	for _, f := range b.req.Fields {
		req.Select = append(req.Select, declaredName(t, f))
	}
	if b.below != nil {
		req.Below = func(table string) bool { return b.below.Has(b.deps.Model.Node(table).Position) }
	}
	req.Column = func(table, node string) bool { return b.byColumn(table, node) }
	res, diags := b.model.Close(req)
	b.diags = append(b.diags, diags...)
	if diags.HasErrors() {
		return
	}
	for _, r := range res.Accepted {
		b.plan.Recommended = append(b.plan.Recommended, plan.Recommended{Table: r.Table, Field: r.Field, Reason: r.Kind, Dates: plan.Ranges(r.Dates), Taken: true})
	}
	for _, r := range res.Recommended {
		detail := ""
		if c, ok := firstChange(changed[r.Table].fields[r.Field], b.dates); ok {
			detail = builtBy(c)
		}
		b.plan.Recommended = append(b.plan.Recommended, plan.Recommended{Table: r.Table, Field: r.Field, Reason: r.Kind, Detail: detail, Dates: plan.Ranges(r.Dates)})
	}
	b.pick(res.Target, "selected")
	for _, r := range res.Also {
		b.pick(r, "recommended key taken")
	}
	for _, r := range res.Downstream {
		b.pick(r, reasonText(r.Because, r.Fields))
	}
	for _, r := range res.Upstream {
		r.Level = -r.Level
		if r.Rows {
			r.TableResult = b.withAnchor(r.TableResult)
		}
		b.pick(r.TableResult, "upstream: "+upstreamText(r.Because, r.Fields))
	}
	for _, l := range res.LeftOut {
		b.plan.LeftOut = append(b.plan.LeftOut, leftOut(l))
	}
}

// withAnchor adds the anchoring node of a table whose rows are read: readers
// find no row in a table whose anchor was never built.
func (b *build) withAnchor(r fields.TableResult) fields.TableResult {
	n := b.deps.Model.Node(r.Table)
	if n == nil || !n.IsTable() || r.Whole {
		return r
	}
	for _, m := range n.Table.Nodes {
		if !m.Anchor || slices.ContainsFunc(r.Nodes, func(w fields.Write) bool { return w.Node == m.Name }) {
			continue
		}
		r.Nodes = append([]fields.Write{{Node: m.Name, Fields: m.Fields}}, r.Nodes...)
		for _, f := range m.Fields {
			if !slices.ContainsFunc(r.Fields, func(x fields.Field) bool { return x.Name == f }) {
				why := r.Because
				if len(why) == 0 {
					why = []fields.Reason{{Code: fields.RowSet, Via: fields.Ref{Table: r.Table, Field: fields.AnyField}}}
				}
				r.Fields = append(r.Fields, fields.Field{Name: f, Reasons: why})
			}
		}
	}
	return r
}

// pick adds a node to the plan, or joins it with what is there.
func (b *build) pick(r fields.TableResult, why string) {
	n := b.deps.Model.Node(r.Table)
	if n == nil {
		return
	}
	p, ok := b.byNode[n]
	if !ok {
		p = &picked{node: n, level: r.Level, why: why, whole: r.Whole || !n.IsTable(), fields: r.Fields, writes: r.Nodes}
		b.picked, b.byNode[n] = append(b.picked, p), p
		return
	}
	if abs(r.Level) < abs(p.level) || r.Level == 0 {
		p.level, p.why = r.Level, why
	}
	if p.whole {
		return
	}
	if r.Whole {
		p.whole, p.fields, p.writes = true, r.Fields, r.Nodes
		return
	}
	for _, f := range r.Fields {
		if j := slices.IndexFunc(p.fields, func(x fields.Field) bool { return x.Name == f.Name }); j < 0 {
			p.fields = append(p.fields, f)
		} else if p.fields[j].Kept && !f.Kept {
			p.fields[j] = f
		}
	}
	for _, w := range r.Nodes {
		if j := slices.IndexFunc(p.writes, func(x fields.Write) bool { return x.Node == w.Node }); j < 0 {
			p.writes = append(p.writes, w)
		} else if !w.Column {
			p.writes[j] = w
		} else if p.writes[j].Column {
			for _, f := range w.Fields {
				if !slices.Contains(p.writes[j].Fields, f) {
					p.writes[j].Fields = append(p.writes[j].Fields, f)
				}
			}
			p.writes[j].Kept = slices.DeleteFunc(p.writes[j].Kept, func(f string) bool { return slices.Contains(p.writes[j].Fields, f) })
		}
	}
}

func abs(n int) int { return max(n, -n) }

// declaredName gives a field's name as the table declares it.
func declaredName(n *lineage.Node, name string) string {
	for _, f := range append(n.ReadableNames(), n.Table.Key...) {
		if strings.EqualFold(f, name) {
			return f
		}
	}
	return name
}

// builtBy puts a change in words.
func builtBy(c change) string {
	return fmt.Sprintf("logic changed since %s (built by %s)", c.from, c.record.Backfill)
}

// reasonText puts the reasons of a table in words: the tables that its rows
// depend on, and the first few fields that its own fields read.
func reasonText(because []fields.Reason, list []fields.Field) string {
	var rows, reads, other []string
	add := func(to *[]string, s string) {
		if s != "" && !slices.Contains(*to, s) {
			*to = append(*to, s)
		}
	}
	for _, r := range because {
		switch {
		case r.Note != "":
			add(&other, strings.ReplaceAll(r.Note, "_", " "))
		case r.Code == fields.RowSet:
			add(&rows, r.Via.Table)
		case r.Code == fields.Reader:
			add(&reads, via(r.Via))
		}
	}
	for _, f := range list {
		for _, r := range f.Reasons {
			if r.Code == fields.Reader {
				add(&reads, via(r.Via))
			}
		}
	}
	var parts []string
	if len(rows) > 0 {
		parts = append(parts, "its rows depend on "+strings.Join(rows, ", "))
	}
	if n := len(reads); n > 0 {
		const most = 3
		if n > most {
			reads = append(reads[:most], fmt.Sprintf("%d more", n-most))
		}
		parts = append(parts, "reads "+strings.Join(reads, ", "))
	}
	return strings.Join(append(parts, other...), "; ")
}

func via(r fields.Ref) string {
	if r.Field == "" || r.Field == fields.AnyField || r.Field == taskOutput {
		return r.Table
	}
	return r.Table + "." + r.Field
}

// upstreamText names the readers of an upstream table.
func upstreamText(because []fields.Reason, list []fields.Field) string {
	var readers []string
	add := func(r fields.Reason) {
		if (r.Code == fields.RowSet || r.Code == fields.Reader) && r.Via.Table != "" && !slices.Contains(readers, r.Via.Table) {
			readers = append(readers, r.Via.Table)
		}
	}
	for _, r := range because {
		add(r)
	}
	for _, f := range list {
		for _, r := range f.Reasons {
			add(r)
		}
	}
	return "read by " + strings.Join(readers, ", ")
}

func leftOut(l fields.LeftOut) plan.LeftOut {
	if len(l.Paused) > 0 {
		return plan.LeftOut{Node: l.Table, Reason: "paused", Detail: "paused fields would be written: " + strings.Join(l.Paused, ", ")}
	}
	return plan.LeftOut{Node: l.Table, Reason: "below_paused", Detail: "below " + via(l.Via)}
}
