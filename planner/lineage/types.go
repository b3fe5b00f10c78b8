package lineage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/compile"
	"github.com/retrofill/retrofill/planner/dialect"
)

// Cache keeps results by a key of their content. Losing it costs time only.
type Cache interface {
	Get(key string) ([]byte, bool)
	Put(key string, value []byte)
}

// Describer gives the columns of a query without running it.
type Describer interface {
	Describe(ctx context.Context, sql string) ([]sqlast.Column, error)
}

// Typer finds the SQL types of fields: declared ones, else the engine's
// answer for the node's SELECT, in which references to logical tables stand as
// typed, empty subqueries — so that types are known before any of the tables
// exists. It is not safe for concurrent use.
type Typer struct {
	Model   *Model
	Engine  Describer
	Dialect dialect.Dialect
	Cache   Cache
	// Sample is the slot whose parameters are put in.
	Sample bizdate.Date

	done map[int]typed
}

type typed struct {
	cols  []sqlast.Column
	diags diag.List
}

// Fields gives the table's fields with their types. Diagnostics: sql_error
// with the engine's complaint, at the table's SQL file.
func (t *Typer) Fields(ctx context.Context, n *Node) ([]sqlast.Column, diag.List) {
	if t.done == nil {
		t.done = map[int]typed{}
	}
	if r, ok := t.done[n.Position]; ok {
		return r.cols, r.diags
	}
	before := declaredTypes(n)
	t.done[n.Position] = typed{cols: before} // what the table finds when it reads itself
	cols, diags := t.describe(ctx, n)
	for round := 0; round < maxRounds && readsItself(n) && !diags.HasErrors() && !slices.Equal(cols, before); round++ {
		before = cols
		t.done[n.Position] = typed{cols: before}
		cols, diags = t.describe(ctx, n)
	}
	t.done[n.Position] = typed{cols, diags}
	return cols, diags
}

// maxRounds bounds the search for the types of a table that reads itself.
const maxRounds = 4

func readsItself(n *Node) bool {
	return slices.ContainsFunc(n.Inputs, func(in Input) bool { return in.Node == n.Position })
}

func (t *Typer) describe(ctx context.Context, n *Node) ([]sqlast.Column, diag.List) {
	if n.Analysis == nil {
		return nil, nil
	}
	refs, diags := t.stubs(ctx, n)
	if diags.HasErrors() {
		return nil, diags
	}
	key := t.key(n, refs)
	var cols []sqlast.Column
	if b, ok := t.Cache.Get(key); !ok || json.Unmarshal(b, &cols) != nil {
		sql, diags := t.stubbed(n, refs)
		if diags.HasErrors() {
			return nil, diags
		}
		var err error
		if cols, err = t.Engine.Describe(ctx, sql); err != nil {
			return nil, diag.List{diag.Errorf("sql_error", "%s: the engine refuses the SELECT", n.Name).
				At(n.Table.CodePos()).WithDetail("%s", firstLines(err.Error(), 6)).
				WithHint("`retrofill params %s --date %s` shows the SQL with its values", n.Name, t.Sample)}
		}
		if diags := t.named(n, cols); diags.HasErrors() {
			return nil, diags
		}
		if b, err := json.Marshal(cols); err == nil {
			t.Cache.Put(key, b)
		}
	}
	for i := range cols {
		for _, f := range n.Table.Fields {
			if strings.EqualFold(f.Name, cols[i].Name) && f.Type != "" {
				cols[i].Type = f.Type
			}
		}
	}
	return cols, nil
}

// named refuses columns that the engine calls otherwise than retrofill does:
// engines name expressions without an alias each in their own way, and
// retrofill's parser is DuckDB's.
func (t *Typer) named(n *Node, cols []sqlast.Column) (diags diag.List) {
	if t.Dialect.Name == "duckdb" {
		return nil
	}
	for i, c := range cols {
		if i >= len(n.Fields) || strings.EqualFold(c.Name, n.Fields[i].Name) {
			continue
		}
		diags = append(diags, diag.Errorf("column_name", "%s: the engine calls column %d %s, retrofill %s", n.Name, i+1, c.Name, n.Fields[i].Name).
			At(diag.Pos{File: n.Table.SQLFile, Line: 1, Column: 1}).WithHint("give the expression a name with AS"))
	}
	return diags
}

// key identifies what the types depend on: the text, the meaning of its
// parameters, and the columns of the tables that it reads. The sample date is
// not among it, so that a new day asks the engine nothing.
func (t *Typer) key(n *Node, refs []compile.Reference) string {
	d := n.Analysis.Definition
	d.File = ""
	text := sqlast.AppendDefinition([]byte("types 2\x00"+t.Dialect.Name+"\x00"), d)
	for _, r := range refs {
		text = fmt.Appendf(text, "\x00%d %d %s\x00%s", r.Start, r.End, r.With, r.Alias)
	}
	for _, p := range n.Table.Params {
		if p.Default != nil {
			text = fmt.Appendf(text, "\x00%s=%s", p.Name, *p.Default)
		}
	}
	sum := sha256.Sum256(text)
	return "types-" + hex.EncodeToString(sum[:16])
}

// stubs gives what stands for each logical table, and each source of known
// types, that a node reads: typed, empty subqueries.
func (t *Typer) stubs(ctx context.Context, n *Node) ([]compile.Reference, diag.List) {
	var refs []compile.Reference
	for _, r := range n.Analysis.References {
		var with string
		up := t.Model.Node(r.Table)
		switch src, known := t.Model.Sources[strings.ToLower(r.Table)]; {
		case up != nil && up.IsTable():
			cols, diags := t.columns(ctx, up)
			if diags.HasErrors() {
				return nil, diags
			}
			with = t.stub(cols)
		case known && typedColumns(src.Columns):
			with = t.stub(src.Columns)
		default:
			continue // the engine knows it
		}
		refs = append(refs, compile.Reference{Start: r.Name.Start, End: r.Name.End, With: with, Alias: AliasFor(t.Dialect, r)})
	}
	return refs, nil
}

// stubbed gives the SELECT with stubs for what it reads and its parameters'
// sample values.
func (t *Typer) stubbed(n *Node, refs []compile.Reference) (string, diag.List) {
	text, err := compile.Route(n.Analysis.Definition.SQL, refs)
	if err != nil {
		return "", diag.List{diag.Errorf("sql_error", "%s: cannot replace its references", n.Name).WithDetail("%v", err)}
	}
	tmpl, diags := param.ParseCode(param.Source{Text: text, Pos: diag.Pos{File: n.Table.SQLFile, Line: 1, Column: 1}}, n.Params)
	if tmpl == nil {
		return "", diags
	}
	at := param.Instant{Bizdate: t.Sample}
	for _, s := range n.Schedule.Slots(t.Sample, t.Model.Zone, nil) {
		at = param.At(s)
		break
	}
	late := param.Late{}
	for _, l := range tmpl.Late() {
		late[l.Key] = sampleLate(n, l.Key)
	}
	sql, diags := tmpl.Render(at, late)
	return sql, diags
}

// typedColumns tells whether every column has a type.
func typedColumns(cols []sqlast.Column) bool {
	return len(cols) > 0 && !slices.ContainsFunc(cols, func(c sqlast.Column) bool { return c.Type == "" })
}

// sampleLate gives a stand-in for a value that only a run knows.
func sampleLate(n *Node, key string) string {
	params := n.Table.Params
	for _, p := range params {
		if strings.EqualFold(p.Name, key) && p.Default != nil {
			return *p.Default
		}
	}
	return "0"
}

// columns gives partition columns and fields of an upstream table.
func (t *Typer) columns(ctx context.Context, up *Node) ([]sqlast.Column, diag.List) {
	var cols []sqlast.Column
	for _, p := range up.Partition {
		cols = append(cols, sqlast.Column{Name: t.Dialect.Fold(p.Name), Type: p.Type})
	}
	own, diags := t.Fields(ctx, up)
	if diags.HasErrors() {
		return nil, diags
	}
	own = slices.Clone(own)
	for _, r := range up.Registered {
		own = append(own, sqlast.Column{Name: r.Field, Type: r.Type})
	}
	for _, c := range own {
		if !slices.ContainsFunc(cols, func(x sqlast.Column) bool { return strings.EqualFold(x.Name, c.Name) }) {
			cols = append(cols, c)
		}
	}
	return cols, nil
}

// declaredTypes gives the fields of a table with the types that YAML declares.
func declaredTypes(n *Node) []sqlast.Column {
	out := slices.Clone(n.Fields)
	for i := range out {
		for _, f := range n.Table.Fields {
			if strings.EqualFold(f.Name, out[i].Name) {
				out[i].Type = f.Type
			}
		}
	}
	return out
}

func (t *Typer) stub(cols []sqlast.Column) string {
	items := make([]string, len(cols))
	for i, c := range cols {
		null := "NULL" // of unknown type: the engine fits it in
		if c.Type != "" {
			null = "CAST(NULL AS " + c.Type + ")"
		}
		items[i] = null + " AS " + t.Dialect.Quote(c.Name)
	}
	return "(SELECT " + strings.Join(items, ", ") + " WHERE false)"
}

// AliasFor gives the alias that a replaced reference needs: its own last name
// when the text has none.
func AliasFor(d dialect.Dialect, r sqlast.Reference) string {
	if r.Alias != "" {
		return ""
	}
	name := r.Table
	if parts := sqlast.NameParts(name); !r.Logical && len(parts) > 0 {
		name = parts[len(parts)-1]
	}
	return d.Quote(d.Fold(name))
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(s, "\n", n+1)
	if len(lines) > n {
		lines = lines[:n]
	}
	return strings.Join(lines, "\n")
}
