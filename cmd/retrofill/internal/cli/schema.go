package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
)

// schemaOptions are what the flags of `schema` say.
type schemaOptions struct {
	Name string // "" = list them
	Dir  string // write all of them here
}

func schemaCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "schema",
		Usage:     "print or write the JSON Schemas of the project's YAML files",
		UsageText: "retrofill schema [project|table|task|metrics]\nretrofill schema --dir FOLDER",
		Description: "With a name the schema goes to standard output; with --dir all of them are written to a folder. " +
			"Point your editor at them and it completes and checks the files: with the YAML language server by a first line\n" +
			"  # yaml-language-server: $schema=../.schemas/table.schema.json",
		Flags: []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write all schemas to this `FOLDER`, which is made if it is not there"}},
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one schema: project, table, task or metrics"); err != nil {
				return err
			}
			return runSchema(c.Context, schemaOptions{Name: c.Args().First(), Dir: c.String("dir")}, env)
		},
	}
}

func runSchema(_ context.Context, o schemaOptions, env *Env) error {
	all, err := load.Schemas()
	if err != nil {
		return err
	}
	var files []string
	for f := range all {
		files = append(files, f)
	}
	slices.Sort(files)
	switch {
	case o.Name != "" && o.Dir != "":
		return refuse(diag.List{diag.Errorf("usage", "schema takes either a name or --dir").
			WithHint("a name prints one schema, --dir writes all of them")})
	case o.Dir != "":
		return writeSchemas(all, files, o.Dir, env)
	case o.Name == "":
		var b strings.Builder
		for _, f := range files {
			fmt.Fprintf(&b, "%-10s %s\n", schemaName(f), f)
		}
		b.WriteString("\n`retrofill schema table` prints one, `retrofill schema --dir .schemas` writes them all\n")
		return writeText(env.Stdout, b.String())
	}
	var names []string
	for _, f := range files {
		names = append(names, schemaName(f))
		if schemaName(f) == o.Name || f == o.Name {
			return writeText(env.Stdout, string(all[f]))
		}
	}
	return refuse(diag.List{diag.Errorf("unknown_schema", "there is no schema %q", o.Name).
		WithHint("%s", diag.DidYouMean(o.Name, names, "there are "+strings.Join(names, ", ")))})
}

// schemaName gives the word for a schema's file: project, table, task, metrics.
func schemaName(file string) string {
	name := strings.TrimSuffix(file, ".schema.json")
	if name == "retrofill" {
		return "project"
	}
	return name
}

func writeSchemas(all map[string][]byte, files []string, dir string, env *Env) error {
	target := env.path(dir)
	unwritable := func(err error) error {
		return refuse(diag.List{diag.Errorf("unwritable_folder", "the schemas cannot be written to %s", target).
			WithDetail("%v", err).WithHint("check the path and the permissions")})
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return unwritable(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(target, f), all[f], 0o644); err != nil {
			return unwritable(err)
		}
		if err := writeText(env.Stdout, filepath.ToSlash(filepath.Join(dir, f))+"\n"); err != nil {
			return err
		}
	}
	return nil
}
