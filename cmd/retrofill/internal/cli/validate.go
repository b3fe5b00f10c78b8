package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

func validateCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check the project's files, its SQL, and what the engine says of it",
		UsageText: "retrofill validate [flags]",
		Flags:     append(projectFlags(), outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			out, err := outputOf(c, "text", "json")
			if err != nil {
				return err
			}
			if c.Args().Present() {
				return refuse(diag.List{diag.Errorf("usage", "validate takes no argument, got %q", c.Args().First()).WithHint("it checks the whole project; choose it with --dir")})
			}
			return runValidate(c.Context, projectOptionsOf(c), out, env)
		},
	}
}

// validateDocument is the JSON of validate.
type validateDocument struct {
	Project     string    `json:"project"`
	Tables      int       `json:"tables"`
	Tasks       int       `json:"tasks"`
	Sources     int       `json:"sources"`
	Engine      string    `json:"engine"` // asked, held, or missing (no database yet)
	Diagnostics diag.List `json:"diagnostics"`
}

// runValidate reports every problem: of the files, of the SQL, of parameters
// and partitions, of types as the engine sees them, and of missing sources.
func runValidate(ctx context.Context, o projectOptions, output string, env *Env) (err error) {
	s, err := openSession(ctx, sessionOptions{projectOptions: o}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	doc := validateDocument{
		Project: s.Project.Name, Tables: len(s.Project.Tables), Tasks: len(s.Project.Tasks), Sources: len(s.Project.Sources),
		Engine: "asked", Diagnostics: append(diag.List{}, s.Warnings...),
	}
	switch {
	case s.held != nil:
		doc.Engine = "held"
	case s.engine == nil:
		doc.Engine = "missing"
	}
	doc.Diagnostics = append(doc.Diagnostics, s.check(ctx)...)
	doc.Diagnostics = distinct(doc.Diagnostics)
	if output == "json" {
		writeJSON(env.Stdout, doc)
	} else {
		env.diagnostics(doc.Diagnostics)
		verdict := "is sound"
		if n := len(doc.Diagnostics.Errors()); n > 0 {
			verdict = fmt.Sprintf("has %d errors", n)
			if n == 1 {
				verdict = "has 1 error"
			}
		} else if doc.Engine != "asked" {
			verdict += " (the engine was not asked: " + map[string]string{"held": "another process holds the database", "missing": "the database does not exist yet"}[doc.Engine] + ")"
		}
		if _, err := fmt.Fprintf(env.Stdout, "project %s %s: %s, %s, %s\n", doc.Project, verdict, view.Count(doc.Tables, "table"), view.Count(doc.Tasks, "task"), view.Count(doc.Sources, "source")); err != nil {
			return fmt.Errorf("cli: write verdict: %w", err)
		}
	}
	if doc.Diagnostics.HasErrors() {
		return &exitError{code: exitRefused, diags: doc.Diagnostics, silent: true}
	}
	return nil
}

// check gathers the problems of every node.
func (s *session) check(ctx context.Context) diag.List {
	out := append(diag.List{}, s.model.Diagnostics...)
	at := param.Instant{Bizdate: s.typer.Sample, Scheduled: bizdate.Instant(s.typer.Sample+1, 0, s.Zone)}
	for _, n := range s.model.Nodes {
		out = append(out, n.Diagnostics...)
		out = append(out, n.Params.Check(at)...)
		if n.Analysis == nil || n.Diagnostics.HasErrors() {
			continue
		}
		cols, diags := s.typer.Fields(ctx, n)
		out = append(out, diags...)
		for _, c := range cols {
			if n.Table.IsKey(c.Name) && c.Type == "" {
				out = append(out, diag.Errorf("unknown_type", "the type of key column %s of %s is not known", c.Name, n.Name).At(n.Pos()))
			}
		}
	}
	for _, src := range s.Project.Sources {
		t, ok, err := s.catalog.Table(ctx, src.Table)
		switch {
		case err != nil:
			out = append(out, diag.Errorf("engine", "%v", err))
		case !ok && s.engine != nil && s.model.Producer(src.Table) < 0:
			out = append(out, diag.Errorf("missing_source", "source %s is not in the engine", src.Table).At(src.Pos).
				WithHint("load it, correct its name, or declare the task that writes it"))
		case ok:
			names := make([]string, len(t.Columns))
			for i, c := range t.Columns {
				names[i] = c.Name
			}
			for _, p := range src.Partition {
				if !hasFold(names, p.Name) {
					out = append(out, diag.Errorf("missing_partition", "source %s has no partition column %q", src.Table, p.Name).At(p.Pos).
						WithHint("%s", diag.DidYouMean(p.Name, names, "correct `partition` of the source")))
				}
			}
			for _, key := range src.Keys {
				for _, k := range key {
					if !hasFold(names, k) {
						out = append(out, diag.Errorf("missing_key", "source %s has no key column %q", src.Table, k).At(src.Pos).
							WithHint("%s", diag.DidYouMean(k, names, "correct `key` of the source")))
					}
				}
			}
		}
	}
	out.Sort()
	return out
}

// distinct drops repeats: project parameters are checked with every node.
func distinct(l diag.List) diag.List {
	seen := map[diag.Diagnostic]bool{}
	out := diag.List{}
	for _, d := range l {
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}
