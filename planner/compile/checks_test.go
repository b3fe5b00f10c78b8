package compile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/plan"
)

func TestChecks(t *testing.T) {
	t.Parallel()
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	two, five := int64(2), int64(5)
	table := Table{
		Dialect: d, Schema: "dw", Name: "f", Key: []string{"k"}, Body: "SELECT 1",
		Partition: []plan.Partition{{Column: "ds", Param: "p", Type: "DATE"}},
		Fields:    []Column{{"k", "BIGINT"}, {"a b", "VARCHAR"}, {"c", "INTEGER"}},
		Nodes:     []Node{{Name: "n1", Anchor: true, Fields: []string{"a b"}, Write: true}, {Name: "n2", Fields: []string{"c"}}},
		Checks: []Check{
			{Kind: "not_null", Fields: []string{"a b", "k"}},
			{Kind: "unique", Fields: []string{"k", "a b"}},
			{Kind: "accepted_values", Fields: []string{"a b"}, Values: []string{"x", "it's"}},
			{Kind: "rows_between", Min: &two, Max: &five},
			{Kind: "rows_between", Max: &five},
			{Kind: "not_null", Fields: []string{"c"}}, // n2 is not written
			{Kind: "sql"},
		},
	}
	stmts, rules := Rewrite(table)
	sql := stmts[len(stmts)-1].SQL
	for _, want := range []string{
		`count(*) FILTER (WHERE "a b" IS NULL OR "k" IS NULL) AS check_1`,
		`count(DISTINCT ("k", "a b")) FILTER (WHERE NOT ("k" IS NULL OR "a b" IS NULL)) AS check_2`,
		`count(*) FILTER (WHERE CAST("a b" AS VARCHAR) NOT IN ('x', 'it''s')) AS check_3`,
		`CASE WHEN count(*) < 2 OR count(*) > 5 THEN 1 ELSE 0 END AS check_4`,
		`CASE WHEN count(*) > 5 THEN 1 ELSE 0 END AS check_5`,
	} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %s in\n%s", want, sql)
		}
	}
	var got []string
	for _, r := range rules {
		if r.Code == "check_failed" {
			got = append(got, r.Fact+": "+r.Message)
		}
	}
	want := []string{
		"n1.check_1: the check not_null [a b, k] of f does not hold in this slot",
		"n1.check_2: the check unique [k, a b] of f does not hold in this slot",
		"n1.check_3: the check accepted_values of a b [x, it's] of f does not hold in this slot",
		"n1.check_4: the check rows_between [2, 5] of f does not hold in this slot",
		"n1.check_5: the check rows_between [, 5] of f does not hold in this slot",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
