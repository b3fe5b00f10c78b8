// Command retrofill-bench runs the suites of package bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run gives the exit code: 0 measured (whether targets are met or not), 1
// something failed, 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name: "retrofill-bench", Usage: "measure retrofill", Writer: stdout, ErrWriter: stderr,
		HideVersion: true, ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{
			{Name: "list", Usage: "list the suites", Action: func(*cli.Context) error {
				for _, s := range bench.Suites() {
					if _, err := fmt.Fprintf(stdout, "%-10s %s\n", s[0], s[1]); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "run", Usage: "run suites", UsageText: "retrofill-bench run SUITE… [-short] [-o text|jsonl|markdown] [-rounds n]",
				Flags: flags(), OnUsageError: usage, Action: func(c *cli.Context) error { return measure(c, stdout, stderr) }},
		},
		OnUsageError: usage,
		Action: func(c *cli.Context) error {
			return usageError{fmt.Sprintf("there is no command %q: use run or list", c.Args().First())}
		},
	}
	err := app.RunContext(ctx, flagsFirst(args))
	var wrong usageError
	var unknown *bench.UnknownSuiteError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong), errors.As(err, &unknown):
		fmt.Fprintln(stderr, "retrofill-bench:", err)
		return 2
	}
	fmt.Fprintln(stderr, "retrofill-bench:", err)
	return 1
}

// usageError is a command line that cannot be understood.
type usageError struct{ text string }

// Error tells what is wrong.
func (e usageError) Error() string { return e.text }

func usage(_ *cli.Context, err error, _ bool) error { return usageError{err.Error()} }

func flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "short", Usage: "small: shows that the suites work, the numbers mean nothing"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "`FORMAT`: text, jsonl or markdown"},
		&cli.IntFlag{Name: "rounds", Usage: "measure each case `N` times (default 5, with -short 1)"},
		&cli.StringFlag{Name: "binary", Usage: "the built retrofill `FILE` (default: built with the Go tool)"},
		&cli.StringFlag{Name: "dir", Usage: "`FOLDER` for projects and databases, kept at the end (default: a temporary one)"},
	}
}

// flagsFirst lets flags stand behind the suites: `run overhead -o jsonl`.
func flagsFirst(args []string) []string {
	if len(args) < 3 {
		return args
	}
	out, rest := append([]string{}, args[:2]...), []string{}
	for i := 2; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			continue
		}
		out = append(out, a)
		switch name := trimDashes(a); name {
		case "o", "output", "rounds", "binary", "dir":
			if i+1 < len(args) {
				i++
				out = append(out, args[i])
			}
		}
	}
	return append(out, rest...)
}

func trimDashes(s string) string {
	for len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	return s
}

func measure(c *cli.Context, stdout, stderr io.Writer) (err error) {
	write, ok := map[string]func(io.Writer, bench.Result) error{"text": bench.Text, "jsonl": bench.JSONL, "markdown": bench.Markdown}[c.String("output")]
	switch {
	case !ok:
		return usageError{fmt.Sprintf("-o %q is not known: give text, jsonl or markdown", c.String("output"))}
	case c.NArg() == 0:
		return usageError{"name a suite; `retrofill-bench list` lists them"}
	case c.Int("rounds") < 0:
		return usageError{fmt.Sprintf("-rounds %d: give 1 or more", c.Int("rounds"))}
	}
	cfg := bench.Config{Suites: c.Args().Slice(), Short: c.Bool("short"), Rounds: c.Int("rounds"), Dir: c.String("dir"),
		Clock: time.Now, Progress: stderr}
	if err := bench.Check(cfg); err != nil {
		return err
	}
	if cfg.Binary = c.String("binary"); cfg.Binary == "" {
		tmp, err := os.MkdirTemp("", "retrofill-bench-bin-")
		if err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		defer os.RemoveAll(tmp)
		if cfg.Binary, err = bench.Build(c.Context, tmp); err != nil {
			return err
		}
	}
	res, err := bench.Run(c.Context, cfg)
	return errors.Join(write(stdout, res), err)
}
