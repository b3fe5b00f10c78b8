package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
)

// initOptions are what the flags of `init` say.
type initOptions struct {
	Dir    string
	Name   string
	Output string
}

func initCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "make a small working project in a folder",
		UsageText: "retrofill init [FOLDER] [--name NAME]",
		Description: "Writes a project file, a task that fills a source, a dimension, a fact table of two materialization nodes " +
			"and a daily summary. It replaces no file: if one of them is there, nothing is written.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the project (default: the folder's name)"},
			outputFlag("text", "json"),
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one folder"); err != nil {
				return err
			}
			o := initOptions{Dir: c.Args().First(), Name: c.String("name")}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			return runInit(c.Context, o, env)
		},
	}
}

// initDocument is the JSON of `init`.
type initDocument struct {
	Project     string    `json:"project"`
	Dir         string    `json:"dir"`
	Files       []string  `json:"files"` // relative to Dir, slashes
	Diagnostics diag.List `json:"diagnostics"`
}

func runInit(_ context.Context, o initOptions, env *Env) error {
	dir := env.path(o.Dir)
	if o.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("cli: find folder %s: %w", dir, err)
		}
		o.Name = projectName(filepath.Base(abs))
	}
	written, err := load.Init(dir, o.Name)
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return refuse(diag.List{diag.Errorf("unwritable_folder", "the project cannot be written to %s", dir).
			WithDetail("%v", pathErr).WithHint("check the path and the permissions; nothing was left behind")})
	}
	if err != nil {
		return err
	}
	if o.Output == "json" {
		return writeJSON(env.Stdout, initDocument{Project: o.Name, Dir: dir, Files: written, Diagnostics: diag.List{}})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "made the project %s:\n", o.Name)
	for _, f := range written {
		b.WriteString("  " + filepath.ToSlash(filepath.Join(o.Dir, filepath.FromSlash(f))) + "\n")
	}
	b.WriteString("\ntry next\n")
	if o.Dir != "" && filepath.Clean(o.Dir) != "." {
		fmt.Fprintf(&b, "  cd %s\n", shellWord(o.Dir))
	}
	b.WriteString("  retrofill validate\n")
	b.WriteString("  retrofill backfill load_orders --downstream all --start-date 2024-01-01 --end-date 2024-01-07\n")
	return writeText(env.Stdout, b.String())
}

// projectName makes a folder's name a project's. Names may hold nearly
// everything; the name of a file system's root may not.
func projectName(folder string) string {
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || r == filepath.Separator {
			return ' '
		}
		return r
	}, folder))
	if name == "" || name == "." {
		return "project"
	}
	return string([]rune(name)[:min(len([]rune(name)), maxProjectName)])
}

// maxProjectName is the longest name that the loader takes, in characters.
const maxProjectName = 200

// shellWord quotes a word for a POSIX shell where it needs it.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:@+,=", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
