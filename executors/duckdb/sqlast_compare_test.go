package duckdb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// summary writes a Change in one line.
func summary(c sqlast.Change) string {
	var out []string
	if len(c.ChangedFields) > 0 {
		out = append(out, "changed "+strings.Join(c.ChangedFields, ","))
	}
	if len(c.AddedFields) > 0 {
		out = append(out, "added "+strings.Join(c.AddedFields, ","))
	}
	if len(c.RemovedFields) > 0 {
		out = append(out, "removed "+strings.Join(c.RemovedFields, ","))
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{c.RowSetChanged, "rows"}, {c.SourceChanged, "sources"}, {c.KeyChanged, "key"}} {
		if f.on {
			out = append(out, f.name)
		}
	}
	return strings.Join(out, "; ")
}

func TestCompare(t *testing.T) {
	t.Parallel()
	var file splitFile
	readCases(t, "split.yaml", &file)
	p := newTestParser(t)
	schema := schemaOf(t, file.Schema, file.Unique)
	tests := []struct{ name, old, cur, want string }{
		{"using is on", "SELECT c.customer_id, ci.name FROM customers c LEFT JOIN cities ci USING (city_id)",
			"SELECT c.customer_id, ci.name FROM customers c LEFT JOIN cities ci ON ci.city_id = c.city_id", ""},
		{"window wrapped", "SELECT order_id, row_number() OVER (ORDER BY order_id) AS rn FROM orders",
			"SELECT * FROM (SELECT order_id, row_number() OVER (ORDER BY order_id) AS rn FROM orders) x", ""},
		{"group wrapped", "SELECT status, sum(amount) AS s FROM orders GROUP BY ALL",
			"WITH g AS (SELECT status, sum(amount) AS s FROM orders GROUP BY status) SELECT status, s FROM g", ""},
		{"inner join turned", "SELECT o.order_id, c.name FROM orders o JOIN customers c ON c.customer_id = o.customer_id",
			"SELECT o.order_id, c.name FROM customers c JOIN orders o ON o.customer_id = c.customer_id", ""},
		{"filter under a window moved", "SELECT order_id, n FROM (SELECT order_id, status, count(*) OVER () AS n FROM orders) WHERE status = 'paid'",
			"SELECT order_id, n FROM (SELECT order_id, status, count(*) OVER () AS n FROM orders WHERE status = 'paid')", "rows"},
		{"windows of two levels swapped",
			"SELECT order_id, n, count(*) OVER () AS m FROM (SELECT order_id, status, count(*) OVER () AS n FROM orders) WHERE status = 'paid'",
			"SELECT order_id, n, m FROM (SELECT order_id, m, count(*) OVER () AS n FROM (SELECT order_id, status, count(*) OVER () AS m FROM orders) WHERE status = 'paid')", "changed m,n"},
		{"unused window in a CTE", "SELECT order_id FROM orders WHERE amount > 1",
			"WITH b AS (SELECT order_id, amount, row_number() OVER () AS rn FROM orders) SELECT order_id FROM b WHERE amount > 1", ""},
		{"roles of a self-join", "SELECT a.customer_id, a.name AS n FROM customers a JOIN customers b ON a.referrer_id = b.customer_id",
			"SELECT a.customer_id, b.name AS n FROM customers a JOIN customers b ON a.referrer_id = b.customer_id", "changed n"},
		{"constant of the nullable side", "SELECT c.customer_id, x.one FROM customers c LEFT JOIN (SELECT city_id, 1 AS one FROM cities) x ON x.city_id = c.city_id",
			"SELECT c.customer_id, 1 AS one FROM customers c", "changed one"},
		{"one more table of the same name around", "SELECT c.customer_id, (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id) AS n FROM customers c",
			"SELECT c.customer_id, (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id) AS n FROM customers c JOIN orders p ON p.order_id = c.customer_id", "rows; sources"},
		{"window added over a grouped CTE", "WITH g AS (SELECT status, sum(amount) AS s FROM orders GROUP BY ALL) SELECT status, s FROM g",
			"WITH g AS (SELECT status, sum(amount) AS s FROM orders GROUP BY ALL) SELECT status, s, rank() OVER (ORDER BY s) AS r FROM g", "added r"},
		{"filter over or under a window over groups",
			"SELECT status, n FROM (SELECT status, s, count(*) OVER () AS n FROM (SELECT status, sum(amount) AS s FROM orders GROUP BY ALL)) WHERE s > 1",
			"SELECT status, n FROM (SELECT status, s, count(*) OVER () AS n FROM (SELECT status, sum(amount) AS s FROM orders GROUP BY ALL) WHERE s > 1)", "rows"},
		{"window of a joined query newly read", "SELECT c.customer_id, r.amount FROM customers c LEFT JOIN (SELECT order_id, amount, row_number() OVER (ORDER BY order_id) AS rn FROM orders) r ON r.order_id = c.customer_id",
			"SELECT c.customer_id, r.amount, r.rn FROM customers c LEFT JOIN (SELECT order_id, amount, row_number() OVER (ORDER BY order_id) AS rn FROM orders) r ON r.order_id = c.customer_id", "added rn"},
		{"window in a branch", "SELECT order_id, 1 AS n FROM orders UNION ALL SELECT order_id, 2 FROM orders_v2",
			"SELECT order_id, count(*) OVER () AS n FROM orders UNION ALL SELECT order_id, 2 FROM orders_v2", "changed n"},
		{"arguments of a table function", "SELECT order_id, r.i FROM order_lines l, range(l.qty) r(i)", "SELECT order_id, r.i FROM order_lines l, range(l.qty + 1) r(i)", "changed i; rows"},
		{"text or number", "SELECT order_id, 1 AS v FROM orders", "SELECT order_id, '1' AS v FROM orders", "changed v"},
		{"decimal digits", "SELECT order_id, 1.5 AS v FROM orders", "SELECT order_id, 1.50 AS v FROM orders", "changed v"},
		{"grouping sets", "SELECT status, sum(amount) AS s FROM orders GROUP BY status", "SELECT status, sum(amount) AS s FROM orders GROUP BY ROLLUP (status)", "rows"},
		{"group by a constant", "SELECT 1 AS one, sum(amount) AS s FROM orders", "SELECT 1 AS one, sum(amount) AS s FROM orders GROUP BY 1", "rows"},
		{"aggregate order", "SELECT list(amount ORDER BY order_id) AS l FROM orders", "SELECT list(amount ORDER BY order_id DESC) AS l FROM orders", "changed l"},
		{"lambda renamed", "SELECT order_id, list_transform([amount], x -> x + 1) AS l FROM orders", "SELECT order_id, list_transform([amount], y -> y + 1) AS l FROM orders", ""},
		{"struct or table", "SELECT visit_id, payload.x AS v FROM visits", "SELECT visit_id, visits.x AS v FROM visits", "changed v"},
		{"recursive reformatted", "WITH RECURSIVE u AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM u WHERE n < 3) SELECT n FROM u",
			"with recursive u AS (SELECT 1 AS n\n UNION ALL SELECT n + 1 FROM u WHERE n < 3) SELECT n FROM u -- x", ""},
		{"recursive edited", "WITH RECURSIVE u AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM u WHERE n < 3) SELECT n FROM u",
			"WITH RECURSIVE u AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM u WHERE n < 4) SELECT n FROM u", "rows"},
		{"time expression or parameter", "SELECT order_id, ds = '${yyyymmdd - 1}' AS y FROM orders", "SELECT order_id, ds = '${prev}' AS y FROM orders", ""},
		{"values edited", "SELECT id, v FROM (VALUES (1, 'a'), (2, 'b')) t(id, v)", "SELECT id, v FROM (VALUES (1, 'a'), (2, 'c')) t(id, v)", "changed v"},
		{"values added", "SELECT id FROM (VALUES (1), (2)) t(id)", "SELECT id FROM (VALUES (1), (2), (3)) t(id)", "changed id; rows"},
		{"exists or not in a field", "SELECT customer_id, EXISTS (FROM orders o WHERE o.customer_id = c.customer_id) AS e FROM customers c",
			"SELECT customer_id, NOT EXISTS (FROM orders o WHERE o.customer_id = c.customer_id) AS e FROM customers c", "changed e"},
		{"asof kind", "SELECT o.order_id, r.rate FROM orders o ASOF LEFT JOIN rates r ON r.currency = o.currency AND r.ds <= o.ds",
			"SELECT o.order_id, r.rate FROM orders o ASOF JOIN rates r ON r.currency = o.currency AND r.ds <= o.ds", "rows"},
		{"unneeded join inside a joined query", "SELECT c.customer_id, d.name FROM customers c LEFT JOIN (SELECT x.city_id, x.name FROM cities x) d USING (city_id)",
			"SELECT c.customer_id, d.name FROM customers c LEFT JOIN (SELECT x.city_id, x.name FROM cities x LEFT JOIN countries k ON k.country = x.country) d USING (city_id)", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var ans [2]*sqlast.Analysis
			for i, s := range []string{tt.old, tt.cur} {
				an, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: s, Params: map[string]string{"prev": "${yyyymmdd-1}"}}, schema)
				if diags.HasErrors() {
					t.Fatal(diags)
				}
				ans[i] = an
			}
			c := sqlast.Compare(ans[0], ans[1])
			if got := summary(c); got != tt.want {
				t.Errorf("%s\n%s\nwant %q, got %q\n%+v", tt.old, tt.cur, tt.want, got, c.Reasons)
			}
		})
	}
}

// TestAnalysisRoundTrip: an analysis survives JSON, and its Definition and
// SchemaSnapshot alone give it again.
func TestAnalysisRoundTrip(t *testing.T) {
	t.Parallel()
	var file splitFile
	readCases(t, "split.yaml", &file)
	p := newTestParser(t)
	schema := schemaOf(t, file.Schema, file.Unique)
	for _, c := range file.Cases {
		if c.Error != "" {
			continue
		}
		def := sqlast.Definition{SQL: c.SQL, File: c.ID, Key: c.Key, Params: exprsOf(c.Params)}
		an, diags := sqlast.Split(context.Background(), p, def, schema)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		b, err := json.Marshal(an)
		if err != nil {
			t.Fatal(err)
		}
		var back sqlast.Analysis
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		again, diags := sqlast.Split(context.Background(), p, back.Definition, back.Schema.Schema())
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		b2, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(b), string(b2)); d != "" {
			t.Errorf("%s: %s", c.ID, d)
		}
	}
}

// TestSplitAllSpeed keeps the cold analysis of a large project in seconds.
func TestSplitAllSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("a measurement")
	}
	var file splitFile
	readCases(t, "split.yaml", &file)
	p := newTestParser(t)
	schema := schemaOf(t, file.Schema, file.Unique)
	var defs []sqlast.Definition
	for i := range 1000 {
		defs = append(defs, sqlast.Definition{Key: []string{"order_id"}, SQL: fmt.Sprintf(`WITH paid AS (SELECT o.*, c.name, c.city_id FROM orders o LEFT JOIN customers c ON c.customer_id = o.customer_id WHERE o.ds = '${bizdate}'),
lines AS (SELECT order_id, count(*) AS n, sum(qty * price) AS total, max(sku) AS top FROM order_lines GROUP BY order_id)
SELECT p.order_id, p.amount - coalesce(p.discount, 0) AS net, p.name, ci.country, co.continent, l.n, l.total, l.top,
  row_number() OVER (PARTITION BY p.customer_id ORDER BY p.placed_on, p.order_id) AS rn,
  CASE WHEN p.amount > %d THEN 'big' WHEN p.amount > 10 THEN 'mid' ELSE 'small' END AS size,
  r.rate * p.amount AS eur, p.status, p.currency, p.placed_on
FROM paid p LEFT JOIN cities ci ON ci.city_id = p.city_id LEFT JOIN countries co ON co.country = ci.country
LEFT JOIN lines l ON l.order_id = p.order_id LEFT JOIN rates r ON r.currency = p.currency AND r.ds = '${bizdate}'
WHERE p.status <> 'void'`, i)})
	}
	start := time.Now()
	for _, r := range sqlast.SplitAll(context.Background(), p, defs, schema) {
		if r.Diagnostics.HasErrors() || r.Analysis.Unsplittable != nil {
			t.Fatal(r.Diagnostics)
		}
	}
	if d := time.Since(start); d > 30*time.Second { // a shared machine may be slow
		t.Errorf("1,000 tables took %v, the aim is 3 s on two free cores", d)
	} else {
		t.Logf("1,000 tables in %v", d)
	}
}
