package sqlast

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// from analyses a FROM tree. outer is the scope that its subqueries and table
// functions may be correlated with: what stands to the left, then the
// enclosing queries.
func (a *analyzer) from(r *astRef, outer *scope) (*from, *relation) {
	if r == nil || r.Type == "EMPTY" {
		return &from{one: true, most1: true}, &relation{}
	}
	if present(r.Sample) {
		bare := *r
		bare.Sample = nil
		f, rel := a.from(&bare, outer)
		return &from{inner: []*from{f}, sample: true, text: string(r.Sample), keys: f.keys, most1: f.most1}, rel
	}
	switch r.Type {
	case "BASE_TABLE":
		return a.baseTable(r, outer)
	case "SUBQUERY":
		l := a.query(r.Subquery.Node, outer, outer.ctes)
		return a.derived(l, r.Alias, r.ColumnAliases)
	case "JOIN":
		return a.join(r, outer)
	case "TABLE_FUNCTION":
		return a.tableFunction(r, outer)
	case "EXPRESSION_LIST":
		return a.valuesList(r, outer)
	case "PIVOT":
		a.unsplit("pivot", r.Loc, "PIVOT: the data decides which fields exist")
	case "SHOW_REF":
		a.unsplit("external_read", r.Loc, "DESCRIBE and SHOW read the engine's catalog")
	default:
		a.unsplit("unsupported_syntax", r.Loc, "FROM item of type %s is not understood", r.Type)
	}
	return &from{}, &relation{}
}

func single(src *source) *relation { return &relation{cols: src.cols, sources: []*source{src}} }

// newInstance numbers a use of a row source.
func (a *analyzer) newInstance(i instance) *instance {
	i.n = len(a.instances) + 1
	p := &i
	a.instances = append(a.instances, p)
	return p
}

func (a *analyzer) baseTable(r *astRef, outer *scope) (*from, *relation) {
	if r.Schema == "" && r.Catalog == "" {
		if c := outer.ctes.find(strings.ToLower(r.Table)); c != nil {
			l := a.query(c.body, c.scope, c.env)
			names := c.aliases
			if len(r.ColumnAliases) > 0 {
				names = append(append([]string(nil), r.ColumnAliases...), tail(c.aliases, len(r.ColumnAliases))...)
			}
			alias := r.Alias
			if alias == "" {
				alias = r.Table
			}
			return a.derived(l, alias, names)
		}
	}
	parts := tableParts(r)
	t, ok := a.schema.lookup(parts)
	if !ok {
		a.unknownTable(strings.Join(parts, "."), a.loc(r.Loc))
		src := &source{alias: strings.ToLower(aliasOf(r)), closed: strings.Join(parts, ".")}
		return &from{}, single(src)
	}
	inst := a.newInstance(instance{table: t, loc: a.loc(r.Loc), alias: aliasOf(r)})
	f := &from{inst: inst}
	if present(r.At) {
		f.text = string(r.At)
	}
	src := &source{alias: strings.ToLower(aliasOf(r))}
	if r.Alias == "" {
		for _, p := range parts[:len(parts)-1] {
			src.path = append(src.path, strings.ToLower(p))
		}
	}
	byName := map[string]*expr{}
	for i, c := range t.Columns {
		e := a.mk(expr{op: opCol, inst: inst, text: c.Name, typ: normalType(c.Type)})
		byName[strings.ToLower(c.Name)] = e
		name := c.Name
		if i < len(r.ColumnAliases) {
			name = r.ColumnAliases[i]
		}
		src.cols = append(src.cols, visible{name: name, e: e, src: src})
	}
	for _, k := range t.Unique {
		key := uniqueKey{strict: true, nulls: true}
		for _, c := range k {
			e, ok := byName[strings.ToLower(c)]
			if !ok {
				key.exprs = nil
				break
			}
			key.exprs = append(key.exprs, e)
		}
		if len(key.exprs) > 0 {
			f.keys = append(f.keys, key)
		}
	}
	return f, single(src)
}

func tail(s []string, n int) []string {
	if n >= len(s) {
		return nil
	}
	return s[n:]
}

func tableParts(r *astRef) []string {
	var parts []string
	for _, p := range []string{r.Catalog, r.Schema, r.Table} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

func aliasOf(r *astRef) string {
	if r.Alias != "" {
		return r.Alias
	}
	return r.Table
}

// unknownTable reports a table that no one declared; a file name makes the
// table unsplittable instead.
func (a *analyzer) unknownTable(name string, off int) {
	name = a.prep.restore(name)
	lower := strings.ToLower(name)
	if strings.ContainsAny(lower, "/*?") || strings.HasSuffix(lower, ".csv") || strings.HasSuffix(lower, ".parquet") ||
		strings.HasSuffix(lower, ".json") || strings.HasSuffix(lower, ".jsonl") || strings.HasSuffix(lower, ".ndjson") ||
		strings.HasSuffix(lower, ".gz") || strings.HasSuffix(lower, ".tsv") || strings.HasSuffix(lower, ".xlsx") {
		a.unsplit("external_read", noLocation, "the file %s is read without a declared source", quoteText(name))
		return
	}
	var names []string
	if a.schema != nil {
		names = a.schema.names
	}
	a.problemAt("unknown_table", off, "unknown table %q", name).
		hint("%s", diag.DidYouMean(name, names, "declare it as a source, or define a logical table of this name"))
}

// derived makes a FROM item of a query.
func (a *analyzer) derived(l *level, alias string, names []string) (*from, *relation) {
	src := &source{alias: strings.ToLower(alias)}
	for i, o := range l.outputs {
		name := o.name
		if i < len(names) {
			name = names[i]
		}
		src.cols = append(src.cols, visible{name: name, e: o.e, src: src})
	}
	return &from{level: l, keys: l.keys, one: l.one, most1: l.most1}, single(src)
}

func (a *analyzer) tableFunction(r *astRef, outer *scope) (*from, *relation) {
	name := strings.ToLower(r.Function.Function)
	if !makesRows(name) {
		a.unsplit("external_read", r.Loc, "the table function %s reads something that is no declared source", name)
		return &from{}, &relation{}
	}
	sc := outer.child()
	args := a.exprs(r.Function.Children, sc)
	label := name
	if r.WithOrdinality == "WITH_ORDINALITY" {
		label += " with ordinality"
	}
	alias := r.Alias
	if alias == "" {
		alias = name
	}
	inst := a.newInstance(instance{function: label, args: args, loc: -1, alias: alias})
	src := &source{alias: strings.ToLower(alias)}
	col := func(n int, name string) {
		src.cols = append(src.cols, visible{name: name, e: a.mk(expr{op: opCol, inst: inst, text: "#" + itoa(n)}), src: src})
	}
	for i, n := range r.ColumnAliases {
		col(i, n)
	}
	switch name {
	case "range", "generate_series", "repeat":
		if len(r.ColumnAliases) == 0 {
			col(0, name)
		}
	case "unnest":
		if len(r.ColumnAliases) == 0 {
			col(0, name)
		}
		src.open = src.cols[0].e // a struct list gives more columns
	default:
		src.open = a.mk(expr{op: opCol, inst: inst, text: "#all"})
	}
	if r.WithOrdinality == "WITH_ORDINALITY" && len(r.ColumnAliases) < 2 {
		col(1, "ordinality")
	}
	return &from{inst: inst}, single(src)
}

func (a *analyzer) valuesList(r *astRef, outer *scope) (*from, *relation) {
	inst := a.newInstance(instance{function: "values", loc: -1, alias: r.Alias, rows: len(r.Values)})
	src := &source{alias: strings.ToLower(r.Alias)}
	if len(r.Values) == 0 {
		return &from{inst: inst}, single(src)
	}
	for i := range r.Values[0] {
		var vals []*expr
		for _, row := range r.Values {
			if i < len(row) {
				vals = append(vals, a.expr(row[i], outer))
			}
		}
		name := "col" + itoa(i)
		if i < len(r.ColumnAliases) {
			name = r.ColumnAliases[i]
		}
		// The instance keeps the reads of a correlated list apart from the text.
		e := a.mk(expr{op: opFn, text: "values", args: vals, inst: inst, typ: commonType(vals)})
		src.cols = append(src.cols, visible{name: name, e: e, src: src})
	}
	return &from{inst: inst}, single(src)
}

// expandStar gives the columns that a star means.
func (a *analyzer) expandStar(e *astExpr, sc *scope) []visible {
	var cols []visible
	rel := sc.rel
	for s := sc; rel == nil && s != nil; s = s.parent {
		rel = s.rel
	}
	if rel == nil {
		return nil
	}
	if e.Relation == "" {
		cols = rel.cols
		for _, src := range rel.sources {
			if src.open != nil && len(src.cols) == 0 {
				a.unsplit("dynamic_columns", e.Loc, "the columns of %s are not known", src.alias)
			}
		}
	} else if src := a.findSource(e.Relation, sc); src != nil {
		cols = src.cols
	} else if cols = a.structColumns(e, sc); cols == nil {
		return nil
	}
	out := make([]visible, 0, len(cols))
	for _, c := range cols {
		if excluded(e, c) {
			continue
		}
		for _, r := range e.Replace {
			if equalFold(r.Key, c.name) {
				c.e = a.expr(r.Value, sc)
			}
		}
		for _, r := range e.Rename {
			if equalFold(r.Key.Column, c.name) && (r.Key.Table == "" || c.src != nil && equalFold(r.Key.Table, c.src.alias)) {
				c.name = r.Value
			}
		}
		out = append(out, c)
	}
	return out
}

// structColumns expands `s.*` over a struct column of declared type.
func (a *analyzer) structColumns(e *astExpr, sc *scope) []visible {
	if !a.resolves([]string{e.Relation}, sc) {
		a.problem("unknown_table", e.Loc, "unknown table %q before .*", e.Relation).hint("use the alias of a table in FROM")
		return nil
	}
	x := a.column([]string{e.Relation}, sc, e.Loc)
	var out []visible
	for _, f := range structFields(x.typ) {
		out = append(out, visible{name: f, e: a.fn("struct_extract", "", x, a.mk(expr{op: opConst, text: quoteText(strings.ToLower(f)), typ: "VARCHAR"}))})
	}
	if out == nil {
		a.unsplit("dynamic_columns", e.Loc, "%s.* unpacks a struct whose fields are not declared", e.Relation)
	}
	return out
}

// structFields reads the field names of a type like STRUCT(a INTEGER, b TEXT).
func structFields(typ string) []string {
	inner, ok := strings.CutPrefix(typ, "STRUCT(")
	if !ok || !strings.HasSuffix(inner, ")") {
		return nil
	}
	lx := newLexer(inner[:len(inner)-1])
	depths := lx.depths()
	var out []string
	for i := range lx.toks {
		if i == 0 || depths[i] == 0 && lx.is(i-1, ",") {
			out = append(out, unquoteIdent(lx.str(i)))
		}
	}
	return out
}

func excluded(e *astExpr, c visible) bool {
	for _, x := range e.Exclude {
		if equalFold(x, c.name) {
			return true
		}
	}
	for _, x := range e.QualifiedExclude {
		if equalFold(x.Column, c.name) && (x.Table == "" || c.src != nil && equalFold(x.Table, c.src.alias)) {
			return true
		}
	}
	return false
}

func (a *analyzer) findSource(name string, sc *scope) *source {
	parts := identParts(name)
	for s := sc; s != nil; s = s.parent {
		if s.rel == nil {
			continue
		}
		for _, src := range s.rel.sources {
			if equalFold(src.alias, name) || len(parts) > 0 && src.matches(parts) {
				return src
			}
		}
	}
	return nil
}
