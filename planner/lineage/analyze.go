package lineage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

// SourceTable is what the engine knows of a source.
type SourceTable struct {
	Columns []sqlast.Column
	Keys    [][]string
}

// Deps is what analysing works with.
type Deps struct {
	Project     *modeling.Project
	Environment string
	// EngineType picks the engine's variant of a SELECT where there is one.
	EngineType string
	Overrides  []param.Declared // --param
	Parser     sqlast.Parser
	Cache      Cache
	// Source asks the engine for a source's columns; false when it has none.
	Source func(ctx context.Context, table string) (SourceTable, bool, error)
}

// builder is a Model in the making.
type builder struct {
	deps          Deps
	dialect       param.Dialect
	projectParams []param.Declared
	model         *Model
	defs          []sqlast.Definition // by node before sorting; zero for tasks
	tables        [][]string          // names that each SELECT reads
	schema        map[string]sqlast.Table
	sums          map[string][]byte // digests of the schema's tables, made when asked for
	common        *shared
}

// Analyze analyses every table and task of a project. Problems of a node are
// kept with the node; those that make the whole model unusable (an unknown
// zone, a circle of tables) are in Model.Diagnostics. The error is for
// failures of the engine.
func Analyze(ctx context.Context, deps Deps) (*Model, error) {
	b := &builder{deps: deps, projectParams: Declared(deps.Project.Params), schema: map[string]sqlast.Table{}, sums: map[string][]byte{}}
	b.model = &Model{Project: deps.Project, index: map[string]int{}, outputs: map[string]int{}, Sources: map[string]sqlast.Table{}}
	var diags diag.List
	if b.dialect, diags = param.ParseDialect(deps.Project.Dialect); diags.HasErrors() {
		b.model.Diagnostics = append(b.model.Diagnostics, diags...)
	}
	zone, err := bizdate.LoadZone(deps.Project.Zone)
	if err != nil {
		b.model.Diagnostics = append(b.model.Diagnostics, diag.Errorf("bad_zone", "%v", err))
		zone, err = bizdate.LoadZone("UTC")
		if err != nil {
			return nil, fmt.Errorf("lineage: load zone: %w", err)
		}
	}
	b.model.Zone = zone
	b.collect()
	b.collisions()
	b.readTables(ctx)
	if err := b.sources(ctx); err != nil {
		return nil, err
	}
	b.registered()
	levels := b.order()
	for _, level := range levels {
		b.split(ctx, level)
	}
	b.reorder()
	for _, n := range b.model.Nodes {
		b.inputs(n)
		if n.IsTable() {
			n.Table.Relocate(n.Diagnostics)
		}
		n.Diagnostics.Sort()
	}
	return b.model, nil
}

// collect makes a node of every table and task, with its parameters,
// schedule, partitions and definition.
func (b *builder) collect() {
	p := b.deps.Project
	for _, t := range p.Tables {
		n := &Node{Name: t.Name, Kind: t.Kind, Table: t}
		b.nodeParams(n)
		b.schedule(n)
		parts, diags := partitions(n.Params, t.Partition)
		n.Partition = parts
		n.Diagnostics = append(n.Diagnostics, diags...)
		d := b.definition(n)
		b.code(n, d.SQL, t.CodeFile())
		b.model.Nodes = append(b.model.Nodes, n)
		b.defs = append(b.defs, d)
	}
	for _, t := range p.Tasks {
		n := &Node{Name: t.Name, Kind: t.Kind, Task: t}
		b.nodeParams(n)
		b.schedule(n)
		b.code(n, t.SQL, t.SQLFile)
		b.model.Nodes = append(b.model.Nodes, n)
		b.defs = append(b.defs, sqlast.Definition{})
	}
	b.reindex()
}

// code checks every placeholder of a node's SQL, where it stands in the
// author's own text (semantics §2.1).
func (b *builder) code(n *Node, sql, file string) {
	if !strings.Contains(sql, "${") {
		return
	}
	_, diags := param.ParseCode(param.Source{Text: sql, Pos: diag.Pos{File: file, Line: 1, Column: 1}}, n.Params)
	n.Diagnostics = append(n.Diagnostics, diags...)
}

func (b *builder) reindex() {
	clear(b.model.index)
	clear(b.model.outputs)
	for i, n := range b.model.Nodes {
		n.Position = i
		b.model.index[strings.ToLower(n.Name)] = i
		if n.Task != nil {
			for _, o := range n.Task.Outputs {
				b.model.outputs[strings.ToLower(o.Table)] = i
			}
		}
	}
}

// definition gives what defines a table's logic: the SELECT of the engine,
// the key, and the meaning of every parameter that the text may use.
func (b *builder) definition(n *Node) sqlast.Definition {
	t := n.Table
	sql := t.SQL
	if v, ok := t.SQLByEngine[b.deps.EngineType]; ok {
		sql = v
	}
	d := sqlast.Definition{SQL: sql, File: t.CodeFile(), Key: t.Key, Params: map[string]string{}}
	used := strings.ToLower(sql)
	for _, p := range n.Params.Params() {
		if p.Verbatim {
			d.Verbatim = append(d.Verbatim, p.Name)
			continue
		}
		if p.Expr != nil && strings.Contains(used, "${"+strings.ToLower(p.Name)+"}") {
			d.Params[p.Name] = p.Expr.Canonical()
		}
	}
	return d
}

// readTables finds the names of the tables that each SELECT reads.
func (b *builder) readTables(ctx context.Context) {
	b.deps.Parser = &remembering{parser: b.deps.Parser, trees: map[string]sqlast.ParseResult{}}
	b.tables = make([][]string, len(b.model.Nodes))
	var open []int
	var defs []sqlast.Definition
	for i, n := range b.model.Nodes {
		if !n.IsTable() {
			b.tables[i] = n.Task.Reads
			continue
		}
		if v, ok := b.deps.Cache.Get(tablesKey(b.defs[i])); ok {
			b.tables[i] = splitNames(v)
			continue
		}
		open = append(open, i)
		defs = append(defs, b.defs[i])
	}
	if len(open) == 0 {
		return
	}
	names, diags := sqlast.Tables(ctx, b.deps.Parser, defs)
	for k, i := range open {
		b.tables[i] = names[k]
		b.model.Nodes[i].Diagnostics = append(b.model.Nodes[i].Diagnostics, b.foreign(diags[k])...)
		if !diags[k].HasErrors() {
			b.deps.Cache.Put(tablesKey(b.defs[i]), joinNames(names[k]))
		}
	}
}

// sources puts the sources that anything reads into the schema: declared
// columns, else the engine's.
func (b *builder) sources(ctx context.Context) error {
	wanted := map[string]string{}
	for _, names := range b.tables {
		for _, n := range names {
			if _, logical := b.model.index[strings.ToLower(n)]; !logical {
				wanted[strings.ToLower(n)] = n
			}
		}
	}
	for _, t := range b.deps.Project.Tables {
		for _, f := range t.Fields {
			if table, _, ok := f.RegisteredColumn(); ok {
				if k := strings.ToLower(table); wanted[k] == "" {
					wanted[k] = table
				}
			}
		}
	}
	keys := make([]string, 0, len(wanted))
	for k := range wanted {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		t := sqlast.Table{Name: wanted[k]}
		src := b.deps.Project.Source(wanted[k])
		if src != nil {
			t.Name = src.Table
			t.Unique = append(t.Unique, src.Keys...)
			for _, c := range src.Columns {
				t.Columns = append(t.Columns, sqlast.Column{Name: c.Name, Type: c.Type})
			}
		}
		if len(t.Columns) == 0 {
			got, ok, err := b.deps.Source(ctx, t.Name)
			if err != nil {
				return fmt.Errorf("lineage: look up source %s: %w", t.Name, err)
			}
			if !ok && src == nil {
				continue // unknown: reported where it is read
			}
			t.Columns = got.Columns
			for _, key := range got.Keys {
				if !slices.ContainsFunc(t.Unique, func(u []string) bool { return slices.Equal(u, key) }) {
					t.Unique = append(t.Unique, key)
				}
			}
		}
		b.put(k, t)
		b.model.Sources[k] = t
	}
	return nil
}

// split analyses the tables of one level, from the cache where text and
// tables are the same as before.
func (b *builder) split(ctx context.Context, level []int) {
	type job struct {
		node int
		key  string
	}
	var jobs []job
	var defs []sqlast.Definition
	tables := map[string]sqlast.Table{}
	for _, i := range level {
		n := b.model.Nodes[i]
		if !n.IsTable() || n.Diagnostics.HasErrors() && b.tables[i] == nil {
			continue
		}
		if !b.readable(n, i) {
			continue
		}
		b.itself(ctx, n, i)
		key := b.analysisKey(i)
		if v, ok := b.deps.Cache.Get(key); ok {
			if a, err := sqlast.DecodeAnalysis(v); err == nil {
				a.Definition.File = b.defs[i].File
				b.done(n, a)
				continue
			}
		}
		for _, name := range b.tables[i] {
			if t, ok := b.schema[strings.ToLower(name)]; ok {
				tables[strings.ToLower(t.Name)] = t
			}
		}
		jobs = append(jobs, job{i, key})
		defs = append(defs, b.defs[i])
	}
	if len(jobs) == 0 {
		return
	}
	list := make([]sqlast.Table, 0, len(tables))
	for _, t := range tables {
		list = append(list, t)
	}
	for k, r := range sqlast.SplitAll(ctx, b.deps.Parser, defs, sqlast.NewSchema(list...)) {
		n := b.model.Nodes[jobs[k].node]
		n.Diagnostics = append(n.Diagnostics, r.Diagnostics...)
		if r.Analysis == nil {
			continue
		}
		if !r.Diagnostics.HasErrors() {
			b.deps.Cache.Put(jobs[k].key, sqlast.AppendAnalysis(nil, r.Analysis))
		}
		b.done(n, r.Analysis)
	}
}

// foreign says with a syntax error whose grammar was broken: on other engines
// than DuckDB the SELECT may be right and yet not readable.
func (b *builder) foreign(diags diag.List) diag.List {
	if b.deps.EngineType == "duckdb" || b.deps.EngineType == "" {
		return diags
	}
	for i, d := range diags {
		if d.Code == "syntax" {
			diags[i] = d.WithDetail("retrofill reads every SELECT with DuckDB's grammar, which knows most but not all of %s's", b.deps.EngineType).
				WithHint("%s; if %s takes it as it is, write the expression in another way, or put it into a view and read that as a source", d.Hint, b.deps.EngineType)
		}
	}
	return diags
}

// readable tells whether every table that a node reads is known, and reports
// what is not: an unknown name with a suggestion, a source without columns, or
// an upstream table that has problems of its own.
func (b *builder) readable(n *Node, i int) bool {
	ok := true
	for _, name := range b.tables[i] {
		k := strings.ToLower(name)
		if up, logical := b.model.index[k]; logical {
			if up != i && b.model.Nodes[up].Analysis == nil {
				n.Diagnostics = append(n.Diagnostics, diag.Errorf("broken_upstream", "%s reads %s, which has problems of its own", n.Name, b.model.Nodes[up].Name).
					At(diag.Pos{File: n.Table.CodeFile()}).WithHint("mend %s first", b.model.Nodes[up].Name))
				ok = false
			}
			continue
		}
		t, known := b.schema[k]
		switch {
		case !known:
			n.Diagnostics = append(n.Diagnostics, diag.Errorf("unknown_table", "%s reads %q, which is no table of the project, no declared source and not in the engine", n.Name, name).
				At(diag.Pos{File: n.Table.CodeFile(), Line: lineOf(b.defs[i].SQL, name), Column: 1}).
				WithHint("%s", diag.DidYouMean(name, b.knownTables(), "declare it under `sources` in retrofill.yml")))
			ok = false
		case len(t.Columns) == 0:
			n.Diagnostics = append(n.Diagnostics, diag.Errorf("missing_source", "source %s is not in the engine and declares no columns", t.Name).
				At(diag.Pos{File: n.Table.CodeFile(), Line: lineOf(b.defs[i].SQL, name), Column: 1}).
				WithHint("load the source first, or list its `columns` under `sources`"))
			ok = false
		}
	}
	return ok
}

// lineOf finds the line on which a name is first written, 1 if it is not
// found as such.
func lineOf(sql, name string) int {
	i := strings.Index(strings.ToLower(sql), strings.ToLower(name))
	if i < 0 {
		return 1
	}
	return 1 + strings.Count(sql[:i], "\n")
}

func (b *builder) knownTables() []string {
	out := b.model.Names()
	for _, s := range b.deps.Project.Sources {
		out = append(out, s.Table)
	}
	return out
}

// done takes an analysis over: fields, the table as readers see it, and what
// the YAML says of fields.
func (b *builder) done(n *Node, a *sqlast.Analysis) {
	if len(a.Fields) == 0 && a.Unsplittable != nil {
		a.Fields = declaredFields(n.Table) // the text does not tell its columns
	}
	names := make([]string, len(a.Fields))
	for i, f := range a.Fields {
		names[i] = f.Name
	}
	n.Diagnostics = append(n.Diagnostics, load.CheckFields(n.Table, names)...)
	load.CompleteFields(n.Table, names)
	spell(n.Table, names)
	n.Analysis = a
	for _, f := range names {
		c := sqlast.Column{Name: f}
		if n.Table.IsKey(f) {
			c.Nullability = sqlast.NotNull
		}
		n.Fields = append(n.Fields, c)
	}
	b.put(n.Name, asRead(n, names))
}

// declaredFields gives the key and the fields that YAML lists: all that is
// known of a SELECT whose columns the data decides.
func declaredFields(t *modeling.Table) []sqlast.Field {
	var out []sqlast.Field
	for _, k := range t.Key {
		out = append(out, sqlast.Field{Name: k})
	}
	for _, f := range t.Fields {
		if f.Registered == "" && !t.IsKey(f.Name) {
			out = append(out, sqlast.Field{Name: f.Name})
		}
	}
	return out
}

// itself puts a table that reads itself into the schema before it is split,
// with the fields that its text names.
func (b *builder) itself(ctx context.Context, n *Node, i int) {
	if !slices.ContainsFunc(b.tables[i], func(name string) bool { return strings.EqualFold(name, n.Name) }) {
		return
	}
	key := "names-" + tablesKey(b.defs[i])
	var names []string
	if v, ok := b.deps.Cache.Get(key); ok {
		names = splitNames(v)
	} else {
		found, err := sqlast.Outputs(ctx, b.deps.Parser, b.defs[i:i+1])
		if err != nil {
			return // the same failure is reported by the split
		}
		names = found[0]
		b.deps.Cache.Put(key, joinNames(names))
	}
	b.put(n.Name, asRead(n, names))
}

// asRead gives a logical table as its readers see it.
func asRead(n *Node, names []string) sqlast.Table {
	t := sqlast.Table{Name: n.Name, Logical: true}
	var key []string
	for _, p := range n.Partition {
		// The type tells that `ds = DATE '…'` compares without a cast, so that
		// a join onto key and partition is row-neutral (README split 1).
		t.Columns = append(t.Columns, sqlast.Column{Name: p.Name, Type: p.Type, Nullability: sqlast.NotNull})
		key = append(key, p.Name)
	}
	types := map[string]string{}
	for _, f := range n.Table.Fields {
		types[strings.ToLower(f.Name)] = f.Type
	}
	for _, f := range names {
		c := sqlast.Column{Name: f, Type: types[strings.ToLower(f)]}
		if n.Table.IsKey(f) {
			c.Nullability = sqlast.NotNull
		}
		t.Columns = append(t.Columns, c)
	}
	for _, r := range n.Registered {
		t.Columns = append(t.Columns, sqlast.Column{Name: r.Field})
	}
	if len(n.Table.Key) > 0 {
		t.Unique = [][]string{append(key, n.Table.Key...)}
	}
	return t
}

// spell gives key columns and nodes' fields the spelling of the SELECT, so
// that names compare exactly from here on.
func spell(t *modeling.Table, names []string) {
	exact := make(map[string]string, len(names))
	for _, n := range names {
		exact[strings.ToLower(n)] = n
	}
	fix := func(list []string) {
		for i, s := range list {
			if e, ok := exact[strings.ToLower(s)]; ok {
				list[i] = e
			}
		}
	}
	fix(t.Key)
	for i := range t.Nodes {
		fix(t.Nodes[i].Fields)
	}
	for i := range t.Fields {
		if e, ok := exact[strings.ToLower(t.Fields[i].Name)]; ok {
			t.Fields[i].Name = e
		}
	}
}
