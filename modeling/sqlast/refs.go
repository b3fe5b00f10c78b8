package sqlast

import (
	"sort"
	"strings"
)

// walkTables calls f for every base table reference below q, CTE names
// included.
func walkTables(q *astQuery, f func(*astRef)) {
	w := tableWalk{visit: func(r *astRef, _ map[string]bool) { f(r) }}
	w.query(q, nil)
}

// tableWalk visits base table references with the CTE names visible there.
type tableWalk struct {
	visit func(*astRef, map[string]bool)
}

func (w tableWalk) query(q *astQuery, ctes map[string]bool) {
	if q == nil {
		return
	}
	if len(q.CTEs.Map) > 0 || q.Type == "RECURSIVE_CTE_NODE" {
		inner := map[string]bool{}
		for k := range ctes {
			inner[k] = true
		}
		if q.Type == "RECURSIVE_CTE_NODE" {
			inner[strings.ToLower(q.CTEName)] = true
		}
		for _, c := range q.CTEs.Map {
			w.query(c.Value.Query.Node, copySet(inner))
			inner[strings.ToLower(c.Key)] = true
		}
		ctes = inner
	}
	w.query(q.Left, ctes)
	w.query(q.Right, ctes)
	w.ref(q.From, ctes)
	for _, es := range [][]*astExpr{q.SelectList, q.Groups, {q.Where, q.Having, q.Qualify}} {
		w.exprs(es, ctes)
	}
	for _, m := range q.Modifiers {
		w.modifier(m, ctes)
	}
}

func copySet(m map[string]bool) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}

func (w tableWalk) modifier(m *astModifier, ctes map[string]bool) {
	if m == nil {
		return
	}
	w.exprs(m.DistinctOn, ctes)
	w.exprs([]*astExpr{m.Limit, m.Offset}, ctes)
	w.orders(m.Orders, ctes)
}

func (w tableWalk) orders(os []astOrder, ctes map[string]bool) {
	for _, o := range os {
		w.expr(o.Expr, ctes)
	}
}

func (w tableWalk) ref(r *astRef, ctes map[string]bool) {
	if r == nil {
		return
	}
	if r.Type == "BASE_TABLE" {
		w.visit(r, ctes)
	}
	w.ref(r.Left, ctes)
	w.ref(r.Right, ctes)
	w.ref(r.Source, ctes)
	w.query(r.Query, ctes)
	if r.Subquery != nil {
		w.query(r.Subquery.Node, ctes)
	}
	w.exprs([]*astExpr{r.Condition, r.Function}, ctes)
	for _, row := range r.Values {
		w.exprs(row, ctes)
	}
}

func (w tableWalk) exprs(es []*astExpr, ctes map[string]bool) {
	for _, e := range es {
		w.expr(e, ctes)
	}
}

func (w tableWalk) expr(e *astExpr, ctes map[string]bool) {
	if e == nil {
		return
	}
	if e.Subquery != nil {
		w.query(e.Subquery.Node, ctes)
	}
	w.exprs(e.Children, ctes)
	w.exprs([]*astExpr{e.Filter, e.Child, e.Else, e.Left, e.Right, e.Input, e.Lower, e.Upper, e.Expr,
		e.StartExpr, e.EndExpr, e.OffsetExpr, e.DefaultExpr, e.WindowFilter}, ctes)
	for _, c := range e.Checks {
		w.exprs([]*astExpr{c.When, c.Then}, ctes)
	}
	for _, r := range e.Replace {
		w.expr(r.Value, ctes)
	}
	w.exprs(e.Partitions, ctes)
	w.orders(e.Orders, ctes)
	w.orders(e.ArgOrders, ctes)
	w.modifier(e.OrderBys, ctes)
}

// references lists every place of the text that names a table, in text order.
func (a *analyzer) references(root *astQuery) []Reference {
	lx := newLexer(a.def.SQL)
	var out []Reference
	seen := map[int]bool{}
	w := tableWalk{visit: func(r *astRef, ctes map[string]bool) {
		if r.Schema == "" && r.Catalog == "" && ctes[strings.ToLower(r.Table)] {
			return
		}
		parts := tableParts(r)
		ref := Reference{Table: a.prep.restore(strings.Join(parts, ".")), Alias: r.Alias}
		if t, ok := a.schema.lookup(parts); ok {
			ref.Table, ref.Known, ref.Logical = t.Name, true, t.Logical
		}
		if off := a.loc(r.Loc); off >= 0 && !seen[off] {
			seen[off] = true
			i := lx.at(off)
			if i < len(lx.toks) {
				ref.Name = Span{lx.toks[i].start, lx.toks[lx.qualifiedEnd(i)-1].end}
			}
			out = append(out, ref)
		}
	}}
	w.query(root, nil)
	sort.Slice(out, func(i, j int) bool { return out[i].Name.Start < out[j].Name.Start })
	return out
}

// useReferences fills in who reads what through each reference, and which
// predicates limit it.
func (a *analyzer) useReferences(an *Analysis, l *level, rows, key *deps, fields []*deps) {
	at := map[int]int{}
	for i, r := range an.References {
		at[r.Name.Start] = i
	}
	byInst := map[*instance]int{}
	for _, i := range a.instances {
		if n, ok := at[i.loc]; ok && i.table != nil {
			byInst[i] = n
		}
	}
	cols := make([]map[string]bool, len(an.References))
	rowCols := make([]map[string]bool, len(an.References))
	for i := range cols {
		cols[i], rowCols[i] = map[string]bool{}, map[string]bool{}
	}
	use := func(d *deps, hit func(n int)) {
		for i := range d.rows {
			if n, ok := byInst[i]; ok {
				hit(n)
			}
		}
		for i, cs := range d.cols {
			n, ok := byInst[i]
			if !ok {
				continue
			}
			hit(n)
			for c := range cs {
				cols[n][c] = true
			}
		}
	}
	for _, d := range []*deps{rows, key} {
		use(d, func(n int) { an.References[n].RowSet = true })
		for i, cs := range d.cols {
			if n, ok := byInst[i]; ok {
				for c := range cs {
					rowCols[n][c] = true
				}
			}
		}
	}
	for k, d := range fields {
		use(d, func(n int) { an.References[n].Fields = append(an.References[n].Fields, an.Fields[k].Name) })
	}
	preds := newPredicates(a)
	preds.level(l, nil)
	for i := range an.References {
		r := &an.References[i]
		r.Fields = sortedUnique(r.Fields)
		r.Columns, r.RowColumns = sortedKeys(cols[i]), sortedKeys(rowCols[i])
	}
	preds.fill(an.References, byInst)
}

// snapshot copies the tables that a definition names.
func (a *analyzer) snapshot(refs []Reference) SchemaSnapshot {
	var out SchemaSnapshot
	seen := map[string]bool{}
	for _, r := range refs {
		if t, ok := a.schema.Lookup(r.Table); ok && !seen[t.Name] {
			seen[t.Name] = true
			out = append(out, *t)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// whole describes an unsplittable definition: its text and everything it names
// decide rows and fields together.
func (a *analyzer) whole(root *astQuery) *Analysis {
	an := &Analysis{Version: FormatVersion, Definition: a.def, Unsplittable: a.unsplittable}
	if root != nil {
		an.References = a.references(root)
		for root.Left != nil {
			root = root.Left
		}
		for _, s := range root.SelectList {
			switch {
			case s.Alias != "":
				an.Fields = append(an.Fields, Field{Name: a.prep.restore(s.Alias)})
			case s.Class == "COLUMN_REF":
				an.Fields = append(an.Fields, Field{Name: s.Names[len(s.Names)-1]})
			}
		}
	} else {
		an.References = a.scanReferences()
	}
	for i := range an.References {
		r := &an.References[i]
		r.RowSet, r.AllColumns = true, true
		if r.Known {
			an.RowSet.Sources = append(an.RowSet.Sources, r.Table)
		}
	}
	an.RowSet.Sources = sortedUnique(an.RowSet.Sources)
	an.RowSet.Canonical, an.RowSet.Params = a.canonicalTokens()
	an.RowSet.Fingerprint = fingerprint(an.RowSet.Canonical)
	for _, k := range a.def.Key {
		an.RowSet.Key = append(an.RowSet.Key, strings.ToLower(k))
	}
	an.RowSet.Key = sortedUnique(an.RowSet.Key)
	an.RowSet.KeyCanonical = strings.Join(an.RowSet.Key, "\n")
	an.RowSet.KeyFingerprint = fingerprint(an.RowSet.KeyCanonical)
	an.Schema = a.snapshot(an.References)
	for _, t := range an.Schema {
		for _, c := range t.Columns {
			an.RowSet.Reads = append(an.RowSet.Reads, ColumnRef{t.Name, c.Name})
		}
	}
	return an
}

// canonicalTokens writes the text without white space, comments and letter
// case of words, parameters by what they mean.
func (a *analyzer) canonicalTokens() (string, []string) {
	lx := newLexer(a.def.SQL)
	var parts, names []string
	for i, t := range lx.toks {
		s := lx.str(i)
		if s == ";" {
			continue
		}
		if strings.Contains(s, "${") {
			n, c := a.params.describe(s)
			names = append(names, n...)
			s = c
		} else if t.kind == tokWord {
			s = strings.ToLower(s)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " "), sortedUnique(names)
}

// scanReferences finds table names in a text that has no tree (PIVOT as a
// statement): names of the schema that are no column or function there.
func (a *analyzer) scanReferences() []Reference {
	lx := newLexer(a.def.SQL)
	var out []Reference
	for i := 0; i < len(lx.toks); i++ {
		if k := lx.toks[i].kind; k != tokWord && k != tokQuoted || lx.is(i-1, ".") {
			continue
		}
		end := lx.qualifiedEnd(i)
		span := Span{lx.toks[i].start, lx.toks[end-1].end}
		t, ok := a.schema.Lookup(a.def.SQL[span.Start:span.End])
		if !ok || lx.is(end, "(") {
			continue
		}
		out = append(out, Reference{Table: t.Name, Known: true, Logical: t.Logical, Name: span})
		i = end - 1
	}
	return out
}
