package load

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// builder turns what one file says into modeling values and checks what can
// be checked without the other files; refs are left for the project.
type builder struct {
	file  string
	owner string // node that the file describes
	diags diag.List
	refs  []reference
}

func (b *builder) report(d diag.Diagnostic) { b.diags = append(b.diags, d) }

// reference is a name that must exist in the project.
type reference struct {
	what     string // table, task, node, from, parent, reads
	word     word
	from     string // node that refers
	param    string // what = from: the parameter read there
	sameSlot bool   // what = table, task, node: the same cycle is needed
}

// table builds one logical table.
func (b *builder) table(r rawTable, g group) *modeling.Table {
	t := &modeling.Table{
		Name: stem(g.base), Kind: modeling.Kind(r.Kind.Text), Description: r.Description.Text, Owner: r.Owner.Text,
		Tags: b.tags(r.Tags), Schedule: b.schedule(r.Schedule), Config: config(r.Config, r.Meta),
		Paused: r.Paused, DryRun: r.DryRun, LifecycleDays: days(r.Lifecycle), SkipIf: r.SkipIf.Text, SkipIfPos: r.SkipIf.Pos,
		SQL: g.sql.text, SQLFile: g.sql.path, YAMLFile: g.yaml.path, Pos: r.at("table"),
	}
	name := word{Text: t.Name, Pos: r.Pos}
	if r.has("table") {
		name = r.Table
	}
	if b.goodName(name, tableWord) {
		t.Name = name.Text
	}
	b.owner = t.Name
	if t.Kind == "" {
		t.Kind = kindOf(g.base)
		if r.has("compose") {
			t.Kind = modeling.Summary
		}
	}
	for engine, f := range g.variants {
		if t.SQLByEngine == nil {
			t.SQLByEngine = map[string]string{}
		}
		t.SQLByEngine[engine] = f.text
	}
	t.Partition = b.partition(r.Partition)
	t.Key, t.KeyPos = b.names(r.Key, "key column")
	b.composition(r, g, t)
	t.Params = b.params(r.Params)
	t.DependsOn = b.dependencies(r.DependsOn)
	if b.goodParent(r, t.Kind) {
		t.Parent = r.Parent.Text
		b.refs = append(b.refs, reference{what: "parent", word: r.Parent, from: t.Name})
	}
	b.fields(r, t)
	b.nodes(r, t)
	b.checks(r.Checks, t)
	b.keyRules(r, t)
	return t
}

func (b *builder) goodParent(r rawTable, kind modeling.Kind) bool {
	if !r.has("parent") || !b.goodName(r.Parent, "parent") {
		return false
	}
	if kind != modeling.Dimension {
		b.report(diag.Errorf("bad_value", "a %s table has no parent", kind).At(r.Parent.Pos).
			WithHint("remove the key, or write kind: dimension"))
		return false
	}
	return true
}

// keyRules checks what the key must be, given kind, partition and nodes.
func (b *builder) keyRules(r rawTable, t *modeling.Table) {
	for i, k := range t.Key {
		if isPartition(t, k) {
			b.report(diag.Errorf("partition_in_key", "key column %q is a partition column", clip(k)).At(t.KeyPos[i]).
				WithHint("remove it: the key is unique inside one partition"))
		}
	}
	if len(t.Key) > 0 || len(r.Key) > 0 {
		return
	}
	why := ""
	switch {
	case t.Kind == modeling.Dimension:
		why = "a dimension"
	case len(t.Nodes) > 1:
		why = "a table with several materialization nodes"
	default:
		return
	}
	b.report(diag.Errorf("no_key", "%s needs a key", why).At(r.at("key")).
		WithDetail("nodes and readers are joined on key and partition").WithHint("add key: [column, …]"))
}

func isPartition(t *modeling.Table, name string) bool {
	return slices.ContainsFunc(t.Partition, func(p modeling.PartitionColumn) bool { return strings.EqualFold(p.Name, name) })
}

func (b *builder) fields(r rawTable, t *modeling.Table) {
	if len(r.Fields) == 0 {
		return
	}
	seen := make(map[string]bool, len(r.Fields))
	t.Fields = make([]modeling.FieldSpec, 0, len(r.Fields))
	for _, e := range r.Fields {
		if !b.goodName(e.Key, "field") {
			continue
		}
		if seen[fold(e.Key.Text)] {
			b.report(diag.Errorf("duplicate_value", "field %q is described twice", clip(e.Key.Text)).At(e.Key.Pos).
				WithHint("keep one of the two (letter case does not count)"))
			continue
		}
		seen[fold(e.Key.Text)] = true
		f := modeling.FieldSpec{
			Name: e.Key.Text, Type: e.Value.Type.Text, Description: e.Value.Description.Text,
			Registered: e.Value.Registered.Text, Paused: e.Value.Paused, Tags: b.tags(e.Value.Tags), Pos: e.Key.Pos,
			RegisteredPos: e.Value.Registered.Pos,
		}
		if e.Value.has("registered") {
			w := e.Value.Registered
			if w.Pos.Line > 0 && !registeredForm(w.Text) {
				b.report(diag.Errorf("bad_value", "%q is not table.column", clip(w.Text)).At(w.Pos).
					WithHint("write the table and the column that someone else fills, such as src.ratings.score"))
			}
			if table, _, ok := f.RegisteredColumn(); ok && w.Pos.Line > 0 && registeredForm(w.Text) {
				b.refs = append(b.refs, reference{what: "registered", word: word{Text: table, Pos: w.Pos}, from: t.Name})
			}
			if t.IsKey(f.Name) {
				b.report(diag.Errorf("registered_field", "key column %q cannot be a registered field", clip(f.Name)).At(e.Value.at("registered")).
					WithHint("a key belongs to the row set, which the SELECT computes"))
			}
		}
		t.Fields = append(t.Fields, f)
	}
}

func registeredForm(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return i > 0 && i < len(s)-1
}

// nodes builds the materialization nodes: without any, one that holds all
// fields; without an anchor, the first one is it.
func (b *builder) nodes(r rawTable, t *modeling.Table) {
	anchors := 0
	for _, n := range r.Materialize {
		node := modeling.MaterializationNode{Name: n.Node.Text, Anchor: n.Anchor, At: n.At.Text, Pos: n.at("node")}
		if n.has("node") {
			b.goodName(n.Node, nodeWord)
		}
		node.Fields, node.FieldPos = b.names(n.Fields, "field")
		for i, f := range node.Fields {
			b.stored(t, f, node.FieldPos[i])
		}
		if n.Anchor {
			if anchors++; anchors > 1 {
				b.report(diag.Errorf("bad_anchor", "a second node anchors the row set").At(n.at("anchor")).
					WithHint("exactly one node is the anchor; remove anchor: true here or there"))
			}
		}
		if node.At != "" && (t.Schedule.Cycle == modeling.Hourly || t.Schedule.Cycle == modeling.Minute) {
			b.report(diag.Errorf("bad_schedule", `"at" does not fit a node of a %s table`, t.Schedule.Cycle).At(n.at("at")).WithHint("remove it"))
		}
		t.Nodes = append(t.Nodes, node)
	}
	switch {
	case len(t.Nodes) == 0:
		t.Nodes = []modeling.MaterializationNode{{Name: t.Name + "__main", Anchor: true, AllFields: true, Fields: []string{}, Pos: t.Pos}}
	case anchors == 0:
		if i := slices.IndexFunc(r.Materialize, func(n rawNode) bool { return n.has("anchor") }); i >= 0 && len(t.Nodes) == 1 {
			b.report(diag.Errorf("bad_anchor", "no node anchors the row set").At(r.Materialize[i].at("anchor")).
				WithHint("the only node is the anchor; remove anchor: false"))
		}
		t.Nodes[0].Anchor = true
	}
}

// stored reports a field that a node cannot hold.
func (b *builder) stored(t *modeling.Table, f string, at diag.Pos) {
	switch {
	case t.IsKey(f):
		b.report(diag.Errorf("key_in_node", "%q is a key column", clip(f)).At(at).
			WithHint("remove it from fields: every node holds the key"))
	case isPartition(t, f):
		b.report(diag.Errorf("partition_in_node", "%q is a partition column", clip(f)).At(at).
			WithHint("remove it from fields: every node holds the partition columns"))
	default:
		for _, s := range t.Fields {
			if s.Registered != "" && strings.EqualFold(s.Name, f) {
				b.report(diag.Errorf("registered_field", "%q is a registered field: someone else stores it", clip(f)).At(at).
					WithHint("remove it from fields of the node, or remove registered of the field"))
			}
		}
	}
}

func (b *builder) checks(list []rawCheck, t *modeling.Table) {
	for _, r := range list {
		c := modeling.Check{Pos: r.Pos}
		given := 0
		for _, k := range []string{"not_null", "unique", "accepted_values", "rows_between", "sql"} {
			if r.has(k) {
				given++
				c.Kind, c.Pos = k, r.at(k)
			}
		}
		if given != 1 {
			b.report(diag.Errorf("bad_value", "a check says exactly one thing, not %d", given).At(r.Pos).
				WithHint("write one of not_null, unique, accepted_values, rows_between, sql a list entry"))
			continue
		}
		switch c.Kind {
		case "not_null":
			c.Fields, _ = b.names(r.NotNull, "field")
		case "unique":
			c.Fields, _ = b.names(r.Unique, "field")
		case "accepted_values":
			if b.goodName(r.Accepted.Field, "field") {
				c.Fields = []string{r.Accepted.Field.Text}
			}
			for _, v := range r.Accepted.Values {
				c.Values = append(c.Values, v.Text)
			}
		case "rows_between":
			if n := len(r.RowsBetween); n == 2 && r.RowsBetween[0] <= r.RowsBetween[1] {
				c.Min, c.Max = &r.RowsBetween[0], &r.RowsBetween[1]
			} else {
				b.report(diag.Errorf("bad_value", "rows_between needs the least and the greatest number of rows").At(c.Pos).
					WithHint("write rows_between: [500, 1200]"))
			}
		case "sql":
			if c.SQL = r.SQL.Text; r.SQL.Pos.Line > 0 && strings.TrimSpace(c.SQL) == "" {
				b.report(diag.Errorf("bad_value", "the SELECT of the check is empty").At(r.SQL.Pos).WithHint("write it or remove the check"))
			}
		}
		t.Checks = append(t.Checks, c)
	}
}

func (b *builder) partition(list []entry[rawPartition]) []modeling.PartitionColumn {
	var out []modeling.PartitionColumn
	seen := map[string]bool{}
	for _, e := range list {
		if !b.goodName(e.Key, "partition column") {
			continue
		}
		if seen[fold(e.Key.Text)] {
			b.report(diag.Errorf("duplicate_value", "partition column %q is written twice", clip(e.Key.Text)).At(e.Key.Pos).
				WithHint("keep one of the two (letter case does not count)"))
			continue
		}
		seen[fold(e.Key.Text)] = true
		v := e.Value.Value
		if v.Pos.Line > 0 && strings.TrimSpace(v.Text) == "" {
			b.report(diag.Errorf("bad_value", "the expression of partition column %q is empty", clip(e.Key.Text)).At(v.Pos).
				WithHint(`write an expression such as "${yyyy-mm-dd}"`))
		}
		out = append(out, modeling.PartitionColumn{Name: e.Key.Text, Expr: v.Text, Type: e.Value.Type.Text, Pos: e.Key.Pos})
	}
	return out
}

// params reads a parameter configuration, sorted by name. Its names and
// expressions are checked by modeling/param for the node that uses them.
func (b *builder) params(list []entry[rawParam]) []modeling.Param {
	var out []modeling.Param
	for _, e := range list {
		r := e.Value
		p := modeling.Param{
			Name: e.Key.Text, Value: r.Value.Text, Verbatim: r.Verbatim, Raw: r.Raw, Pos: e.Key.Pos,
			FromNode: r.From.Text, FromParam: r.Param.Text,
		}
		if r.has("default") {
			p.Default = &r.Default.Text
		}
		if r.has("lookback") {
			n := days(r.Lookback)
			p.LookbackDays = &n
		}
		p.Unassigned = r.Value.Null || r.Value.Pos.Line == 0 && p.FromNode == ""
		switch {
		case r.has("from") && r.has("value"):
			b.report(diag.Errorf("bad_value", "parameter %q has both a value and a producer", clip(p.Name)).At(r.at("value")).
				WithHint("keep value or from; a fallback for from is called default"))
		case r.has("from"):
			if b.goodName(r.From, "producer") {
				b.refs = append(b.refs, reference{what: "from", word: r.From, from: b.owner, param: cmp.Or(p.FromParam, p.Name)})
			}
		case r.has("param") || r.has("default") || r.has("lookback"):
			k := "param"
			if r.has("default") {
				k = "default"
			} else if r.has("lookback") {
				k = "lookback"
			}
			b.report(diag.Errorf("bad_value", "%q belongs to a cross-node parameter, which says from", k).At(r.at(k)).
				WithHint("add from: <task>, or write value instead"))
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, c modeling.Param) int { return cmp.Compare(a.Name, c.Name) })
	return out
}

func (b *builder) tags(list []word) []string {
	var out []string
	for _, w := range list {
		if b.goodName(w, "tag") && !slices.Contains(out, w.Text) {
			out = append(out, w.Text)
		}
	}
	slices.Sort(out)
	return out
}

// config joins the free mappings; meta stands under its own name, as in
// dbt's config.meta.KEY.
func config(conf, meta []entry[any]) map[string]any {
	if len(conf) == 0 && len(meta) == 0 {
		return nil
	}
	out := map[string]any{}
	for _, e := range conf {
		out[e.Key.Text] = e.Value
	}
	if len(meta) > 0 {
		m := map[string]any{}
		for _, e := range meta {
			m[e.Key.Text] = e.Value
		}
		out["meta"] = m
	}
	return out
}

// kindOf tells a table's kind by the nearest folder that names one.
func kindOf(base string) modeling.Kind {
	folders := strings.Split(path.Dir(base), "/")
	for _, f := range slices.Backward(folders) {
		switch strings.ToLower(f) {
		case "fact", "facts":
			return modeling.Fact
		case "dim", "dims", "dimension", "dimensions":
			return modeling.Dimension
		case "summary", "summaries":
			return modeling.Summary
		}
	}
	return modeling.Fact
}

func stem(base string) string { return path.Base(base) }
