package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/status"
)

// logsOptions are what the flags of `logs` say.
type logsOptions struct {
	projectOptions
	Backfill string
	Instance string
	Failed   bool
	Output   string
}

func logsCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "show the attempts, errors and output of a backfill's instances",
		UsageText: "retrofill logs BACKFILL [--instance NODE@DATE] [--failed] [-o json]",
		Flags: append(projectFlags(),
			&cli.StringFlag{Name: "instance", Aliases: []string{"i"}, Usage: "only this instance, `NODE@DATE`"},
			&cli.BoolFlag{Name: "failed", Usage: "only instances that failed, were stopped or have an unknown outcome"},
			outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one backfill; an instance is named with --instance"); err != nil {
				return err
			}
			o := logsOptions{projectOptions: projectOptionsOf(c), Backfill: c.Args().First(), Instance: c.String("instance"), Failed: c.Bool("failed")}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			if o.Backfill == "" {
				return refuse(diag.List{diag.Errorf("usage", "logs needs a backfill").WithHint("`retrofill status` lists them")})
			}
			return runLogs(c.Context, o, env)
		},
	}
}

func runLogs(ctx context.Context, o logsOptions, env *Env) (err error) {
	w, err := openRecords(o.projectOptions, env)
	if err != nil {
		return err
	}
	l, err := w.readLedger(ctx)
	if err != nil {
		return err
	}
	if l != nil {
		defer func() { err = errors.Join(err, l.Close()) }()
	}
	b, err := openBackfill(ctx, l, o.Backfill)
	if err != nil {
		return err
	}
	p := &logPrinter{ledger: l, name: o.Backfill, zone: w.Zone, out: env.Stdout, json: o.Output == "json"}
	if o.Failed {
		p.only = []status.Status{status.Failed, status.Stopped, status.Unknown}
	}
	if err := p.begin(); err != nil {
		return err
	}
	if o.Instance != "" {
		i, err := b.find(o.Instance)
		if err != nil {
			return err
		}
		node := b.Plan.Nodes[i.Node].Name
		if err := p.instances(ctx, ledger.Filter{Node: node, Slot: i.Slot.ID(), Status: p.only}); err != nil {
			return err
		}
		if p.n == 0 && !p.json {
			if err := writeText(env.Stdout, view.Pending(node, i.Slot.ID())); err != nil {
				return err
			}
		}
		return p.end()
	}
	// Node by node, so that the list of a large backfill is never in memory.
	nodes, err := l.Counts(ctx, o.Backfill)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Counts.Of(status.Pending) == n.Instances && n.Instances > 0 {
			continue
		}
		if err := p.instances(ctx, ledger.Filter{Node: n.Node, Status: p.only}); err != nil {
			return err
		}
	}
	if p.n == 0 && !p.json {
		env.diagnostics(diag.List{diag.Warnf("no_log", "nothing to show of backfill %s", o.Backfill).WithHint("`retrofill status %s` shows how it stands", shellWord(o.Backfill))})
	}
	return p.end()
}

// logPrinter writes instances one by one, as text or as one JSON document.
type logPrinter struct {
	ledger *ledger.Ledger
	name   string
	zone   *time.Location
	out    io.Writer
	json   bool
	only   []status.Status
	n      int
}

func (p *logPrinter) begin() error {
	if !p.json {
		return nil
	}
	return writeText(p.out, fmt.Sprintf("{\n  \"backfill\": %s,\n  \"instances\": [", quoted(p.name)))
}

func (p *logPrinter) end() error {
	if !p.json {
		return nil
	}
	close := "],\n  \"diagnostics\": []\n}\n"
	if p.n > 0 {
		close = "\n  " + close
	}
	return writeText(p.out, close)
}

func (p *logPrinter) instances(ctx context.Context, f ledger.Filter) error {
	found, err := p.ledger.Instances(ctx, p.name, f)
	if err != nil {
		return err
	}
	for _, i := range found {
		line := view.LogEntry{Instance: i, Attempts: []ledger.Tried{}, Log: []ledger.Chunk{}}
		if i.Attempt > 0 {
			if line.Attempts, err = p.ledger.Attempts(ctx, p.name, i.Key); err != nil {
				return err
			}
			if line.Log, err = p.ledger.Logs(ctx, p.name, i.Key, 0, -1); err != nil {
				return err
			}
		}
		if p.json {
			err = p.element(line)
		} else {
			err = view.Log(p.out, line, p.zone)
		}
		if err != nil {
			return err
		}
		p.n++
	}
	return nil
}

func (p *logPrinter) element(v any) error {
	var b strings.Builder
	if err := writeJSON(&b, v); err != nil {
		return err
	}
	text := "\n    " + strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", "\n    ")
	if p.n > 0 {
		text = "," + text
	}
	return writeText(p.out, text)
}

// quoted gives a JSON string.
func quoted(s string) string {
	var b strings.Builder
	if err := writeJSON(&b, s); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSpace(b.String())
}
