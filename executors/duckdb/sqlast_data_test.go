package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// claimQuery is a query whose analysis is tried on changed data.
type claimQuery struct {
	name, sql string
	key       []string
}

func claimQueries(t *testing.T) []claimQuery {
	t.Helper()
	var out []claimQuery
	b, err := os.ReadFile("testdata/split_queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(b), "\n") {
		key, text, ok := strings.Cut(line, "|")
		if strings.HasPrefix(line, "--") || !ok {
			continue
		}
		q := claimQuery{name: fmt.Sprintf("line%d", i+1), sql: strings.TrimSpace(text)}
		for _, k := range strings.Split(key, ",") {
			q.key = append(q.key, strings.TrimSpace(k))
		}
		out = append(out, q)
	}
	var file splitFile
	readCases(t, "split.yaml", &file)
	for _, c := range file.Cases {
		if c.Want == nil {
			continue
		}
		text := strings.ReplaceAll(c.SQL, "${bizdate}", "20240115")
		for k, v := range c.Params {
			text = strings.ReplaceAll(text, "${"+k+"}", v.Value)
		}
		out = append(out, claimQuery{name: c.ID, sql: strings.TrimSuffix(text, ";"), key: c.Key})
	}
	return out
}

// world is the data of the case files in tables without constraints, so that
// any column may be changed.
func world(t *testing.T, file splitFile) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", parserSource)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	run(t, db, "CREATE SCHEMA base")
	run(t, db, "USE base")
	for _, s := range append(slices.Clone(file.Schema), file.Data...) {
		run(t, db, s)
	}
	run(t, db, "CREATE SCHEMA w")
	run(t, db, "USE w")
	return db
}

func run(t *testing.T, db *sql.DB, s string) {
	t.Helper()
	if _, err := db.Exec(s); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
}

// answer gives the rows by key: for each key all its rows, each a map of
// column to text.
func answer(db *sql.DB, q claimQuery) (map[string][]map[string]string, error) {
	rows, err := db.Query("SELECT COLUMNS(*)::VARCHAR FROM (" + q.sql + "\n)")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	out := map[string][]map[string]string{}
	for rows.Next() {
		vals := make([]sql.NullString, len(cols))
		ptrs := make([]any, len(cols))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, c := range cols {
			row[strings.ToLower(c)] = fmt.Sprint(vals[i].Valid, vals[i].String)
		}
		var key []string
		for _, k := range q.key {
			key = append(key, row[strings.ToLower(k)])
		}
		k := strings.Join(key, "\x1f")
		out[k] = append(out[k], row)
	}
	return out, rows.Err()
}

// column gives one field's values under a key, as a multiset.
func column(rows []map[string]string, field string) string {
	var vs []string
	for _, r := range rows {
		vs = append(vs, r[strings.ToLower(field)])
	}
	sort.Strings(vs)
	return strings.Join(vs, "\x1f")
}

func counts(m map[string][]map[string]string) map[string]int {
	out := map[string]int{}
	for k, v := range m {
		out[k] = len(v)
	}
	return out
}

// TestSplitClaimsOnData tries what an analysis claims: a column that the row
// set does not read may hold anything without a row appearing or vanishing, a
// column that neither a field nor the row set reads never changes the field's
// values, and the physical order of rows changes nothing that is called
// deterministic.
func TestSplitClaimsOnData(t *testing.T) {
	t.Parallel()
	var file splitFile
	readCases(t, "split.yaml", &file)
	p := newTestParser(t)
	schema := schemaOf(t, file.Schema, file.Unique)
	db := world(t, file)
	tables := map[string][]string{}
	rows, err := db.Query(`SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'base' ORDER BY 1, ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var tb, c string
		if err := rows.Scan(&tb, &c); err != nil {
			t.Fatal(err)
		}
		tables[tb] = append(tables[tb], c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	queries := claimQueries(t)
	ans := map[string]*sqlast.Analysis{}
	base := map[string]map[string][]map[string]string{}
	restore := func() {
		for tb := range tables {
			run(t, db, "CREATE OR REPLACE TABLE w."+tb+" AS FROM base."+tb)
		}
	}
	restore()
	for _, q := range queries {
		an, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: q.sql, Key: q.key}, schema)
		if diags.HasErrors() || an.Unsplittable != nil {
			t.Fatalf("%s: %s\n%v %+v", q.name, q.sql, diags, an)
		}
		ans[q.name] = an
		a, err := answer(db, q)
		if err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		base[q.name] = a
	}
	check := func(table, what string, mayRows func(*sqlast.Analysis) bool, mayField func(*sqlast.Analysis, sqlast.Field) bool) {
		for _, q := range queries {
			an := ans[q.name]
			if table != "" && !slices.ContainsFunc(an.References, func(r sqlast.Reference) bool { return r.Table == table }) {
				continue
			}
			if an.RowSet.Nondeterministic != "" || mayRows(an) {
				continue
			}
			got, err := answer(db, q)
			if err != nil {
				continue // e.g. a scalar subquery that now gives two rows
			}
			if !maps.Equal(counts(base[q.name]), counts(got)) {
				t.Errorf("%s: %s: rows changed\n%s\nrow set reads %v\n%s", q.name, what, q.sql, an.RowSet.Reads, an.RowSet.Canonical)
				continue
			}
			for _, f := range an.Fields {
				if f.Nondeterministic != "" || mayField(an, f) {
					continue
				}
				for k, rs := range base[q.name] {
					if column(rs, f.Name) != column(got[k], f.Name) {
						t.Errorf("%s: %s: field %s changed\n%s\nreads %v", q.name, what, f.Name, q.sql, f.Reads)
						break
					}
				}
			}
		}
	}
	reads := func(refs []sqlast.ColumnRef, tb, c string) bool {
		return slices.Contains(refs, sqlast.ColumnRef{Table: tb, Column: c})
	}
	for _, tb := range slices.Sorted(maps.Keys(tables)) {
		for _, c := range tables[tb] {
			for i, change := range []string{
				// Rotate the values among the rows: unique ones stay unique.
				"CREATE OR REPLACE TABLE w." + tb + " AS SELECT a.* REPLACE (b." + c + " AS " + c + ") FROM base." + tb + " a JOIN base." + tb +
					" b ON b.rowid = (a.rowid + 1) % (SELECT count(*) FROM base." + tb + ")",
				"UPDATE w." + tb + " SET " + c + " = NULL",
			} {
				if st, ok := schema.Lookup(tb); i > 0 && ok && slices.ContainsFunc(st.Columns, func(x sqlast.Column) bool {
					return x.Name == c && x.Nullability == sqlast.NotNull
				}) {
					continue // the declared key promises a value
				}
				run(t, db, change)
				check(tb, tb+"."+c, func(an *sqlast.Analysis) bool { return reads(an.RowSet.Reads, tb, c) },
					func(_ *sqlast.Analysis, f sqlast.Field) bool { return reads(f.Reads, tb, c) })
				restore()
			}
		}
		run(t, db, "DELETE FROM w."+tb)
		check(tb, "no row in "+tb, func(an *sqlast.Analysis) bool { return slices.Contains(an.RowSet.Sources, tb) },
			func(an *sqlast.Analysis, f sqlast.Field) bool {
				for _, r := range an.References {
					if r.Table == tb && slices.Contains(r.Fields, f.Name) {
						return true
					}
				}
				return false
			})
		restore()
		run(t, db, "CREATE OR REPLACE TABLE w."+tb+" AS SELECT * FROM base."+tb+" ORDER BY rowid DESC")
	}
	check("", "other physical order", func(*sqlast.Analysis) bool { return false }, func(*sqlast.Analysis, sqlast.Field) bool { return false })
}
