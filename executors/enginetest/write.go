package enginetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors"
)

func testReplace(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v UNION ALL SELECT 2, 'b'"))
	f.run(t, f.replace("2013-01-02", "SELECT 1 AS k, 'x' AS v"))
	u := f.replace("2013-01-01", "SELECT 2 AS k, 'B' AS v UNION ALL SELECT 3, 'C' UNION ALL SELECT 4, NULL")
	u.Marker.Attempt, u.Marker.Token = 2, 2
	res := f.run(t, u)
	f.wantContent(t, "2013-01-01|2|B", "2013-01-01|3|C", "2013-01-01|4|<nil>", "2013-01-02|1|x")
	want := executors.Facts{
		"before.n": 2, "after.n": 3, "after.duplicates": 0,
		"deleted.t": 2, "inserted.t": 3, "rows_affected.t": 5,
	}
	if d := cmp.Diff(want, res.Facts); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
}

func testEmptyReplacement(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v"))
	u := f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v WHERE false")
	u.Marker.Attempt, u.Marker.Token = 2, 2
	res := f.run(t, u)
	f.wantContent(t)
	if n := res.Facts["inserted.t"]; n != 0 {
		t.Errorf("inserted.t = %d, want 0", n)
	}
	if _, ok := res.Facts["inserted.t"]; !ok {
		t.Error("inserted.t is missing: 0 rows must be told apart from no statement")
	}
	f.wantMarker(t, "t@2013-01-01", 2)
}

func testFacts(t *testing.T, f *fixture) {
	res := f.run(t, executors.Unit{Marker: marker("facts", 1), Statements: []executors.Statement{
		{Role: executors.RoleFacts, SQL: "SELECT CAST(7 AS INTEGER) AS plain, CAST(NULL AS BIGINT) AS nothing, CAST(-9223372036854775807 AS BIGINT) AS low"},
		{Role: executors.RoleFacts, Name: "named", SQL: "SELECT count(*) AS \"Odd Name\", sum(n) AS total, max(n) AS top FROM (" + f.Numbers(1000) + ") q"},
		{Role: executors.RoleFacts, Name: "none", SQL: "SELECT sum(n) AS total FROM (" + f.Numbers(1000) + ") q WHERE n < 0"},
		{Role: executors.RoleFacts, Name: "digest", SQL: "SELECT " + f.Digest("n") + " AS a FROM (" + f.Numbers(1000) + ") q"},
		{Role: executors.RoleFacts, Name: "other", SQL: "SELECT " + f.Digest("n") + " AS a FROM (" + f.Numbers(1001) + ") q"},
	}})
	got := res.Facts
	if got["digest.a"] == got["other.a"] {
		t.Error("different rows have the same digest")
	}
	delete(got, "digest.a")
	delete(got, "other.a")
	want := executors.Facts{
		"plain": 7, "nothing": 0, "low": -9223372036854775807,
		"named.Odd Name": 1000, "named.total": 499500, "named.top": 999, "none.total": 0,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
}

func testFactsShape(t *testing.T, f *fixture) {
	for name, sql := range map[string]string{
		"no row":   "SELECT 1 AS a WHERE false",
		"two rows": "SELECT n FROM (" + f.Numbers(2) + ") q",
		"text":     "SELECT 'x' AS a",
	} {
		u := f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v")
		u.Statements = append(u.Statements, executors.Statement{Role: executors.RoleFacts, SQL: sql})
		_, err := f.engine.Execute(t.Context(), u)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantStatementError(t, err, 4)
	}
	f.wantContent(t)
	f.wantMarker(t, "t@2013-01-01", 0)
}

func testAcceptRefuses(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	refusal := errors.New("key_duplicate: two rows have the key 1")
	u := f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v UNION ALL SELECT 1, 'b'")
	u.Marker.Attempt, u.Marker.Token = 2, 2
	var seen executors.Facts
	u.Accept = func(facts executors.Facts) error {
		seen = facts
		return refusal
	}
	_, err := f.engine.Execute(t.Context(), u)
	var rejected *executors.RejectedError
	if !errors.As(err, &rejected) || !errors.Is(err, refusal) {
		t.Fatalf("error %v, want *executors.RejectedError with the refusal", err)
	}
	if c := f.engine.Classify(err); c != executors.Permanent {
		t.Errorf("class %s, want permanent", c)
	}
	if seen["after.duplicates"] != 1 || seen["inserted.t"] != 2 {
		t.Errorf("Accept saw %v", seen)
	}
	f.wantContent(t, "2013-01-01|1|old")
	f.wantMarker(t, "t@2013-01-01", 1)
}

func testAcceptPanics(t *testing.T, f *fixture) {
	u := f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v")
	u.Accept = func(executors.Facts) error { panic("boom") }
	if _, err := f.engine.Execute(t.Context(), u); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatalf("error %v, want one that tells of the panic", err)
	}
	f.wantContent(t)
	f.wantMarker(t, "t@2013-01-01", 0)
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v"))
	f.wantContent(t, "2013-01-01|1|a")
}

func testErrorInTheMiddle(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	for name, bad := range map[string]string{
		"binder":     "INSERT INTO " + f.table + " (ds, k, v) SELECT no_such_column",
		"syntax":     "INSERT INTO INTO",
		"run time":   "INSERT INTO " + f.table + " (ds, k, v) SELECT DATE '2013-01-01', CAST(v AS INTEGER), v FROM " + f.table,
		"constraint": "INSERT INTO " + f.table + " (ds, k, v) SELECT DATE '2013-01-01', NULL, 'x'",
	} {
		for at := range 4 {
			u := f.replace("2013-01-01", "SELECT 7 AS k, 'new' AS v")
			u.Marker.Attempt, u.Marker.Token = 2, 2
			u.Statements = append(u.Statements[:at:at], append([]executors.Statement{
				{Role: executors.RoleInsert, Target: "t", SQL: bad},
				{Role: executors.RoleInsert, Target: "t", SQL: "INSERT INTO " + f.table + " (ds, k, v) SELECT DATE '2013-01-01', 9, 'after'"},
			}, u.Statements[at:]...)...)
			if name == "run time" && at == 2 {
				// The table has no row of this date then: nothing to cast.
				continue
			}
			u.Accept = func(executors.Facts) error {
				t.Errorf("%s: Accept is called after an error", name)
				return nil
			}
			_, err := f.engine.Execute(t.Context(), u)
			if err == nil {
				t.Fatalf("%s at %d: no error", name, at)
			}
			wantStatementError(t, err, at)
			if c := f.engine.Classify(err); c != executors.Permanent {
				t.Errorf("%s: class %s, want permanent", name, c)
			}
			f.wantContent(t, "2013-01-01|1|old")
			f.wantMarker(t, "t@2013-01-01", 1)
		}
	}
	// And the engine goes on.
	f.run(t, f.replace("2013-01-02", "SELECT 1 AS k, 'a' AS v"))
}

func testTransactionControl(t *testing.T, f *fixture) {
	for _, sql := range []string{
		"COMMIT", "commit", " /* a */ -- b\n COMMIT", "ROLLBACK", "BEGIN", "END", "ABORT", "START TRANSACTION",
		"INSERT INTO " + f.table + " SELECT DATE '2013-01-01', 1, 'x'; COMMIT; SELECT 1",
	} {
		u := f.replace("2013-01-01", "SELECT 7 AS k, 'new' AS v")
		u.Statements = append(u.Statements, executors.Statement{Role: executors.RoleScript, SQL: sql})
		_, err := f.engine.Execute(t.Context(), u)
		if err == nil {
			t.Errorf("%s: no error", sql)
			continue
		}
		wantStatementError(t, err, 4)
	}
	f.wantContent(t)
	f.wantMarker(t, "t@2013-01-01", 0)
}

func testOneStatement(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'old' AS v"))
	// A value that became syntax must not run.
	u := f.replace("2013-01-02", "SELECT 1 AS k, 'x') q; DELETE FROM "+f.table+"; SELECT * FROM (SELECT 1")
	if _, err := f.engine.Execute(t.Context(), u); err == nil {
		t.Fatal("several statements in one were accepted")
	}
	f.wantContent(t, "2013-01-01|1|old")
}

func testScript(t *testing.T, f *fixture) {
	f.run(t, executors.Unit{Marker: marker("script", 1), Statements: []executors.Statement{{Role: executors.RoleScript, Target: "t", SQL: `
-- a user's task: several statements; and quotes
INSERT INTO ` + f.table + ` (ds, k, v) VALUES (DATE '2013-01-01', 1, 'a;b''c'); /* one; /* nested; */ two */
INSERT INTO ` + f.table + ` (ds, k, v) SELECT ds, k + 1, v || '--no comment' FROM ` + f.table + `;
;
DELETE FROM ` + f.table + ` WHERE k = 1;
-- the end`}}})
	f.wantContent(t, "2013-01-01|2|a;b'c--no comment")
	f.wantMarker(t, "script", 1)
	u := executors.Unit{Marker: marker("script", 2), Statements: []executors.Statement{{Role: executors.RoleScript,
		SQL: "DELETE FROM " + f.table + "; INSERT INTO " + f.table + " SELECT nonsense"}}}
	_, err := f.engine.Execute(t.Context(), u)
	wantStatementError(t, err, 0)
	f.wantContent(t, "2013-01-01|2|a;b'c--no comment")
	f.wantMarker(t, "script", 1)
	_, err = f.engine.Execute(t.Context(), executors.Unit{Marker: marker("script", 3),
		Statements: []executors.Statement{{Role: executors.RoleScript, SQL: " -- nothing\n;"}}})
	wantStatementError(t, err, 0)
}

func testMarkers(t *testing.T, f *fixture) {
	f.wantMarker(t, "t@2013-01-01", 0)
	for attempt := 1; attempt <= 3; attempt++ {
		u := f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v")
		u.Marker = marker("t@2013-01-01", attempt)
		f.run(t, u)
		f.wantMarker(t, "t@2013-01-01", attempt)
	}
	f.wantMarker(t, "t@2013-01-02", 0)
	f.wantMarker(t, "T@2013-01-01", 0)
	// A unit without statements still leaves its marker.
	f.run(t, executors.Unit{Marker: marker("empty", 1)})
	f.wantMarker(t, "empty", 1)
	other := marker("t@2013-01-01", 1)
	other.Backfill = "another"
	if out, _, err := f.engine.Lookup(t.Context(), other); err != nil || out != executors.NotCommitted {
		t.Errorf("another backfill's marker: outcome %d, error %v", out, err)
	}
	odd := executors.Marker{Backfill: `b'"; drop`, Instance: "ü@'x\n", Attempt: 1, Token: 1 << 60}
	f.run(t, executors.Unit{Marker: odd})
	out, m, err := f.engine.Lookup(t.Context(), odd)
	if err != nil || out != executors.Committed || m != odd {
		t.Errorf("odd names: %v %+v %v", out, m, err)
	}
}

func testFencing(t *testing.T, f *fixture) {
	fresh := f.replace("2013-01-01", "SELECT 1 AS k, 'new lease' AS v")
	fresh.Marker.Attempt, fresh.Marker.Token = 2, 8
	f.run(t, fresh)
	stale := f.replace("2013-01-01", "SELECT 1 AS k, 'old lease' AS v")
	stale.Marker.Attempt, stale.Marker.Token = 1, 7
	_, err := f.engine.Execute(t.Context(), stale)
	if !errors.Is(err, executors.ErrFenced) {
		t.Fatalf("error %v, want executors.ErrFenced", err)
	}
	if c := f.engine.Classify(err); c != executors.Permanent {
		t.Errorf("class %s, want permanent", c)
	}
	f.wantContent(t, "2013-01-01|1|new lease")
	// The same token may write again, and other instances are not touched.
	again := f.replace("2013-01-01", "SELECT 1 AS k, 'again' AS v")
	again.Marker.Attempt, again.Marker.Token = 3, 8
	f.run(t, again)
	other := f.replace("2013-01-02", "SELECT 1 AS k, 'other' AS v")
	other.Marker.Token = 3
	f.run(t, other)
	f.wantContent(t, "2013-01-01|1|again", "2013-01-02|1|other")
}

func testSchemaEvolution(t *testing.T, f *fixture) {
	f.run(t, f.replace("2013-01-01", "SELECT 1 AS k, 'a' AS v"))
	f.prepare(t, "ALTER TABLE "+f.table+" ADD COLUMN IF NOT EXISTS "+f.Dialect.Quote("new field")+" BIGINT")
	f.run(t, executors.Unit{Marker: marker("t@2013-01-02", 1), Statements: []executors.Statement{{
		Role: executors.RoleInsert, Target: "t",
		SQL: "INSERT INTO " + f.table + " (ds, k, v, " + f.Dialect.Quote("new field") + ") SELECT DATE '2013-01-02', 2, 'b', 9",
	}}})
	want := []string{"1|<nil>", "2|9"}
	if d := cmp.Diff(want, f.rows(t, "SELECT k, "+f.Dialect.Quote("new field")+" FROM "+f.table+" ORDER BY k")); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	p := f.engine.(executors.Preparer)
	err := p.Prepare(t.Context(), []string{"CREATE TABLE IF NOT EXISTS " + f.Dialect.Table(schema, "u") + " (a INTEGER)", "ALTER TABLE nowhere ADD COLUMN a INTEGER"})
	wantStatementError(t, err, 1)
	if got := f.rows(t, "SELECT count(*) FROM "+f.Dialect.Table(schema, "u")); got[0] != "0" {
		t.Errorf("the statement before the failing one did not stay: %v", got)
	}
}

func testStage(t *testing.T, f *fixture) {
	// The same stage name in unit after unit, on connections that are kept,
	// with other columns each time, after errors too.
	stage := f.Dialect.Quote("stage of t")
	for i, query := range []string{"SELECT 1 AS k, 'a' AS v", "SELECT 'b' AS v, 2 AS k, 3 AS more", "SELECT nonsense", "SELECT 4 AS k, 'd' AS v"} {
		u := f.replace("2013-01-01", "SELECT k, v FROM "+stage)
		u.Marker = marker("t@2013-01-01", i+1)
		u.Statements = append([]executors.Statement{{Role: executors.RoleStage, Target: "stage of t", SQL: f.Stage(stage, query)}}, u.Statements...)
		_, err := f.engine.Execute(t.Context(), u)
		if (err != nil) != strings.Contains(query, "nonsense") {
			t.Fatalf("%s: error %v", query, err)
		}
	}
	f.wantContent(t, "2013-01-01|4|d")
	// A unit never sees another unit's stage table.
	u := f.replace("2013-01-02", "SELECT k, v FROM "+stage)
	if _, err := f.engine.Execute(t.Context(), u); err == nil {
		t.Error("a stage table of an earlier unit is still there")
	}
	infos, err := f.engine.Catalog(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.Name == "stage of t" {
			t.Error("the catalog lists a stage table")
		}
	}
}

func testColumnRefresh(t *testing.T, f *fixture) {
	f.prepare(t, "ALTER TABLE "+f.table+" ADD COLUMN IF NOT EXISTS w BIGINT")
	f.run(t, f.replace("2013-01-01", "SELECT CAST(n AS INTEGER) AS k, 'keep' AS v FROM ("+f.Numbers(100)+") x"))
	f.run(t, f.replace("2013-01-02", "SELECT 1 AS k, 'other date' AS v"))
	where := " FROM " + f.table + " WHERE ds = DATE '2013-01-01'"
	refresh := func(attempt int, update string) (executors.Result, error) {
		return f.engine.Execute(t.Context(), executors.Unit{
			Marker: marker("t@2013-01-01", attempt),
			Statements: []executors.Statement{
				{Role: executors.RoleStage, Target: "s", SQL: f.Stage("s", "SELECT n AS k, n * 10 AS w FROM ("+f.Numbers(100)+") x")},
				{Role: executors.RoleFacts, Name: "keys", SQL: "SELECT count(*) AS differ FROM (SELECT k" + where + ") a FULL JOIN s ON s.k = a.k WHERE a.k IS NULL OR s.k IS NULL"},
				{Role: executors.RoleFacts, Name: "before", SQL: "SELECT " + f.Digest("ds", "k", "v") + " AS kept, count(*) AS n" + where},
				{Role: executors.RoleUpdate, Target: "t", SQL: update},
				{Role: executors.RoleFacts, Name: "after", SQL: "SELECT " + f.Digest("ds", "k", "v") + " AS kept, count(*) AS n" + where},
			},
			Accept: func(facts executors.Facts) error {
				if facts["keys.differ"] != 0 || facts["before.kept"] != facts["after.kept"] || facts["before.n"] != facts["after.n"] {
					return errors.New("untouched columns changed")
				}
				return nil
			},
		})
	}
	res, err := refresh(2, "UPDATE "+f.table+" SET w = s.w FROM s WHERE s.k = t.k AND ds = DATE '2013-01-01'")
	if err != nil {
		t.Fatal(err)
	}
	if n := res.Facts["updated.t"]; n != 100 {
		t.Errorf("updated.t = %d, want 100", n)
	}
	var rejected *executors.RejectedError
	if _, err = refresh(3, "UPDATE "+f.table+" SET w = 0, v = 'spoilt' FROM s WHERE s.k = t.k AND s.k = 7 AND ds = DATE '2013-01-01'"); !errors.As(err, &rejected) {
		t.Errorf("error %v, want a refusal", err)
	}
	got := f.rows(t, "SELECT CAST(ds AS VARCHAR), count(*), sum(w), min(v), max(v) FROM "+f.table+" GROUP BY ds ORDER BY 1")
	if d := cmp.Diff([]string{"2013-01-01|100|49500|keep|keep", "2013-01-02|1|<nil>|other date|other date"}, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	f.wantMarker(t, "t@2013-01-01", 2)
}
