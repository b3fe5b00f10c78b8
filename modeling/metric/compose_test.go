package metric_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

var rewrite = flag.Bool("rewrite", false, "write goldens instead of comparing")

// The goldens: each archive is a project, its `want` the SELECTs of the
// composed tables and the diagnostics.
func TestSelect(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("goldens: %v %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			p, diags := project(ar)
			var b strings.Builder
			for _, tab := range p.Tables {
				if tab.Compose == nil {
					continue
				}
				b.WriteString("# " + tab.Name + "\n" + tab.SQL)
				for _, e := range []string{"postgres", "trino"} {
					if sql, ok := tab.SQLByEngine[e]; ok {
						b.WriteString("# " + tab.Name + " on " + e + "\n" + sql)
					}
				}
				b.WriteString("\n")
			}
			if len(diags) > 0 {
				b.WriteString(diags.Error() + "\n")
			}
			got := b.String()
			for i := range ar.Files {
				if ar.Files[i].Name != "want" {
					continue
				}
				if *rewrite {
					ar.Files[i].Data = []byte(got)
					if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(ar.Files[i].Data), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if again, _ := project(ar); !cmp.Equal(p, again) {
				t.Error("a second load gives another project")
			}
		})
	}
}

func project(ar *txtar.Archive) (*modeling.Project, diag.List) {
	fsys := fstest.MapFS{}
	for _, f := range ar.Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return load.Load(fsys)
}

// Diagnostics about the SELECT are moved to what it is made of.
func TestRelocate(t *testing.T) {
	t.Parallel()
	p, diags := project(txtar.Parse([]byte(`
-- retrofill.yml --
name: p
-- models/f.yml --
key: [id]
partition: {ds: "${yyyy-mm-dd}"}
-- models/f.sql --
SELECT 1 AS id, 2 AS carrier, 3 AS v
-- metrics/m.yml --
table: f
metrics:
  - {atomic: n, expr: "sum(vv)"}
  - {filter: big, where: "größe > 1"}
  - {derived: n_7d, metric: n, filters: [big], period: 7d}
  - {composite: twice, expr: "n_7d + nulif(n, 0)"}
-- models/s.yml --
partition: {ds: "${yyyy-mm-dd}"}
compose: {from: f, grain: [carrier], metrics: [n, twice]}
`)))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s := p.Table("s")
	for _, c := range []struct{ text, want string }{
		{"carrier,", "models/s.yml:2:28"},
		{"vv", "metrics/m.yml:3:23"},
		{"größe", "metrics/m.yml:4:26"},
		{"> 1", "metrics/m.yml:4:26"},
		{"nulif", "metrics/m.yml:6:30"},
		{"AS twice", "models/s.yml:2:51"},
		{"FROM", "models/s.yml:2:1"},
		{"GROUP", "models/s.yml:2:1"},
	} {
		before, _, ok := strings.Cut(s.SQL, c.text)
		if !ok {
			t.Fatalf("no %q in %s", c.text, s.SQL)
		}
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		list := diag.List{diag.Errorf("x", "x").At(diag.Pos{File: s.CodeFile(), Line: line, Column: column})}
		s.Relocate(list)
		if got := list[0].Pos.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// The manual's example gives the SELECT that the manual shows.
func TestManual(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(lang string, n int) string {
		parts := strings.Split(string(b), "```"+lang+"\n")
		if len(parts) <= n {
			t.Fatalf("docs/metrics.md has no block %d of %s", n, lang)
		}
		text, _, _ := strings.Cut(parts[n], "```")
		return text
	}
	p, diags := project(&txtar.Archive{Files: []txtar.File{
		{Name: "retrofill.yml", Data: []byte("name: p\nparams: {on_time_min: 15}\n")},
		{Name: "models/fct_flight.yml", Data: []byte("partition: {ds: \"${yyyy-mm-dd}\"}\n")},
		{Name: "models/fct_flight.sql", Data: []byte("SELECT 1 AS carrier\n")},
		{Name: "metrics/legs.yml", Data: []byte(block("yaml", 1))},
		{Name: "models/summary/agg_carrier.yml", Data: []byte(block("yaml", 2))},
	}})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(block("sql", 1), p.Table("agg_carrier").SQL); diff != "" {
		t.Errorf("(-manual +made):\n%s", diff)
	}
}

// No expression breaks out of the SELECT that it is put into.
func FuzzExpressions(f *testing.F) {
	for _, s := range []string{"count(*)", "x > 1", "a / b", "\"", "'", "'it''s'", "E'\\''", "$$", "(", ")", "--", "/*", "${", "${bizdate}", "a -- b", ";", "\"a\"\"", "CASE WHEN a THEN b END", "a::INT", "é", "[", "sum(')')"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		quoted, err := json.Marshal(expr)
		if err != nil {
			t.Skip()
		}
		yaml := "table: f\nmetrics:\n  - {atomic: a, expr: count(*)}\n  - {atomic: b, expr: XX}\n  - {filter: w, where: XX}\n" +
			"  - {derived: d, metric: a, filters: [w], period: 7d}\n  - {composite: c, expr: XX}\n"
		for _, metrics := range []string{"b", "d", "c", "a, b, c, d"} {
			p, _ := project(&txtar.Archive{Files: []txtar.File{
				{Name: "retrofill.yml", Data: []byte("name: p\n")},
				{Name: "models/f.yml", Data: []byte("partition: {ds: \"${yyyy-mm-dd}\"}\n")},
				{Name: "models/f.sql", Data: []byte("SELECT 1 AS x\n")},
				{Name: "metrics/m.yml", Data: []byte(strings.ReplaceAll(yaml, "XX", string(quoted)))},
				{Name: "models/s.yml", Data: []byte("partition: {ds: \"${yyyy-mm-dd}\"}\ncompose: {from: f, grain: [x], metrics: [" + metrics + "]}\n")},
			}})
			s := p.Table("s")
			if s == nil || s.SQL == "" {
				continue
			}
			if toks := sqlast.Tokenize(s.SQL); !strings.HasSuffix(s.SQL, "\nGROUP BY x\n") || toks[len(toks)-2].Kind != sqlast.Word {
				t.Errorf("%q breaks out of\n%s", expr, s.SQL)
			}
			depth := 0
			for _, tok := range sqlast.Tokenize(s.SQL) {
				switch s.SQL[tok.Start:tok.End] {
				case "(":
					depth++
				case ")":
					depth--
				case "FROM":
					if depth != 0 {
						t.Errorf("%q leaves brackets open in\n%s", expr, s.SQL)
					}
				}
			}
		}
	})
}

// Metrics that double with every step are refused, once, where it begins.
func TestSizes(t *testing.T) {
	t.Parallel()
	yaml := "table: f\nmetrics:\n  - {atomic: c0, expr: count(*)}\n"
	for i := range 60 {
		yaml += fmt.Sprintf("  - {composite: c%d, expr: c%d + c%d}\n", i+1, i, i)
	}
	p, diags := project(&txtar.Archive{Files: []txtar.File{
		{Name: "retrofill.yml", Data: []byte("name: p\n")},
		{Name: "models/f.yml", Data: []byte("partition: {ds: \"${yyyy-mm-dd}\"}\n")},
		{Name: "models/f.sql", Data: []byte("SELECT 1 AS x\n")},
		{Name: "metrics/m.yml", Data: []byte(yaml)},
		{Name: "models/s.yml", Data: []byte("partition: {ds: \"${yyyy-mm-dd}\"}\ncompose: {from: f, grain: [x], metrics: [c3, c60]}\n")},
		{Name: "models/t.yml", Data: []byte("partition: {ds: \"${yyyy-mm-dd}\"}\ncompose: {from: f, grain: [x], metrics: [c9]}\n")},
	}})
	if len(diags) != 1 || diags[0].Code != "too_complex" || diags[0].Pos.String() != "metrics/m.yml:13:17" {
		t.Errorf("%v", diags)
	}
	if s := p.Table("s").SQL; s != "" {
		t.Errorf("%d bytes", len(s))
	}
	if n := strings.Count(p.Table("t").SQL, "count(*)"); n != 512 {
		t.Errorf("%d aggregates", n)
	}
}
