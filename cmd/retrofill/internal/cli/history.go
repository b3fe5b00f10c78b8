package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// historyOptions are what the flags of `history` say.
type historyOptions struct {
	projectOptions
	Backfill string
	Output   string
}

func historyCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:        "history",
		Usage:       "show what people did to backfills, oldest first",
		UsageText:   "retrofill history [BACKFILL] [-o json]",
		Description: "Every request for a backfill with its options, and every operation on its instances.",
		Flags:       append(projectFlags(), outputFlag("text", "json")),
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
	w, err := openRecords(o.projectOptions, env)
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
		if doc.Operations, err = history(ctx, l, o.Backfill); err != nil {
			return err
		}
	}
	if o.Output == "json" {
		return writeJSON(env.Stdout, doc)
	}
	return view.Operations(env.Stdout, doc, w.Zone)
}

// history gives the requests that made backfills (of one, or of all) and the
// operations on them, in the order of time.
func history(ctx context.Context, l *ledger.Ledger, name string) ([]ledger.Operation, error) {
	out, err := l.Operations(ctx, name)
	if err != nil {
		return nil, err
	}
	var made []ledger.Backfill
	if name == "" {
		made, err = l.Backfills(ctx, "", 0)
	} else {
		var b ledger.Backfill
		b, err = l.Backfill(ctx, name)
		made = []ledger.Backfill{b}
	}
	if err != nil {
		return nil, err
	}
	for _, b := range made {
		var req plan.Request
		if err := json.Unmarshal([]byte(b.Request), &req); err != nil {
			return nil, fmt.Errorf("cli: read request of %s: %w", b.Name, err)
		}
		out = append(out, ledger.Operation{At: b.CreatedAt, By: b.Owner.Host, Op: req.Command, Backfill: b.Name, Detail: requestText(req)})
	}
	slices.SortStableFunc(out, func(a, b ledger.Operation) int { return a.At.Compare(b.At) })
	return append([]ledger.Operation{}, out...), nil
}

// requestText writes a request as it could be typed.
func requestText(r plan.Request) string {
	var words []string
	for _, n := range r.Nodes {
		words = append(words, shellWord(n))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Options)) {
		words = append(words, "--"+k)
		if v := r.Options[k]; v != "true" {
			words = append(words, shellWord(v))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.Params)) {
		words = append(words, "--param", shellWord(k+"="+r.Params[k]))
	}
	return strings.Join(words, " ")
}
