package duckdb

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/executors"
)

func mustOpen(t *testing.T, opt Options) *Engine {
	t.Helper()
	e, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// one reads one value as text.
func one(t *testing.T, e *Engine, sql string) any {
	t.Helper()
	rows, err := e.Query(t.Context(), sql, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Values) != 1 || len(rows.Values[0]) != 1 {
		t.Fatalf("%s: %v", sql, rows.Values)
	}
	return rows.Values[0][0]
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := filepath.Join(dir, "good.duckdb")
	mustOpen(t, Options{Path: good, Create: true})
	for name, c := range map[string]struct {
		opt  Options
		is   error
		text string
	}{
		"missing folder":     {Options{Path: filepath.Join(dir, "no", "x.duckdb"), Create: true}, fs.ErrNotExist, "does not exist: create it or correct the path"},
		"folder is a file":   {Options{Path: filepath.Join(write("file", "x"), "x.duckdb"), Create: true}, nil, "is not a folder"},
		"missing file":       {Options{Path: filepath.Join(dir, "missing.duckdb")}, fs.ErrNotExist, "there is no such database file"},
		"missing, read-only": {Options{Path: filepath.Join(dir, "missing.duckdb"), ReadOnly: true, Create: true}, fs.ErrNotExist, "there is no such database file"},
		"a folder":           {Options{Path: dir, Create: true}, nil, "it is a folder"},
		"text":               {Options{Path: write("text.duckdb", strings.Repeat("hello ", 5000))}, nil, "not a DuckDB database"},
		"short text":         {Options{Path: write("short%.duckdb", "hello")}, nil, "not a DuckDB database"},
		"empty file":         {Options{Path: write("empty.duckdb", ""), Create: true}, nil, "empty and no DuckDB database"},
		"other settings":     {Options{Path: good, ReadOnly: true}, nil, "with other settings"},
		"unknown setting":    {Options{Settings: map[string]string{"no_such_setting": "1"}}, nil, "no_such_setting"},
		"bad setting":        {Options{Settings: map[string]string{"TimeZone": "Mars/Olympus"}}, nil, "Mars/Olympus"},
		"bad memory limit":   {Options{MemoryLimit: "much"}, nil, "much"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := Open(t.Context(), c.opt)
			if err == nil {
				t.Fatal("no error", e.Close())
			}
			if !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "duckdb: open ") {
				t.Errorf("error %q does not say %q", err, c.text)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v is no %v", err, c.is)
			}
			if c := classify(err); c != executors.Permanent {
				t.Errorf("class %s", c)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "missing.duckdb")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed Open left a file: %v", err)
	}
}

func TestUnwritableFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.duckdb")
	mustOpen(t, Options{Path: path, Create: true})
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want fs.ErrPermission", err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.duckdb", "a#b.duckdb"} {
		path := filepath.Join(t.TempDir(), name)
		w, err := Open(t.Context(), Options{Path: path, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		e := mustOpen(t, Options{Path: path, ReadOnly: true})
		if _, err := e.Execute(t.Context(), executors.Unit{}); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("execute: %v", err)
		}
		if err := e.Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("prepare: %v", err)
		}
		out, _, err := e.Lookup(t.Context(), executors.Marker{Backfill: "b", Instance: "i"})
		if err != nil || out != executors.NotCommitted {
			t.Errorf("look-up without a marker table: %v %v", out, err)
		}
		if got := one(t, e, "SELECT 1"); got != int64(1) {
			t.Errorf("query: %v", got)
		}
	}
}

// TestSession: the settings that must hold on every connection, in all three
// ways of opening.
func TestSession(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "a.duckdb", "a?#.duckdb"} {
		opt := Options{Create: true, Threads: 1, MemoryLimit: "300MB", Connections: 2}
		if path != "" {
			opt.Path = filepath.Join(t.TempDir(), path)
		}
		e := mustOpen(t, opt)
		for setting, want := range map[string]any{
			"autoload_known_extensions": false, "autoinstall_known_extensions": false, "TimeZone": "UTC", "threads": int64(1),
		} {
			if got := one(t, e, "SELECT current_setting('"+setting+"')"); got != want {
				t.Errorf("%q: %s = %v, want %v", path, setting, got, want)
			}
		}
		// Not there, and not looked for in the network.
		if _, err := e.Query(t.Context(), "SELECT * FROM 'https://example.invalid/x.parquet'", 1); err == nil {
			t.Error("an extension was loaded")
		}
	}
	e := mustOpen(t, Options{Settings: map[string]string{"timezone": "America/New_York"}})
	if got := one(t, e, "SELECT current_setting('TimeZone')"); got != "America/New_York" {
		t.Errorf("TimeZone = %v", got)
	}
}

// TestOpenContext: connections are opened when the context of Open is over.
func TestOpenContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	e, err := Open(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	cancel()
	if _, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Instance: "i"}}); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	e, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Instance: "i"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := e.Execute(t.Context(), executors.Unit{}); err == nil {
		t.Error("execute after close: no error")
	}
}

// TestFileNamedLikeSchema: DuckDB takes dw.t for a table of the catalog dw.
func TestFileNamedLikeSchema(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "dw.duckdb"), Create: true})
	err := e.Prepare(t.Context(), []string{"CREATE SCHEMA IF NOT EXISTS dw", "CREATE TABLE IF NOT EXISTS dw.t (a INTEGER)"})
	if err == nil || !strings.Contains(err.Error(), "rename the file") {
		t.Errorf("error %v", err)
	}
	// The marker schema may have the file's name.
	e = mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "retrofill.duckdb"), Create: true})
	m := executors.Marker{Backfill: "b", Instance: "i", Attempt: 1}
	if _, err := e.Execute(t.Context(), executors.Unit{Marker: m}); err != nil {
		t.Fatal(err)
	}
	if out, _, err := e.Lookup(t.Context(), m); err != nil || out != executors.Committed {
		t.Errorf("look-up: %v %v", out, err)
	}
}

// child starts this test binary in one of TestMain's modes.
func child(t *testing.T, mode string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, childMode+"="+mode)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, bufio.NewScanner(out)
}

func TestLocked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.duckdb", "a%.duckdb"} {
		path := filepath.Join(t.TempDir(), name)
		cmd, out := child(t, "hold", childPath+"="+path)
		if !out.Scan() || out.Text() != "holding" {
			t.Fatalf("the child says %q", out.Text())
		}
		for _, readOnly := range []bool{false, true} {
			_, err := Open(t.Context(), Options{Path: path, ReadOnly: readOnly})
			var locked *LockedError
			if !errors.As(err, &locked) || !errors.Is(err, executors.ErrLocked) || classify(err) != executors.Locked {
				t.Fatalf("error %v, want *LockedError", err)
			}
			if locked.PID != cmd.Process.Pid {
				t.Errorf("holder %d, want %d", locked.PID, cmd.Process.Pid)
			}
			if !strings.Contains(err.Error(), "holds the file") || strings.Contains(err.Error(), "\n") {
				t.Errorf("message %q", err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		mustOpen(t, Options{Path: path})
	}
}

// hold is the child of TestLocked.
func hold(path string) error {
	e, err := Open(context.Background(), Options{Path: path, Create: true})
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("holding\n"); err != nil {
		return err
	}
	// Until the parent closes the pipe.
	_, err = bufio.NewReader(os.Stdin).ReadByte()
	return errors.Join(err, e.Close())
}
