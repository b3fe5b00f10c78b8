package cli

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// steerOptions are what the flags of the steering commands say.
type steerOptions struct {
	projectOptions
	Word     string // the command, as the operations log calls it
	Op       status.Op
	Name     string // backfill
	Instance string // "" = the backfill as a whole
	Upstream string
	Reason   string
	Kill     bool
	// Failed, Missing and All choose instances of a whole backfill.
	Failed, Missing, All bool
	// Later only records it, even if nobody runs the backfill.
	Later  bool
	Output string
}

// steerFlags are those of every steering command.
func steerFlags(more ...cli.Flag) []cli.Flag {
	return append(append(projectFlags(), more...),
		&cli.StringFlag{Name: "reason", Usage: "`TEXT` for the operations log (`retrofill history`)"},
		outputFlag("text", "json"))
}

func laterFlag() cli.Flag {
	return &cli.BoolFlag{Name: "later", Usage: "only record it: `retrofill resume` runs it"}
}

// steering makes a steering command; least and most are its positionals.
func steering(env *Env, word, usage, text, more string, op status.Op, least, most int, flags []cli.Flag, act func(context.Context, steerOptions, *Env) error) *cli.Command {
	return &cli.Command{
		Name: word, Usage: usage, UsageText: text, Description: more, Flags: steerFlags(flags...),
		Action: func(c *cli.Context) error {
			n := c.Args().Len()
			if n < least || n > most {
				return refuse(diag.List{diag.Errorf("usage", "%s: %d arguments are given", word, n).
					WithHint("%s; `retrofill status` lists the backfills", strings.ReplaceAll(text, "\n", ", or "))})
			}
			o := steerOptions{projectOptions: projectOptionsOf(c), Word: word, Op: op, Name: c.Args().Get(0), Instance: c.Args().Get(1),
				Upstream: c.Args().Get(2), Reason: c.String("reason"), Kill: c.Bool("kill"),
				Failed: c.Bool("failed"), Missing: c.Bool("missing"), All: c.Bool("all"), Later: c.Bool("later")}
			if c.Bool("with-descendants") {
				o.Op = status.RerunDescendants
			}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			return act(c.Context, o, env)
		},
	}
}

func stopCommand(env *Env) *cli.Command {
	return steering(env, "stop", "stop a running backfill, or one running instance of it",
		"retrofill stop BACKFILL [--kill]\nretrofill stop BACKFILL NODE@DATE",
		"From any process: the one that runs the backfill lets running instances finish and begins nothing new; with --kill it cancels "+
			"them. It takes effect within 2 seconds. A single instance is always cancelled, and what is below it is blocked.",
		status.Stop, 1, 2, []cli.Flag{&cli.BoolFlag{Name: "kill", Usage: "cancel running queries and commands"}}, runStop)
}

func rerunCommand(env *Env) *cli.Command {
	return steering(env, "rerun", "run a finished instance again, with what it blocked, or all failed ones of a backfill",
		"retrofill rerun BACKFILL NODE@DATE [--with-descendants]\nretrofill rerun BACKFILL --failed | --missing | --all",
		"The process that runs the backfill takes it up; if nobody does, it is run here: only the instance and what follows from it.",
		status.Rerun, 1, 2, []cli.Flag{
			&cli.BoolFlag{Name: "with-descendants", Usage: "with everything below it, finished instances too"},
			&cli.BoolFlag{Name: "failed", Usage: "all failed and stopped instances, and what they blocked"},
			&cli.BoolFlag{Name: "missing", Usage: "all that have not run"},
			&cli.BoolFlag{Name: "all", Usage: "every instance"}, laterFlag()}, runRerun)
}

func forceRerunCommand(env *Env) *cli.Command {
	return steering(env, "force-rerun", "run one instance, whatever its upstream, and nothing below it",
		"retrofill force-rerun BACKFILL NODE@DATE", "If nobody runs the backfill, it is run here.",
		status.ForceRerun, 2, 2, []cli.Flag{laterFlag()}, runInstance)
}

func setSuccessCommand(env *Env) *cli.Command {
	return steering(env, "set-success", "count a failed or stopped instance as succeeded, so that what is below it runs",
		"retrofill set-success BACKFILL NODE@DATE",
		"Nothing is written to the target, and the ledger does not record that anything was built.",
		status.SetSuccess, 2, 2, nil, runInstance)
}

func removeDependencyCommand(env *Env) *cli.Command {
	return steering(env, "remove-dependency", "let one instance run without waiting for one upstream instance",
		"retrofill remove-dependency BACKFILL NODE@DATE UPSTREAM@DATE", "",
		status.RemoveDependency, 3, 3, nil, runInstance)
}

// by names the person for the operations log.
func (e *Env) by() string {
	for _, v := range []string{"USER", "USERNAME", "LOGNAME"} {
		if name := e.Getenv(v); name != "" {
			return name
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// steered is a backfill that is about to be steered.
type steered struct {
	*backfillPlan
	w *workspace
	l *ledger.Ledger
	o steerOptions
}

// openSteered opens the ledger for writing and the backfill.
func openSteered(ctx context.Context, o steerOptions, env *Env) (_ *steered, err error) {
	w, err := openRecords(o.projectOptions, env)
	if err != nil {
		return nil, err
	}
	ro, err := w.readLedger(ctx)
	if err != nil {
		return nil, err
	}
	if ro == nil { // do not make a ledger to find nothing in it
		return nil, noBackfill(ctx, nil, o.Name)
	}
	if err := ro.Close(); err != nil {
		return nil, err
	}
	s := &steered{w: w, o: o}
	if s.l, err = w.openLedger(ctx); err != nil {
		return nil, err
	}
	if s.backfillPlan, err = openBackfill(ctx, s.l, o.Name); err != nil {
		return nil, errors.Join(err, s.l.Close())
	}
	return s, nil
}

// running tells whether a living process has the backfill.
func (s *steered) running() bool { return s.Backfill.State == ledger.Running }

func (s *steered) request(env *Env, target string) run.Steering {
	return run.Steering{Op: s.o.Op, By: env.by(), Reason: s.o.Reason, Word: s.o.Word, Target: target}
}

// steerDocument is the JSON of a steering command.
type steerDocument struct {
	Backfill    string    `json:"backfill"`
	Operation   string    `json:"operation"`
	Target      string    `json:"target,omitempty"`
	Changed     int       `json:"changed"`
	Running     bool      `json:"running"` // a process has the backfill and takes it up
	Message     string    `json:"message"`
	Diagnostics diag.List `json:"diagnostics"`
}

// tell prints what was done, and what happens next.
func (s *steered) tell(env *Env, target string, changed int, message string) error {
	if s.o.Output == "json" {
		return writeJSON(env.Stdout, steerDocument{Backfill: s.Plan.Backfill, Operation: s.o.Word, Target: target, Changed: changed,
			Running: s.running(), Message: message, Diagnostics: diag.List{}})
	}
	return writeText(env.Stdout, message+"\n")
}

// next says who carries an operation on.
func (s *steered) next() string {
	if s.running() {
		return "the process that runs the backfill takes it up"
	}
	return "`retrofill resume " + shellWord(s.Plan.Backfill) + "` goes on"
}

// whole changes the backfill as a whole.
func (s *steered) whole(ctx context.Context, env *Env, st ledger.Steering) error {
	st.Backfill = s.Plan.Backfill
	st.Operation = ledger.Operation{By: env.by(), Op: s.o.Word, Reason: s.o.Reason, Detail: st.Operation.Detail}
	return s.l.Steer(ctx, st)
}

// isNot refuses an operation because of the backfill's state.
func (s *steered) isNot(code, hint string) error {
	state := string(s.Backfill.State)
	if s.Backfill.Paused {
		state += " and paused"
	}
	return refuse(diag.List{diag.Errorf(code, "backfill %s is %s: %s is not possible", s.Plan.Backfill, state, s.o.Word).WithHint("%s", hint)})
}

func runStop(ctx context.Context, o steerOptions, env *Env) (err error) {
	s, err := openSteered(ctx, o, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.l.Close()) }()
	if !s.running() {
		hint := "only a running backfill can be stopped"
		if s.Backfill.State == ledger.Interrupted {
			hint = "the process that ran it is gone already; `retrofill resume " + shellWord(s.Plan.Backfill) + "` goes on"
		}
		return s.isNot(status.CodeNotAllowed, hint)
	}
	if o.Instance != "" {
		return s.instance(ctx, env)
	}
	st, message := ledger.Steering{Signal: ledger.SignalStop}, "stopping "+s.Plan.Backfill+": what runs is finished, nothing new begins"
	if o.Kill {
		st.Signal, message = ledger.SignalKill, "ending "+s.Plan.Backfill+": what runs is cancelled"
		st.Operation.Detail = "--kill"
	}
	if err := s.whole(ctx, env, st); err != nil {
		return err
	}
	return s.tell(env, "", 0, message)
}

// runInstance is an operation on one instance.
func runInstance(ctx context.Context, o steerOptions, env *Env) error {
	s, err := openSteered(ctx, o, env)
	if err != nil {
		return err
	}
	return s.andRun(ctx, env, s.instanceRun)
}

// andRun closes the ledger after an operation, and then runs what it set
// going if nobody else does.
func (s *steered) andRun(ctx context.Context, env *Env, act func(context.Context, *Env) (*resumeOptions, error)) error {
	next, err := act(ctx, env)
	if err = errors.Join(err, s.l.Close()); err != nil || next == nil {
		return err
	}
	return runResume(ctx, *next, env)
}

func (s *steered) instance(ctx context.Context, env *Env) error {
	_, err := s.instanceRun(ctx, env)
	return err
}

// instanceRun carries an operation on one instance out, and gives what is to
// be run here because of it.
func (s *steered) instanceRun(ctx context.Context, env *Env) (*resumeOptions, error) {
	i, err := s.find(s.o.Instance)
	if err != nil {
		return nil, err
	}
	id := plan.InstanceID(s.Plan.Nodes[i.Node].Name, i.Slot.ID())
	req := s.request(env, id)
	req.Targets = []plan.Instance{i}
	if s.o.Upstream != "" {
		if req.Upstream, err = s.find(s.o.Upstream); err != nil {
			return nil, err
		}
		req.Target += " " + s.o.Upstream
	}
	out, err := run.Operate(ctx, s.l, &s.Plan, req)
	if err != nil {
		return nil, refusedOperation(err)
	}
	runs := s.o.Op == status.Rerun || s.o.Op == status.RerunDescendants || s.o.Op == status.ForceRerun
	if !runs || s.running() || s.o.Later {
		message := id + ": " + s.o.Word
		if s.o.Op == status.Stop {
			message = "stopping " + id
		}
		return nil, s.tell(env, id, out.Changed, message+"; "+s.next())
	}
	return s.resume(run.Options{Only: out.Run}), nil
}

func (s *steered) resume(o run.Options) *resumeOptions {
	return &resumeOptions{projectOptions: s.o.projectOptions, Name: s.Plan.Backfill, Output: s.o.Output, Run: o}
}

func runRerun(ctx context.Context, o steerOptions, env *Env) error {
	given := 0
	for _, b := range []bool{o.Failed, o.Missing, o.All, o.Instance != ""} {
		if b {
			given++
		}
	}
	if given != 1 || o.Instance == "" && o.Op == status.RerunDescendants {
		return refuse(diag.List{diag.Errorf("usage", "rerun takes an instance, or one of --failed, --missing and --all").
			WithHint("retrofill rerun %s NODE@DATE, or retrofill rerun %s --failed", shellWord(o.Name), shellWord(o.Name))})
	}
	s, err := openSteered(ctx, o, env)
	if err != nil {
		return err
	}
	if o.Instance != "" {
		return s.andRun(ctx, env, s.instanceRun)
	}
	return s.andRun(ctx, env, s.restart)
}

// restart is a rerun of a whole backfill's failed, missing or all instances.
func (s *steered) restart(ctx context.Context, env *Env) (*resumeOptions, error) {
	out := run.Outcome{}
	var err error
	if !s.o.Missing {
		req := s.request(env, map[bool]string{true: "--all", false: "--failed"}[s.o.All])
		if out, err = run.Restart(ctx, s.l, &s.Plan, s.o.All, req); err != nil {
			return nil, refusedOperation(err)
		}
	} else if err := s.whole(ctx, env, ledger.Steering{Operation: ledger.Operation{Detail: "--missing"}}); err != nil {
		return nil, err
	}
	if s.running() || s.o.Later {
		return nil, s.tell(env, "", out.Changed, fmt.Sprintf("%d instances are to run again; %s", out.Changed, s.next()))
	}
	return s.resume(run.Options{}), nil
}

// refusedOperation gives a refusal of the state machine its exit code.
func refusedOperation(err error) error {
	var r *status.Refusal
	if errors.As(err, &r) {
		return refuse(diag.List{r.Diagnostic()})
	}
	return err
}
