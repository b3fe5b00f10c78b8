package duckdb

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// edits are small changes of a query's text; each match is edited by itself.
func edits() []struct{ find, put string } {
	return []struct{ find, put string }{
		{`\bLEFT JOIN\b`, "JOIN"}, {`\bJOIN\b`, "LEFT JOIN"}, {`\bAND\b`, "OR"}, {` < `, " > "}, {` > `, " < "}, {` = `, " <> "}, {` <> `, " = "},
		{`\bDESC\b`, "ASC"}, {`\bsum\(`, "max("}, {`\bmax\(`, "min("}, {`\bDISTINCT\b`, ""}, {`\bUNION ALL\b`, "UNION"}, {`\bUNION\b`, "UNION ALL"},
		{`'paid'`, "'void'"}, {`'EUR'`, "'USD'"}, {`\bamount\b`, "discount"}, {`\bdiscount\b`, "amount"}, {`\bname\b`, "email"}, {`\bcity_id\b`, "referrer_id"},
		{`\bcustomer_id\b`, "order_id"}, {`\border_id\b`, "customer_id"}, {`\bcountry\b`, "name"}, {`\bstatus\b`, "currency"}, {`\bplaced_on\b`, "ds"},
		{`\borders\b`, "orders_v2"}, {`\bNOT\b`, ""}, {`\bEXISTS\b`, "NOT EXISTS"}, {`\bLIMIT \d+`, ""}, {`([ (,])(\d+)\b`, "${1}${2}1"}, {`\bROLLUP\b`, "CUBE"},
		{`\bINTERSECT\b`, "EXCEPT"}, {`\bSEMI\b`, "ANTI"}, {`\bRIGHT\b`, "FULL"}, {`\bFULL\b`, "LEFT"}, {`\bcount\(\*\)`, "count(DISTINCT 1)"}, {` - `, " + "}, {` \* `, " / "},
		{`WHERE [^()]*$`, ""}, {`\bORDER BY [a-z_.]+ DESC`, "ORDER BY 1"}, {`\bcoalesce\(`, "nullif("}, {`\b([a-z]+)\.customer_id = ([a-z]+)\.customer_id`, "$2.customer_id = $1.customer_id"},
	}
}

// TestCompareOnMutants edits queries and runs both versions: where Compare
// calls the rows or a field unchanged, the data must agree. (The reverse is
// allowed: an edit may not show on this data.)
func TestCompareOnMutants(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some thousand queries")
	}
	var file splitFile
	readCases(t, "split.yaml", &file)
	p := newTestParser(t)
	schema := schemaOf(t, file.Schema, file.Unique)
	db := world(t, file)
	run(t, db, "USE base")
	tried, equal := 0, 0
	for _, q := range claimQueries(t) {
		old, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: q.sql, Key: q.key}, schema)
		if diags.HasErrors() || old.Unsplittable != nil {
			t.Fatal(diags)
		}
		base, err := answer(db, q)
		if err != nil {
			t.Fatal(err)
		}
		var defs []sqlast.Definition
		seen := map[string]bool{q.sql: true}
		for _, e := range edits() {
			re := regexp.MustCompile(e.find)
			for _, m := range re.FindAllStringSubmatchIndex(q.sql, -1) {
				put := string(re.ExpandString(nil, e.put, q.sql, m))
				if s := q.sql[:m[0]] + put + q.sql[m[1]:]; !seen[s] {
					seen[s] = true
					defs = append(defs, sqlast.Definition{SQL: s, Key: q.key})
				}
			}
		}
		for i, r := range sqlast.SplitAll(context.Background(), p, defs, schema) {
			got, err := answer(db, claimQuery{sql: defs[i].SQL, key: q.key})
			if r.Diagnostics.HasErrors() {
				if err == nil && !slices.ContainsFunc(r.Diagnostics.Codes(), isNaming) {
					t.Errorf("the engine runs it, the splitter says %v\n%s", r.Diagnostics, defs[i].SQL)
				}
				continue
			}
			if err != nil || r.Analysis.Unsplittable != nil || old.RowSet.Nondeterministic != "" || r.Analysis.RowSet.Nondeterministic != "" {
				continue
			}
			tried++
			c := sqlast.Compare(old, r.Analysis)
			if c.RowSetChanged {
				continue
			}
			equal++
			if !maps.Equal(counts(base), counts(got)) {
				t.Errorf("rows differ but are called unchanged\n%s\n%s\n%s\n%s", q.sql, defs[i].SQL, old.RowSet.Canonical, r.Analysis.RowSet.Canonical)
				continue
			}
			for _, f := range r.Analysis.Fields {
				if slices.Contains(c.ChangedFields, strings.ToLower(f.Name)) || f.Nondeterministic != "" || slices.Contains(c.AddedFields, strings.ToLower(f.Name)) {
					continue
				}
				for k := range base {
					if column(base[k], f.Name) != column(got[k], f.Name) {
						t.Errorf("field %s differs but is called unchanged\n%s\n%s\n%s", f.Name, q.sql, defs[i].SQL, f.Canonical)
						break
					}
				}
			}
		}
	}
	t.Logf("%d mutants, %d with unchanged rows", tried, equal)
}

// isNaming tells the codes that the engine has no objection to.
func isNaming(code string) bool {
	switch code {
	case "unnamed_field", "duplicate_field", "key_not_a_field":
		return true
	}
	return false
}
