package enginetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/retrofill/retrofill/executors"
)

func testCancel(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	for _, role := range []executors.Role{executors.RoleInsert, executors.RoleFacts} {
		ctx, cancel := context.WithCancel(t.Context())
		u := f.replace("2013-01-01", "SELECT 2 AS k, 'new' AS v")
		u.Marker.Attempt, u.Marker.Token = 2, 2
		long := "INSERT INTO " + f.table + " (ds, k, v) SELECT DATE '2013-01-01', 3, CAST(q.n AS VARCHAR) FROM (" + f.Long + ") q"
		if role == executors.RoleFacts {
			long = f.Long
		}
		u.Statements = append(u.Statements, executors.Statement{Role: role, Target: "t", SQL: long})
		done := make(chan error, 1)
		go func() {
			_, err := f.engine.Execute(ctx, u)
			done <- err
		}()
		// The engine answers others meanwhile, and then it is cancelled: the
		// statement may have begun or not, both must end the same way.
		f.wantContent(t, "2013-01-01|1|old")
		cancel()
		err := wait(t, "the cancelled unit", done)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want context.Canceled", role, err)
		}
		if c := f.engine.Classify(err); c != executors.Permanent {
			t.Errorf("class %s, want permanent", c)
		}
		f.wantContent(t, "2013-01-01|1|old")
		f.wantMarker(t, "t@2013-01-01", 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.engine.Query(ctx, f.Long, 0)
		done <- err
	}()
	cancel()
	if err := wait(t, "the cancelled query", done); !errors.Is(err, context.Canceled) {
		t.Errorf("query: error %v, want context.Canceled", err)
	}
	// Every connection still works.
	for i := range 8 {
		u := f.replace("2013-01-01", fmt.Sprintf("SELECT %d AS k, 'again' AS v", i))
		u.Marker.Attempt, u.Marker.Token = 3+i, int64(3+i)
		f.run(t, u)
	}
	f.wantContent(t, "2013-01-01|7|again")
}

func testCancelledBefore(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	u := f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v")
	u.Accept = func(executors.Facts) error {
		cancel() // between the last statement and the commit
		return nil
	}
	if _, err := f.engine.Execute(ctx, u); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled in Accept: error %v", err)
	}
	if _, err := f.engine.Execute(ctx, u); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: error %v", err)
	}
	f.wantContent(t)
	f.wantMarker(t, "t@2013-01-01", 0)
}

func testDifferentDates(t *testing.T, f *fixture) {
	const dates, rounds = 6, 5
	errs := make(chan error, dates)
	for d := range dates {
		go func() {
			for r := range rounds {
				u := f.replace(fmt.Sprintf("2013-01-%02d", d+1), fmt.Sprintf("SELECT CAST(n AS INTEGER) AS k, 'round %d' AS v FROM (%s) x", r, f.Numbers(50)))
				u.Marker.Attempt, u.Marker.Token = r+1, int64(r+1)
				if _, err := f.engine.Execute(t.Context(), u); err != nil {
					errs <- fmt.Errorf("date %d round %d: %w", d, r, err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range dates {
		if err := wait(t, "a writer", errs); err != nil {
			t.Error(err)
		}
	}
	got := f.rows(t, "SELECT count(*), count(DISTINCT ds), min(v), max(v) FROM "+f.table)
	if want := "300|6|round 4|round 4"; got[0] != want {
		t.Errorf("rows %q, want %q", got[0], want)
	}
}

func testSameDate(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	first := f.replace("2013-01-01", "SELECT 1 AS k, 'first' AS v")
	first.Marker = marker("t@2013-01-01", 2)
	second := f.replace("2013-01-01", "SELECT 1 AS k, 'second' AS v")
	second.Marker = marker("other@2013-01-01", 1)
	inside := make(chan struct{})
	release := make(chan struct{})
	first.Accept = func(executors.Facts) error {
		close(inside)
		<-release
		return nil
	}
	firstDone, secondDone := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := f.engine.Execute(t.Context(), first)
		firstDone <- err
	}()
	wait(t, "the first writer", inside)
	// Where the second is refused, it must end while the first is still open.
	go func() {
		_, err := f.engine.Execute(t.Context(), second)
		secondDone <- err
	}()
	var err2 error
	ended := false
	if !f.WaitsForLocks {
		err2, ended = wait(t, "the second writer", secondDone), true
	}
	close(release)
	if err := wait(t, "the first writer", firstDone); err != nil {
		t.Fatalf("first: %v", err)
	}
	if !ended {
		err2 = wait(t, "the second writer", secondDone)
	}
	if err2 == nil {
		if !f.WaitsForLocks {
			t.Error("two open writers of the same rows both committed")
		}
		f.wantContent(t, "2013-01-01|1|second")
		f.wantMarker(t, "other@2013-01-01", 1)
		return
	}
	if c := f.engine.Classify(err2); c != executors.Transient {
		t.Errorf("class %s of %v, want transient", c, err2)
	}
	f.wantContent(t, "2013-01-01|1|first")
	f.wantMarker(t, "other@2013-01-01", 0)
	f.run(t, second)
	f.wantContent(t, "2013-01-01|1|second")
	f.wantMarker(t, "other@2013-01-01", 1)
}

func testClasses(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	for name, sql := range map[string]string{
		"syntax":        "SELEC 1",
		"missing table": "SELECT * FROM " + f.Dialect.Table(schema, "nowhere"),
		"cast":          "SELECT CAST('x' AS INTEGER) AS n",
		"overflow":      "SELECT CAST(9223372036854775807 AS BIGINT) + CAST(1 AS BIGINT) AS n",
	} {
		_, err := f.engine.Query(t.Context(), sql, 0)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if c := f.engine.Classify(err); c != executors.Permanent {
			t.Errorf("%s: class %s of %v, want permanent", name, c, err)
		}
	}
	if c := f.engine.Classify(fmt.Errorf("wrapped: %w", executors.ErrLocked)); c != executors.Locked {
		t.Errorf("class %s of ErrLocked, want locked", c)
	}
	if c := f.engine.Classify(errors.New("anything else")); c != executors.Permanent {
		t.Errorf("class %s of a foreign error, want permanent", c)
	}
}
