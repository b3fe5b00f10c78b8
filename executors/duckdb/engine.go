// Package duckdb runs units on embedded DuckDB, through duckdb-go and sqlx.
//
// Invariants: a unit is one transaction on one connection of its own, and its
// marker row is in the same transaction; after any error the transaction is
// rolled back and never committed (DuckDB's COMMIT of a failed transaction
// reports success); nothing of a unit (temporary tables, session settings)
// stays on a connection that another unit gets; no extension is ever fetched.
package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/sqlscript"
)

// Options say which database to open and how. The zero value is an in-memory
// database.
type Options struct {
	// Path of the database file; "" and ":memory:" are an in-memory database
	// of this Engine alone.
	Path string
	// ReadOnly opens the file without the right to write. DuckDB lets several
	// read-only processes in, but none beside a writer.
	ReadOnly bool
	// Create makes a missing file; without it a missing file is an error that
	// wraps fs.ErrNotExist.
	Create bool
	// Connections is the number of units that run at the same time, 0 = 4.
	Connections int
	// MemoryLimit is DuckDB's memory_limit ("2GB"), "" = 80 % of the memory.
	MemoryLimit string
	// Threads is the number of threads of all connections together, 0 = one
	// for each core.
	Threads int
	// Settings are applied with SET on every connection. TimeZone is UTC
	// unless given here, so that casts do not depend on the machine.
	Settings map[string]string
	// MarkerSchema holds the table of commit markers, "" = "retrofill".
	MarkerSchema string
}

// Engine is one open DuckDB database. It is safe for concurrent use.
type Engine struct {
	db       *sqlx.DB
	opt      Options
	catalog  string        // DuckDB's name of the database
	markers  string        // quoted catalog.schema.table of the commit markers
	units    chan struct{} // one token for each running unit
	closing  chan struct{} // closed by Close
	mu       sync.Mutex
	idle     []*worker
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
	defaultConnections  = 4
	defaultMarkerSchema = "retrofill"
	markerTable         = "retrofill_commits"
)

// Open opens the database. A file that another process holds gives an error
// that wraps executors.ErrLocked and says who holds it.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	if opt.Connections <= 0 {
		opt.Connections = defaultConnections
	}
	if opt.MarkerSchema == "" {
		opt.MarkerSchema = defaultMarkerSchema
	}
	db, err := connect(ctx, opt)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(opt.Connections + 2)
	e := &Engine{db: db, opt: opt, units: make(chan struct{}, opt.Connections), closing: make(chan struct{})}
	if err := db.GetContext(ctx, &e.catalog, "SELECT current_database()"); err != nil {
		return nil, errors.Join(openError(opt.Path, err), db.Close())
	}
	// With the catalog's name in front, a file that is named like the schema
	// does no harm.
	e.markers = quote(e.catalog) + "." + quote(opt.MarkerSchema) + "." + quote(markerTable)
	return e, nil
}

// Close waits for running units and closes the database, which writes the
// log into the file. A second Close does nothing.
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
	var errs []error
	for _, w := range e.idle {
		errs = append(errs, w.close())
	}
	e.idle = nil
	errs = append(errs, e.db.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("duckdb: close %s: %w", e.name(), err)
	}
	return nil
}

// Version gives the engine's name and version.
func (e *Engine) Version(ctx context.Context) (string, error) {
	var v string
	if err := e.db.GetContext(ctx, &v, "SELECT version()"); err != nil {
		return "", fmt.Errorf("duckdb: read version: %w", explain(err))
	}
	return "DuckDB " + v, nil
}

// Prepare runs additive schema statements one by one, each committed by
// itself, and makes the table of commit markers. A schema change makes the
// commit of a unit that writes the same table fail: call it before data steps.
func (e *Engine) Prepare(ctx context.Context, ddl []string) error {
	if err := e.writable(); err != nil {
		return err
	}
	if err := e.ensureMarkers(ctx); err != nil {
		return err
	}
	if len(ddl) == 0 {
		return nil
	}
	return guard("prepare", func() error {
		conn, err := e.db.Connx(ctx)
		if err != nil {
			return fmt.Errorf("duckdb: prepare schema: %w", explain(err))
		}
		defer conn.Close()
		for i, s := range ddl {
			if _, err := sqlscript.Single(s, executors.RoleDDL); err != nil {
				return &executors.StatementError{Index: i, Role: executors.RoleDDL, SQL: s, Err: err}
			}
			if _, err := conn.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("duckdb: prepare schema: %w",
					&executors.StatementError{Index: i, Role: executors.RoleDDL, SQL: s, Err: cancelled(ctx, explain(err))})
			}
		}
		return nil
	})
}

// name is what messages call the database.
func (e *Engine) name() string {
	if inMemory(e.opt.Path) {
		return "the in-memory database"
	}
	return e.opt.Path
}

// writable tells why nothing can be written.
func (e *Engine) writable() error {
	if e.opt.ReadOnly {
		return fmt.Errorf("duckdb: write %s: it was opened read-only", e.name())
	}
	return nil
}

// ensureMarkers makes the marker table once in the life of the Engine.
func (e *Engine) ensureMarkers(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prepared {
		return nil
	}
	for _, s := range []string{
		"CREATE SCHEMA IF NOT EXISTS " + quote(e.catalog) + "." + quote(e.opt.MarkerSchema),
		"CREATE TABLE IF NOT EXISTS " + e.markers + ` (
	backfill VARCHAR NOT NULL,
	instance VARCHAR NOT NULL,
	attempt INTEGER NOT NULL,
	token BIGINT NOT NULL,
	committed_at TIMESTAMP NOT NULL,
	digest VARCHAR NOT NULL
)`,
	} {
		if _, err := e.db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("duckdb: create commit markers %s: %w", e.markers, cancelled(ctx, explain(err)))
		}
	}
	e.prepared = true
	return nil
}

// worker is a connection that is kept between units, with the statement that
// writes markers.
type worker struct {
	conn   *sqlx.Conn
	marker *sql.Stmt
}

// acquire waits for a free place and gives a worker; the caller must release
// it.
func (e *Engine) acquire(ctx context.Context) (*worker, error) {
	select {
	case e.units <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.closing:
		return nil, errClosed()
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.units
		return nil, errClosed()
	}
	if n := len(e.idle); n > 0 {
		w := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return w, nil
	}
	e.mu.Unlock()
	w, err := e.newWorker(ctx)
	if err != nil {
		<-e.units
		return nil, err
	}
	return w, nil
}

func errClosed() error { return errors.New("the engine is closed") }

// newWorker opens a connection and prepares the marker statement on it.
func (e *Engine) newWorker(ctx context.Context) (*worker, error) {
	conn, err := e.db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	stmt, err := conn.PrepareContext(ctx, markerInsert(e.markers))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &worker{conn: conn, marker: stmt}, nil
}

// release gives a worker back. One that is not clean (temporary tables,
// session settings, an unknown state) is closed: a new connection costs less
// than looking for what is left on the old one.
func (e *Engine) release(w *worker, clean bool) {
	defer func() { <-e.units }()
	if clean {
		e.mu.Lock()
		e.idle = append(e.idle, w)
		e.mu.Unlock()
		return
	}
	w.discard()
}

// discard ends the worker's connection for good. Errors of closing a
// connection that is thrown away say nothing that a caller could use.
func (w *worker) discard() {
	_ = w.marker.Close()
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
}

func (w *worker) close() error {
	return errors.Join(w.marker.Close(), w.conn.Close())
}

// guard turns a panic of the driver into an error.
func guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("duckdb: %s: the driver panicked: %v", what, r)
		}
	}()
	return f()
}
