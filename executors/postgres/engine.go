// Package postgres runs units on a PostgreSQL server (14 or newer), through
// pgx, database/sql and sqlx.
//
// Invariants: a unit is one REPEATABLE READ transaction on one connection, and
// its marker row is in the same transaction; two attempts of one instance
// never both commit unseen by each other, because the marker's primary key
// makes the later one wait and then fail; after any error the transaction is
// rolled back and its connection is thrown away; every statement goes through
// the extended protocol, which takes exactly one; the connection string is in
// no error.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/sqlscript"
)

// Options say which database to connect to and how.
type Options struct {
	// DSN is a URL (postgres://user@host/database?sslmode=verify-full) or a
	// list of key=value, as libpq reads them; what it leaves out comes from
	// the PG… environment variables.
	DSN string
	// Connections is the number of units that run at the same time, 0 = 4.
	Connections int
	// Settings are the server's settings (work_mem, lock_timeout, …) of every
	// connection. TimeZone is UTC unless given here, so that casts do not
	// depend on the server.
	Settings map[string]string
	// MarkerSchema holds the table of commit markers, "" = "retrofill".
	MarkerSchema string
	// LookupTimeout bounds the look-up after a failed commit, 0 = 30 s.
	LookupTimeout time.Duration
}

// Engine is a pool of connections to one database. It is safe for concurrent
// use.
type Engine struct {
	db      *sqlx.DB
	opt     Options
	markers string        // quoted schema.table of the commit markers
	units   chan struct{} // one token for each running unit
	closing chan struct{} // closed by Close

	mu       sync.Mutex
	closed   bool
	prepared bool // the marker table exists
}

var (
	_ executors.Engine    = (*Engine)(nil)
	_ executors.Describer = (*Engine)(nil)
	_ executors.Preparer  = (*Engine)(nil)
	_ executors.Versioner = (*Engine)(nil)
)

const (
	defaultConnections   = 4
	defaultMarkerSchema  = "retrofill"
	defaultLookupTimeout = 30 * time.Second
	markerTable          = "retrofill_commits"
	// keepAlive is how often a silent connection is checked, so that a server
	// that went away without a word is noticed.
	keepAlive = 15 * time.Second
	// cancelPatience is how long a cancelled statement may take to stop
	// before its connection is cut.
	cancelPatience = 10 * time.Second
)

// Open connects to the server. Its errors name neither the connection string
// nor any part of it but what the server itself says.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	if opt.Connections <= 0 {
		opt.Connections = defaultConnections
	}
	if opt.MarkerSchema == "" {
		opt.MarkerSchema = defaultMarkerSchema
	}
	if opt.LookupTimeout <= 0 {
		opt.LookupTimeout = defaultLookupTimeout
	}
	config, err := configure(opt)
	if err != nil {
		return nil, err
	}
	db := sqlx.NewDb(stdlib.OpenDB(*config, stdlib.OptionAfterConnect(session(opt.Settings))), "pgx")
	db.SetMaxIdleConns(opt.Connections + 2)
	// Beside the units there are catalog, look-ups and queries.
	db.SetMaxOpenConns(opt.Connections + 4)
	if err := guard("open", func() error { return db.PingContext(ctx) }); err != nil {
		return nil, errors.Join(openError(cancelled(ctx, err)), db.Close())
	}
	return &Engine{
		db: db, opt: opt, markers: quote(opt.MarkerSchema) + "." + quote(markerTable),
		units: make(chan struct{}, opt.Connections), closing: make(chan struct{}),
	}, nil
}

// configure reads the connection string and sets what retrofill relies on.
func configure(opt Options) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(opt.DSN)
	if err != nil {
		// pgx masks passwords as well as it can; a string that cannot be read
		// may hide one anywhere, so nothing of it is repeated.
		return nil, errors.New("postgres: open: the connection string cannot be read: write postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	// Unnamed statements only: no plan of an earlier schema is ever reused,
	// and poolers need not know prepared statements.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	dialer := &net.Dialer{KeepAlive: keepAlive, Timeout: config.ConnectTimeout}
	config.DialFunc = dialer.DialContext
	// A cancelled statement is cancelled on the server, and its end waited
	// for: nothing of it runs or holds locks when the caller goes on.
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelPatience}
	}
	config.RuntimeParams["client_encoding"] = "UTF8"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "retrofill"
	}
	return config, nil
}

// session gives what each new connection begins with: settings that texts of
// values depend on, then those of the user. They are set after connecting,
// because poolers refuse them before.
func session(settings map[string]string) func(context.Context, *pgx.Conn) error {
	all := map[string]string{
		"timezone": "UTC", "datestyle": "ISO, YMD", "intervalstyle": "postgres", "bytea_output": "hex",
		"standard_conforming_strings": "on", "extra_float_digits": "1",
	}
	for k, v := range settings {
		all[strings.ToLower(k)] = v
	}
	var calls []string
	var args []any
	for _, k := range slices.Sorted(maps.Keys(all)) {
		calls = append(calls, fmt.Sprintf("set_config($%d, $%d, false)", len(args)+1, len(args)+2))
		args = append(args, k, all[k])
	}
	text := "SELECT " + strings.Join(calls, ", ")
	return func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, text, args...); err != nil {
			return err
		}
		return watchClient(ctx, c)
	}
}

// watchClient asks the server to notice a client that was killed while its
// statement runs. Servers on systems that cannot do that refuse: they notice
// it at the statement's end.
func watchClient(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, "SET client_connection_check_interval = '1s'"); err != nil {
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}

// Close waits for running units and closes the connections. A second Close
// does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	e.mu.Unlock()
	for range cap(e.units) {
		e.units <- struct{}{}
	}
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("postgres: close: %w", err)
	}
	return nil
}

// Version gives the engine's name and version.
func (e *Engine) Version(ctx context.Context) (string, error) {
	var v string
	if err := e.db.GetContext(ctx, &v, "SHOW server_version"); err != nil {
		return "", fmt.Errorf("postgres: read version: %w", cancelled(ctx, explain(err)))
	}
	return "PostgreSQL " + v, nil
}

// Prepare runs additive schema statements one by one, each committed by
// itself, and makes the table of commit markers.
func (e *Engine) Prepare(ctx context.Context, ddl []string) error {
	if err := e.ensureMarkers(ctx); err != nil {
		return err
	}
	if len(ddl) == 0 {
		return nil
	}
	return e.with(ctx, "prepare schema", func(pg *pgconn.PgConn) error {
		for i, s := range ddl {
			parts, err := single(s, executors.RoleDDL)
			if err == nil {
				_, err = exec(ctx, pg, parts[0])
			}
			if err != nil {
				return &executors.StatementError{Index: i, Role: executors.RoleDDL, SQL: s, Err: cancelled(ctx, explain(err))}
			}
		}
		return nil
	})
}

// ensureMarkers makes the marker table once in the life of the Engine. A role
// without the right to make schemas can work with one that is there already.
func (e *Engine) ensureMarkers(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prepared {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("postgres: create commit markers %s: %w", e.markers, cancelled(ctx, explain(err)))
	}
	for try := 0; ; try++ {
		there, err := e.markersExist(ctx)
		if err != nil {
			return fail(err)
		}
		if there {
			e.prepared = true
			return nil
		}
		err = e.createMarkers(ctx)
		// Another process may make it at the same moment.
		if err != nil && (try > 0 || classify(err) != executors.Transient) {
			return fail(err)
		}
	}
}

func (e *Engine) createMarkers(ctx context.Context) error {
	var there bool
	if err := e.db.GetContext(ctx, &there, "SELECT to_regnamespace($1) IS NOT NULL", quote(e.opt.MarkerSchema)); err != nil {
		return err
	}
	if !there {
		if _, err := e.db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+quote(e.opt.MarkerSchema)); err != nil {
			return err
		}
	}
	_, err := e.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+e.markers+` (
	backfill text NOT NULL,
	instance text NOT NULL,
	attempt integer NOT NULL,
	token bigint NOT NULL,
	committed_at timestamp NOT NULL,
	digest text NOT NULL,
	PRIMARY KEY (backfill, instance)
)`)
	return err
}

// markersExist asks whether the marker table is there: a database that was
// only read has none.
func (e *Engine) markersExist(ctx context.Context) (there bool, err error) {
	err = e.db.GetContext(ctx, &there, "SELECT to_regclass($1) IS NOT NULL", e.markers)
	return there, err
}

// acquire waits for a free place for a unit; the caller must call free.
func (e *Engine) acquire(ctx context.Context) (free func(), err error) {
	select {
	case <-e.closing:
		return nil, errors.New("the engine is closed")
	default:
	}
	select {
	case e.units <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.closing:
		return nil, errors.New("the engine is closed")
	}
	return func() { <-e.units }, nil
}

// with runs f on a connection of the pool; what says what it is for. After an
// error the connection is thrown away with whatever is left on it.
func (e *Engine) with(ctx context.Context, what string, f func(*pgconn.PgConn) error) error {
	err := guard(what, func() error { return e.on(ctx, f, func(err error) bool { return err == nil }) })
	if err != nil {
		return fmt.Errorf("postgres: %s: %w", what, cancelled(ctx, explain(err)))
	}
	return nil
}

// on runs f on a connection of the pool and keeps the connection if keep says
// so.
func (e *Engine) on(ctx context.Context, f func(*pgconn.PgConn) error, keep func(error) bool) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	bad := true
	defer func() {
		if bad {
			// database/sql closes a connection for which it gets this error.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close() // nothing is left to lose on it
	}()
	err = raw(conn, f)
	bad = !keep(err)
	return err
}

func raw(conn *sql.Conn, f func(*pgconn.PgConn) error) error {
	return conn.Raw(func(c any) error { return f(c.(*stdlib.Conn).Conn().PgConn()) })
}

// exec runs one statement and drops its rows. Parameters are given as text.
func exec(ctx context.Context, pg *pgconn.PgConn, text string, args ...string) (pgconn.CommandTag, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	rr := pg.ExecParams(ctx, text, values, nil, nil, nil)
	for rr.NextRow() {
	}
	return rr.Close()
}

// guard turns a panic into an error.
func guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("postgres: %s: panic: %v", what, r)
		}
	}()
	return f()
}

// single cuts and checks a text: see sqlscript.Single. Beside it, what would
// end the transaction or wait for the client in PostgreSQL is refused.
func single(text string, role executors.Role) ([]string, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, errors.New("the statement holds a NUL character")
	}
	parts, err := sqlscript.Single(text, role)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		words := strings.Fields(strings.ToUpper(p))
		switch first := sqlscript.FirstWord(p); {
		case first == "PREPARE" && len(words) > 1 && words[1] == "TRANSACTION":
			return nil, errors.New("PREPARE TRANSACTION is not allowed: the whole unit is one transaction, which retrofill begins and commits")
		case first == "COPY" && strings.Contains(strings.ToUpper(p), "STDIN"):
			return nil, errors.New("COPY FROM STDIN is not possible: there is nothing that could be sent; read a file of the server, or insert")
		}
	}
	return parts, nil
}

// quote quotes an identifier.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
