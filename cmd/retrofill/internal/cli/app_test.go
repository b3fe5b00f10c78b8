package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
)

// rewrite makes files that are made from the code anew. It is a flag, which Go
// keeps per package.
var rewrite = flag.Bool("rewrite", false, "write docs/cli.md")

func TestManual(t *testing.T) {
	t.Parallel()
	got := manual(newApp(&Env{}).Commands)
	path := filepath.Join("../../../../docs/cli.md")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/cli.md is not current; go test ./cmd/retrofill/internal/cli -run TestManual -rewrite\n%s", d)
	}
}

// Every command can be asked for help, has a usage line and documents its
// flags; help fits 80 columns.
func TestHelp(t *testing.T) {
	t.Parallel()
	root := invoke(t, t.TempDir(), "--help")
	for _, e := range exitTable() {
		if !strings.Contains(root.Stdout, fmt.Sprintf("\n%5d  ", e.Code)) {
			t.Errorf("exit code %d is not in --help", e.Code)
		}
	}
	for _, c := range newApp(&Env{}).Commands {
		if c.Hidden {
			continue
		}
		if !strings.Contains(root.Stdout, "\n  "+c.Name+" ") && !strings.Contains(root.Stdout, "\n  "+c.Name+"\n") {
			t.Errorf("%s is not in --help", c.Name)
		}
		if c.Usage == "" || strings.HasSuffix(c.Usage, ".") {
			t.Errorf("%s: usage %q", c.Name, c.Usage)
		}
		for _, f := range shown(c.Flags) {
			if f.Usage == "" {
				t.Errorf("%s %s has no usage", c.Name, f.head())
			}
		}
		r := invoke(t, t.TempDir(), c.Name, "--help")
		if other := invoke(t, t.TempDir(), "help", c.Name); r != other || r.Code != exitOK || r.Stderr != "" || !strings.Contains(r.Stdout, "retrofill "+c.Name) {
			t.Errorf("%s --help: %+v", c.Name, r)
		}
		for line := range strings.Lines(r.Stdout + root.Stdout) {
			if n := len([]rune(strings.TrimSpace(line))); n > 80 && !strings.HasPrefix(line, "  retrofill") && !strings.Contains(line, "language-server") {
				t.Errorf("%s: %d columns: %s", c.Name, n, line)
			}
		}
	}
}

// Each command refuses an unknown flag with exit code 2, as text on standard
// error or as JSON on standard output.
func TestRefusalsOfEveryCommand(t *testing.T) {
	t.Parallel()
	for _, c := range newApp(&Env{}).Commands {
		r := invoke(t, t.TempDir(), c.Name, "x", "--no-such-flag")
		if r.Code != exitRefused || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "error[unknown_flag]: unknown flag --no-such-flag of "+c.Name) {
			t.Errorf("%s: %+v", c.Name, r)
		}
		r = invoke(t, t.TempDir(), c.Name, "--no-such-flag", "-o", "json")
		doc := document[struct{ Diagnostics []told }](t, r)
		if r.Code != exitRefused || doc.Diagnostics[0].Code != "unknown_flag" {
			t.Errorf("%s: %+v", c.Name, r)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	wrap := func(err error) error { return fmt.Errorf("cli: do it: %w", err) }
	for _, c := range []struct {
		err  error
		code int
		kind string
	}{
		{nil, exitOK, ""},
		{errors.New("x"), exitFailed, "error"},
		{refusef("k", "x"), exitRefused, "k"},
		{wrap(refusef("k", "x")), exitRefused, "k"},
		{wrap(diag.Errorf("k", "x")), exitRefused, "k"},
		{wrap(diag.List{diag.Errorf("k", "x")}), exitRefused, "k"},
		{wrap(executors.ErrLocked), exitConflict, "locked"},
		{wrap(ledger.ErrFenced), exitConflict, "fenced"},
		{wrap(&ledger.ConflictError{Backfill: "b", Node: "n", From: "2024-01-01", To: "2024-01-02"}), exitConflict, "conflict"},
		{wrap(&ledger.OwnedError{Backfill: "b"}), exitConflict, "conflict"},
		{wrap(&ledger.Error{Code: ledger.CodeLocked, Err: errors.New("x")}), exitConflict, "ledger_locked"},
		{wrap(&ledger.Error{Code: ledger.CodeCorrupt, Err: errors.New("x")}), exitRefused, "ledger_corrupt"},
		{wrap(&ledger.NameTakenError{Name: "b"}), exitRefused, "name_taken"},
		{&exitError{code: exitKilled}, exitKilled, "error"},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: code %d, want %d", c.err, got, c.code)
		}
		if c.err == nil {
			continue
		}
		if l := diagnosticsOf(c.err); len(l) != 1 || l[0].Code != c.kind || c.kind != "error" && c.kind != "k" && l[0].Hint == "" {
			t.Errorf("%v: %+v, want %s", c.err, l, c.kind)
		}
	}
}

func TestNow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, zone, last string }{
		{"2024-05-10T23:30", "America/New_York", "2024-05-10"}, // local
		{"2024-05-11T03:30Z", "America/New_York", "2024-05-10"},
		{"2024-05-11T05:30+02:00", "America/New_York", "2024-05-10"},
		{"2024-05-11T04:30Z", "America/New_York", "2024-05-11"},
		{"2024-05-10", "Asia/Tokyo", "2024-05-10"},
	} {
		for day, want := range map[string]int{c.last: exitOK, "2024-05-12": exitRefused} {
			r := invoke(t, t.TempDir(), "dates", "--dates", day, "--now", c.now, "--zone", c.zone)
			if r.Code != want {
				t.Errorf("%+v %s: %+v", c, day, r)
			}
		}
	}
	if r := invoke(t, t.TempDir(), "dates", "--dates", "2024-01-01", "--now", "noon", "-o", "json"); r.Code != exitRefused || !strings.Contains(r.Stdout, `"bad_date"`) {
		t.Errorf("%+v", r)
	}
}

// No command's flags may clash, and the hidden --now is in each.
func TestCommandsAreWellFormed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range newApp(&Env{}).Commands {
		if seen[c.Name] {
			t.Errorf("two commands %s", c.Name)
		}
		seen[c.Name] = true
		flags := map[string]bool{}
		for _, f := range c.Flags {
			for _, n := range f.Names() {
				if flags[n] || n == "help" || n == "h" {
					t.Errorf("%s: the flag %s clashes", c.Name, n)
				}
				flags[n] = true
			}
			if s, ok := f.(*cli.StringFlag); ok && s.Required {
				t.Errorf("%s: required flags are checked by the command, in its own words", c.Name)
			}
		}
		if !flags["now"] {
			t.Errorf("%s has no --now", c.Name)
		}
	}
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan struct{})
		ended := false
		env := &Env{Notify: func() (<-chan struct{}, func()) { return signals, func() { ended = true } }}
		var heard []int
		ctx, i, stop := env.watchInterrupts(context.Background(), func(n int) { heard = append(heard, n) })
		if i.Stopped() || i.Killed() || ctx.Err() != nil {
			t.Fatal("stopped at once")
		}
		signals <- struct{}{}
		synctest.Wait()
		if !i.Stopped() || i.Killed() || ctx.Err() != nil {
			t.Fatal("the first interrupt stops gently")
		}
		signals <- struct{}{}
		synctest.Wait()
		if !i.Killed() || ctx.Err() == nil || exitCode(context.Cause(ctx)) != exitKilled {
			t.Fatal("the second interrupt kills")
		}
		stop()
		stop()
		if d := cmp.Diff([]int{1, 2}, heard); d != "" || !ended {
			t.Error(d, ended)
		}
	})
}

func TestInterruptsEndQuietly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		env := &Env{Notify: func() (<-chan struct{}, func()) { return make(chan struct{}), func() { ended = true } }}
		_, i, stop := env.watchInterrupts(context.Background(), func(int) {})
		stop()
		if i.Stopped() || !ended {
			t.Error("listening goes on")
		}
	})
}

func TestLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "d.txt"), []byte("2024-01-02\r\n2024-01-01,\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := "group 1: 2024-01-01..2024-01-03  (3)\n"
	for _, c := range []struct {
		stdin string
		args  []string
	}{
		{"", []string{"--dates", "@d.txt", "--dates", "2024-01-03"}},
		{"2024-01-03\n2024-01-01\n\n2024-01-02", []string{"--dates", "-"}},
		{"", []string{"--dates=2024-01-01,2024-01-02\n2024-01-03"}},
	} {
		if r := invokeInput(t, dir, c.stdin, append([]string{"dates"}, c.args...)...); r.Stdout != want || r.Code != exitOK || r.Stderr != "" {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if r := invoke(t, dir, "dates", "--dates", "@none", "-o", "json"); r.Code != exitRefused || !strings.Contains(r.Stdout, "missing_file") || !strings.Contains(r.Stdout, `"dates": []`) {
		t.Errorf("%+v", r)
	}
	if r := invoke(t, dir, "dates", "--dates", "2024-01-05,2024-01-01", "--order", "desc", "--groups", "2", "-o", "csv"); r.Stdout != "group,date\n1,2024-01-05\n2,2024-01-01\n" {
		t.Errorf("%+v", r)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := invoke(t, dir, "init"); r.Code != exitOK {
		t.Fatal(r)
	}
	for in, want := range map[string]string{
		"sta":              "status",
		"dates --start":    "--start-date",
		"dates --order ":   "asc desc",
		"dates -o ":        "text json csv",
		"completion z":     "zsh",
		"help ver":         "version",
		"params --date x ": "dim_customer fct_order load_orders sum_country_day",
		"params fct":       "fct_order",
		"status --env ":    "dev prod",
		"status ":          "",
		"nonsense ":        "",
	} {
		words := strings.Fields(in)
		if strings.HasSuffix(in, " ") {
			words = append(words, "")
		}
		r := invoke(t, dir, append([]string{completeWord}, words...)...)
		if got := strings.Join(strings.Fields(r.Stdout), " "); got != want || r.Code != exitOK || r.Stderr != "" {
			t.Errorf("%q: %q %+v, want %q", in, got, r, want)
		}
	}
}
