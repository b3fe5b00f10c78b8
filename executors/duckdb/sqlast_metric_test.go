package duckdb

import (
	"maps"
	"testing"
	"testing/fstest"

	"github.com/retrofill/retrofill/modeling/load"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

// A changed atomic metric, filter or period changes the fields of a composed
// table that use it, and no other.
func TestComposedFingerprints(t *testing.T) {
	t.Parallel()
	p := newTestParser(t)
	base := map[string]string{
		"retrofill.yml": "name: p\n",
		"models/f.yml":  "key: [id]\npartition: {ds: \"${yyyy-mm-dd}\"}\n",
		"models/f.sql":  "SELECT id, carrier, miles, late FROM src.x WHERE ds = '${bizdate}'\n",
		"models/s.yml":  "partition: {ds: \"${yyyy-mm-dd}\"}\ncompose: {from: f, grain: [carrier], metrics: [legs, legs_7d, miles, good_7d, far_good_2w, rate_7d, month]}\n",
		"metrics/a.yml": "table: f\nmetrics:\n  - {atomic: legs, expr: count(*)}\n  - {atomic: miles, expr: sum(miles)}\n",
		"metrics/f.yml": "table: f\nmetrics:\n  - {filter: good, where: late < 5}\n  - {filter: far, where: miles > 100}\n",
		"metrics/p.yml": "metrics:\n  - {period: two_weeks, from: -13, to: 0}\n",
		"metrics/d.yml": `metrics:
  - {derived: legs_7d, metric: legs, period: 7d}
  - {derived: good_7d, metric: legs, filters: [good], period: 7d}
  - {derived: far_good_2w, metric: miles, filters: [good, far], period: two_weeks}
  - {derived: month, metric: miles, period: mtd}
  - {composite: rate_7d, expr: "good_7d / legs_7d"}
`,
	}
	schema := sqlast.NewSchema(sqlast.Table{Name: "f", Logical: true, Columns: []sqlast.Column{
		{Name: "ds", Type: "DATE"}, {Name: "id"}, {Name: "carrier"}, {Name: "miles"}, {Name: "late"},
	}})
	analysis := func(edits map[string]string) *sqlast.Analysis {
		t.Helper()
		fsys := fstest.MapFS{}
		files := maps.Clone(base)
		maps.Copy(files, edits)
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		project, diags := load.Load(fsys)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		s := project.Table("s")
		a, diags := sqlast.Split(t.Context(), p, sqlast.Definition{SQL: s.SQL, File: s.CodeFile(), Key: s.Key}, schema)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return a
	}
	old := analysis(nil)
	if u := old.Unsplittable; u != nil || len(old.Fields) != 8 {
		t.Fatalf("%d fields, %+v", len(old.Fields), u)
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"white space":      {"metrics/a.yml", "table: F\nmetrics:\n  - {atomic: miles, expr: \"SUM( miles )\", description: x}\n  - {atomic: LEGS, expr: \"count( * )\"}\n", ""},
		"atomic":           {"metrics/a.yml", "table: f\nmetrics:\n  - {atomic: legs, expr: count(*)}\n  - {atomic: miles, expr: sum(miles + 1)}\n", "changed far_good_2w,miles,month"},
		"filter":           {"metrics/f.yml", "table: f\nmetrics:\n  - {filter: good, where: late <= 5}\n  - {filter: far, where: (miles > 100)}\n", "changed far_good_2w,good_7d,rate_7d"},
		"the other filter": {"metrics/f.yml", "table: f\nmetrics:\n  - {filter: good, where: late < 5}\n  - {filter: far, where: miles > 200}\n", "changed far_good_2w"},
		"composite":        {"metrics/d.yml", base["metrics/d.yml"][:len(base["metrics/d.yml"])-len("good_7d / legs_7d\"}\n")] + "good_7d / nullif(legs_7d, 0)\"}\n", "changed rate_7d"},
		"unused metric":    {"metrics/x.yml", "metrics: [{derived: more, metric: legs, period: 2d}]", ""},
		"narrower metric":  {"models/s.yml", "partition: {ds: \"${yyyy-mm-dd}\"}\ncompose: {from: f, grain: [carrier], metrics: [legs, legs_7d, miles, good_7d, far_good_2w, rate_7d, month, more]}\n", "added more"},
		"wider period":     {"metrics/p.yml", "metrics:\n  - {period: two_weeks, from: -14, to: 0}\n", "changed far_good_2w; rows"},
		"other grain":      {"models/s.yml", "partition: {ds: \"${yyyy-mm-dd}\"}\ncompose: {from: f, grain: [id], metrics: [legs, legs_7d, miles, good_7d, far_good_2w, rate_7d, month]}\n", "added id; removed carrier; rows; key"},
	} {
		edits := map[string]string{c.file: c.text}
		if name == "narrower metric" {
			edits["metrics/x.yml"] = "metrics: [{derived: more, metric: legs, period: 2d}]"
		}
		if got := summary(sqlast.Compare(old, analysis(edits))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
