package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

// paramsOptions are what the flags of `params` say.
type paramsOptions struct {
	projectOptions
	Node    string
	Expr    string
	HasExpr bool
	Moment  param.Moment
	Dialect string
	Params  []string
	Output  string
}

func paramsCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "params",
		Usage:     "show a node's parameters and final SQL at a business date, or evaluate one expression",
		UsageText: "retrofill params NODE --date D [flags]\nretrofill params --expr '${yyyymmdd-1}' --bizdate D [flags]",
		Description: "With --expr it works without a project: quote the expression for your shell. ${…} is evaluated at the " +
			"business date, $[…] at the scheduled time of the day after it.",
		Flags: append(projectFlags(),
			&cli.StringFlag{Name: "expr", Usage: "evaluate this parameter `VALUE`, without a project"},
			&cli.StringFlag{Name: "date", Aliases: []string{"bizdate"}, Usage: "business `DATE`, YYYY-MM-DD"},
			&cli.StringFlag{Name: "at", Usage: "scheduled `TIME` of day, HH:MM or HH:MM:SS (with --expr; default 00:00)"},
			&cli.StringFlag{Name: "scheduled", Usage: "scheduled `TIME` instead of a business date; the business date is the day before"},
			&cli.StringFlag{Name: "zone", Usage: "IANA `ZONE` (with --expr; default UTC)"},
			&cli.StringFlag{Name: "dialect", Usage: "parameter `GRAMMAR`: dataphin (default) or dataworks (with --expr)"},
			&cli.StringSliceFlag{Name: "param", Usage: "override a parameter, `NAME=VALUE`; repeatable"},
			outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			o := paramsOptions{
				projectOptions: projectOptionsOf(c),
				Node:           c.Args().First(), Expr: c.String("expr"), HasExpr: c.IsSet("expr"),
				Moment:  param.Moment{Bizdate: c.String("date"), At: c.String("at"), Scheduled: c.String("scheduled"), Zone: c.String("zone")},
				Dialect: c.String("dialect"), Params: c.StringSlice("param"),
			}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			switch {
			case o.HasExpr && c.Args().Present():
				return refuse(diag.List{diag.Errorf("usage", "--expr takes no node, got %q", o.Node).WithHint("give either a node or --expr")})
			case c.Args().Len() > 1:
				return refuse(diag.List{diag.Errorf("usage", "params shows one node, got %d", c.Args().Len())})
			case !o.HasExpr && o.Node == "":
				return refuse(diag.List{diag.Errorf("usage", "params needs a node or --expr").WithHint("retrofill params NODE --date YYYY-MM-DD")})
			case o.HasExpr:
				return runParamsExpr(c.Context, o, env)
			}
			return runParamsNode(c.Context, o, env)
		},
	}
}

// exprDocument is the JSON of `params --expr`. Value is null on a failure.
type exprDocument struct {
	Value       *string   `json:"value"`
	Diagnostics diag.List `json:"diagnostics"`
}

// runParamsExpr evaluates one parameter value (semantics §2).
func runParamsExpr(_ context.Context, o paramsOptions, env *Env) error {
	doc := exprDocument{Diagnostics: diag.List{}}
	dialect, diags := param.ParseDialect(o.Dialect)
	at, more := o.Moment.Instant()
	doc.Diagnostics = append(append(doc.Diagnostics, diags...), more...)
	if !doc.Diagnostics.HasErrors() {
		v, found := param.EvalOne(dialect, o.Expr, at)
		doc.Diagnostics = append(doc.Diagnostics, found...)
		if !found.HasErrors() {
			doc.Value = &v
		}
	}
	if o.Output == "json" {
		if err := writeJSON(env.Stdout, doc); err != nil {
			return err
		}
	} else {
		if doc.Value != nil {
			if err := writeText(env.Stdout, *doc.Value+"\n"); err != nil {
				return err
			}
		}
		env.diagnostics(doc.Diagnostics)
	}
	if doc.Diagnostics.HasErrors() {
		return &exitError{code: exitRefused, diags: doc.Diagnostics, silent: true}
	}
	return nil
}
