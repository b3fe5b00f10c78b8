package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

// await waits until a file is there: another process has got so far.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not come", args[0])
		}
	}
}

// background is the one retrofill that runs beside a script.
type background struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
	vars []string // its environment
}

// start runs retrofill in the background: `start backfill t --yes`.
func start(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value("background").(*background)
	if neg || len(args) == 0 || b.cmd != nil {
		ts.Fatalf("usage: start ARGS…, one at a time")
	}
	self, err := os.Executable() // testscript.Main looks at the name it is called by
	ts.Check(err)
	b.errs.Reset()
	b.cmd = &exec.Cmd{Path: self, Args: append([]string{"retrofill"}, args...), Dir: ts.MkAbs("."), Env: b.vars, Stderr: &b.errs}
	ts.Check(b.cmd.Start())
	ts.Defer(func() {
		if b.cmd != nil {
			ts.Check(b.cmd.Process.Kill())
		}
	})
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
	ts.Logf("[background stderr]\n%s", b.errs.String())
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}
