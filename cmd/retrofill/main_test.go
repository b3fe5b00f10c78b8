package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// rewrite makes the outputs that the scripts compare with (cmp) anew.
var rewrite = flag.Bool("rewrite", false, "rewrite the expected files of the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"retrofill": func() { os.Exit(run()) }})
}

// TestScripts runs testdata/*.txtar: what a user does at the command line,
// with outputs, error texts and exit codes.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *rewrite,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": code, "await": await, "start": start, "interrupt": interrupt, "finish": finish},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			e.Setenv("COLUMNS", "80")
			e.Values["background"] = &background{vars: e.Vars}
			return nil
		},
	})
}

// code runs retrofill and compares its exit code: `code 2 dates --start-date x`.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N ARGS…")
	}
	err := ts.Exec("retrofill", args[1:]...)
	got := "0"
	if err != nil {
		got = exitText(err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func exitText(err error) string {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return strconv.Itoa(e.ExitCode())
	}
	return err.Error()
}

// await waits until a file is there and, with a text, until it holds that:
// another process has got so far.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: await FILE [TEXT]")
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && (len(args) == 1 || strings.Contains(string(text), args[1])) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%v does not come:\n%s", args, text)
		}
	}
}

// patience is how long a script waits for another process.
const patience = 30 * time.Second

// background is the one retrofill that runs beside a script.
type background struct {
	cmd  *exec.Cmd
	vars []string // its environment
}

// start runs retrofill in the background, its standard error in the file
// `progress`: `start backfill t --yes`.
func start(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value("background").(*background)
	if neg || len(args) == 0 || b.cmd != nil {
		ts.Fatalf("usage: start ARGS…, one at a time")
	}
	self, err := os.Executable() // testscript.Main looks at the name it is called by
	ts.Check(err)
	errs, err := os.Create(ts.MkAbs("progress"))
	ts.Check(err)
	defer errs.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ts.Defer(cancel)
	b.cmd = exec.CommandContext(ctx, self, args...)
	b.cmd.Args[0], b.cmd.Dir, b.cmd.Env, b.cmd.Stderr = "retrofill", ts.MkAbs("."), b.vars, errs
	ts.Check(b.cmd.Start())
}

// interrupt sends Ctrl-C to it.
func interrupt(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Value("background").(*background).cmd.Process.Signal(os.Interrupt))
}

// finish waits for it and compares its exit code: `finish 3`.
func finish(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value("background").(*background)
	if neg || len(args) != 1 || b.cmd == nil {
		ts.Fatalf("usage: finish N")
	}
	var e *exec.ExitError
	if err := b.cmd.Wait(); err != nil && !errors.As(err, &e) {
		ts.Fatalf("%v", err)
	}
	got := strconv.Itoa(b.cmd.ProcessState.ExitCode())
	b.cmd = nil
	ts.Logf("[background stderr]\n%s", ts.ReadFile("progress"))
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}
