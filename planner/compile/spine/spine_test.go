package spine

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/dialect"
)

func TestLiteralType(t *testing.T) {
	t.Parallel()
	for n, want := range map[string]string{
		"7": "INTEGER", "01": "INTEGER", "-2": "INTEGER", "2147483647": "INTEGER", "2147483648": "BIGINT", "9223372036854775808": "HUGEINT",
		"0.125": "DECIMAL(4,3)", "10.75": "DECIMAL(4,2)", "1e3": "DOUBLE", "": "", "2024-01-31": "", "x": "", "+5": "", "1.2.3": "", "-": "",
	} {
		if got := literalType(n); got != want {
			t.Errorf("literalType(%q) = %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct {
		types []string
		want  string
	}{
		{[]string{"INTEGER"}, "INTEGER"},
		{[]string{"INTEGER", "BIGINT"}, "BIGINT"},
		{[]string{"DECIMAL(4,3)", "DECIMAL(4,2)"}, "DECIMAL(5,3)"},
		{[]string{"INTEGER", "DECIMAL(2,1)"}, "DECIMAL(11,1)"},
		{[]string{"DOUBLE", "INTEGER"}, "DOUBLE"},
	} {
		if got := widest(c.types); got != c.want {
			t.Errorf("widest(%v) = %q, want %q", c.types, got, c.want)
		}
	}
}

func TestCheckSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots, n int
		empty    []int
		want     []int
	}{
		{0, 4, nil, nil},
		{1, 4, nil, []int{0}},
		{10, 0, []int{3}, nil},
		{10, 2, nil, []int{0, 9}},
		{10, 2, []int{3}, []int{0, 3}},
		{10, 3, []int{3, 4}, []int{0, 3, 9}},
		{3, 9, []int{1}, []int{0, 1, 2}},
	} {
		got := CheckSlots(c.slots, c.n, c.empty, 7)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("CheckSlots(%d, %d, %v): %s", c.slots, c.n, c.empty, d)
		}
		if d := cmp.Diff(got, CheckSlots(c.slots, c.n, c.empty, 7)); d != "" {
			t.Errorf("not a function of its arguments: %s", d)
		}
	}
}

// noParser fails the test if a text gets as far as the parser.
type noParser struct{ t *testing.T }

func (p noParser) ParseSelects(_ context.Context, sqls []string) ([]sqlast.ParseResult, error) {
	p.t.Errorf("parsed %q", sqls)
	return nil, nil
}

// TestPlaces: refusals that need no parser name file, line and column.
func TestPlaces(t *testing.T) {
	t.Parallel()
	set, ds := param.NewSet(param.Config{})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	src := param.Source{Text: "select '${bizdate}';\n  select 2", Pos: diag.Pos{File: "models/a.sql", Line: 3, Column: 5}}
	tpl, ds := param.ParseCode(src, set)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	date, err := bizdate.Parse("2024-01-31")
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := Choose(t.Context(), Input{Dialect: d, Body: Body{Template: tpl, Parser: noParser{t}}, Slots: []Slot{{ID: "2024-01-31", At: param.Instant{Bizdate: date}}}})
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	if got := r.Error(); !strings.HasPrefix(got, "models/a.sql:4:3: multi_statement: ") {
		t.Errorf("%s", got)
	}
	if _, _, err := Choose(t.Context(), Input{Dialect: d, Body: Body{Template: tpl, Parser: noParser{t}}}); err == nil {
		t.Error("no slots are no error")
	}
}
