package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	duck "github.com/duckdb/duckdb-go/v2"
	"github.com/jmoiron/sqlx"

	"github.com/retrofill/retrofill/executors"
)

// LockedError says that another process has the database file open.
type LockedError struct {
	Path    string
	PID     int    // of the holder, 0 unknown
	Program string // the holder's program, "" unknown
	Err     error  // DuckDB's error
}

// Error says who holds the file and what to do.
func (e *LockedError) Error() string {
	who := "another process"
	switch {
	case e.PID > 0 && e.Program != "":
		who = fmt.Sprintf("process %d (%s)", e.PID, e.Program)
	case e.PID > 0:
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("duckdb: open %s: %s holds the file; DuckDB lets one process in at a time: wait for it or end it", e.Path, who)
}

// Unwrap gives executors.ErrLocked and DuckDB's own error.
func (e *LockedError) Unwrap() []error { return []error{executors.ErrLocked, e.Err} }

func inMemory(path string) bool { return path == "" || path == ":memory:" }

// connect opens a pool of connections with the options' settings applied to
// each of them.
func connect(ctx context.Context, opt Options) (*sqlx.DB, error) {
	path := opt.Path
	if !inMemory(path) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("duckdb: open %s: %w", path, err)
		}
		if err := checkFile(path, abs, opt); err != nil {
			return nil, err
		}
		path = abs
	}
	source, first := dataSource(path, opt)
	init := append(first, settings(opt.Settings)...)
	// Connections are opened long after Open has returned.
	later := context.WithoutCancel(ctx)
	connector, err := duck.NewConnector(source, func(conn driver.ExecerContext) error {
		for _, s := range init {
			if _, err := conn.ExecContext(later, s, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, openError(opt.Path, err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "duckdb")
	if err := guard("open", func() error { return db.PingContext(ctx) }); err != nil {
		return nil, errors.Join(openError(opt.Path, err), db.Close())
	}
	return db, nil
}

// checkFile finds what DuckDB reports unclearly or only at the first write.
func checkFile(shown, abs string, opt Options) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("duckdb: open "+strings.ReplaceAll(shown, "%", "%%")+": "+format, args...)
	}
	folder := filepath.Dir(abs)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("the folder %s does not exist: create it or correct the path (%w)", folder, fs.ErrNotExist)
	case err != nil:
		return fail("look at the folder: %w", err)
	case !info.IsDir():
		return fail("%s is not a folder", folder)
	}
	info, err = os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if opt.ReadOnly || !opt.Create {
			return fail("there is no such database file (%w)", fs.ErrNotExist)
		}
	case err != nil:
		return fail("%w", err)
	case info.IsDir():
		return fail("it is a folder, not a database file")
	case info.Size() == 0 && opt.Create && !opt.ReadOnly:
		return fail("the file is empty and no DuckDB database: remove it first")
	}
	if opt.ReadOnly {
		return nil
	}
	// DuckDB writes its log beside the file, at the first commit: find out
	// now that it cannot.
	probe, err := os.CreateTemp(folder, ".retrofill-probe-*")
	if err != nil {
		return fail("the folder %s cannot be written, and DuckDB keeps its log there: %w", folder, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fail("write the folder: %w", err)
	}
	return nil
}

// dataSource gives the driver's data source name and the statements that each
// new connection starts with. The driver reads the name as a URL, so a path
// with a URL's own signs is attached to an in-memory database instead.
func dataSource(path string, opt Options) (source string, first []string) {
	v := url.Values{
		"autoinstall_known_extensions": {"false"},
		"autoload_known_extensions":    {"false"},
	}
	if opt.MemoryLimit != "" {
		v.Set("memory_limit", opt.MemoryLimit)
	}
	if opt.Threads > 0 {
		v.Set("threads", strconv.Itoa(opt.Threads))
	}
	if inMemory(path) {
		return ":memory:?" + v.Encode(), nil
	}
	if !strings.ContainsAny(path, "?#%:") {
		if opt.ReadOnly {
			v.Set("access_mode", "READ_ONLY")
		}
		source = path + "?" + v.Encode()
		if u, err := url.Parse(source); err == nil && u.RawQuery == v.Encode() {
			return source, nil
		}
	}
	mode := ""
	if opt.ReadOnly {
		mode = " (READ_ONLY)"
	}
	const alias = "retrofill_db"
	return ":memory:?" + v.Encode(), []string{
		"ATTACH IF NOT EXISTS " + literal(path) + " AS " + quote(alias) + mode,
		"USE " + quote(alias),
	}
}

// settings renders the SET statements, sorted by name.
func settings(given map[string]string) []string {
	all := map[string]string{"TimeZone": "UTC"}
	for k, v := range given {
		if strings.EqualFold(k, "timezone") {
			k = "TimeZone"
		}
		all[k] = v
	}
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, "SET "+quote(k)+" = "+literal(v))
	}
	slices.Sort(out)
	return out
}

// openError says what is wrong in words for people.
func openError(path string, err error) error {
	msg := err.Error()
	for _, p := range []string{"database/sql/driver: ", "could not connect to database: "} {
		msg = strings.TrimPrefix(msg, p)
	}
	switch {
	case strings.Contains(msg, "Could not set lock on file"):
		return lockedError(path, msg, err)
	case strings.Contains(msg, "different configuration"):
		return fmt.Errorf("duckdb: open %s: this process has it open with other settings (read-only or not, memory, threads): %w", path, err)
	case strings.Contains(msg, "not a valid DuckDB database file"):
		return fmt.Errorf("duckdb: open %s: the file is not a DuckDB database: %w", path, err)
	case strings.Contains(msg, "Permission denied"):
		return fmt.Errorf("duckdb: open %s: no permission: %w", path, errors.Join(fs.ErrPermission, err))
	}
	if inMemory(path) {
		path = "an in-memory database"
	}
	return fmt.Errorf("duckdb: open %s: %w", path, err)
}

// lockedError reads the holder out of DuckDB's message: "Conflicting lock is
// held in <program> (PID <n>) by user <name>".
func lockedError(path, msg string, err error) error {
	e := &LockedError{Path: path, Err: err}
	m := regexp.MustCompile(`held in (.+?) \(PID (\d+)\)`).FindStringSubmatch(msg)
	if m == nil {
		m = regexp.MustCompile(`()\(?PID (\d+)\)?`).FindStringSubmatch(msg)
	}
	if m != nil {
		e.Program = m[1]
		// The pattern admits digits only; a number too long for an int
		// stays 0, "unknown".
		if pid, err := strconv.Atoi(m[2]); err == nil {
			e.PID = pid
		}
	}
	return e
}

// quote quotes an identifier, literal a string.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(s string) string  { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
