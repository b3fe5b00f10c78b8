package duckdb

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/retrofill/retrofill/executors"
)

// TestGroupsMeet: scripts of groups that run side by side and create the same
// objects in a new database succeed, each once; DuckDB lets only the first of
// them through.
func TestGroupsMeet(t *testing.T) {
	t.Parallel()
	const groups = 6
	e := mustOpen(t, Options{Connections: groups})
	var g sync.WaitGroup
	for i := range groups {
		g.Go(func() {
			_, err := e.Execute(t.Context(), executors.Unit{
				Marker: executors.Marker{Backfill: "b", Instance: fmt.Sprint(i), Attempt: 1, Token: 1},
				Statements: []executors.Statement{{Role: executors.RoleScript, SQL: `CREATE SCHEMA IF NOT EXISTS s; CREATE TABLE IF NOT EXISTS s.t (a INTEGER);
SELECT sum(range) FROM range(2000000); INSERT INTO s.t VALUES (1)`}},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if got := fmt.Sprint(one(t, e, "SELECT count(*) FROM s.t"), one(t, e, "SELECT count(*) FROM "+e.markers)); got != "6 6" {
		t.Errorf("rows and markers: %s", got)
	}
}

// TestConflictEnds: a unit that another transaction stays in the way of fails,
// as a transient error.
func TestConflictEnds(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{Connections: 2})
	if err := e.Prepare(t.Context(), []string{"CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)"}); err != nil {
		t.Fatal(err)
	}
	tx, err := e.db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := tx.ExecContext(t.Context(), "UPDATE t SET a = 2"); err != nil {
		t.Fatal(err)
	}
	_, err = e.Execute(t.Context(), script(1, "UPDATE t SET a = 3"))
	if err == nil || e.Classify(err) != executors.Transient {
		t.Errorf("got %v, class %v", err, e.Classify(err))
	}
	var s *executors.StatementError
	if !errors.As(err, &s) {
		t.Errorf("no statement in %v", err)
	}
}
