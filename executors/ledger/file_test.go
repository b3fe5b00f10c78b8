package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

func fixed() time.Time { return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC) }

func TestMigrationsAreNumbered(t *testing.T) {
	t.Parallel()
	for i, m := range migrations() {
		if m.version != i+1 || m.name == "" {
			t.Errorf("migration %d has version %d, name %q", i+1, m.version, m.name)
		}
	}
}

// TestMigrateFromEveryVersion brings a file of each earlier version, and of
// none, to the newest one.
func TestMigrateFromEveryVersion(t *testing.T) {
	t.Parallel()
	all := migrations()
	for v := range len(all) + 1 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("v%d.db", v))
		if v > 0 {
			migrateTo(t, path, all[:v])
		}
		l, err := Open(t.Context(), path, Options{Clock: fixed})
		if err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		have, err := version(t.Context(), l.read)
		if err != nil || have != len(all) {
			t.Errorf("from version %d to %d, %v", v, have, err)
		}
		if _, err := l.Backfills(t.Context(), "", 0); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func migrateTo(t *testing.T, path string, steps []migration) {
	t.Helper()
	db, err := sqlx.Open("sqlite", dsn(path, false))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(migrate(t.Context(), conn, steps), conn.Close(), db.Close())
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailedMigration leaves the file as it was.
func TestFailedMigration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l.db")
	migrateTo(t, path, migrations())
	db, err := sqlx.Open("sqlite", dsn(path, false))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	n := len(migrations())
	steps := append(migrations(), migration{version: n + 1, name: "half", sql: "CREATE TABLE half (a); SELECT nonsense;"})
	if err := migrate(t.Context(), conn, steps); err == nil {
		t.Fatal("no error")
	}
	if v, err := version(t.Context(), conn); v != n || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	var left int
	if err := conn.GetContext(t.Context(), &left, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"); err != nil || left != 0 {
		t.Errorf("%d tables left, %v", left, err)
	}
}

func TestNewerAndOlder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l.db")
	migrateTo(t, path, migrations())
	set := func(query string) {
		t.Helper()
		db, err := sqlx.Open("sqlite", dsn(path, false))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), query)
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	want := func(code string, readOnly bool) {
		t.Helper()
		_, err := Open(t.Context(), path, Options{Clock: fixed, ReadOnly: readOnly})
		var problem *Error
		if !errors.As(err, &problem) || problem.Code != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	set("INSERT INTO schema_migrations VALUES (99, 'future')")
	want(CodeNewer, false)
	want(CodeNewer, true)
	set("DELETE FROM schema_migrations")
	want(CodeOlder, true)
	set("DROP TABLE schema_migrations")
	want(CodeForeign, false)
}

// TestFullDisk: the ledger says so, and goes on when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "l.db"), Options{Clock: fixed})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	limit := func(pages int) {
		t.Helper()
		err := l.writer.do(context.Background(), false, func(t *tx) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.writer.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count=%d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	var size int
	if err := l.writer.conn.GetContext(t.Context(), &size, "PRAGMA page_count"); err != nil {
		t.Fatal(err)
	}
	limit(size + 1)
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = 'x'
	}
	err = l.SaveCatalog(t.Context(), "dev", big)
	var problem *Error
	if !errors.As(err, &problem) || problem.Code != CodeFull {
		t.Fatalf("got %v", err)
	}
	if _, _, ok, err := l.Catalog(t.Context(), "dev"); ok || err != nil {
		t.Error("half of it was written", err)
	}
	limit(1 << 30)
	if err := l.SaveCatalog(t.Context(), "dev", big); err != nil {
		t.Error(err)
	}
}

// TestSize: what a slot costs in the file, and how fast a node's year is read.
func TestSize(t *testing.T) {
	t.Parallel()
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "l.db"), Options{Clock: fixed, Unflushed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	const nodes, days = 50, 366
	if err := l.apply(t.Context(), "fill", func(x *tx) error {
		for n := range nodes {
			id, err := x.target("dev", fmt.Sprint("n", n))
			if err != nil {
				return err
			}
			for d := range days {
				if _, err := x.exec("INSERT INTO built VALUES (?, ?, '', ?, ?, 1, 0, 1, 12345, ?)", id, 16000+d, 1000000+n*days+d, 1000000+n*days+d-1, toMicros(fixed())); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var bytes int64
	if err := l.read.GetContext(t.Context(), &bytes, "SELECT sum(pgsize) FROM dbstat WHERE name = 'built'"); err != nil {
		t.Skip("no dbstat:", err)
	}
	per := float64(bytes) / (nodes * days)
	t.Logf("%.0f bytes a slot", per)
	if per > 80 {
		t.Errorf("%.0f bytes a slot", per)
	}
	got, err := l.Built(t.Context(), "dev", []string{"n7"}, 16000, 16000+bizdate.Date(days))
	if err != nil || len(got) != days {
		t.Errorf("%d records, %v", len(got), err)
	}
}
