package duckdb

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

func TestParserResults(t *testing.T) {
	t.Parallel()
	p := newTestParser(t)
	tests := []struct {
		sql       string
		message   string // part of it, "" = a tree
		notSelect bool
		position  int
	}{
		{"SELECT 1", "", false, -1},
		{"FROM t", "", false, -1},
		{"VALUES (1)", "", false, -1},
		{"SELECT 1; SELECT 2", "", false, -1},
		{"SELEC 1", "syntax error", false, 0},
		{"SELECT 'é' FROM FROM", "syntax error", false, 17},
		{"SELECT a FROM", "syntax error", false, 13},
		{"", "", false, -1},
		{"SELECT '\xff'", "syntax error", false, 0},
		{"SELECT '\x00'", "syntax error", false, 0},
		{"INSERT INTO t SELECT 1", "Only SELECT", true, -1},
		{"PIVOT t ON a", "Only SELECT", true, -1},
		{"CREATE TABLE t (a INT)", "Only SELECT", true, -1},
		{"SELECT " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), "", false, -1},
	}
	sqls := make([]string, len(tests))
	for i, tt := range tests {
		sqls[i] = tt.sql
	}
	got, err := p.ParseSelects(context.Background(), sqls)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		r := got[i]
		if tt.message == "" && (r.Message != "" || len(r.Tree) == 0) || tt.message != "" && !strings.Contains(r.Message, tt.message) {
			t.Errorf("%.40q: message %q", tt.sql, r.Message)
		}
		if r.NotSelect != tt.notSelect || r.Position != tt.position {
			t.Errorf("%.40q: not select %v, position %d", tt.sql, r.NotSelect, r.Position)
		}
	}
}

func TestParserBatches(t *testing.T) {
	t.Parallel()
	p := newTestParser(t)
	var sqls []string
	for i := range 2*parseBatch + 7 {
		sqls = append(sqls, "SELECT "+strings.Repeat("1 + ", i%5)+"1")
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			got, err := p.ParseSelects(context.Background(), sqls)
			if err != nil || len(got) != len(sqls) {
				t.Errorf("%d results, %v", len(got), err)
				return
			}
			for i, r := range got {
				if n := strings.Count(string(r.Tree), `"function_name":"+"`); n != i%5 {
					t.Errorf("result %d belongs to another text", i)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestParserCancelled(t *testing.T) {
	t.Parallel()
	p := newTestParser(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.ParseSelects(ctx, []string{"SELECT 1", "SELECT 2"}); !errors.Is(err, context.Canceled) {
		t.Errorf("want a cancelled context, got %v", err)
	}
	r := sqlast.SplitAll(ctx, p, []sqlast.Definition{{SQL: "SELECT 1 AS a", File: "a.sql"}}, nil)
	if codes := r[0].Diagnostics.Codes(); len(codes) != 1 || codes[0] != "parser_failed" {
		t.Errorf("got %v", codes)
	}
}

// TestSplitDiagnostics: code and place, in the author's text, of every problem.
func TestSplitDiagnostics(t *testing.T) {
	t.Parallel()
	p := newTestParser(t)
	schema := sqlast.NewSchema(sqlast.Table{Name: "orders", Columns: []sqlast.Column{{Name: "order_id"}, {Name: "amount"}}})
	tests := []struct{ sql, want string }{
		{"SELECT order_id\nFROM orders\nWHERE 'é' = '${a_long_parameter}' AND amont > 1", `unknown_column q.sql:3:39 did you mean "amount"?`},
		{"SELECT order_id FROM -- é\n  ordes", `unknown_table q.sql:2:3 did you mean "orders"?`},
		{"SELECT '${long}', x FROM FROM orders", "syntax q.sql:1:26"},
		{"SELECT order_id, amount * 2 FROM orders", "unnamed_field q.sql:1:25"},
		{"SELECT order_id, ${n} FROM orders", "unnamed_field q.sql:1:18"},
		{"SELECT order_id, amount AS Order_ID FROM orders", "duplicate_field q.sql:1:18"},
		{"SELECT o.order_id FROM orders o JOIN orders p ON o.order_id = p.order_id WHERE amount = 1", "ambiguous_column q.sql:1:80"},
		{"SELECT order_id FROM orders UNION SELECT order_id, amount FROM orders", "column_count q.sql"},
		{"SELECT order_id FROM orders GROUP BY 2", "bad_position q.sql:1:38"},
		{"  -- nothing", "not_a_select q.sql:1:1"},
		{"DELETE FROM orders", "not_a_select q.sql:1:1"},
		{"SELECT 1 AS a; DROP TABLE orders", "several_statements q.sql:1:16"},
		{"SELECT amount AS ${x} FROM orders", "parameter_in_identifier q.sql:1:8"},
		{"SELECT order_id, nope, nada FROM orders", "unknown_column q.sql:1:18; unknown_column q.sql:1:24"},
	}
	for _, tt := range tests {
		_, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: tt.sql, File: "q.sql"}, schema)
		var got []string
		for _, d := range diags {
			s := d.Code + " " + d.Pos.String()
			if strings.HasPrefix(d.Hint, "did you") {
				s += " " + d.Hint
			} else if d.Hint == "" {
				t.Errorf("%s: no hint: %v", tt.sql, d)
			}
			got = append(got, s)
		}
		if g := strings.Join(got, "; "); g != tt.want {
			t.Errorf("%s\nwant %s\ngot  %s", tt.sql, tt.want, g)
		}
	}
	// A key column that is no field is an error of its own.
	_, diags := sqlast.Split(context.Background(), p, sqlast.Definition{SQL: "SELECT amount FROM orders", Key: []string{"order_id"}}, schema)
	if len(diags) != 1 || diags[0].Code != "key_not_a_field" {
		t.Errorf("got %v", diags)
	}
}
