package duckdb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors"
)

func script(attempt int, sql string) executors.Unit {
	return executors.Unit{
		Marker:     executors.Marker{Backfill: "b", Instance: "script", Attempt: attempt, Token: 1},
		Statements: []executors.Statement{{Role: executors.RoleScript, SQL: sql}},
	}
}

// TestScriptLeavesNothing: what a script does to its session ends with it.
func TestScriptLeavesNothing(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{Connections: 1})
	if err := e.Prepare(t.Context(), []string{"CREATE SCHEMA IF NOT EXISTS s", "CREATE TABLE IF NOT EXISTS s.t (a INTEGER)", "CREATE TABLE IF NOT EXISTS main.t (a INTEGER)"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Execute(t.Context(), script(1, "CREATE TEMP TABLE t AS SELECT 1 AS a; SET search_path = 's'; SET VARIABLE x = 5; SET TimeZone = 'Asia/Tokyo'; PREPARE p AS SELECT 1")); err != nil {
		t.Fatal(err)
	}
	res, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Instance: "i"}, Statements: []executors.Statement{
		{Role: executors.RoleInsert, Target: "t", SQL: "INSERT INTO t VALUES (7)"},
		{Role: executors.RoleFacts, SQL: "SELECT (SELECT count(*) FROM main.t) AS main, (SELECT count(*) FROM s.t) AS s, getvariable('x') IS NULL AS unset, current_setting('TimeZone') = 'UTC' AS utc"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := executors.Facts{"inserted.t": 1, "rows_affected.t": 1, "main": 1, "s": 0, "unset": 1, "utc": 1}
	if d := cmp.Diff(want, res.Facts); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
}

// TestScriptEndsTransaction: a hidden COMMIT is found out.
func TestScriptEndsTransaction(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{})
	_, err := e.Execute(t.Context(), script(1, "CREATE TABLE x (a INTEGER); PREPARE p AS COMMIT; EXECUTE p"))
	if err == nil {
		t.Fatal("no error")
	}
	if out, _, err := e.Lookup(t.Context(), script(1, "").Marker); err != nil || out != executors.NotCommitted {
		t.Errorf("marker %v, %v", out, err)
	}
	if _, err := e.Execute(t.Context(), script(2, "SELECT 1")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCommitFails: a schema change while a unit writes makes its COMMIT fail.
// Where it happens once the unit is done again, where it goes on it fails.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "a.duckdb"), Create: true})
	ctx := t.Context()
	if err := e.Prepare(ctx, []string{"CREATE TABLE IF NOT EXISTS t (a INTEGER)"}); err != nil {
		t.Fatal(err)
	}
	tries := 0
	u := executors.Unit{
		Marker:     executors.Marker{Backfill: "b", Instance: "i", Attempt: 1},
		Statements: []executors.Statement{{Role: executors.RoleInsert, Target: "t", SQL: "INSERT INTO t (a) VALUES (1)"}},
		Accept: func(executors.Facts) error {
			tries++
			return e.Prepare(ctx, []string{fmt.Sprintf("ALTER TABLE t ADD COLUMN IF NOT EXISTS b%d INTEGER", tries)})
		},
	}
	_, err := e.Execute(ctx, u)
	if err == nil || e.Classify(err) != executors.Transient {
		t.Fatalf("error %v, class %s; want a transient one", err, e.Classify(err))
	}
	if !strings.Contains(err.Error(), "commit") {
		t.Errorf("message %q", err)
	}
	if out, _, err := e.Lookup(ctx, u.Marker); err != nil || out != executors.NotCommitted {
		t.Errorf("marker %v, %v", out, err)
	}
	if n := one(t, e, "SELECT count(*) FROM t"); n != int64(0) {
		t.Errorf("%v rows", n)
	}
	if tries != conflictTries {
		t.Errorf("%d tries", tries)
	}
	u.Accept = func(executors.Facts) error {
		return e.Prepare(ctx, []string{"ALTER TABLE t ADD COLUMN IF NOT EXISTS once INTEGER"})
	}
	if _, err := e.Execute(ctx, u); err != nil {
		t.Errorf("again: %v", err)
	}
	if n := one(t, e, "SELECT count(*) FROM t"); n != int64(1) {
		t.Errorf("%v rows", n)
	}
}

// TestSettle: what a failed COMMIT means follows from the marker.
func TestSettle(t *testing.T) {
	t.Parallel()
	e, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := executors.Marker{Backfill: "b", Instance: "i", Attempt: 2, Token: 3}
	if _, err := e.Execute(t.Context(), executors.Unit{Marker: m}); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.settle(cancelled, m, lost); err != nil {
		t.Errorf("committed: %v", err)
	}
	other := m
	other.Attempt = 3
	if err := e.settle(t.Context(), other, lost); !errors.Is(err, lost) || e.Classify(err) != executors.Permanent {
		t.Errorf("another attempt: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	err = e.settle(t.Context(), m, lost)
	if !errors.Is(err, lost) || e.Classify(fmt.Errorf("wrapped: %w", err)) != executors.Ambiguous {
		t.Errorf("no answer: %v, class %s", err, e.Classify(err))
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{MemoryLimit: "30MB", Threads: 1, Connections: 1, Settings: map[string]string{"temp_directory": ""}})
	_, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Instance: "i"}, Statements: []executors.Statement{
		{Role: executors.RoleFacts, SQL: "SELECT count(DISTINCT md5(range::VARCHAR)) AS n FROM range(5000000)"}}})
	if err == nil || e.Classify(err) != executors.Permanent || !strings.Contains(err.Error(), "raise memory_limit") {
		t.Errorf("error %v", err)
	}
	if _, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Instance: "i"}}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestConnectionsBound: a unit waits for a free place, and gives up waiting
// when it is cancelled.
func TestConnectionsBound(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{Connections: 1})
	_, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Instance: "outer"}, Accept: func(executors.Facts) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Execute(ctx, executors.Unit{Marker: executors.Marker{Instance: "inner"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("inner: %v", err)
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestQueryForms: statements that are no plain SELECT are shown too.
func TestQueryForms(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{})
	if err := e.Prepare(t.Context(), []string{"CREATE TABLE IF NOT EXISTS t (a INTEGER, d DATE, l DECIMAL(5,2)[])"}); err != nil {
		t.Fatal(err)
	}
	for sql, columns := range map[string]int{
		"FROM t": 3, "VALUES (1, 'x')": 2, "DESCRIBE t": 6, "SHOW TABLES": 1, "SUMMARIZE t": 12, "EXPLAIN SELECT 1": 2,
		"PRAGMA table_info('t')": 6, "WITH x AS (SELECT 1 AS a) SELECT * FROM x": 1, "(SELECT 1) UNION ALL (SELECT 2)": 1,
		"SELECT * FROM t ORDER BY ALL": 3, "SELECT 1 AS a, 2 AS a, 3 AS \"A\"": 3, "TABLE t": 3,
	} {
		rows, err := e.Query(t.Context(), sql, 5)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if len(rows.Columns) != columns {
			t.Errorf("%s: %d columns, want %d", sql, len(rows.Columns), columns)
		}
		for _, r := range rows.Values {
			for i, v := range r {
				switch v.(type) {
				case nil, bool, int64, float64, string:
				default:
					t.Errorf("%s: column %d is a %T", sql, i, v)
				}
			}
		}
	}
	rows, err := e.Query(t.Context(), "SELECT a, d, l FROM t", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []executors.Column{{Name: "a", Type: "INTEGER"}, {Name: "d", Type: "DATE"}, {Name: "l", Type: "DECIMAL(5,2)[]"}}
	if d := cmp.Diff(want, rows.Columns); d != "" {
		t.Errorf("columns (-want +got):\n%s", d)
	}
	for _, bad := range []string{"COPY t TO '/dev/null'", "SELECT ?", "SET threads = 1", "CHECKPOINT", "ATTACH ':memory:' AS m"} {
		if _, err := e.Query(t.Context(), bad, 5); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
