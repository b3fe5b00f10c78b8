package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
			&cli.StringFlag{Name: "explain", Usage: "tell why `NAME` is in the plan, or why it is not: NODE, TABLE.FIELD or NODE@DATE"},
			&cli.BoolFlag{Name: "sql", Usage: "with the SQL of every step"}),
		Action: func(c *cli.Context) error {
			o, err := planOptionsOf(c, env)
			if err != nil {
				return err
			}
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			o.SQL, o.Explain = c.Bool("sql"), c.String("explain")
			if c.IsSet("explain") && strings.TrimSpace(o.Explain) == "" {
				return refuse(diag.List{diag.Errorf("usage", "--explain has no name").WithHint("give NODE, TABLE.FIELD or NODE@DATE")})
			}
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
	if o.Explain != "" {
		return s.explain(&p, o, diags)
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
	view.Diagnostics(env.Stderr, view.Alike(append(s.Warnings, diags...), o.Full))
	return view.Plan(env.Stdout, &p, view.PlanOptions{SQL: o.SQL, Full: o.Full, Local: env.Now().Location()})
}

// explainDocument is the JSON of plan --explain.
type explainDocument struct {
	Explain     planner.Explanation `json:"explain"`
	Diagnostics diag.List           `json:"diagnostics"`
}

// explain answers why something is in the plan or not. What is wrong with the
// plan otherwise is not what was asked for, and stays in its document.
func (s *session) explain(p *plan.Plan, o planOptions, warnings diag.List) error {
	e, diags := planner.Explain(p, s.model, o.Request, o.Explain)
	if diags.HasErrors() {
		return refuse(diags)
	}
	if o.Output == "json" {
		return writeJSON(s.env.Stdout, explainDocument{Explain: e, Diagnostics: append(diag.List{}, append(s.Warnings, warnings...)...)})
	}
	return view.Explain(s.env.Stdout, e)
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
