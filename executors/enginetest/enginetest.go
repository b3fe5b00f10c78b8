// Package enginetest is the suite that every engine passes: what the runner
// relies on, said as tests against a real server or library. A new engine's
// test is a Harness and one call of Run.
//
// Invariants: each subtest opens a database of its own through the Harness; a
// test asserts rows, facts and markers, never SQL text; nothing waits for a
// fixed time.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/planner/dialect"
)

// Type is a column type with a literal of it and what Query must give.
type Type struct {
	Name    string // SQL type
	Literal string // SQL expression of that type
	Want    any    // nil, bool, int64, float64 or string
}

// Harness tells the suite what it must know of an engine.
type Harness struct {
	// Open gives a new, empty database; the suite closes the engine.
	Open    func(t *testing.T) executors.Engine
	Dialect dialect.Dialect
	// Types are the column types that the engine must read and write.
	Types []Type
	// Stage renders the statement that makes or replaces a temporary table.
	Stage func(name, query string) string
	// Digest renders an aggregate that changes when any row's columns do,
	// whatever their order. It must fit 64 bits.
	Digest func(columns ...string) string
	// WaitsForLocks: a second writer of the same rows waits for the first, it
	// is not refused at once.
	WaitsForLocks bool
	// Long is a query that runs for a minute unless it is cancelled.
	Long string
	// Numbers renders a query of one BIGINT column n with 0 … count−1.
	Numbers func(count int) string
}

const (
	schema = "dw"
	// patience bounds a wait for something that must happen; it only ends a
	// broken test.
	patience = 20 * time.Second
)

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"types", testTypes},
		{"names", testNames},
		{"replace_partition", testReplace},
		{"empty_replacement", testEmptyReplacement},
		{"facts", testFacts},
		{"facts_need_one_row", testFactsShape},
		{"accept_refuses", testAcceptRefuses},
		{"accept_panics", testAcceptPanics},
		{"error_in_the_middle", testErrorInTheMiddle},
		{"transaction_control_is_refused", testTransactionControl},
		{"one_statement_each", testOneStatement},
		{"script", testScript},
		{"markers_and_attempts", testMarkers},
		{"fencing", testFencing},
		{"cancel", testCancel},
		{"cancelled_before", testCancelledBefore},
		{"different_dates_at_once", testDifferentDates},
		{"same_date_at_once", testSameDate},
		{"error_classes", testClasses},
		{"schema_evolution", testSchemaEvolution},
		{"stage_tables", testStage},
		{"column_refresh", testColumnRefresh},
		{"big_result", testBigResult},
		{"query_only_reads", testQueryOnlyReads},
		{"describe", testDescribe},
		{"catalog", testCatalog},
		{"version", testVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, newFixture(t, h))
		})
	}
}

// fixture is one subtest's database with the partitioned table dw.t.
type fixture struct {
	Harness
	engine executors.Engine
	table  string // quoted
}

func newFixture(t *testing.T, h Harness) *fixture {
	t.Helper()
	f := &fixture{Harness: h, engine: h.Open(t), table: h.Dialect.Table(schema, "t")}
	t.Cleanup(func() {
		if err := f.engine.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	f.prepare(t, "CREATE SCHEMA IF NOT EXISTS "+h.Dialect.Quote(schema),
		"CREATE TABLE IF NOT EXISTS "+f.table+" (ds DATE NOT NULL, k INTEGER NOT NULL, v VARCHAR)")
	return f
}

// prepare runs DDL through the Preparer, twice: each must be idempotent.
func (f *fixture) prepare(t *testing.T, ddl ...string) {
	t.Helper()
	p, ok := f.engine.(executors.Preparer)
	if !ok {
		t.Fatal("the engine is no executors.Preparer")
	}
	for range 2 {
		if err := p.Prepare(t.Context(), ddl); err != nil {
			t.Fatalf("prepare: %v", err)
		}
	}
}

func marker(instance string, attempt int) executors.Marker {
	return executors.Marker{Backfill: "t_20260101_1", Instance: instance, Attempt: attempt, Token: int64(attempt)}
}

// replace is the unit that a partition rewrite is.
func (f *fixture) replace(date, rows string) executors.Unit {
	return executors.Unit{
		Marker: marker("t@"+date, 1),
		Statements: []executors.Statement{
			{Role: executors.RoleFacts, Name: "before", SQL: "SELECT count(*) AS n FROM " + f.table + " WHERE ds = DATE '" + date + "'"},
			{Role: executors.RoleDelete, Target: "t", SQL: "DELETE FROM " + f.table + " WHERE ds = DATE '" + date + "'"},
			{Role: executors.RoleInsert, Target: "t", SQL: "INSERT INTO " + f.table + " (ds, k, v) SELECT DATE '" + date + "', q.k, q.v FROM (" + rows + ") q"},
			{Role: executors.RoleFacts, Name: "after", SQL: "SELECT count(*) AS n, count(*) - count(DISTINCT k) AS duplicates FROM " + f.table + " WHERE ds = DATE '" + date + "'"},
		},
	}
}

// run executes a unit that must succeed.
func (f *fixture) run(t *testing.T, u executors.Unit) executors.Result {
	t.Helper()
	res, err := f.engine.Execute(t.Context(), u)
	if err != nil {
		t.Fatalf("execute %s: %v", u.Marker.Instance, err)
	}
	return res
}

// rows reads values as text, a row a line, columns joined with "|".
func (f *fixture) rows(t *testing.T, sql string) []string {
	t.Helper()
	rows, err := f.engine.Query(t.Context(), sql, 0)
	if err != nil {
		t.Fatalf("query %s: %v", sql, err)
	}
	var out []string
	for _, r := range rows.Values {
		line := ""
		for i, v := range r {
			if i > 0 {
				line += "|"
			}
			line += fmt.Sprint(v)
		}
		out = append(out, line)
	}
	return out
}

// content is the whole of dw.t.
func (f *fixture) content(t *testing.T) []string {
	t.Helper()
	return f.rows(t, "SELECT CAST(ds AS VARCHAR), k, v FROM "+f.table+" ORDER BY ds, k, v")
}

func (f *fixture) wantContent(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, f.content(t)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// wantMarker asserts what Lookup says; attempt 0 = not committed.
func (f *fixture) wantMarker(t *testing.T, instance string, attempt int) {
	t.Helper()
	out, m, err := f.engine.Lookup(t.Context(), marker(instance, 99))
	if err != nil {
		t.Fatalf("look up %s: %v", instance, err)
	}
	switch {
	case attempt == 0 && out != executors.NotCommitted:
		t.Errorf("%s: a marker of attempt %d where none may be", instance, m.Attempt)
	case attempt > 0 && (out != executors.Committed || m.Attempt != attempt || m.Instance != instance || m.Token != int64(attempt)):
		t.Errorf("%s: marker %+v (outcome %d), want attempt %d", instance, m, out, attempt)
	}
}

// wantStatementError asserts that err names the statement at index.
func wantStatementError(t *testing.T, err error, index int) {
	t.Helper()
	var s *executors.StatementError
	if !errors.As(err, &s) {
		t.Fatalf("error %v (%T) is no *executors.StatementError", err, err)
	}
	if s.Index != index {
		t.Errorf("error names statement %d, want %d: %v", s.Index, index, err)
	}
}

// wait gives what the channel gives, or ends a test that hangs.
func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("waited too long for %s", what)
	}
	panic("unreachable")
}
