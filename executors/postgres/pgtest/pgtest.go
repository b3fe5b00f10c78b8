// Package pgtest gives tests a database of their own on a real PostgreSQL
// server.
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
)

// Variable names the environment variable with the URL of a server whose role
// may make databases; fixtures/servers/postgres.sh starts one.
const Variable = "RETROFILL_POSTGRES_URL"

// Server gives the server's URL; the test is skipped where there is none.
func Server(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	if server == "" {
		t.Skipf("%s is not set: fixtures/servers/postgres.sh start prints a URL for it", Variable)
	}
	return server
}

// Database makes an empty database, drops it at the test's end, and gives its
// URL. The test is skipped where no server is given.
func Database(t testing.TB) string {
	t.Helper()
	server := Server(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is no URL", Variable)
	}
	name := "retrofill_" + strings.ToLower(rand.Text())
	Exec(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { Exec(t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// Exec runs statements on the server, apart from any engine.
func Exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer db.Close()
	for _, s := range statements {
		// Also at a test's end, when its own context is over.
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

var _ = stdlib.GetDefaultDriver // registers the driver "pgx"
