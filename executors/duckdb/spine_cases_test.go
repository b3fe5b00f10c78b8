package duckdb

import (
	"context"
	"crypto/md5"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/compile/spine"
	"github.com/retrofill/retrofill/planner/dialect"
)

type spineRows struct {
	Rows   int    `yaml:"rows"`
	Digest string `yaml:"digest"`
}

type spineWant struct {
	Form    string     `yaml:"form"`
	Rows    int        `yaml:"rows"`
	Digest  string     `yaml:"digest"`
	Refuse  string     `yaml:"refuse"`
	PerDate *spineRows `yaml:"per_date"`
}

// spineCase is one body. The keys below Want show how the expectation was
// found (README spine 3, 7–9); the production code finds its own translation.
type spineCase struct {
	ID     string    `yaml:"id"`
	SQL    string    `yaml:"sql"`
	Params []string  `yaml:"params"`
	Want   spineWant `yaml:"want"`
	Float  bool      `yaml:"float"`

	SpineSQL       string `yaml:"spine_sql"`
	WrongSpineSQL  string `yaml:"wrong_spine_sql"`
	WrongDiffers   string `yaml:"wrong_differs"`
	Why            string `yaml:"why"`
	Differs        string `yaml:"differs"`
	EngineError    string `yaml:"engine_error"`
	LateralRows    int    `yaml:"lateral_rows"`
	LateralDiffers string `yaml:"lateral_differs"`
	Decided        bool   `yaml:"decided"`
	Alternative    *struct {
		Form string `yaml:"form"`
		SQL  string `yaml:"sql"`
	} `yaml:"alternative"`
}

type spineParam struct {
	Expr   *string  `yaml:"expr"`
	Values []string `yaml:"values"`
}

type spineFile struct {
	Topic     string                `yaml:"topic"`
	Format    int                   `yaml:"format"`
	Part      string                `yaml:"part"`
	Engine    string                `yaml:"engine"`
	Spine     string                `yaml:"spine"`
	Dates     []string              `yaml:"dates"`
	EmptyDate string                `yaml:"empty_date"`
	Schema    []string              `yaml:"schema"`
	Data      []string              `yaml:"data"`
	Params    map[string]spineParam `yaml:"params"`
	Cases     []spineCase           `yaml:"cases"`
}

// spineBench is what runs the bodies of a case file.
type spineBench struct {
	file   spineFile
	parser *Parser
	schema *sqlast.Schema
	set    *param.Set
}

func newSpineBench(t *testing.T) *spineBench {
	t.Helper()
	b := &spineBench{parser: newTestParser(t)}
	readCases(t, "spine.yaml", &b.file)
	var tables []string
	for _, s := range b.file.Schema {
		if strings.HasPrefix(s, "CREATE TABLE") {
			tables = append(tables, s)
		}
	}
	b.schema = schemaOf(t, tables, nil)
	var cfg param.Config
	for name, p := range b.file.Params {
		d := param.Declared{Name: name, Value: p.Expr}
		if p.Expr == nil {
			d.Cross = &param.CrossRef{Node: "producer"}
		}
		cfg.Node = append(cfg.Node, d)
	}
	set, ds := param.NewSet(cfg)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	b.set = set
	return b
}

// open gives a database of its own with the file's data.
func (b *spineBench) open(t *testing.T) *spineDB {
	t.Helper()
	db, err := sql.Open("duckdb", parserSource)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	for _, s := range slices.Concat(b.file.Schema, b.file.Data) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return &spineDB{DB: db}
}

type spineDB struct {
	*sql.DB
	// body, pd and lines are the per-date runs made last.
	body  string
	pd    spineRows
	lines []string
}

// Probe asks the engine for a plan.
func (d *spineDB) Probe(ctx context.Context, q string) error {
	rows, err := d.QueryContext(ctx, "EXPLAIN "+q)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

func (b *spineBench) input(t *testing.T, text string, probe spine.Prober) spine.Input {
	t.Helper()
	tpl, ds := param.ParseCode(param.Text(text), b.set)
	if tpl == nil {
		t.Fatal(ds)
	}
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	in := spine.Input{
		Dialect: d, Probe: probe, Partition: []spine.Column{{Name: "_date", Type: "DATE"}},
		Body: spine.Body{Template: tpl, Schema: b.schema, Parser: b.parser, Self: []string{"summary_t"}},
	}
	for i, day := range b.file.Dates {
		date, err := bizdate.Parse(day)
		if err != nil {
			t.Fatal(err)
		}
		late := param.Late{}
		for name, p := range b.file.Params {
			if p.Expr == nil {
				late[name] = p.Values[i]
			}
		}
		in.Slots = append(in.Slots, spine.Slot{ID: day, At: param.Instant{Bizdate: date}, Late: late, Partition: []string{day}})
	}
	return in
}

// perDate makes table pd of the per-date runs; ok is false if a date's text
// is refused or fails.
func (b *spineBench) perDate(db *spineDB, in spine.Input) error {
	var parts []string
	for _, s := range in.Slots {
		text, ds := in.Body.Template.Render(s.At, s.Late)
		if len(ds) > 0 {
			return ds[0]
		}
		parts = append(parts, fmt.Sprintf("SELECT DATE '%s' AS _date, _q.* FROM (\n%s\n) AS _q", s.ID, text))
	}
	_, err := db.Exec("CREATE OR REPLACE TEMP TABLE pd AS " + strings.Join(parts, "\nUNION ALL\n"))
	return err
}

// result makes a table of a choice's rows with the columns of pd, cast to its
// types.
func (b *spineBench) result(db *spineDB, c spine.Choice, table string) error {
	types, err := columnTypes(db, "pd")
	if err != nil {
		return err
	}
	names := []string{"slot", "c0"}
	cols := []string{"x.c0"}
	for i, t := range types[1:] {
		names = append(names, fmt.Sprintf("c%d", i+1))
		cols = append(cols, fmt.Sprintf("CAST(x.c%d AS %s) AS c%d", i+1, t, i+1))
	}
	var parts []string
	for _, ch := range c.Chunks {
		parts = append(parts, fmt.Sprintf("SELECT %s FROM (\n%s\n) AS x(%s)", strings.Join(cols, ", "), ch.SQL, strings.Join(names, ", ")))
	}
	_, err = db.Exec("CREATE OR REPLACE TEMP TABLE " + table + " AS " + strings.Join(parts, "\nUNION ALL\n"))
	return err
}

func columnTypes(db *spineDB, table string) ([]string, error) {
	rows, err := db.Query("SELECT column_type FROM (DESCRIBE " + table + ")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// digest is README spine 6.
func digest(db *spineDB, table string) (spineRows, []string, error) {
	types, err := columnTypes(db, table)
	if err != nil {
		return spineRows{}, nil, err
	}
	names := make([]string, len(types))
	cols := make([]string, len(types))
	for i, t := range types {
		names[i] = fmt.Sprintf("c%d", i)
		cols[i] = fmt.Sprintf("CAST(c%d AS VARCHAR)", i)
		if t == "DOUBLE" || t == "FLOAT" {
			cols[i] = fmt.Sprintf("CAST(c%d AS DOUBLE)", i)
		}
	}
	rows, err := db.Query(fmt.Sprintf("SELECT %s FROM %s AS x(%s)", strings.Join(cols, ", "), table, strings.Join(names, ", ")))
	if err != nil {
		return spineRows{}, nil, err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		cells := make([]any, len(types))
		into := make([]any, len(types))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return spineRows{}, nil, err
		}
		text := make([]string, len(cells))
		for i, c := range cells {
			switch v := c.(type) {
			case nil:
				text[i] = `\N`
			case float64:
				text[i] = fmt.Sprintf("%.9g", v)
			default:
				text[i] = fmt.Sprint(v)
			}
		}
		lines = append(lines, strings.Join(text, "\x1f"))
	}
	if err := rows.Err(); err != nil {
		return spineRows{}, nil, err
	}
	sort.Strings(lines)
	h := md5.Sum([]byte(strings.Join(lines, "\n")))
	return spineRows{len(lines), hex.EncodeToString(h[:])}, lines, nil
}

// TestSpineCases runs every case of cases/spine.yaml: the form or the refusal,
// its rows against those of the per-date runs, and UNION ALL wherever per-date
// runs exist.
func TestSpineCases(t *testing.T) {
	t.Parallel()
	b := newSpineBench(t)
	for _, c := range b.file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			b.run(t, c)
		})
	}
}

func (b *spineBench) run(t *testing.T, c spineCase) {
	db := b.open(t)
	in := b.input(t, c.SQL, db)
	got, refused, err := spine.Compile(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case c.Want.Form == "lateral" && refused != nil:
		t.Fatalf("refused: %v", refused)
	case c.Want.Form == "lateral":
		b.same(t, db, in, got, spineRows{c.Want.Rows, c.Want.Digest})
		dense := in
		dense.Dense = true
		if got, refused, err = spine.Compile(t.Context(), dense); err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		b.same(t, db, in, got, spineRows{c.Want.Rows, c.Want.Digest})
	case c.Want.Refuse == "":
		t.Fatalf("the case wants form %q", c.Want.Form)
	case refused == nil && c.Want.Refuse == string(spine.Nondeterministic) && len(got.Warnings) > 0:
		return // "a warning is also enough"
	case refused == nil:
		t.Fatalf("not refused, want %s\n%s", c.Want.Refuse, got.Chunks[0].SQL)
	case string(refused.Kind) != c.Want.Refuse:
		t.Fatalf("refused with %v, want %s", refused, c.Want.Refuse)
	case refused.Pos.Line < 1 || refused.Hint == "" && refused.Reason == "":
		t.Errorf("the refusal has no place: %+v", refused)
	}
	if c.Want.Form == "" && c.Want.PerDate == nil {
		return
	}
	want := spineRows{c.Want.Rows, c.Want.Digest}
	if c.Want.PerDate != nil {
		want = *c.Want.PerDate
	}
	// Whatever is chosen in the end is equal, and so is UNION ALL.
	for _, forms := range [][]spine.Form{{spine.Constants}, {spine.Repaired}, {spine.UnionAll}} {
		got, refused, err := spine.ChooseFrom(t.Context(), in, forms...)
		if err != nil {
			t.Fatal(err)
		}
		if refused != nil {
			if forms[0] == spine.UnionAll && refused.Kind != spine.ChangesSyntax {
				t.Errorf("%v: %v", forms, refused)
			}
			continue
		}
		if c.Want.Refuse != "" {
			t.Logf("%v", got.Why)
		}
		b.same(t, db, in, got, want)
	}
}

// same compares a choice's rows with the per-date runs.
func (b *spineBench) same(t *testing.T, db *spineDB, in spine.Input, c spine.Choice, want spineRows) {
	t.Helper()
	if text := in.Body.Template.Text(); db.body != text {
		if err := b.perDate(db, in); err != nil {
			t.Fatalf("per date: %v", err)
		}
		var err error
		if db.pd, db.lines, err = digest(db, "pd"); err != nil {
			t.Fatal(err)
		}
		db.body = text
	}
	pd, pdLines := db.pd, db.lines
	if pd != want {
		t.Errorf("per-date runs give %+v, the case says %+v", pd, want)
	}
	if err := b.result(db, c, "got"); err != nil {
		t.Fatalf("%s: %v\n%s", c.Form, err, c.Chunks[0].SQL)
	}
	got, gotLines, err := digest(db, "got")
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		missing, extra := lineDiff(pdLines, gotLines)
		t.Errorf("%s gives %+v, want %+v\nmissing %q\nextra %q\n%s", c.Form, got, want, missing, extra, c.Chunks[0].SQL)
	}
}

// lineDiff gives the lines that only one of two sorted lists has.
func lineDiff(a, b []string) (onlyA, onlyB []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return onlyA, onlyB
}
