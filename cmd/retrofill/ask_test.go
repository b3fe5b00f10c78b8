package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/cli"
	"github.com/retrofill/retrofill/cmd/retrofill/internal/engines"
	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/modeling"
)

// typeIn runs the command line in a folder as if the text were typed at a
// terminal.
func typeIn(dir, text string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Main(args, cli.Env{
		Stdin: strings.NewReader(text), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC) }, Dir: dir,
		Interactive: func() bool { return true },
		OpenEngine:  engines.Open, EngineVersion: engines.Version, NewParser: engines.NewParser,
	})
	return code, out.String(), errs.String()
}

// A backfill in a resource group opens the engine with the group's connections
// and settings, and so does whatever runs its frozen plan.
func TestResourceGroupReachesTheEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"retrofill.yml": "name: pools\nresource_groups:\n  night: {connections: 3, settings: {threads: 2, work_mem: 1MB}}\n",
		"tasks/a.yml":   "task: a\n",
		"tasks/a.sql":   "SELECT 1;\n",
		"tasks/b.yml":   "task: b\ndepends_on: [{task: a}]\n",
		"tasks/b.sql":   "SELECT error('not now');\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var opened []cli.EngineOptions
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		opened = nil
		code := cli.Main(args, cli.Env{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }, Now: time.Now, Dir: dir,
			OpenEngine: func(ctx context.Context, e modeling.Engine, o cli.EngineOptions) (executors.Engine, error) {
				opened = append(opened, o)
				return engines.Open(ctx, e, o)
			},
			EngineVersion: engines.Version, NewParser: engines.NewParser,
		})
		return code, out.String() + errs.String()
	}
	check := func(what string, connections int, threads string) {
		t.Helper()
		if len(opened) == 0 {
			t.Fatalf("%s opens no engine", what)
		}
		o := opened[len(opened)-1]
		want := map[string]string{}
		if threads != "" {
			want["threads"] = threads
		}
		if o.Connections != connections || !maps.Equal(o.Settings, want) {
			t.Errorf("%s: %d connections, settings %v", what, o.Connections, o.Settings)
		}
	}
	at := []string{"--dates", "2024-01-01,2024-01-02", "--groups", "2"}
	if code, text := run(append([]string{"backfill", "a", "--downstream", "all", "--resource-group", "Night", "--name", "x", "--yes"}, at...)...); code != 1 {
		t.Fatal(code, text)
	}
	check("backfill", 3, "2")
	if code, text := run("resume", "x", "--rerun-failed"); code != 1 {
		t.Fatal(code, text)
	}
	check("resume", 3, "2")
	if code, text := run(append([]string{"backfill", "a", "--name", "y", "--yes"}, at...)...); code != 0 {
		t.Fatal(code, text)
	}
	check("backfill without a group", 2, "")
	if code, text := run(append([]string{"backfill", "a", "--resource-group", "night", "--name", "z", "--yes", "--run-at", time.Now().Add(2500 * time.Millisecond).UTC().Format("2006-01-02T15:04:05Z")}, at...)...); code != 0 {
		t.Fatal(code, text)
	}
	check("backfill --run-at", 3, "2")
}

// A backfill asks for recommended fields, plans again with those that are
// ticked, shows that plan and asks whether to run it.
func TestTickRecommended(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	orders := func(amount, label, size string) {
		t.Helper()
		write("models/orders.sql", "SELECT o.k, "+amount+" AS amount, "+label+" AS label, "+size+" AS size FROM src.orders o WHERE o.ds = DATE '${yyyy-mm-dd}'\n")
	}
	write("retrofill.yml", "name: ask\nengines:\n  local: {type: duckdb, path: w.duckdb}\nenvironments:\n  dev: {engine: local, schema: dw}\nsources:\n  - table: src.orders\n    partition: {ds: \"${yyyy-mm-dd}\"}\n    columns: {k: INTEGER, ds: DATE}\n")
	write("tasks/load.yml", "task: load\noutputs: [{table: src.orders, partition: {ds: \"${yyyy-mm-dd}\"}}]\n")
	write("tasks/load.sql", "CREATE SCHEMA IF NOT EXISTS src;\nCREATE TABLE IF NOT EXISTS src.orders (k INTEGER, ds DATE);\nDELETE FROM src.orders WHERE ds = DATE '${yyyy-mm-dd}';\nINSERT INTO src.orders VALUES (1, DATE '${yyyy-mm-dd}');\n")
	write("models/orders.yml", "table: orders\nkind: fact\nkey: [k]\npartition: {ds: \"${yyyy-mm-dd}\"}\nmaterialize:\n  - {node: orders__a, anchor: true, fields: [amount]}\n  - {node: orders__l, fields: [label]}\n  - {node: orders__s, fields: [size]}\n")
	orders("o.k * 2", "'no ' || o.k", "o.k + 1")
	dates := []string{"--start-date", "2024-01-01", "--end-date", "2024-01-02"}
	run := func(text string, args ...string) (int, string, string) {
		return typeIn(dir, text, append(args, dates...)...)
	}
	if code, out, errs := run("Y\n", "backfill", "load", "--downstream", "all", "--name", "first"); code != 0 {
		t.Fatal(code, out, errs)
	}

	orders("o.k * 3", "'nr ' || o.k", "o.k + 2")
	const list = "   1  orders.label  logic changed since 2024-01-01 (built by first), on 2024-01-01..2024-01-02\n"
	for _, c := range []struct {
		typed string
		args  []string
		code  int
		taken string // fields as the shown plan has them, taken ones first; "" = no plan is shown
		asked bool
	}{
		{"\nn\n", nil, 3, "-label -size", true},
		{"2\nn\n", nil, 3, "+size -label", true},
		{"all\n\n", nil, 3, "+label +size", true},
		{"7\n7\n7\n", nil, 2, "", true},
		{"n\n", []string{"--recommended", "label"}, 3, "+label -size", false},
		{"", []string{"--yes", "--name", "plain"}, 0, "-label -size", false},
		{"2\ny\n", []string{"--name", "ticked"}, 0, "+size -label", true}, // plain refreshed neither
	} {
		code, out, errs := run(c.typed, append([]string{"backfill", "orders", "--fields", "amount"}, c.args...)...)
		if asked := strings.Contains(errs, list); asked != c.asked {
			t.Errorf("%q %v: asked %v\n%s", c.typed, c.args, asked, errs)
		}
		if code != c.code {
			t.Errorf("%q %v: code %d\n%s%s", c.typed, c.args, code, out, errs)
		}
		var states []string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "  recommended ") {
				sign := "+"
				if strings.Contains(line, "(not taken)") {
					sign = "-"
				}
				_, name, _ := strings.Cut(line, "orders.")
				states = append(states, sign+strings.Fields(name)[0])
			}
		}
		got := strings.Join(states, " ")
		if got != c.taken {
			t.Errorf("%q %v: %s, want %s\n%s%s", c.typed, c.args, got, c.taken, out, errs)
		}
	}
	code, out, errs := typeIn(dir, "", "history")
	if code != 0 || !strings.Contains(out, "--recommended orders.size") {
		t.Errorf("what was ticked is part of the request: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := typeIn(dir, "", "fields", "orders", "--start-date", "2024-01-01", "--end-date", "2024-01-02"); code != 0 || strings.Count(out, "built by ticked") == 0 || !strings.Contains(out, "other logic") {
		t.Errorf("size is current, label is not: %d\n%s%s", code, out, errs)
	}
}
