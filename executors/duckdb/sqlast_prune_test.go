package duckdb

import (
	"context"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	var file splitFile
	readCases(t, "split.yaml", &file)
	p := newTestParser(t)
	schema := schemaOf(t, file.Schema, file.Unique)
	tests := []struct{ name, sql, fields, want string }{ // want "" = refused
		{"join dropped", "SELECT c.customer_id, c.name, -- who\n ci.country /* where */ FROM customers c LEFT JOIN cities ci ON ci.city_id = c.city_id WHERE c.vip",
			"customer_id,name", "SELECT c.customer_id,\n  c.name /* where */ FROM customers c  WHERE c.vip"},
		{"join kept", "SELECT c.customer_id, c.name, ci.country FROM customers c LEFT JOIN cities ci ON ci.city_id = c.city_id",
			"customer_id,country", "SELECT c.customer_id,\n  ci.country FROM customers c LEFT JOIN cities ci ON ci.city_id = c.city_id"},
		{"snowflake", "SELECT c.customer_id, ci.name AS city, co.continent FROM customers c LEFT JOIN cities ci USING (city_id) LEFT JOIN countries AS co ON co.country = ci.country",
			"customer_id,city", "SELECT c.customer_id,\n  ci.name AS city FROM customers c LEFT JOIN cities ci USING (city_id) "},
		{"CTE and parameter", "WITH b AS (SELECT * FROM orders WHERE ds = '${bizdate}') SELECT order_id, amount, status FROM b", "order_id,status",
			"WITH b AS (SELECT * FROM orders WHERE ds = '${bizdate}') SELECT order_id,\n  status FROM b"},
		{"alias used elsewhere", "SELECT order_id, amount - discount AS net, net * 2 AS twice FROM orders", "order_id,twice", ""},
		{"group position", "SELECT status, currency, sum(amount) AS s FROM orders GROUP BY 1, 2", "currency,s", ""},
		{"group all, aggregate dropped", "SELECT status, sum(amount) AS s, count(*) AS n FROM orders GROUP BY ALL", "status,n", "SELECT status,\n  count(*) AS n FROM orders GROUP BY ALL"},
		{"group all, key dropped", "SELECT status, currency, count(*) AS n FROM orders GROUP BY ALL", "status,n", ""},
		{"distinct", "SELECT DISTINCT customer_id, status FROM orders", "customer_id", ""},
		{"set operation", "SELECT order_id, amount FROM orders UNION ALL SELECT order_id, amount FROM orders_v2", "order_id", ""},
		{"unnest", "SELECT sku, name, unnest(tags) AS tag FROM products", "sku,name", ""},
		{"window", "SELECT order_id, status, row_number() OVER (ORDER BY order_id) AS rn FROM orders QUALIFY rn < 3", "order_id", ""},
		{"order by position", "SELECT order_id, amount FROM orders ORDER BY 2 LIMIT 3", "order_id", ""},
		{"star and more", "SELECT o.*, c.name FROM orders o LEFT JOIN customers c ON c.customer_id = o.customer_id",
			"order_id,customer_id,placed_on,status,amount,discount,currency,ds", "SELECT o.* FROM orders o "},
		{"part of a star", "SELECT * FROM orders", "order_id", ""},
		{"is distinct from", "SELECT order_id, amount IS DISTINCT FROM discount AS d, status FROM orders", "order_id,d", "SELECT order_id,\n  amount IS DISTINCT FROM discount AS d FROM orders"},
		{"aggregate made global", "SELECT status, max(amount) AS m FROM (SELECT 'x' AS status, amount FROM orders) GROUP BY status", "m",
			"SELECT max(amount) AS m FROM (SELECT 'x' AS status, amount FROM orders) GROUP BY status"},
		{"lone aggregate dropped", "SELECT 1 AS one, sum(amount) AS s FROM orders", "one", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			an, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: tt.sql}, schema)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			got, ok, why := sqlast.Prune(context.Background(), p, an, strings.Split(tt.fields, ","))
			if ok != (tt.want != "") || got != tt.want {
				t.Errorf("ok %v, why %q\nwant %q\ngot  %q", ok, why, tt.want, got)
			}
			if !ok && why == "" {
				t.Error("refused without a reason")
			}
		})
	}
}

// TestReferences: spans, uses and predicates of table references.
func TestReferences(t *testing.T) {
	t.Parallel()
	p := newTestParser(t)

	schema := sqlast.NewSchema(
		sqlast.Table{Name: "src.plan", Columns: []sqlast.Column{{Name: "flight", Type: "INTEGER"}, {Name: "dest", Type: "VARCHAR"}, {Name: "ds", Type: "VARCHAR"}}},
		sqlast.Table{Name: `odd "name"`, Columns: []sqlast.Column{{Name: "flight"}, {Name: "v"}}, Unique: [][]string{{"flight"}}, Logical: true})
	text := "SELECT p.flight, -- é\n 'é' AS x, \"odd \"\"name\"\"\".v FROM Src . Plan p LEFT JOIN \"odd \"\"name\"\"\" USING (flight)\n" +
		"WHERE p.ds BETWEEN '${yyyymmdd-7}' AND '${bizdate}' AND p.dest IN ('${a}', 'x') AND EXISTS (SELECT 1 FROM src.plan q WHERE q.ds = DATE '${bizdate}' AND q.flight = p.flight)"
	an, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: text, Params: map[string]string{"a": "b"}}, schema)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var got []string
	for _, r := range an.References {
		s := r.Table + " " + text[r.Name.Start:r.Name.End] + " as " + r.Alias + " columns " + strings.Join(r.Columns, ",") + " fields " + strings.Join(r.Fields, ",")
		if r.RowSet {
			s += " rows"
		}
		for _, x := range r.Predicates {
			s += " | " + x.Column + " " + x.Op
			for _, v := range x.Values {
				s += " " + v.Text + ":" + v.Cast
			}
		}
		got = append(got, s)
	}
	want := []string{
		`src.plan Src . Plan as p columns dest,ds,flight fields flight,v rows | dest in ${a}: x: | ds between ${yyyymmdd-7}: ${bizdate}:`,
		`odd "name" "odd ""name""" as  columns flight,v fields v`,
		`src.plan src.plan as q columns ds,flight fields  rows | ds = ${bizdate}:DATE`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("want\n%s\ngot\n%s", w, g)
	}
}
