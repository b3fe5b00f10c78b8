package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/diag"
)

func resumeCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "go on with a backfill that was stopped, killed or failed: exactly what is left runs",
		UsageText: "retrofill resume BACKFILL [flags]",
		Flags: append(projectFlags(), outputFlag("text", "json"),
			&cli.BoolFlag{Name: "rerun-failed", Usage: "run failed instances again, and what they blocked"},
			&cli.BoolFlag{Name: "rerun-unknown", Usage: "run external commands again whose outcome is not known"}),
		Action: func(c *cli.Context) error {
			out, err := outputOf(c, "text", "json")
			if err != nil {
				return err
			}
			if c.Args().Len() != 1 {
				return refuse(diag.List{diag.Errorf("usage", "resume takes one backfill, got %d", c.Args().Len()).WithHint("`retrofill status` lists the backfills")})
			}
			return runResume(c.Context, resumeOptions{
				projectOptions: projectOptionsOf(c), Name: c.Args().First(), Output: out,
				Run: run.Options{RerunFailed: c.Bool("rerun-failed"), RerunUnknown: c.Bool("rerun-unknown")},
			}, env)
		},
	}
}

type resumeOptions struct {
	projectOptions
	Name   string
	Output string
	Run    run.Options
}

// runResume runs what is left of a backfill, by its own frozen plan: what the
// project says now does not matter.
func runResume(ctx context.Context, o resumeOptions, env *Env) (err error) {
	w, err := openRecords(o.projectOptions, env)
	if err != nil {
		return err
	}
	s := &session{workspace: w}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.ledger, err = w.openLedger(ctx); err != nil {
		return err
	}
	p, err := s.ledger.Plan(ctx, o.Name)
	if errors.Is(err, ledger.ErrNotFound) {
		return refuse(diag.List{diag.Errorf("unknown_backfill", "there is no backfill %q", o.Name).WithHint("`retrofill status` lists the backfills")})
	}
	if err != nil {
		return err
	}
	if s.Environment = w.Project.Environment(p.Environment); s.Environment == nil {
		return refuse(diag.List{diag.Errorf("unknown_environment", "the backfill ran in environment %q, which the project no longer has", p.Environment)})
	}
	if p.ProjectDigest != w.Project.Digest {
		if _, err := fmt.Fprintln(env.Stderr, "note: the project has changed since this backfill was planned; its own plan is carried out"); err != nil {
			return fmt.Errorf("cli: write note: %w", err)
		}
	}
	if s.engine, err = s.openEngine(ctx, EngineOptions{Connections: p.Parallel(), Settings: p.EngineSettings()}); err != nil {
		return err
	}
	return s.carryOut(ctx, p, o.Output, o.Run)
}
