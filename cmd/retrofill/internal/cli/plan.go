package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/selector"
)

func planCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "show what a backfill would do, or freeze it as JSON for apply",
		UsageText: "retrofill plan NODE --start-date D --end-date D [flags]\n   retrofill plan NODE … -o json > p.json",
		Flags: append(planFlags(), outputFlag("text", "json"),
			&cli.BoolFlag{Name: "sql", Usage: "with the SQL of every step"}),
		Action: func(c *cli.Context) error {
			o, err := planOptionsOf(c, env)
			if err != nil {
				return err
			}
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			o.SQL = c.Bool("sql")
			return runPlan(c.Context, o, env)
		},
	}
}

// runPlan plans a backfill and prints the plan. A refused plan prints its
// diagnostics and ends with exit code 2.
func runPlan(ctx context.Context, o planOptions, env *Env) (err error) {
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions, Overrides: o.Overrides}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if o.acceptsOnly() {
		return s.accept(ctx, o, false)
	}
	p, diags, err := s.build(ctx, o)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return refuse(diags)
	}
	if done, err := s.instead(ctx, o, &p, false); done || err != nil {
		return err
	}
	if o.Output == "json" {
		b, err := plan.Seal(p)
		if err != nil {
			return err
		}
		if _, err := env.Stdout.Write(b); err != nil {
			return fmt.Errorf("cli: write plan: %w", err)
		}
		return nil
	}
	view.Diagnostics(env.Stderr, append(s.Warnings, diags...))
	return view.Plan(env.Stdout, &p, view.PlanOptions{SQL: o.SQL, Local: env.Now().Location()})
}

// build plans the request.
func (s *session) build(ctx context.Context, o planOptions) (plan.Plan, diag.List, error) {
	req := o.Request
	clock, err := o.Dates.clock(s.env, s.Zone)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	req.RunAt = clock.RunAt
	deps, err := s.planDeps()
	if err != nil {
		return plan.Plan{}, nil, err
	}
	if deps.Paused, err = s.paused(ctx); err != nil {
		return plan.Plan{}, nil, err
	}
	p, diags, err := planner.Build(ctx, req, deps)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	p.Diagnostics = append(diag.List{}, append(s.Warnings, diags...)...)
	return p, diags, nil
}

// paused gives the test of nodes that are paused in the ledger.
func (s *session) paused(ctx context.Context) (func(node string) bool, error) {
	list, err := s.ledger.Paused(ctx, s.Project.Name)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(list))
	for _, p := range list {
		names[p.Node] = true
	}
	return func(node string) bool { return names[node] }, nil
}

// graph gives the selection graph with the pauses of project and ledger.
func (s *session) graph(ctx context.Context) (*selector.Graph, error) {
	paused, err := s.paused(ctx)
	if err != nil {
		return nil, err
	}
	return s.model.Graph(paused)
}
