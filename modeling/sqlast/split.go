package sqlast

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Result is the outcome of one definition: an Analysis, or errors.
type Result struct {
	Analysis    *Analysis // nil when Diagnostics has errors
	Diagnostics diag.List
}

// Split takes one definition apart over the tables of schema. The analysis is
// nil when the diagnostics hold an error: syntax, not_a_select,
// several_statements, unknown_table, unknown_column, ambiguous_column,
// unnamed_field, duplicate_field, key_not_a_field, column_count, bad_position,
// parser_failed. A valid definition that cannot be taken apart has an Analysis
// with Unsplittable set.
func Split(ctx context.Context, p Parser, d Definition, schema *Schema) (*Analysis, diag.List) {
	r := SplitAll(ctx, p, []Definition{d}, schema)[0]
	return r.Analysis, r.Diagnostics
}

// SplitAll takes many definitions apart with one call of the parser; the
// results come in the order of the definitions.
func SplitAll(ctx context.Context, p Parser, defs []Definition, schema *Schema) []Result {
	out := make([]Result, len(defs))
	preps := make([]prepared, len(defs))
	texts := make([]string, len(defs))
	for i, d := range defs {
		preps[i] = prepare(d.SQL, newParams(d).verbatim)
		texts[i] = preps[i].text
	}
	trees, err := p.ParseSelects(ctx, texts)
	if err == nil && len(trees) != len(defs) {
		err = fmt.Errorf("%d trees for %d texts", len(trees), len(defs))
	}
	for i, d := range defs {
		if err != nil {
			out[i].Diagnostics = diag.List{diag.Errorf("parser_failed", "the SQL parser failed").
				WithDetail("sqlast: parse %s: %v", d.File, err).At(diag.Pos{File: d.File})}
			continue
		}
		out[i] = newAnalyzer(d, preps[i], schema).analyse(trees[i])
	}
	return out
}

func (a *analyzer) analyse(r ParseResult) Result {
	root := a.statement(r)
	if len(a.diags) > 0 {
		return a.result(nil)
	}
	if a.unsplittable != nil { // no tree at all (PIVOT as a statement)
		return a.result(a.whole(nil))
	}
	refs := a.references(root)
	for _, x := range refs {
		if !x.Known && a.unsplittable == nil {
			a.unknownTable(x.Table, x.Name.Start)
		}
	}
	if len(a.diags) > 0 {
		return a.result(nil)
	}
	l := a.query(root, nil, nil)
	if len(a.diags) > 0 {
		return a.result(nil)
	}
	if a.unsplittable != nil {
		return a.result(a.whole(root))
	}
	a.checkNames(l.outputs)
	if len(a.diags) > 0 {
		return a.result(nil)
	}
	an := a.describe(l, refs)
	if an == nil {
		a.unsplit("too_complex", noLocation, "the canonical text grows beyond %d bytes", maxText)
		return a.result(a.whole(root))
	}
	return a.result(an)
}

func (a *analyzer) result(an *Analysis) Result {
	a.diags.Sort()
	return Result{Analysis: an, Diagnostics: a.diags}
}

// statement gives the one SELECT of the definition.
func (a *analyzer) statement(r ParseResult) *astQuery {
	lx := newLexer(a.def.SQL)
	empty := true
	for i := range lx.toks {
		empty = empty && lx.is(i, ";")
	}
	if empty {
		a.problemAt("not_a_select", 0, "the definition is empty").hint("write one SELECT whose output columns are the fields")
		return nil
	}
	for i := range lx.toks {
		if lx.is(i, ";") && i+1 < len(lx.toks) && !lx.is(i+1, ";") {
			a.problemAt("several_statements", lx.toks[i+1].start, "the definition holds several statements").
				hint("keep one SELECT; a closing semicolon is fine")
			return nil
		}
	}
	if r.NotSelect || r.Message != "" {
		for i := range lx.toks {
			if (lx.is(i, "PIVOT") || lx.is(i, "UNPIVOT") || lx.is(i, "PIVOT_WIDER") || lx.is(i, "PIVOT_LONGER")) && r.NotSelect &&
				(i == 0 || !lx.is(0, "CREATE") && !lx.is(0, "INSERT")) {
				a.unsplit("pivot", noLocation, "PIVOT: the data decides which fields exist")
				return nil
			}
		}
		if r.NotSelect {
			a.problemAt("not_a_select", lx.toks[0].start, "the definition is no SELECT").
				hint("write one plain SELECT; retrofill writes the result itself")
			return nil
		}
		off := 0
		if r.Position >= 0 {
			off = a.prep.original(r.Position)
		}
		a.problemAt("syntax", off, "%s", a.prep.restore(r.Message)).hint("%s", a.syntaxHint())
		return nil
	}
	var doc astDocument
	if err := json.Unmarshal(r.Tree, &doc); err != nil {
		a.problemAt("parser_failed", 0, "the parser's tree cannot be read: %v", err)
		return nil
	}
	if len(doc.Statements) != 1 || doc.Statements[0].Node == nil {
		a.problemAt("several_statements", 0, "the definition holds %d statements", len(doc.Statements)).hint("keep one SELECT")
		return nil
	}
	root := doc.Statements[0].Node
	if root.From != nil && root.From.Type == "SHOW_REF" {
		a.problemAt("not_a_select", lx.toks[0].start, "the definition is no SELECT").hint("write one plain SELECT")
		return nil
	}
	return root
}

func (a *analyzer) syntaxHint() string {
	if len(a.prep.templates) > 0 {
		return "check the SQL around this place; a ${…} placeholder may stand where a value or a name may"
	}
	return "check the SQL around this place"
}

// checkNames checks the fields' names and the key.
func (a *analyzer) checkNames(outs []output) {
	seen := map[string]bool{}
	var names []string
	lay, ok := SelectItems(a.def.SQL)
	for i, o := range outs {
		if o.loc < 0 && ok && len(lay.Items) == len(outs) {
			o.loc = lay.Items[i].Start
		}
		if strings.Contains(o.name, "${") {
			a.problemAt("parameter_in_identifier", max(o.loc, 0), "the field name %s holds a parameter", quoteText(o.name)).
				hint("a table's fields are the same on every date: write the name out")
			continue
		}
		if o.unnamed || o.name == "" {
			a.problemAt("unnamed_field", max(o.loc, 0), "an expression of the SELECT list has no name").hint("add `AS name`")
			continue
		}
		k := strings.ToLower(o.name)
		if seen[k] {
			a.problemAt("duplicate_field", max(o.loc, 0), "two fields are named %q", o.name).hint("give one of them another alias")
		}
		seen[k] = true
		names = append(names, o.name)
	}
	for _, k := range a.def.Key {
		if !seen[strings.ToLower(k)] && len(a.diags) == 0 {
			a.problemAt("key_not_a_field", 0, "the key column %q is no field of the SELECT", k).
				hint("%s", diag.DidYouMean(k, names, "the key names output columns: add the column to the SELECT list"))
		}
	}
}

// describe computes everything an Analysis says about a resolved query.
func (a *analyzer) describe(l *level, refs []Reference) *Analysis {
	an := &Analysis{Version: FormatVersion, Definition: a.def, References: refs}
	rows := newDeps(a.params)
	rows.level(l)
	key := newDeps(a.params)
	isKey := map[string]bool{}
	for _, k := range a.def.Key {
		isKey[strings.ToLower(k)] = true
	}
	fields := make([]*deps, len(l.outputs))
	for i, o := range l.outputs {
		fields[i] = newDeps(a.params)
		fields[i].expr(o.e)
		if isKey[strings.ToLower(o.name)] {
			key.expr(o.e)
		}
	}
	root := newPrinter(a.params)
	an.RowSet = RowSet{Canonical: root.top(l), Nondeterministic: rows.nondet}
	var keys []string
	for i, o := range l.outputs {
		f := Field{Name: o.name, Reads: columnRefs(fields[i]), Params: sortedKeys(fields[i].params),
			Nondeterministic: fields[i].nondet, Canonical: root.full(o.e)}
		for j := range fields[i].joins {
			f.Joins = append(f.Joins, j.alias)
		}
		f.Joins = sortedUnique(f.Joins)
		f.Fingerprint = fingerprint(f.Canonical)
		an.Fields = append(an.Fields, f)
		if isKey[strings.ToLower(o.name)] {
			keys = append(keys, strings.ToLower(o.name)+" = "+f.Canonical)
			an.RowSet.Key = append(an.RowSet.Key, strings.ToLower(o.name))
		}
	}
	if root.tooLong() {
		return nil
	}
	sort.Strings(keys)
	sort.Strings(an.RowSet.Key)
	an.RowSet.Fingerprint = fingerprint(an.RowSet.Canonical)
	an.RowSet.KeyCanonical = strings.Join(keys, "\n")
	an.RowSet.KeyFingerprint = fingerprint(an.RowSet.KeyCanonical)
	an.RowSet.Reads = columnRefs(rows, key)
	an.RowSet.Params = sortedKeys(rows.params, key.params)
	an.RowSet.Sources = sourcesOf(rows, key)
	if an.RowSet.Nondeterministic == "" {
		an.RowSet.Nondeterministic = key.nondet
	}
	an.Joins = neutralJoins(l, an.Fields, fields)
	a.useReferences(an, l, rows, key, fields)
	an.Schema = a.snapshot(refs)
	return an
}

// fingerprint is a version digit and the SHA-256 of a canonical text.
func fingerprint(canonical string) string {
	sum := sha256.Sum256(append([]byte{FormatVersion}, canonical...))
	return fmt.Sprintf("%d:%s", FormatVersion, hex.EncodeToString(sum[:]))
}

func columnRefs(ds ...*deps) []ColumnRef {
	seen := map[ColumnRef]bool{}
	var out []ColumnRef
	for _, d := range ds {
		for i, cols := range d.cols {
			for c := range cols {
				r := ColumnRef{i.table.Name, c}
				if !seen[r] {
					seen[r] = true
					out = append(out, r)
				}
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}

func sortedKeys(ms ...map[string]bool) []string {
	var out []string
	for _, m := range ms {
		for k := range m {
			out = append(out, k)
		}
	}
	return sortedUnique(out)
}

func sourcesOf(ds ...*deps) []string {
	var out []string
	for _, d := range ds {
		for i := range d.rows {
			if i.table != nil {
				out = append(out, i.table.Name)
			}
		}
		for i := range d.cols {
			out = append(out, i.table.Name)
		}
	}
	return sortedUnique(out)
}

// neutralJoins lists the row-neutral joins at any level with the fields that
// need them.
func neutralJoins(l *level, fields []Field, ds []*deps) []NeutralJoin {
	byAlias := map[string]*NeutralJoin{}
	add := func(j *join, field string) {
		n := byAlias[j.alias]
		if n == nil {
			n = &NeutralJoin{Alias: j.alias}
			byAlias[j.alias] = n
		}
		if i := j.right.inst; i != nil && i.table != nil {
			n.Table = i.table.Name
		}
		if field != "" {
			n.Fields = append(n.Fields, field)
		}
	}
	l.walkFrom(func(f *from) {
		if f.join != nil && !f.join.row {
			add(f.join, "")
		}
	})
	for i, d := range ds {
		for j := range d.joins {
			add(j, fields[i].Name)
		}
	}
	out := make([]NeutralJoin, 0, len(byAlias))
	for _, n := range byAlias {
		n.Fields = sortedUnique(n.Fields)
		out = append(out, *n)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Alias < out[j].Alias })
	if len(out) == 0 {
		return nil
	}
	return out
}
