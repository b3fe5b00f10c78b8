package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
)

// historyOptions are what the flags of `history` say.
type historyOptions struct {
	projectOptions
	Backfill string
	Output   string
}

func historyCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show what people did to backfills, oldest first",
		UsageText: "retrofill history [BACKFILL] [-o json]",
		Flags:     append(projectFlags(), outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one backfill"); err != nil {
				return err
			}
			o := historyOptions{projectOptions: projectOptionsOf(c), Backfill: c.Args().First()}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			return runHistory(c.Context, o, env)
		},
	}
}

func runHistory(ctx context.Context, o historyOptions, env *Env) (err error) {
	w, err := openProject(o.projectOptions, env)
	if err != nil {
		return err
	}
	l, err := w.readLedger(ctx)
	if err != nil {
		return err
	}
	doc := view.OperationList{Operations: []ledger.Operation{}, Diagnostics: diag.List{}}
	switch {
	case l == nil && o.Backfill != "":
		return noBackfill(ctx, nil, o.Backfill)
	case l != nil:
		defer func() { err = errors.Join(err, l.Close()) }()
		if o.Backfill != "" {
			if taken, err := l.NameTaken(ctx, o.Backfill); err != nil {
				return err
			} else if !taken {
				return noBackfill(ctx, l, o.Backfill)
			}
		}
		found, err := l.Operations(ctx, o.Backfill)
		if err != nil {
			return err
		}
		doc.Operations = append(doc.Operations, found...)
	}
	if o.Output == "json" {
		return writeJSON(env.Stdout, doc)
	}
	return view.Operations(env.Stdout, doc, w.Zone)
}
