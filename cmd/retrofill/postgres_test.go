package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/duckdb"
	"github.com/retrofill/retrofill/executors/postgres"
	"github.com/retrofill/retrofill/executors/postgres/pgtest"
)

// TestPostgres takes the project of `retrofill init` through a life on
// PostgreSQL (built, a client killed with SIGKILL in the middle and resumed,
// one field refreshed in place, a column added, one widened and one dropped),
// the same one through it on DuckDB without the kill, and compares all tables.
func TestPostgres(t *testing.T) {
	t.Parallel()
	dsn := secretive(t, pgtest.Database(t))
	pg := newLife(t, `postgres, dsn: "${env:WAREHOUSE}"`, dsn)
	duck := newLife(t, "duckdb, path: warehouse.duckdb", "")

	first := []string{"backfill", "load_orders", "--downstream", "all", "--dates", "2024-01-01", "--yes"}
	pg.ok(t, first...)
	duck.ok(t, first...)
	pg.killed(t, dsn)
	duck.ok(t, "backfill", "load_orders", "--downstream", "all", "--start-date", "2024-01-01", "--end-date", "2024-01-05", "--name", "month", "--yes")
	compare(t, dsn, duck.dir)

	for _, l := range []*life{pg, duck} {
		l.edit(t, "o.quantity * o.price  ", "o.quantity * o.price + 1  ")
		out := l.ok(t, "backfill", "fct_order", "--fields", "gross", "--start-date", "2024-01-01", "--end-date", "2024-01-05", "--yes")
		if !strings.Contains(out, "column refresh") {
			t.Errorf("gross is not refreshed in place:\n%s", out)
		}
	}
	compare(t, dsn, duck.dir)

	for _, l := range []*life{pg, duck} {
		l.edit(t, "       o.quantity,", "       CAST(o.quantity AS BIGINT) AS quantity, o.quantity * 2 AS Twice,")
		l.change(t, "models/fact/fct_order.yml", "fields: [customer_id,", "fields: [Twice, customer_id,")
		l.ok(t, "backfill", "fct_order", "--downstream", "all", "--start-date", "2024-01-01", "--end-date", "2024-01-05", "--yes")
		l.ok(t, "diff", "fct_order", "--date", "2024-01-03")
	}
	compare(t, dsn, duck.dir)

	for _, l := range []*life{pg, duck} {
		l.edit(t, "* 2 AS Twice", "* 3 AS Twice")
		out := l.ok(t, "backfill", "fct_order", "--fields", "twice", "--start-date", "2024-01-02", "--end-date", "2024-01-03", "--yes")
		if !strings.Contains(out, "column refresh") {
			t.Errorf("twice is not refreshed in place:\n%s", out)
		}
	}
	compare(t, dsn, duck.dir)

	for _, l := range []*life{pg, duck} {
		l.edit(t, "       o.product,\n", "")
		l.change(t, "models/fact/fct_order.yml", "customer_id, product,", "customer_id,")
		l.ok(t, "backfill", "fct_order", "--start-date", "2024-01-01", "--end-date", "2024-01-05", "--drop-removed", "--yes")
	}
	compare(t, dsn, duck.dir)

	frozen := pg.ok(t, "plan", "fct_order", "--dates", "2024-01-02", "-o", "json")
	if strings.Contains(frozen, "hush") {
		t.Error("the frozen plan holds the password")
	}
	pg.edit(t, "c.country", "c.country, c.country #>> 'x' AS bad")
	if out := pg.fails(t, "validate"); !strings.Contains(out, "DuckDB's grammar") {
		t.Errorf("a SELECT that only PostgreSQL can read:\n%s", out)
	}
	pg.dsn = strings.Replace(dsn, "127.0.0.1:", "127.0.0.1:1", 1) // no such port
	pg.fails(t, "plan", "dim_customer", "--dates", "2024-01-02")
	pg.dsn = ""
	if out := pg.fails(t, "plan", "dim_customer", "--dates", "2024-01-02"); !strings.Contains(out, "WAREHOUSE") {
		t.Errorf("the message does not name the variable:\n%s", out)
	}
	pg.silent(t)
}

// secretive puts a password into a URL; the test server does not ask for it.
func secretive(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's URL cannot be read")
	}
	u.User = url.UserPassword(u.User.Username(), "hush")
	return u.String()
}

// life is one project and what its commands have said.
type life struct {
	dir, dsn string
	said     strings.Builder
}

func newLife(t *testing.T, engine, dsn string) *life {
	t.Helper()
	l := &life{dir: filepath.Join(t.TempDir(), "orders"), dsn: dsn}
	if err := os.Mkdir(l.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l.ok(t, "init", ".")
	l.change(t, "retrofill.yml", "duckdb, path: warehouse.duckdb", engine)
	return l
}

func (l *life) edit(t *testing.T, from, to string) {
	t.Helper()
	l.change(t, "models/fact/fct_order.sql", from, to)
}

func (l *life) change(t *testing.T, file, from, to string) {
	t.Helper()
	path := filepath.Join(l.dir, file)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s does not hold %q: %v", file, from, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command prepares a command line of the built program.
func (l *life) command(ctx context.Context, t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable() // testscript.Main looks at the name it is called by
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0], cmd.Dir = "retrofill", l.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "WAREHOUSE="+l.dsn)
	return cmd
}

func (l *life) run(t *testing.T, args []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := l.command(ctx, t, args).CombinedOutput()
	l.said.Write(out)
	return string(out), err
}

func (l *life) ok(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.run(t, args)
	if err != nil {
		t.Fatalf("retrofill %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (l *life) fails(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.run(t, args)
	if err == nil {
		t.Errorf("retrofill %s: no error\n%s", strings.Join(args, " "), out)
	}
	return out
}

// killed begins the backfill `month`, kills the client while a statement of it
// waits for a lock, and resumes it.
func (l *life) killed(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Readers pass, writers wait.
	if _, err := tx.ExecContext(ctx, "LOCK TABLE dw_dev.sum_country_day__main IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	cmd := l.command(ctx, t, []string{"backfill", "load_orders", "--downstream", "all", "--start-date", "2024-01-01", "--end-date", "2024-01-05", "--name", "month", "--yes"})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for waiting() == 0 {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	// The server notices that nobody waits for the answer any more.
	for waiting() > 0 {
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	out := l.ok(t, "resume", "month")
	if strings.Contains(out, "fct_order@2024-01-01") {
		t.Errorf("resume repeats what was committed:\n%s", out)
	}
}

// silent looks for the password in everything that was said and written.
func (l *life) silent(t *testing.T) {
	t.Helper()
	if strings.Contains(l.said.String(), "hush") {
		t.Error("a command printed the password")
	}
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "hush") {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// compare compares every logical table of both engines.
func compare(t *testing.T, dsn, dir string) {
	t.Helper()
	pg, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	duck, err := duckdb.Open(t.Context(), duckdb.Options{Path: filepath.Join(dir, "warehouse.duckdb"), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer duck.Close()
	for _, table := range []string{"dim_customer", "fct_order", "sum_country_day"} {
		want, n := digest(t, duck, table)
		got, m := digest(t, pg, table)
		if n == 0 || n != m || got != want {
			t.Errorf("%s: %d rows with digest %s on PostgreSQL, %d with %s on DuckDB", table, m, got, n, want)
		}
	}
}

// digest gives a digest of a table's rows as typed text, whatever their order,
// and their number.
func digest(t *testing.T, e executors.Engine, table string) (string, int) {
	t.Helper()
	rows, err := e.Query(t.Context(), "SELECT * FROM dw_dev."+table, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(rows.Values))
	for i, r := range rows.Values {
		var b strings.Builder
		for k, v := range r {
			fmt.Fprintf(&b, "%s=%s\x1f", strings.ToLower(rows.Columns[k].Name), typed(rows.Columns[k].Type, v))
		}
		lines[i] = b.String()
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\x1e"))))[:16], len(lines)
}

// typed writes a value with its kind: whole numbers of every width are one
// kind, and so are exact numbers of every scale.
func typed(typ string, v any) string {
	if v == nil {
		return "NULL"
	}
	if text, ok := v.(string); ok && (strings.HasPrefix(typ, "DECIMAL") || strings.HasPrefix(typ, "NUMERIC")) {
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return "exact " + text
	}
	return fmt.Sprintf("%T %v", v, v)
}
