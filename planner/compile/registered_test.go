package compile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/plan"
)

// Registered fields are joined on key and partition, one join for each table
// that they come from, and only where they are read.
func TestRegistered(t *testing.T) {
	t.Parallel()
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	byDay := [][2]string{{"id", "id"}, {"ds", "day"}}
	tab := Table{
		Dialect: d, Schema: "dw", Name: "t", Key: []string{"id"},
		Partition: []plan.Partition{{Column: "ds", Type: "DATE"}},
		Nodes:     []Node{{Name: "a", Anchor: true, Fields: []string{"x"}}, {Name: "b", Fields: []string{"y"}}},
		Fields:    []Column{{Name: "id", Type: "INTEGER"}, {Name: "x", Type: "INTEGER"}, {Name: "y", Type: "INTEGER"}},
		Registered: []Registered{
			{Field: "r", Table: "src.scores", Column: "value", On: byDay},
			{Field: "s", Table: "src.Scores", Column: "s", On: byDay},
			{Field: "o", Table: "own", Column: "o", On: [][2]string{{"id", "id"}}},
			{Field: "n", Table: "src.later", Column: "n", On: byDay, Absent: true, Type: "DOUBLE"},
		},
	}
	for _, c := range []struct {
		needed []string
		want   string
	}{
		{[]string{"x"}, `"dw"."a"`},
		{[]string{"R"}, `(SELECT _n0."ds", _n0."id", _r0."value" AS "r" FROM "dw"."a" AS _n0 LEFT JOIN "src"."scores" AS _r0 ON _r0."id" = _n0."id" AND _r0."day" = _n0."ds")`},
		{[]string{"y", "s", "r"}, `(SELECT _n0."ds", _n0."id", _n0."y", _r0."value" AS "r", _r0."s" AS "s" FROM "dw"."b" AS _n0 LEFT JOIN "src"."scores" AS _r0 ON _r0."id" = _n0."id" AND _r0."day" = _n0."ds")`},
		{[]string{"o", "n"}, `(SELECT _n0."ds", _n0."id", _r0."o" AS "o", CAST(NULL AS DOUBLE) AS "n" FROM "dw"."a" AS _n0 LEFT JOIN "own" AS _r0 ON _r0."id" = _n0."id")`},
	} {
		got, _ := Source(tab, c.needed)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.needed, diff)
		}
	}
	want := `CREATE OR REPLACE VIEW "dw"."t" AS SELECT _n0."ds", _n0."id", _n0."x", _n1."y", _r0."value" AS "r", _r0."s" AS "s", _r1."o" AS "o", CAST(NULL AS DOUBLE) AS "n"` +
		` FROM "dw"."a" AS _n0 LEFT JOIN "dw"."b" AS _n1 ON _n1."ds" = _n0."ds" AND _n1."id" = _n0."id"` +
		` LEFT JOIN "src"."scores" AS _r0 ON _r0."id" = _n0."id" AND _r0."day" = _n0."ds" LEFT JOIN "own" AS _r1 ON _r1."id" = _n0."id"`
	if diff := cmp.Diff(want, View(tab)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}
