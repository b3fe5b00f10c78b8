package metric_test

import (
	"flag"
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
