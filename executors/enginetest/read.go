package enginetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors"
)

func testTypes(t *testing.T, f *fixture) {
	table := f.Dialect.Table(schema, "types")
	var columns, values, nulls []string
	for i, typ := range f.Types {
		columns = append(columns, fmt.Sprintf("c%d %s", i, typ.Name))
		values = append(values, typ.Literal)
		nulls = append(nulls, "NULL")
	}
	f.prepare(t, "CREATE TABLE IF NOT EXISTS "+table+" (id INTEGER, "+strings.Join(columns, ", ")+")")
	f.run(t, executors.Unit{Marker: marker("types", 1), Statements: []executors.Statement{
		{Role: executors.RoleInsert, Target: "types", SQL: "INSERT INTO " + table + " SELECT 1, " + strings.Join(values, ", ")},
		{Role: executors.RoleInsert, Target: "types", SQL: "INSERT INTO " + table + " SELECT 2, " + strings.Join(nulls, ", ")},
	}})
	for _, limit := range []int{0, 10} {
		rows, err := f.engine.Query(t.Context(), "SELECT * FROM "+table+" ORDER BY id", limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows.Values) != 2 || rows.Truncated {
			t.Fatalf("%d rows, truncated %v", len(rows.Values), rows.Truncated)
		}
		for i, typ := range f.Types {
			if d := cmp.Diff(typ.Want, rows.Values[0][i+1]); d != "" {
				t.Errorf("%s %s (-want +got):\n%s", typ.Name, typ.Literal, d)
			}
			if v := rows.Values[1][i+1]; v != nil {
				t.Errorf("%s: NULL came as %v", typ.Name, v)
			}
		}
	}
}

// oddNames are identifiers that quoting must carry.
func oddNames(max int) []string {
	names := []string{"select", "Order", `with "quotes"`, "with 'single'", "with space", "ünïcode ☃", "semi;colon", "dash--dash", "a.b", "$1", "ta\tb", strings.Repeat("long_", 40)}
	for i, n := range names {
		if max > 0 && len(n) > max {
			names[i] = n[:max]
		}
	}
	return names
}

func testNames(t *testing.T, f *fixture) {
	q := f.Dialect.Quote
	for i, name := range oddNames(f.Dialect.MaxIdentifier) {
		table := f.Dialect.Table(name, name)
		instance := name + "@2013-01-01"
		f.prepare(t, "CREATE SCHEMA IF NOT EXISTS "+q(name),
			"CREATE TABLE IF NOT EXISTS "+table+" ("+q(name)+" INTEGER, other VARCHAR)")
		res := f.run(t, executors.Unit{Marker: marker(instance, 1), Statements: []executors.Statement{
			{Role: executors.RoleDelete, Target: name, SQL: "DELETE FROM " + table},
			{Role: executors.RoleInsert, Target: name, SQL: "INSERT INTO " + table + " (" + q(name) + ", other) SELECT " + fmt.Sprint(i) + ", " + f.Dialect.String(name)},
			{Role: executors.RoleFacts, Name: name, SQL: "SELECT count(*) AS " + q(name) + " FROM " + table},
		}})
		if n := res.Facts[name+"."+name]; n != 1 {
			t.Errorf("%q: facts %v", name, res.Facts)
		}
		if n := res.Facts["inserted."+name]; n != 1 {
			t.Errorf("%q: facts %v", name, res.Facts)
		}
		f.wantMarker(t, instance, 1)
		rows, err := f.engine.Query(t.Context(), "SELECT "+q(name)+", other FROM "+table, 0)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if d := cmp.Diff([][]any{{int64(i), name}}, rows.Values); d != "" {
			t.Errorf("%q: rows (-want +got):\n%s", name, d)
		}
		if rows.Columns[0].Name != name {
			t.Errorf("%q: the column came as %q", name, rows.Columns[0].Name)
		}
		infos, err := f.engine.Catalog(t.Context(), []string{name})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if len(infos) != 1 || infos[0].Name != name || infos[0].Schema != name || infos[0].Columns[0].Name != name {
			t.Errorf("%q: catalog %+v", name, infos)
		}
	}
}

func testBigResult(t *testing.T, f *fixture) {
	const n = 200_000
	rows, err := f.engine.Query(t.Context(), f.Numbers(n), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Values) != n || rows.Truncated {
		t.Fatalf("%d rows, truncated %v; want %d", len(rows.Values), rows.Truncated, n)
	}
	for _, limit := range []int{1, 10, 5000} {
		rows, err := f.engine.Query(t.Context(), "SELECT n FROM ("+f.Numbers(n)+") q ORDER BY n DESC", limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows.Values) != limit || !rows.Truncated {
			t.Fatalf("limit %d: %d rows, truncated %v", limit, len(rows.Values), rows.Truncated)
		}
		for i, r := range rows.Values {
			if r[0] != int64(n-1-i) {
				t.Fatalf("limit %d: row %d is %v: the order is lost", limit, i, r[0])
			}
		}
	}
	rows, err = f.engine.Query(t.Context(), f.Numbers(10), 10)
	if err != nil || len(rows.Values) != 10 || rows.Truncated {
		t.Errorf("exactly the limit: %d rows, truncated %v, %v", len(rows.Values), rows.Truncated, err)
	}
	rows, err = f.engine.Query(t.Context(), "SELECT 1 AS a, 2 AS a WHERE false; -- nothing", 10)
	if err != nil || len(rows.Values) != 0 || len(rows.Columns) != 2 || rows.Columns[1].Name != "a" {
		t.Errorf("no rows: %+v, %v", rows, err)
	}
}

func testQueryOnlyReads(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	for _, sql := range []string{
		"DELETE FROM " + f.table,
		"SELECT 1; DELETE FROM " + f.table,
		"DELETE FROM " + f.table + "; SELECT 1",
		"DROP TABLE " + f.table,
		"CREATE TABLE " + f.Dialect.Table(schema, "u") + " (a INTEGER)",
		"", ";", "-- nothing",
	} {
		if _, err := f.engine.Query(t.Context(), sql, 10); err == nil {
			t.Errorf("%q: no error", sql)
		}
	}
	f.wantContent(t, "2013-01-01|1|old")
}

func testDescribe(t *testing.T, f *fixture) {
	d, ok := f.engine.(executors.Describer)
	if !ok {
		t.Skip("the engine is no executors.Describer")
	}
	got, err := d.Describe(t.Context(), "SELECT ds, k AS "+f.Dialect.Quote("a b")+", v FROM "+f.table+" -- the end\n;")
	if err != nil {
		t.Fatal(err)
	}
	want := []executors.Column{{Name: "ds", Type: "DATE"}, {Name: "a b", Type: "INTEGER"}, {Name: "v", Type: "VARCHAR"}}
	for i := range got {
		got[i].NotNull = false // whether a query's column may be NULL is not known everywhere
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("columns (-want +got):\n%s", d)
	}
	for _, bad := range []string{"SELECT nothing FROM " + f.table, "SELECT", "DELETE FROM " + f.table, "SELECT 1; DELETE FROM " + f.table, ""} {
		if _, err := d.Describe(t.Context(), bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func testCatalog(t *testing.T, f *fixture) {
	q := f.Dialect.Quote
	f.prepare(t, "CREATE TABLE IF NOT EXISTS "+f.Dialect.Table(schema, "keyed")+" (a INTEGER, b INTEGER, c VARCHAR NOT NULL, PRIMARY KEY (a, b), UNIQUE (c))",
		"CREATE SCHEMA IF NOT EXISTS "+q("Other"),
		"CREATE TABLE IF NOT EXISTS "+f.Dialect.Table("Other", "x")+" (a INTEGER)",
		"CREATE OR REPLACE VIEW "+f.Dialect.Table(schema, "vw")+" AS SELECT k, v FROM "+f.table)
	f.run(t, f.replace("2013-01-01", "SELECT CAST(n AS INTEGER) AS k, 'a' AS v FROM ("+f.Numbers(123)+") x"))
	infos, err := f.engine.Catalog(t.Context(), []string{strings.ToUpper(schema)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		if infos[i].Name == "t" && infos[i].Rows != -1 && infos[i].Rows != 123 {
			t.Errorf("estimated rows of t: %d", infos[i].Rows)
		}
		infos[i].Rows = 0
	}
	want := []executors.TableInfo{
		{Schema: schema, Name: "keyed", Keys: [][]string{{"a", "b"}, {"c"}}, Columns: []executors.Column{
			{Name: "a", Type: "INTEGER", NotNull: true}, {Name: "b", Type: "INTEGER", NotNull: true}, {Name: "c", Type: "VARCHAR", NotNull: true}}},
		{Schema: schema, Name: "t", Columns: []executors.Column{
			{Name: "ds", Type: "DATE", NotNull: true}, {Name: "k", Type: "INTEGER", NotNull: true}, {Name: "v", Type: "VARCHAR"}}},
		{Schema: schema, Name: "vw", View: true, Columns: []executors.Column{{Name: "k", Type: "INTEGER"}, {Name: "v", Type: "VARCHAR"}}},
	}
	if d := cmp.Diff(want, infos); d != "" {
		t.Errorf("catalog (-want +got):\n%s", d)
	}
	all, err := f.engine.Catalog(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Schema+"."+i.Name)
	}
	if d := cmp.Diff([]string{"Other.x", schema + ".keyed", schema + ".t", schema + ".vw"}, names); d != "" {
		t.Errorf("all schemas (-want +got):\n%s", d)
	}
	none, err := f.engine.Catalog(t.Context(), []string{"nowhere"})
	if err != nil || len(none) != 0 {
		t.Errorf("a missing schema: %v, %v", none, err)
	}
}

func testVersion(t *testing.T, f *fixture) {
	v, ok := f.engine.(executors.Versioner)
	if !ok {
		t.Skip("the engine is no executors.Versioner")
	}
	s, err := v.Version(t.Context())
	if err != nil || !strings.ContainsAny(s, "0123456789") {
		t.Errorf("version %q, %v", s, err)
	}
}
