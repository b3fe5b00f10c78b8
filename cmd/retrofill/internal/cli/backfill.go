package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
)

func backfillCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "backfill",
		Usage:     "plan a backfill, show the plan, ask, and run it",
		UsageText: "retrofill backfill NODE --start-date D --end-date D [flags]",
		Flags: append(planFlags(), outputFlag("text", "json"),
			&cli.BoolFlag{Name: "sql", Usage: "show the SQL of every step with the plan"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "run without asking"}),
		Action: func(c *cli.Context) error {
			o, err := planOptionsOf(c, env)
			if err != nil {
				return err
			}
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			o.SQL, o.Yes = c.Bool("sql"), c.Bool("yes")
			return runBackfill(c.Context, o, env)
		},
	}
}

// runBackfill plans, shows, asks and runs.
func runBackfill(ctx context.Context, o planOptions, env *Env) (err error) {
	if !o.Yes && !o.Diff && !env.interactive() {
		return refuse(diag.List{diag.Errorf("needs_yes", "a backfill asks before it runs, and there is no terminal to ask on").
			WithHint("add --yes to run without asking, or look at it with `retrofill plan`")})
	}
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions, Overrides: o.Overrides, Run: true, Connections: o.Request.Groups, ResourceGroup: o.Request.ResourceGroup}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if o.acceptsOnly() {
		return s.accept(ctx, o, true)
	}
	p, diags, err := s.build(ctx, o)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return refuse(diags)
	}
	if done, err := s.instead(ctx, o, &p, true); done || err != nil {
		return err
	}
	if p, diags, err = s.offer(ctx, o, p, diags); err != nil {
		return err
	}
	env.diagnostics(view.Alike(append(s.Warnings, diags...), o.Full))
	if o.Output == "text" {
		if err := view.Plan(env.Stdout, &p, view.PlanOptions{SQL: o.SQL, Full: o.Full, Local: env.Now().Location()}); err != nil {
			return err
		}
	}
	if !o.Yes {
		yes, err := ask(env, "Run it? [y/N] ")
		if err != nil {
			return err
		}
		if !yes {
			return &exitError{code: exitStopped, err: errors.New("not run")}
		}
	}
	return s.execute(ctx, p, o.Output)
}

func applyCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "apply",
		Usage:     "run a plan that was frozen with plan -o json",
		UsageText: "retrofill apply PLAN.json [flags]",
		Flags: append(projectFlags(), outputFlag("text", "json"),
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "run without asking"}),
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return refuse(diag.List{diag.Errorf("usage", "apply takes one plan file, got %d", c.Args().Len()).
					WithHint("retrofill apply p.json, or - for standard input")})
			}
			out, err := outputOf(c, "text", "json")
			if err != nil {
				return err
			}
			return runApply(c.Context, applyOptions{projectOptions: projectOptionsOf(c), File: c.Args().First(), Output: out, Yes: c.Bool("yes")}, env)
		},
	}
}

type applyOptions struct {
	projectOptions
	File   string
	Output string
	Yes    bool
}

// runApply runs a frozen plan as it is, unless the project or the ledger has
// changed since it was made: then it is stale and refused.
func runApply(ctx context.Context, o applyOptions, env *Env) (err error) {
	if !o.Yes && !env.interactive() {
		return refuse(diag.List{diag.Errorf("needs_yes", "apply asks before it runs, and there is no terminal to ask on").WithHint("add --yes")})
	}
	b, err := readPlan(o.File, env)
	if err != nil {
		return err
	}
	p, err := plan.Decode(b)
	if err != nil {
		return refuse(diag.List{diag.Errorf("bad_plan", "%s is no plan that can be run", o.File).WithDetail("%v", err).
			WithHint("make it with `retrofill plan NODE … -o json > p.json`")})
	}
	if err := plan.Unseal(&p); err != nil {
		return refuse(diag.List{diag.Errorf("edited_plan", "%s is not as it was made", o.File).WithDetail("%v", err).
			WithHint("change the project or the flags instead, and make the plan again")})
	}
	if err := plan.Validate(&p); err != nil {
		return refuse(diag.List{diag.Errorf("bad_plan", "%s does not hold together", o.File).WithDetail("%v", err).WithHint("make the plan again")})
	}
	if o.Env == "" {
		o.Env = p.Environment
	}
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions, Run: true, Connections: p.Parallel(), Settings: p.EngineSettings()}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fresh(ctx, &p); err != nil {
		return err
	}
	env.diagnostics(p.Diagnostics)
	if o.Output == "text" {
		if err := view.Plan(env.Stdout, &p, view.PlanOptions{Local: env.Now().Location()}); err != nil {
			return err
		}
	}
	if !o.Yes {
		yes, err := ask(env, "Run it? [y/N] ")
		if err != nil {
			return err
		}
		if !yes {
			return &exitError{code: exitStopped, err: errors.New("not run")}
		}
	}
	return s.execute(ctx, p, o.Output)
}

// maxPlanBytes bounds a plan file.
const maxPlanBytes = 1 << 30

func readPlan(file string, env *Env) ([]byte, error) {
	r := env.Stdin
	if file != "-" {
		f, err := os.Open(env.path(file))
		if err != nil {
			return nil, refuse(diag.List{diag.Errorf("missing_file", "the plan %s cannot be read", file).WithDetail("%v", err)})
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxPlanBytes))
	if err != nil {
		return nil, refuse(diag.List{diag.Errorf("missing_file", "the plan %s cannot be read", file).WithDetail("%v", err)})
	}
	return b, nil
}

// fresh refuses a plan whose ground has changed (design, "Values worth getting
// right first").
func (s *session) fresh(ctx context.Context, p *plan.Plan) error {
	var l diag.List
	add := func(what, detail string) {
		l = append(l, diag.Errorf("stale_plan", "the plan %s is stale: %s", p.Backfill, what).WithDetail("%s", detail).
			WithHint("make the plan again and look at it"))
	}
	if p.Project != s.Project.Name || p.Environment != s.Environment.Name {
		add("it is of another project or environment", fmt.Sprintf("plan: %s, %s; here: %s, %s", p.Project, p.Environment, s.Project.Name, s.Environment.Name))
	}
	if p.ProjectDigest != s.Project.Digest {
		add("the project's files have changed since", "planned "+p.CreatedAt+" with digest "+p.ProjectDigest+", now "+s.Project.Digest)
	}
	if p.Schema != s.Environment.Schema || p.Engine.Name != s.Environment.Engine {
		add("the environment has changed since", fmt.Sprintf("plan: schema %s on %s; now: %s on %s", p.Schema, p.Engine.Name, s.Environment.Schema, s.Environment.Engine))
	}
	digest, err := planner.LedgerDigest(ctx, s.ledger, p)
	if err != nil {
		return err
	}
	if digest != p.LedgerDigest {
		add("other backfills have written the slots it looked at", "plan: "+p.LedgerDigest+"; now: "+digest)
	}
	if len(l) > 0 {
		return refuse(l)
	}
	return nil
}

// execute stores the plan in the ledger and runs it, with progress on standard
// error and the outcome on standard output.
func (s *session) execute(ctx context.Context, p plan.Plan, output string) error {
	if _, err := s.ledger.Create(ctx, p, owner()); err != nil {
		return err
	}
	return s.carryOut(ctx, p, output, run.Options{})
}

// carryOut claims a stored backfill and runs what is left of it.
func (s *session) carryOut(ctx context.Context, p plan.Plan, output string, o run.Options) error {
	env := s.env
	claim, err := s.ledger.Claim(ctx, p.Backfill, owner())
	if err != nil {
		return err
	}
	if len(p.Accepts) > 0 {
		if err := s.ledger.Accept(ctx, p.Environment, p.Backfill, p.Accepts, p.Definitions); err != nil {
			return err
		}
	}
	clock, err := env.clock(s.Zone)
	if err != nil {
		return err
	}
	if err := s.letGo(&p, clock()); err != nil {
		return err
	}
	progress := view.NewProgress(view.ProgressOptions{
		Out: env.Stderr, Terminal: env.terminal(env.Stderr), Width: func() int { return env.width(env.Stderr) },
		Now: env.Now, Name: p.Backfill, Total: p.Instances,
	})
	runCtx, ints, stop := env.watchInterrupts(ctx, func(nth int) {
		if nth == 1 {
			progress.Note("stopping: what runs is finished, nothing new begins (Ctrl-C again ends it at once)")
		} else {
			progress.Note("ending at once")
		}
	})
	o.Stop, o.Parallel = ints.Soft(), p.Parallel()
	sum, err := run.Run(runCtx, run.Deps{
		Engine: s.engine, Ledger: claim, Clock: clock, Events: progress.Handle, Dir: s.Project.Dir,
	}, p, o)
	stop()
	progress.Close(time.Second)
	if err != nil {
		if ints.Killed() {
			return &exitError{code: exitKilled, err: err}
		}
		return runError(p, err)
	}
	if err := s.rememberAfter(ctx); err != nil {
		return err
	}
	if output == "json" {
		writeJSON(env.Stdout, summaryDocument{Backfill: p.Backfill, Summary: sum, Diagnostics: diag.List{}})
	} else if err := view.Summary(env.Stdout, p.Backfill, sum); err != nil {
		return err
	}
	return outcome(p.Backfill, sum, ints)
}

// summaryDocument is the JSON of a finished run.
type summaryDocument struct {
	Backfill string `json:"backfill"`
	run.Summary
	Diagnostics diag.List `json:"diagnostics"`
}

// outcome maps the end of a run to the exit-code table. Everything has been
// printed already.
func outcome(_ string, sum run.Summary, ints *interrupts) error {
	code := exitOK
	switch sum.State {
	case ledger.Succeeded:
		return nil
	case ledger.Unknown:
		code = exitUnknown
	case ledger.Stopped, ledger.Paused:
		code = exitStopped
	case ledger.Failed:
		code = exitFailed
	default:
		code = exitFailed
	}
	if ints.Killed() {
		code = exitKilled
	}
	return &exitError{code: code, silent: true, err: fmt.Errorf("%s", sum.Note)}
}

// runError tells an error of the run itself; those that mean another process
// keep their own exit code.
func runError(p plan.Plan, err error) error {
	if conflicts(err) {
		return err
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("backfill %s ended early: %w", p.Backfill, err)}
}

// rememberAfter keeps the catalog as it is after the run.
func (s *session) rememberAfter(ctx context.Context) error {
	if late, is := s.engine.(*lateEngine); is && late.unused() {
		return nil
	}
	list, err := s.engine.Catalog(ctx, nil)
	if err != nil {
		return fmt.Errorf("cli: read catalog: %w", err)
	}
	return s.remember(ctx, list)
}
