package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/postgres/pgtest"
	"github.com/retrofill/retrofill/planner/dialect"
)

// unit inserts one row.
func unit(instance string, attempt int, value string) executors.Unit {
	return executors.Unit{
		Marker: executors.Marker{Backfill: "b", Instance: instance, Attempt: attempt, Token: int64(attempt)},
		Statements: []executors.Statement{
			{Role: executors.RoleDelete, Target: "t", SQL: "DELETE FROM t WHERE k = '" + instance + "'"},
			{Role: executors.RoleInsert, Target: "t", SQL: "INSERT INTO t (k, v) VALUES ('" + instance + "', '" + value + "')"},
		},
	}
}

// opened gives an engine with the table t (k, v).
func opened(t *testing.T, opt Options) *Engine {
	t.Helper()
	e, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Prepare(t.Context(), []string{"CREATE TABLE IF NOT EXISTS t (k text, v text)"}); err != nil {
		t.Fatal(err)
	}
	return e
}

func content(t *testing.T, e *Engine) string {
	t.Helper()
	rows, err := e.Query(t.Context(), "SELECT k, v FROM t ORDER BY k, v", 0)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range rows.Values {
		fmt.Fprintf(&b, "%v=%v ", r[0], r[1])
	}
	return strings.TrimSpace(b.String())
}

// TestCommit cuts the connection at COMMIT and looks at what Execute makes of
// it: the marker decides, and no answer at all is ambiguous.
func TestCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		forward bool // the server gets the COMMIT
		gone    bool // and is not there afterwards
		class   executors.Class
		want    string
	}{
		{"answer lost", true, false, executors.Permanent, "a=new"},
		{"request lost", false, false, executors.Transient, "a=old"},
		{"answer lost, server gone", true, true, executors.Ambiguous, "a=new"},
		{"request lost, server gone", false, true, executors.Ambiguous, "a=old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t)
			p := newProxy(t, dsn)
			e := opened(t, Options{DSN: p.dsn, LookupTimeout: 2 * time.Second})
			if _, err := e.Execute(t.Context(), unit("a", 1, "old")); err != nil {
				t.Fatal(err)
			}
			p.atCommit(c.forward, func() {
				if c.gone {
					p.mu.Lock()
					p.refuse = true
					p.mu.Unlock()
				}
			})
			_, err := e.Execute(t.Context(), unit("a", 2, "new"))
			if (err == nil) != (c.forward && !c.gone) {
				t.Fatalf("error %v", err)
			}
			if got := e.Classify(err); got != c.class {
				t.Errorf("class %s of %v, want %s", got, err, c.class)
			}
			if got := content(t, opened(t, Options{DSN: dsn})); got != c.want {
				t.Errorf("rows %q, want %q", got, c.want)
			}
			p.mu.Lock()
			p.refuse = false
			p.mu.Unlock()
			// What a resume finds, with the engine that lived through it.
			_, m, err := e.Lookup(t.Context(), executors.Marker{Backfill: "b", Instance: "a"})
			want := 1
			if c.forward {
				want = 2
			}
			if err != nil || m.Attempt != want {
				t.Errorf("marker %+v, %v; want attempt %d", m, err, want)
			}
		})
	}
}

// TestLostConnection cuts the connection inside the unit: nothing is written,
// the unit may be tried again, and the next one gets a new connection.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	p := newProxy(t, dsn)
	e := opened(t, Options{DSN: p.dsn})
	for name, cut := range map[string]func(){
		"network": func() { p.cut(false) },
		"administrator": func() {
			pgtest.Exec(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		},
	} {
		u := unit("a", 1, "never")
		u.Accept = func(executors.Facts) error {
			cut()
			return nil
		}
		_, err := e.Execute(t.Context(), u)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		if c := e.Classify(err); c != executors.Transient {
			t.Errorf("%s: class %s of %v, want transient", name, c, err)
		}
	}
	if _, err := e.Execute(t.Context(), unit("a", 2, "again")); err != nil {
		t.Fatal(err)
	}
	p.cut(true)
	_, err := e.Execute(t.Context(), unit("b", 1, "never"))
	if c := e.Classify(err); err == nil || c != executors.Transient {
		t.Errorf("server gone: class %s of %v, want transient", c, err)
	}
	p.cut(false)
	if got := content(t, e); got != "a=again" {
		t.Errorf("rows %q", got)
	}
}

// TestConflicts provokes deadlocks, which the engine gets over, and lock
// timeouts.
func TestConflicts(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	e := opened(t, Options{DSN: dsn, Settings: map[string]string{"lock_timeout": "100ms", "deadlock_timeout": "20ms"}})
	patient := opened(t, Options{DSN: dsn, Settings: map[string]string{"deadlock_timeout": "20ms"}})
	for _, k := range []string{"a", "b"} {
		if _, err := e.Execute(t.Context(), unit(k, 1, "old")); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE t"); err != nil {
		t.Fatal(err)
	}
	_, err = e.Execute(t.Context(), unit("a", 2, "never"))
	if c := e.Classify(err); err == nil || c != executors.Transient {
		t.Errorf("lock timeout: class %s of %v, want transient", c, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	update := func(k string) executors.Statement {
		return executors.Statement{Role: executors.RoleUpdate, Target: "t", SQL: "UPDATE t SET v = 'new' WHERE k = '" + k + "'"}
	}
	// Both hold a row before either asks for the other's.
	var arrived, together = make(chan struct{}, 2), make(chan struct{})
	errs := make(chan error, 2)
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			errs <- func() error {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					return err
				}
				defer tx.Rollback()
				if i == 0 { // one of the two is the engine, the other anybody
					if _, err := tx.ExecContext(t.Context(), update(order[0]).SQL); err != nil {
						return err
					}
					arrived <- struct{}{}
					<-together
					if _, err := tx.ExecContext(t.Context(), update(order[1]).SQL); err != nil {
						return err
					}
					return tx.Commit()
				}
				u := executors.Unit{Marker: executors.Marker{Backfill: "b", Instance: "deadlock", Attempt: 1, Token: 1},
					Statements: []executors.Statement{update(order[0]), {Role: executors.RoleScript, SQL: "SELECT pg_sleep(0.3)"}, update(order[1])}}
				arrived <- struct{}{}
				_, err = patient.Execute(t.Context(), u)
				return err
			}()
		}()
	}
	<-arrived
	<-arrived
	close(together)
	// If the server ends the engine's transaction, it is begun again.
	for range 2 {
		if err := <-errs; err != nil {
			var server *pgconn.PgError
			if !errors.As(err, &server) || server.Code != "40P01" {
				t.Errorf("deadlock: %v", err)
			}
		}
	}
	if got := content(t, e); got != "a=new b=new" {
		t.Errorf("rows %q", got)
	}
}

// TestZombie lets an attempt that has lost its lease go on while the new one
// commits into a partition that was empty: no row is in both's way, only the
// marker.
func TestZombie(t *testing.T) {
	t.Parallel()
	e := opened(t, Options{DSN: pgtest.Database(t)})
	zombie := unit("a", 1, "zombie")
	tries := 0
	zombie.Accept = func(executors.Facts) error {
		if tries++; tries > 1 {
			return nil
		}
		_, err := e.Execute(t.Context(), unit("a", 2, "new"))
		return err
	}
	if _, err := e.Execute(t.Context(), zombie); !errors.Is(err, executors.ErrFenced) || tries != 2 {
		t.Errorf("error %v after %d tries, want executors.ErrFenced after 2", err, tries)
	}
	if got := content(t, e); got != "a=new" {
		t.Errorf("rows %q", got)
	}
}

// TestLookupWaits looks a marker up while its transaction has not ended.
func TestLookupWaits(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		dsn := pgtest.Database(t)
		e := opened(t, Options{DSN: dsn})
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, s := range []string{"BEGIN", "INSERT INTO retrofill.retrofill_commits VALUES ('b', 'a', 3, 3, now(), '')"} {
			if _, err := conn.ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		var outcome executors.Outcome
		go func() {
			var err error
			outcome, _, err = e.Lookup(t.Context(), executors.Marker{Backfill: "b", Instance: "a"})
			done <- err
		}()
		for waiting := 0; waiting == 0; {
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.ExecContext(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || (outcome == executors.Committed) != (end == "COMMIT") {
			t.Errorf("%s: outcome %d, %v", end, outcome, err)
		}
	}
}

// TestSecrets looks for the connection string in the errors of opening.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"refused":   "postgres://usr-hidden:pw-hidden@127.0.0.1:1/db-hidden?sslmode=disable",
		"unknown":   "postgres://usr-hidden:pw-hidden@host-hidden.invalid/db-hidden",
		"malformed": "postgres://usr-hidden:pw-hidden@host-hidden:port-hidden/db",
		"no url":    "host=host-hidden password = 'pw-hidden port=x",
		"garbage":   "pw-hidden",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		e, err := Open(ctx, Options{DSN: dsn})
		cancel()
		if err == nil {
			t.Errorf("%s: %v", name, errors.Join(errSurprise, e.Close()))
			continue
		}
		if strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: the error shows the connection string: %v", name, err)
		}
	}
}

// TestLeastPrivilege works with a role that may use its schemas and nothing
// else of the database, as docs/engines.md describes.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	role := "role_" + strings.TrimPrefix(u.Path, "/")
	pgtest.Exec(t, dsn, "CREATE ROLE "+role+" LOGIN",
		"CREATE SCHEMA dw AUTHORIZATION "+role, "CREATE SCHEMA retrofill AUTHORIZATION "+role,
		"CREATE SCHEMA src", "CREATE TABLE src.s (a integer)", "INSERT INTO src.s VALUES (1)",
		"GRANT USAGE ON SCHEMA src TO "+role, "GRANT SELECT ON ALL TABLES IN SCHEMA src TO "+role)
	t.Cleanup(func() { pgtest.Exec(t, dsn, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	u.User = url.User(role)
	e, err := Open(t.Context(), Options{DSN: u.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Prepare(t.Context(), []string{"CREATE TABLE IF NOT EXISTS dw.t (a integer)"}); err != nil {
		t.Fatal(err)
	}
	res, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Backfill: "b", Instance: "a", Attempt: 1},
		Statements: []executors.Statement{{Role: executors.RoleInsert, Target: "t", SQL: "INSERT INTO dw.t SELECT a FROM src.s"}}})
	if d := cmp.Diff(executors.Facts{"inserted.t": 1, "rows_affected.t": 1}, res.Facts); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	_, err = e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Backfill: "b", Instance: "x", Attempt: 1},
		Statements: []executors.Statement{{Role: executors.RoleInsert, Target: "s", SQL: "INSERT INTO src.s VALUES (2)"}}})
	if err == nil || !strings.Contains(err.Error(), "docs/engines.md") {
		t.Errorf("error %v, want one that says what to grant", err)
	}
}

// TestSchemaChanges runs the dialect's statements for changes of stored
// columns and of the views that show them, each twice.
func TestSchemaChanges(t *testing.T) {
	t.Parallel()
	d, err := dialect.For("postgres")
	if err != nil {
		t.Fatal(err)
	}
	e := opened(t, Options{DSN: pgtest.Database(t)})
	table, view := d.Table("d'w", "n"), d.Table("d'w", "v")
	steps := []string{
		d.CreateSchema("d'w"),
		"CREATE TABLE IF NOT EXISTS " + table + ` ("k" integer, "a" integer, "b" text, "gone" text)`,
		d.PartitionIndex("d'w", "n", []string{"k"}),
		d.CreateView(view, `SELECT "k", "gone", "a", "b" FROM `+table),
		d.WidenColumn(table, view, "a", "BIGINT"),
		d.RetypeColumn(table, view, "b", "SMALLINT"),
		d.DropColumn(table, view, "gone"),
		d.CreateView(view, `SELECT "k", "b", "a" FROM `+table),
		d.CreateView(view, `SELECT "a", "b", "k" FROM `+table),
	}
	for i, s := range steps {
		if i == 5 {
			u := executors.Unit{Marker: executors.Marker{Backfill: "b", Instance: "rows", Attempt: 1}, Statements: []executors.Statement{
				{Role: executors.RoleInsert, Target: "n", SQL: "INSERT INTO " + table + " VALUES (1, 1, '7', ''), (2, 2, 'x', ''), (3, 3, '70000', ''), (4, 4, NULL, '')"}}}
			if _, err := e.Execute(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Prepare(t.Context(), []string{s}); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if i == 3 || i == 6 { // makes the view anew, drops what is dropped
			continue
		}
		if err := e.Prepare(t.Context(), []string{s}); err != nil {
			t.Fatalf("step %d again: %v", i, err)
		}
	}
	rows, err := e.Query(t.Context(), "SELECT * FROM "+view+` ORDER BY "k"`, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := executors.Rows{
		Columns: []executors.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "SMALLINT"}, {Name: "k", Type: "INTEGER"}},
		Values:  [][]any{{int64(1), int64(7), int64(1)}, {int64(2), nil, int64(2)}, {int64(3), nil, int64(3)}, {int64(4), nil, int64(4)}},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("readers' view (-want +got):\n%s", d)
	}
	// A view that is as it should be waits for no reader.
	db, err := sql.Open("pgx", e.opt.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT * FROM "+view); err != nil {
		t.Fatal(err)
	}
	if err := e.Prepare(t.Context(), []string{"SET lock_timeout = '5s'", steps[len(steps)-1]}); err != nil {
		t.Errorf("beside a reader: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	// Somebody else's view is never dropped.
	if err := e.Prepare(t.Context(), []string{`CREATE VIEW theirs AS SELECT "a" FROM ` + view}); err != nil {
		t.Fatal(err)
	}
	err = e.Prepare(t.Context(), []string{d.CreateView(view, `SELECT "k" FROM `+table)})
	if err == nil || !strings.Contains(err.Error(), "theirs") {
		t.Errorf("error %v, want one that names the view that is in the way", err)
	}
}
