package ledger

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one embedded step; its file is named <version>_<words>.sql.
type migration struct {
	version int
	name    string
	sql     string
}

// migrations gives the embedded steps in order of their versions, from 1
// without a hole (checked by a test).
func migrations() []migration {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil // only a malformed pattern gives an error
	}
	var out []migration
	for _, f := range files {
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(f), ".sql"), "_")
		text, err := migrationFiles.ReadFile(f)
		v, bad := strconv.Atoi(number)
		if err != nil || bad != nil {
			continue // impossible for embedded files of the right name
		}
		out = append(out, migration{version: v, name: name, sql: string(text)})
	}
	return out
}

// migrate brings the file to the newest version, all steps in one immediate
// transaction, so that two processes that open a new file do it once.
func migrate(ctx context.Context, conn *sqlx.Conn, steps []migration) (err error) {
	have, err := version(ctx, conn)
	if err != nil {
		return err
	}
	newest := steps[len(steps)-1].version
	switch {
	case have == newest:
		return nil
	case have > newest:
		return newer(have, newest)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, back := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			err = errors.Join(err, back)
		}
	}()
	if have, err = version(ctx, conn); err != nil { // again, now that we hold the lock
		return err
	}
	if have > newest {
		return newer(have, newest)
	}
	for _, m := range steps {
		if m.version <= have {
			continue
		}
		if _, err := conn.ExecContext(ctx, m.sql); err != nil {
			return fmt.Errorf("migrate to version %d (%s): %w", m.version, m.name, err)
		}
		if _, err := conn.ExecContext(ctx, "INSERT INTO schema_migrations (version, name) VALUES (?, ?)", m.version, m.name); err != nil {
			return fmt.Errorf("migrate to version %d (%s): %w", m.version, m.name, err)
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

func newer(have, newest int) error {
	return &Error{Code: CodeNewer, Err: fmt.Errorf("it has version %d, this retrofill knows versions up to %d", have, newest)}
}

type queryer interface {
	GetContext(ctx context.Context, dest any, query string, args ...any) error
}

// version gives the file's version: 0 for a new file. The table of versions
// is made by the first write; a database with other tables is foreign.
func version(ctx context.Context, q queryer) (int, error) {
	var tables, own int
	if err := q.GetContext(ctx, &tables, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return 0, err
	}
	if tables == 0 {
		if c, writable := q.(*sqlx.Conn); writable {
			_, err := c.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL)`)
			return 0, err
		}
		return 0, nil
	}
	if err := q.GetContext(ctx, &own, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_migrations'"); err != nil {
		return 0, err
	}
	if own == 0 {
		return 0, &Error{Code: CodeForeign, Err: errors.New("it holds other tables")}
	}
	var v int
	err := q.GetContext(ctx, &v, "SELECT coalesce(max(version), 0) FROM schema_migrations")
	return v, err
}

// checkVersion refuses anything but this code's version, for readers.
func checkVersion(ctx context.Context, db *sqlx.DB) error {
	have, err := version(ctx, db)
	if err != nil {
		return err
	}
	steps := migrations()
	newest := steps[len(steps)-1].version
	switch {
	case have > newest:
		return newer(have, newest)
	case have < newest:
		return &Error{Code: CodeOlder, Err: fmt.Errorf("it has version %d, this retrofill needs %d", have, newest)}
	}
	return nil
}
