// Package engines lists the SQL engines that this program was built with. It
// is apart from the command line so that only the program itself links their
// drivers.
package engines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/cli"
	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/duckdb"
	"github.com/retrofill/retrofill/executors/postgres"
	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Open opens an engine of a project. Errors: diagnostics unknown_engine_type,
// missing_secret, missing_database, unusable_database; and errors that wrap
// executors.ErrLocked.
func Open(ctx context.Context, e modeling.Engine, o cli.EngineOptions) (executors.Engine, error) {
	switch e.Type {
	case "duckdb":
		path, err := resolve(e.Path, o)
		if err != nil {
			return nil, err
		}
		if path != "" && path != ":memory:" && !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		opt := duckdb.Options{
			Path: path, Create: o.Create, ReadOnly: o.ReadOnly, Connections: o.Connections,
			MemoryLimit: e.Options["memory_limit"],
		}
		if err := bound(&opt, o.Settings); err != nil {
			return nil, err
		}
		eng, err := duckdb.Open(ctx, opt)
		if err != nil {
			return nil, problem(e, err)
		}
		return eng, nil
	case "postgres":
		dsn, err := resolve(e.DSN, o)
		if err != nil {
			return nil, err
		}
		eng, err := postgres.Open(ctx, postgres.Options{DSN: dsn, Connections: o.Connections, Settings: joined(e.Options, o.Settings)})
		if err != nil {
			return nil, diag.Errorf("unusable_database", "the server of engine %s cannot be used", e.Name).At(e.Pos).
				WithDetail("%s", strings.TrimPrefix(err.Error(), "postgres: ")).
				WithHint("check that the server runs, and the connection string that `dsn` stands for: it is never shown")
		}
		return eng, nil
	}
	return nil, diag.Errorf("unknown_engine_type", "engine %s has the type %q, which this program cannot run", e.Name, e.Type).
		At(e.Pos).WithHint("known types: duckdb, postgres")
}

// bound gives DuckDB the settings of a resource group. Memory and threads go
// in as options: they are the database's, not a connection's.
func bound(opt *duckdb.Options, settings map[string]string) error {
	for k, v := range settings {
		switch k {
		case "memory_limit":
			opt.MemoryLimit = v
		case "threads":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return diag.Errorf("bad_value", "threads %q of the resource group is no number of threads", v).WithHint("write a whole number from 1")
			}
			opt.Threads = n
		default:
			opt.Settings = joined(opt.Settings, map[string]string{k: v})
		}
	}
	return nil
}

// joined gives both maps' entries, the second one's where both have a key.
func joined(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// problem tells a failed opening to people; a held file stays an error that
// wraps executors.ErrLocked.
func problem(e modeling.Engine, err error) error {
	if errors.Is(err, executors.ErrLocked) {
		return err
	}
	text := strings.TrimPrefix(err.Error(), "duckdb: ")
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf("missing_database", "the database of engine %s is not there", e.Name).At(e.Pos).
			WithDetail("%s", text).WithHint("correct the path, or run a backfill: it makes the file")
	}
	return diag.Errorf("unusable_database", "the database of engine %s cannot be opened", e.Name).At(e.Pos).
		WithDetail("%s", text).WithHint("check the path, the permissions and the free space of its folder")
}

// NewParser gives DuckDB's SQL parser.
func NewParser() (cli.Parser, error) {
	p, err := duckdb.NewParser()
	if err != nil {
		return nil, fmt.Errorf("engines: open the SQL parser: %w", err)
	}
	return p, nil
}

// Version gives the version of the embedded engine, "" if it cannot be had.
func Version(ctx context.Context) (v string, err error) {
	eng, err := duckdb.Open(ctx, duckdb.Options{})
	if err != nil {
		return "", fmt.Errorf("engines: open DuckDB: %w", err)
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	return eng.Version(ctx)
}

// resolve replaces ${env:NAME} and ${file:PATH} in a text that is such a
// reference as a whole or holds some.
func resolve(text string, o cli.EngineOptions) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		ref, after, closed := strings.Cut(rest, "}")
		kind, name, ok := strings.Cut(ref, ":")
		if !closed || !ok || !slices.Contains([]string{"env", "file"}, kind) {
			out.WriteString("${")
			text = rest
			continue
		}
		value, err := secret(kind, name, o)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
}

func secret(kind, name string, o cli.EngineOptions) (string, error) {
	if kind == "env" {
		if v := o.Getenv(name); v != "" {
			return v, nil
		}
		return "", diag.Errorf("missing_secret", "the environment variable %s is not set", name).
			WithHint("set it: an engine of the project takes its connection from it")
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", diag.Errorf("missing_secret", "the file %s cannot be read", name).WithDetail("%v", err).
			WithHint("an engine of the project takes its connection from it")
	}
	return strings.TrimSpace(string(b)), nil
}
