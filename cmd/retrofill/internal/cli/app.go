// Package cli is the command line: one file a command, each in three layers —
// flags, an options struct, and runX(ctx, opts, env) — so that tests call
// runX. It holds no package state.
//
// Invariants: standard output carries data only, standard error progress and
// diagnostics; with -o json a failure prints a JSON document on standard
// output too; every refusal ends with exit code 2 (exit.go has the table).
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Env is everything of the process that a command may touch.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	Now    func() time.Time
	Dir    string // working folder
	// Interactive tells whether questions can be asked; nil = they can where
	// Stdin and Stderr are a terminal.
	Interactive func() bool
	// Notify starts to deliver interrupts (Ctrl-C, a polite kill) and gives
	// the function that ends it. nil = the process has none.
	Notify func() (signals <-chan struct{}, stop func())
	// OpenEngine opens an engine of a project; EngineVersion gives the version
	// of the embedded one. The program plugs them in, so that this package
	// links no driver.
	OpenEngine    func(ctx context.Context, e modeling.Engine, o EngineOptions) (executors.Engine, error)
	EngineVersion func(ctx context.Context) (string, error)
	// Demo makes the example warehouse.
	Demo Demo
	// NewParser gives the SQL parser.
	NewParser func() (Parser, error)
	// nowText is the hidden --now: a reading without an offset is local in
	// the zone of whoever asks.
	nowText string
}

// now gives the clock's time, fixed by --now where it is given.
func (e *Env) now(zone *time.Location) (time.Time, error) {
	if e.nowText == "" {
		return e.Now(), nil
	}
	if d, err := bizdate.Parse(e.nowText); err == nil {
		return bizdate.Instant(d, 0, zone), nil
	}
	t, diags := bizdate.ParseInstant(e.nowText, zone)
	if diags.HasErrors() {
		return time.Time{}, refuse(diags)
	}
	return t, nil
}

// clock gives a clock for records: the real one, or one that stands still at
// --now.
func (e *Env) clock(zone *time.Location) (func() time.Time, error) {
	if e.nowText == "" {
		return e.Now, nil
	}
	t, err := e.now(zone)
	if err != nil {
		return nil, err
	}
	return func() time.Time { return t }, nil
}

// Main runs the command line and gives the exit code.
func Main(args []string, env Env) int {
	err := dispatch(args, &env)
	if err == nil {
		return exitOK
	}
	report(&env, err, jsonWanted(args))
	return exitCode(err)
}

func dispatch(args []string, env *Env) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	app := newApp(env)
	if len(args) > 0 && (args[0] == "--version" || args[0] == "-v") {
		args = append([]string{"version"}, args[1:]...)
	}
	if len(args) > 0 && args[0] == completeWord {
		return runComplete(app.Commands, args[1:], env)
	}
	c := parse(app.Commands, args)
	switch {
	case c.help:
		return runHelp(app.Commands, c.command, env)
	case c.diags.HasErrors():
		return refuse(c.diags)
	case c.command == nil && len(args) > 0:
		return refuse(diag.List{diag.Errorf("usage", "no command is given").WithHint("`retrofill help` lists the commands")})
	case c.command == nil:
		return runHelp(app.Commands, nil, env)
	}
	return app.RunContext(ctx, c.argv())
}

// newApp lists the commands. There is no package-level root. Help, completion
// and the order of arguments are retrofill's own (help.go, complete.go,
// args.go), since urfave/cli keeps them in variables of its package.
func newApp(env *Env) *cli.App {
	app := &cli.App{
		Name:                      "retrofill",
		Usage:                     "plan and run modeling-aware backfills on SQL engines",
		Writer:                    env.Stdout,
		ErrWriter:                 env.Stderr,
		HideVersion:               true,
		HideHelp:                  true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Commands:                  commands(env),
		ExitErrHandler:            func(*cli.Context, error) {}, // Main maps errors to exit codes
		OnUsageError:              usageError,
	}
	for _, c := range app.Commands {
		c.OnUsageError = usageError
		c.HideHelp, c.HideHelpCommand = true, true
		if flagNamed(c.Flags, "now") == nil {
			c.Flags = append(c.Flags, &cli.StringFlag{Name: "now", Hidden: true, Usage: "fix the clock at this `TIME`"})
		}
		act := c.Action
		c.Action = func(cc *cli.Context) error {
			env.nowText = cc.String("now")
			return act(cc)
		}
	}
	return app
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return refuse(diag.List{diag.Errorf("usage", "%v", err).WithHint("add --help to the command to see its flags")})
}

// report writes an error: JSON on stdout when JSON was asked for and the
// command has not printed its own document, text on stderr otherwise.
func report(env *Env, err error, asJSON bool) {
	var e *exitError
	if errors.As(err, &e) && e.silent {
		return
	}
	l := diagnosticsOf(err)
	if asJSON {
		if err := writeJSON(env.Stdout, map[string]any{"diagnostics": l}); err == nil {
			return
		}
	}
	env.diagnostics(l)
}

// writeJSON writes one indented JSON document.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cli: write JSON: %w", err)
	}
	return nil
}

// writeText writes text to standard output.
func writeText(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("cli: write output: %w", err)
	}
	return nil
}

// outputFlag is -o/--output with the formats that a command has.
func outputFlag(formats ...string) cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formats[0], Usage: "output `FORMAT`: " + strings.Join(formats, ", ")}
}

// outputOf checks the output format.
func outputOf(c *cli.Context, formats ...string) (string, error) {
	o := c.String("output")
	if !slices.Contains(formats, o) {
		return "", refuse(diag.List{diag.Errorf("bad_output", "unknown output format %q", o).
			WithHint("%s", diag.DidYouMean(o, formats, "known formats: "+strings.Join(formats, ", ")))})
	}
	return o, nil
}

// noArgs refuses positionals that a command does not have.
func noArgs(c *cli.Context, atMost int, hint string) error {
	if c.Args().Len() <= atMost {
		return nil
	}
	return refuse(diag.List{diag.Errorf("usage", "%s: %q is one argument too many", c.Command.Name, c.Args().Get(atMost)).WithHint("%s", hint)})
}
