package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/stale"
)

// fieldsOptions are what the flags of `fields` say.
type fieldsOptions struct {
	projectOptions
	Tables []string
	Dates  datesOptions
	Output string
}

func fieldsCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "fields",
		Usage:     "show which fields of a table are current, and which were built by other logic or older inputs",
		UsageText: "retrofill fields TABLE… [--start-date D --end-date D] [-o text|json|csv]",
		Description: "The staleness matrix: field × date range. Without dates, all dates are looked at on which anything of the table " +
			"was built. `retrofill backfill --stale TABLE` refreshes what is stale.",
		Flags: append(projectFlags(), outputFlag("text", "json", "csv"),
			&cli.StringFlag{Name: "start-date", Usage: "first business date, `YYYY-MM-DD`, included"},
			&cli.StringFlag{Name: "end-date", Usage: "last business date, `YYYY-MM-DD`, included"}),
		Action: func(c *cli.Context) error {
			o := fieldsOptions{projectOptions: projectOptionsOf(c), Tables: c.Args().Slice()}
			o.Dates.Selection = bizdate.Selection{Start: c.String("start-date"), End: c.String("end-date"), AllowLongRange: true}
			var err error
			if o.Output, err = outputOf(c, "text", "json", "csv"); err != nil {
				return err
			}
			if len(o.Tables) == 0 {
				return refuse(diag.List{diag.Errorf("usage", "fields needs a table").WithHint("`retrofill ls` lists them")})
			}
			return runFields(c.Context, o, env)
		},
	}
}

// runFields prints the staleness matrix of tables.
func runFields(ctx context.Context, o fieldsOptions, env *Env) (err error) {
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var dates []bizdate.Date
	if o.Dates.Selection.Start != "" || o.Dates.Selection.End != "" {
		clock, err := o.Dates.clock(env, s.Zone)
		if err != nil {
			return err
		}
		var diags diag.List
		if dates, diags = o.Dates.Selection.Select(clock); diags.HasErrors() {
			return refuse(diags)
		}
	}
	deps, err := s.planDeps()
	if err != nil {
		return err
	}
	tables, diags, err := planner.Matrix(ctx, deps, o.Tables, dates)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return refuse(diags)
	}
	all := append(append(diag.List{}, s.Warnings...), diags...)
	doc := view.Matrix{Environment: s.Environment.Name, Tables: append([]*stale.Table{}, tables...), Diagnostics: all}
	switch o.Output {
	case "json":
		return writeJSON(env.Stdout, doc)
	case "csv":
		env.diagnostics(all)
		return view.MatrixCSV(env.Stdout, doc)
	}
	env.diagnostics(all)
	return view.MatrixText(env.Stdout, doc, s.Zone)
}
