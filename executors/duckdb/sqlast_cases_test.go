package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// caseParam is a parameter of a case: its value expression and its value on
// the case's date.
type caseParam struct {
	Expr  string `yaml:"expr"`
	Value string `yaml:"value"`
}

type splitWant struct {
	Fields            map[string][]string `yaml:"fields"`
	RowSet            []string            `yaml:"row_set"`
	Sources           *[]string           `yaml:"sources"`
	FieldJoins        map[string][]string `yaml:"field_joins"`
	Params            map[string][]string `yaml:"params"`
	RowSetParams      []string            `yaml:"row_set_params"`
	Nondeterministic  []string            `yaml:"nondeterministic"`
	NondeterministicR bool                `yaml:"nondeterministic_rows"`
}

type splitCase struct {
	ID              string                `yaml:"id"`
	SQL             string                `yaml:"sql"`
	Key             []string              `yaml:"key"`
	Params          map[string]caseParam  `yaml:"params"`
	Unique          map[string][][]string `yaml:"unique"`
	Want            *splitWant            `yaml:"want"`
	Unsplittable    string                `yaml:"unsplittable"`
	Error           string                `yaml:"error"`
	MayRowSet       []string              `yaml:"may_row_set"`
	MayUnsplittable string                `yaml:"may_unsplittable"`
	KeyUnique       *bool                 `yaml:"key_unique"` // a claim about the data, not the splitter's business
	Decided         bool                  `yaml:"decided"`
	Why             string                `yaml:"why"`
}

type splitFile struct {
	Topic    string                `yaml:"topic"`
	Format   int                   `yaml:"format"`
	Defaults map[string]any        `yaml:"defaults"`
	Schema   []string              `yaml:"schema"`
	Data     []string              `yaml:"data"`
	Unique   map[string][][]string `yaml:"unique"`
	Cases    []splitCase           `yaml:"cases"`
}

func readCases(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(b, into, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
}

// schemaOf runs DDL on an empty in-memory database and reads back what the
// splitter is told of the tables.
func schemaOf(t *testing.T, ddl []string, unique map[string][][]string) *sqlast.Schema {
	t.Helper()
	db, err := sql.Open("duckdb", parserSource)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range ddl {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	rows, err := db.Query(`SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns ORDER BY table_name, ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	tables := map[string]*sqlast.Table{}
	var order []string
	for rows.Next() {
		var table, col, typ, null string
		if err := rows.Scan(&table, &col, &typ, &null); err != nil {
			t.Fatal(err)
		}
		if tables[table] == nil {
			tables[table] = &sqlast.Table{Name: table, Unique: unique[table]}
			order = append(order, table)
		}
		n := sqlast.NotNull
		if null == "YES" {
			n = sqlast.Nullable
		}
		tables[table].Columns = append(tables[table].Columns, sqlast.Column{Name: col, Type: typ, Nullability: n})
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var list []sqlast.Table
	for _, n := range order {
		list = append(list, *tables[n])
	}
	return sqlast.NewSchema(list...)
}

func newTestParser(t *testing.T) *Parser {
	t.Helper()
	p, err := NewParser()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func exprsOf(ps map[string]caseParam) map[string]string {
	out := map[string]string{}
	for k, v := range ps {
		out[k] = v.Expr
	}
	return out
}

func lowered(in []string) []string {
	out := []string{}
	for _, s := range in {
		out = append(out, strings.ToLower(s))
	}
	sort.Strings(out)
	return slices.Compact(out)
}

func refsOf(refs []sqlast.ColumnRef) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.String())
	}
	return lowered(out)
}

func TestSplitCases(t *testing.T) {
	t.Parallel()
	var file splitFile
	readCases(t, "split.yaml", &file)
	if file.Topic != "split" || file.Format != 1 {
		t.Fatalf("unexpected topic %q, format %d", file.Topic, file.Format)
	}
	p := newTestParser(t)
	std := schemaOf(t, file.Schema, file.Unique)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			schema := std
			if c.Unique != nil {
				u := map[string][][]string{}
				for k, v := range file.Unique {
					u[k] = v
				}
				for k, v := range c.Unique {
					u[k] = v
				}
				schema = schemaOf(t, file.Schema, u)
			}
			an, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: c.SQL, File: c.ID + ".sql", Key: c.Key, Params: exprsOf(c.Params)}, schema)
			if c.Error != "" {
				if !diags.HasErrors() || diags[0].Code != c.Error {
					t.Fatalf("want error %s, got %v", c.Error, diags)
				}
				if diags[0].Line == 0 {
					t.Errorf("no position: %v", diags[0])
				}
				return
			}
			if diags.HasErrors() {
				t.Fatalf("%s\n%v", c.SQL, diags)
			}
			if c.Unsplittable != "" {
				if an.Unsplittable == nil || an.Unsplittable.Kind != c.Unsplittable {
					t.Fatalf("want unsplittable %s, got %+v", c.Unsplittable, an.Unsplittable)
				}
				return
			}
			if an.Unsplittable != nil {
				if c.MayUnsplittable == an.Unsplittable.Kind {
					return
				}
				t.Fatalf("unsplittable: %+v", an.Unsplittable)
			}
			problems := checkSplit(an, c)
			if len(problems) > 0 && len(c.MayRowSet) > 0 {
				problems = checkLoosely(an, c)
			}
			for _, problem := range problems {
				t.Error(problem)
			}
			if t.Failed() {
				t.Logf("%s\nwhy: %s\nrows: %s", c.SQL, c.Why, an.RowSet.Canonical)
				for _, f := range an.Fields {
					t.Logf("%s: %s", f.Name, f.Canonical)
				}
			}
		})
	}
}

func checkSplit(an *sqlast.Analysis, c splitCase) []string {
	var out []string
	diff := func(what string, want, got any) {
		if d := cmp.Diff(want, got); d != "" {
			out = append(out, fmt.Sprintf("%s (-want +got):\n%s", what, d))
		}
	}
	wantFields, gotFields := map[string][]string{}, map[string][]string{}
	wantParams, gotParams := map[string][]string{}, map[string][]string{}
	var nondet []string
	for k, v := range c.Want.Fields {
		wantFields[strings.ToLower(k)] = lowered(v)
	}
	for k, v := range c.Want.Params {
		wantParams[strings.ToLower(k)] = lowered(v)
	}
	for _, f := range an.Fields {
		n := strings.ToLower(f.Name)
		gotFields[n] = refsOf(f.Reads)
		if len(f.Params) > 0 {
			gotParams[n] = lowered(f.Params)
		}
		if f.Nondeterministic != "" {
			nondet = append(nondet, n)
		}
	}
	wantJoins, gotJoins := map[string][]string{}, map[string][]string{}
	for k, v := range c.Want.FieldJoins {
		wantJoins[strings.ToLower(k)] = lowered(v)
	}
	for _, j := range an.Joins {
		gotJoins[strings.ToLower(j.Alias)] = lowered(j.Fields)
	}
	diff("fields", wantFields, gotFields)
	diff("row_set", lowered(c.Want.RowSet), refsOf(an.RowSet.Reads))
	if c.Want.Sources != nil {
		diff("sources", lowered(*c.Want.Sources), lowered(an.RowSet.Sources))
	}
	diff("field_joins", wantJoins, gotJoins)
	diff("params", wantParams, gotParams)
	diff("row_set_params", lowered(c.Want.RowSetParams), lowered(an.RowSet.Params))
	diff("nondeterministic", lowered(c.Want.Nondeterministic), lowered(nondet))
	diff("nondeterministic_rows", c.Want.NondeterministicR, an.RowSet.Nondeterministic != "")
	return out
}

// checkLoosely is README split 3: the joins of may_row_set are called
// row-changing; then no read may be missing, fields and row set together.
func checkLoosely(an *sqlast.Analysis, c splitCase) []string {
	var out []string
	row := refsOf(an.RowSet.Reads)
	for _, r := range lowered(c.Want.RowSet) {
		if !slices.Contains(row, r) {
			out = append(out, "the row set misses "+r)
		}
	}
	for name, reads := range c.Want.Fields {
		f, ok := an.Field(name)
		if !ok {
			out = append(out, "no field "+name)
			continue
		}
		got := append(refsOf(f.Reads), row...)
		for _, r := range lowered(reads) {
			if !slices.Contains(got, r) {
				out = append(out, "field "+name+" misses "+r)
			}
		}
	}
	for _, j := range an.Joins {
		if slices.Contains(lowered(c.MayRowSet), strings.ToLower(j.Alias)) {
			continue
		}
		if d := cmp.Diff(lowered(c.Want.FieldJoins[j.Alias]), lowered(j.Fields)); d != "" {
			out = append(out, "field_joins of "+j.Alias+": "+d)
		}
	}
	return out
}

type changeWant struct {
	Unchanged bool
	Changed   []string `yaml:"changed_fields"`
	Added     []string `yaml:"added_fields"`
	Removed   []string `yaml:"removed_fields"`
	RowSet    bool     `yaml:"row_set_changed"`
	Source    bool     `yaml:"source_changed"`
	Key       bool     `yaml:"key_changed"`
}

func (w *changeWant) UnmarshalYAML(b []byte) error {
	if strings.TrimSpace(string(b)) == "unchanged" {
		w.Unchanged = true
		return nil
	}
	type plain changeWant
	return yaml.UnmarshalWithOptions(b, (*plain)(w), yaml.DisallowUnknownField())
}

type changeCase struct {
	ID               string                `yaml:"id"`
	Old              string                `yaml:"old"`
	New              string                `yaml:"new"`
	Key              []string              `yaml:"key"`
	OldKey           []string              `yaml:"old_key"`
	NewKey           []string              `yaml:"new_key"`
	Params           map[string]caseParam  `yaml:"params"`
	OldParams        map[string]caseParam  `yaml:"old_params"`
	NewParams        map[string]caseParam  `yaml:"new_params"`
	OldDDL           []string              `yaml:"old_ddl"`
	NewDDL           []string              `yaml:"new_ddl"`
	OldUnique        map[string][][]string `yaml:"old_unique"`
	NewUnique        map[string][][]string `yaml:"new_unique"`
	Want             changeWant            `yaml:"want"`
	MayChange        []string              `yaml:"may_change"`
	MayReportChange  bool                  `yaml:"may_report_change"`
	SameOnData       bool                  `yaml:"same_on_data"`     // about the data
	Nondeterministic bool                  `yaml:"nondeterministic"` // about the data
	KeyUnique        *bool                 `yaml:"key_unique"`       // about the data
	Decided          bool                  `yaml:"decided"`
	Why              string                `yaml:"why"`
}

type changeFile struct {
	Topic    string                `yaml:"topic"`
	Format   int                   `yaml:"format"`
	Defaults map[string]any        `yaml:"defaults"`
	Schema   []string              `yaml:"schema"`
	Data     []string              `yaml:"data"`
	Unique   map[string][][]string `yaml:"unique"`
	Cases    []changeCase          `yaml:"cases"`
}

func TestChangeCases(t *testing.T) {
	t.Parallel()
	var file changeFile
	readCases(t, "changes.yaml", &file)
	if file.Topic != "changes" || file.Format != 1 {
		t.Fatalf("unexpected topic %q, format %d", file.Topic, file.Format)
	}
	p := newTestParser(t)
	std := schemaOf(t, file.Schema, file.Unique)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			split := func(text string, key []string, params map[string]caseParam, ddl []string, unique map[string][][]string) *sqlast.Analysis {
				schema := std
				if ddl != nil || unique != nil {
					u := map[string][][]string{}
					for k, v := range file.Unique {
						u[k] = v
					}
					for k, v := range unique {
						u[k] = v
					}
					schema = schemaOf(t, append(append(slices.Clone(file.Schema), file.Data...), ddl...), u)
				}
				if key == nil {
					key = c.Key
				}
				if params == nil {
					params = c.Params
				}
				an, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: text, File: c.ID + ".sql", Key: key, Params: exprsOf(params)}, schema)
				if diags.HasErrors() {
					t.Fatalf("%s\n%v", text, diags)
				}
				return an
			}
			old := split(c.Old, c.OldKey, c.OldParams, c.OldDDL, c.OldUnique)
			cur := split(c.New, c.NewKey, c.NewParams, c.NewDDL, c.NewUnique)
			got := sqlast.Compare(old, cur)
			if c.MayReportChange {
				if !got.Unchanged() {
					t.Logf("reported (allowed): %v", got.Reasons)
				}
				return
			}
			changed := slices.DeleteFunc(lowered(got.ChangedFields), func(f string) bool { return slices.Contains(lowered(c.MayChange), f) })
			g := changeWant{Changed: changed, Added: lowered(got.AddedFields), Removed: lowered(got.RemovedFields),
				RowSet: got.RowSetChanged, Source: got.SourceChanged, Key: got.KeyChanged}
			w := c.Want
			w.Unchanged = false
			w.Changed, w.Added, w.Removed = lowered(w.Changed), lowered(w.Added), lowered(w.Removed)
			w.Changed = slices.DeleteFunc(w.Changed, func(f string) bool { return slices.Contains(lowered(c.MayChange), f) })
			if d := cmp.Diff(w, g); d != "" {
				t.Errorf("%s\n--\n%s\nwhy: %s\n(-want +got):\n%s", c.Old, c.New, c.Why, d)
				for _, r := range got.Reasons {
					t.Logf("%s\n  old %s\n  new %s", r.What, r.Old, r.New)
				}
			}
		})
	}
}
