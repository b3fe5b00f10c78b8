// Package ledger is the durable memory of backfills, in one SQLite file: what
// was planned, what each instance did, and which logic built each
// materialization node × slot × field.
//
// Invariants:
//   - what a call has written when it returns survives the death of the
//     process, and is flushed to disk too (synchronous=FULL) unless the
//     target's commit marker says the same (Outcome.Marked); several callers
//     share one flush (group commit);
//   - an attempt is durable before the engine is asked, and its outcome, the
//     built records and the facts are written in one transaction;
//   - only the holder of a backfill's newest fencing token writes its records;
//   - an instance has a row of its own once it has left pending, before that
//     it exists as a range;
//   - build numbers rise and are never used twice;
//   - nothing here reads the wall clock: the clock is passed to Open.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite" // also the driver "sqlite"
)

// Clock gives the present moment.
type Clock func() time.Time

// Options of Open. The zero value is usable except for Clock.
type Options struct {
	Clock Clock
	// ReadOnly opens an existing ledger for reading: no file is made, nothing
	// is migrated, an older version is refused.
	ReadOnly bool
	// LeaseTTL is how long after its last heartbeat an owner counts as alive;
	// 0 = 15 s.
	LeaseTTL time.Duration
	// Alive tells whether a process of this machine still runs; an owner for
	// which it says false counts as dead at once. nil = only heartbeats count.
	Alive func(o Owner) bool
	// Unflushed leaves flushing to the system, for simulations: records then
	// survive the process, but not a power failure.
	Unflushed bool
}

// Ledger is an open ledger file. It is safe for concurrent use, also by
// several processes at once.
type Ledger struct {
	path   string
	opts   Options
	read   *sqlx.DB
	write  *sqlx.DB // nil when read-only
	writer *writer  // nil when read-only
}

// Open opens or creates the ledger at path and brings it to this code's
// version. Errors are *Error with a code: ledger_newer, ledger_older (only
// when read-only), ledger_corrupt, ledger_not_a_ledger, ledger_read_only,
// ledger_full, ledger_locked, ledger_missing, ledger_unopenable.
func Open(ctx context.Context, path string, o Options) (*Ledger, error) {
	if o.Clock == nil {
		return nil, errors.New("ledger: open: no clock given")
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 15 * time.Second
	}
	l := &Ledger{path: path, opts: o}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(l.problem("open", err), l.Close())
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) error {
	if err := l.prepareFile(); err != nil {
		return err
	}
	var err error
	if l.opts.ReadOnly {
		return l.openToRead(ctx)
	}
	level := "FULL"
	if l.opts.Unflushed {
		level = "OFF"
	}
	if l.write, err = sqlx.Open("sqlite", dsn(l.path, false)+"&_pragma=synchronous("+level+")"); err != nil {
		return err
	}
	l.write.SetMaxOpenConns(1)
	conn, err := l.write.Connx(ctx)
	if err != nil {
		return err
	}
	if err := migrate(ctx, conn, migrations()); err != nil {
		return errors.Join(err, conn.Close())
	}
	if l.read, err = sqlx.Open("sqlite", dsn(l.path, false)+"&_pragma=query_only(1)"); err != nil {
		return errors.Join(err, conn.Close())
	}
	l.read.SetMaxOpenConns(4)
	l.read.SetMaxIdleConns(4)
	l.writer = newWriter(conn, l.opts.Clock)
	l.writer.never = l.opts.Unflushed
	return nil
}

// openToRead opens for reading. SQLite wants to put its shared memory beside a
// WAL file even then; in a folder that may not be written it is told that the
// file does not change, which holds where no WAL has anything to add: nobody
// writes there.
func (l *Ledger) openToRead(ctx context.Context) error {
	var err error
	if l.read, err = sqlx.Open("sqlite", dsn(l.path, true)); err != nil {
		return err
	}
	err = checkVersion(ctx, l.read)
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	if code, _ := codeOf(se.Code()); code != CodeReadOnly && code != CodeUnopenable {
		return err
	}
	if info, statErr := os.Stat(l.path + "-wal"); statErr == nil && info.Size() > 0 {
		return err
	}
	if closeErr := l.read.Close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	if l.read, err = sqlx.Open("sqlite", dsn(l.path, true)+"&immutable=1"); err != nil {
		return err
	}
	return checkVersion(ctx, l.read)
}

// prepareFile gives clear errors for what SQLite would call "unable to open
// database file".
func (l *Ledger) prepareFile() error {
	info, err := os.Stat(l.path)
	switch {
	case err == nil && info.IsDir():
		return &Error{Code: CodeUnopenable, Err: errors.New("it is a folder")}
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return &Error{Code: CodeUnopenable, Err: err}
	case l.opts.ReadOnly:
		return &Error{Code: CodeMissing, Err: err}
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return &Error{Code: CodeUnopenable, Err: err}
	}
	return nil
}

// dsn gives the driver's address of a file; the path may hold any character.
func dsn(path string, readOnly bool) string {
	s := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?_pragma=busy_timeout(5000)"
	if readOnly {
		return s + "&mode=ro&_pragma=query_only(1)"
	}
	return s + "&_pragma=journal_mode(WAL)&_txlock=immediate"
}

// Close waits for pending writes and closes the file.
func (l *Ledger) Close() error {
	var errs []error
	if l.writer != nil {
		errs = append(errs, l.writer.close())
	}
	for _, db := range []*sqlx.DB{l.read, l.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Path gives the file's path as it was given to Open.
func (l *Ledger) Path() string { return l.path }

// apply runs fn in a write transaction that is durable when apply returns.
func (l *Ledger) apply(ctx context.Context, what string, fn func(*tx) error) error {
	if l.writer == nil {
		return l.problem(what, &Error{Code: CodeReadOnly, Err: errors.New("it was opened for reading")})
	}
	return l.problem(what, l.writer.do(ctx, false, fn))
}

// get reads one row; sql.ErrNoRows is passed on bare.
func (l *Ledger) get(ctx context.Context, what string, dest any, query string, args ...any) error {
	err := l.read.GetContext(ctx, dest, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return l.problem(what, err)
}

// list reads rows into a slice.
func (l *Ledger) list(ctx context.Context, what string, dest any, query string, args ...any) error {
	return l.problem(what, l.read.SelectContext(ctx, dest, query, args...))
}

// inList expands a slice argument of an IN (?) list.
func inList(query string, args ...any) (string, []any, error) {
	q, a, err := sqlx.In(query, args...)
	if err != nil {
		return "", nil, fmt.Errorf("expand list: %w", err)
	}
	return q, a, nil
}

// micros is a moment as the ledger stores it: microseconds since 1970, 0 =
// not yet.
type micros int64

func toMicros(t time.Time) micros {
	if t.IsZero() {
		return 0
	}
	return micros(t.UnixMicro())
}

func (m micros) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}
