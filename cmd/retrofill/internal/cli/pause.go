package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

func pauseCommand(env *Env) *cli.Command {
	return pausing(env, "pause", "hold a backfill, some of its instances, or a node of the project",
		"What runs goes on to its end, and nothing new begins: of the backfill, or of the instance and all that is below it. "+
			"With --node the node is paused in the project: new backfills hold its instances (see --paused-tasks), and leave it out "+
			"where it is downstream.", status.Pause)
}

func unpauseCommand(env *Env) *cli.Command {
	return pausing(env, "unpause", "let a paused backfill, instance or node go on",
		"A backfill that nobody runs goes on with `retrofill resume`.", status.Unpause)
}

func pausing(env *Env, word, usage, more string, op status.Op) *cli.Command {
	text := strings.ReplaceAll("retrofill X BACKFILL\nretrofill X BACKFILL NODE@DATE | NODE\nretrofill X --node NODE", "X", word)
	node := &cli.StringFlag{Name: "node", Usage: "a `NODE` of the project, instead of a backfill"}
	c := steering(env, word, usage, text, more, op, 0, 2, []cli.Flag{node}, nil)
	c.Action = func(c *cli.Context) error {
		o := steerOptions{projectOptions: projectOptionsOf(c), Word: word, Op: op, Name: c.Args().Get(0), Instance: c.Args().Get(1), Reason: c.String("reason")}
		var err error
		if o.Output, err = outputOf(c, "text", "json"); err != nil {
			return err
		}
		name := c.String("node")
		if n := c.Args().Len(); n > 2 || (n == 0) != (name != "") {
			return refuse(diag.List{diag.Errorf("usage", "%s takes a backfill, or --node NODE", word).WithHint("%s", strings.ReplaceAll(text, "\n", ", or "))})
		}
		if name != "" {
			return runPauseNode(c.Context, o, name, env)
		}
		return runPause(c.Context, o, env)
	}
	return c
}

// runPauseNode pauses or unpauses a node of the project.
func runPauseNode(ctx context.Context, o steerOptions, name string, env *Env) (err error) {
	w, err := openProject(o.projectOptions, env)
	if err != nil {
		return err
	}
	var names []string
	found := ""
	for _, t := range w.Project.Tables {
		names = append(names, t.Name)
	}
	for _, t := range w.Project.Tasks {
		names = append(names, t.Name)
	}
	for _, n := range names {
		if strings.EqualFold(n, name) {
			found = n
		}
	}
	if found == "" {
		return refuse(diag.List{diag.Errorf("unknown_node", "no table or task is called %q", name).
			WithHint("%s", diag.DidYouMean(name, names, "`retrofill ls` lists the nodes"))})
	}
	l, err := w.openLedger(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	list, err := l.Paused(ctx, w.Project.Name)
	if err != nil {
		return err
	}
	is := false
	for _, p := range list {
		is = is || p.Node == found
	}
	on := o.Op == status.Pause
	if is == on {
		refused := &status.Refusal{Code: status.CodeAlreadyPaused, Op: o.Op, Item: found}
		if !on {
			refused.Code = status.CodeNotPaused
			if paused := w.Project.Table(found); paused != nil && paused.Paused {
				return refuse(diag.List{refused.Diagnostic().WithHint("its project file says paused: true; change it there")})
			}
			if paused := w.Project.Task(found); paused != nil && paused.Paused {
				return refuse(diag.List{refused.Diagnostic().WithHint("its project file says paused: true; change it there")})
			}
		}
		return refuse(diag.List{refused.Diagnostic()})
	}
	if err := l.Pause(ctx, w.Project.Name, found, on, env.by(), o.Reason); err != nil {
		return err
	}
	if err := l.Record(ctx, ledger.Operation{By: env.by(), Op: o.Word, Target: found, Reason: o.Reason, Detail: "--node"}); err != nil {
		return err
	}
	message := found + " is paused: new backfills hold it, or leave it out where it is downstream"
	if !on {
		message = found + " is not paused any more; backfills that were planned before keep their pauses"
	}
	if o.Output == "json" {
		return writeJSON(env.Stdout, steerDocument{Operation: o.Word, Target: found, Changed: 1, Message: message, Diagnostics: diag.List{}})
	}
	return writeText(env.Stdout, message+"\n")
}

// runPause pauses or unpauses a backfill, an instance, or all instances of a
// node in it.
func runPause(ctx context.Context, o steerOptions, env *Env) (err error) {
	s, err := openSteered(ctx, o, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.l.Close()) }()
	on := o.Op == status.Pause
	if o.Instance == "" {
		switch {
		case on && s.Backfill.State == ledger.Succeeded:
			return s.isNot(status.CodeNotAllowed, "nothing of it is left to hold")
		case on && s.Backfill.Paused:
			return s.isNot(status.CodeAlreadyPaused, "nothing to do; unpause lets it go on")
		case !on && !s.Backfill.Paused:
			hint := "nothing to do"
			if s.Backfill.State == ledger.Paused {
				hint = "a budget or paused instances hold it: unpause those (NODE@DATE or NODE), then `retrofill resume " + shellWord(s.Plan.Backfill) + "`"
			}
			return s.isNot(status.CodeNotPaused, hint)
		}
		if err := s.whole(ctx, env, ledger.Steering{Pause: &on}); err != nil {
			return err
		}
		message := s.Plan.Backfill + " is paused"
		if s.running() && on {
			message = "pausing " + s.Plan.Backfill + ": what runs is finished, nothing new begins"
		}
		if !on {
			message = s.Plan.Backfill + " is not paused any more; " + s.next()
		}
		return s.tell(env, "", 0, message)
	}
	targets, id, err := s.instances(o.Instance)
	if err != nil {
		return err
	}
	req := s.request(env, id)
	req.Targets = targets
	out, err := run.Operate(ctx, s.l, &s.Plan, req)
	if err != nil {
		return refusedOperation(err)
	}
	what := fmt.Sprintf("%d instances are", out.Changed)
	if out.Changed == 1 {
		what = id + " is"
	}
	message := what + " paused, and what is below waits"
	if !on {
		message = what + " not paused any more; " + s.next()
	}
	return s.tell(env, id, out.Changed, message)
}

// instances gives the instance that a text names, or all those of a node.
func (s *steered) instances(text string) ([]plan.Instance, string, error) {
	for n := range s.Plan.Nodes {
		if !strings.EqualFold(s.Plan.Nodes[n].Name, text) {
			continue
		}
		var out []plan.Instance
		for d := range s.Plan.Dates {
			some, err := s.Expander.Expand(d, n)
			if err != nil {
				return nil, "", err
			}
			out = append(out, some...)
		}
		return out, s.Plan.Nodes[n].Name, nil
	}
	i, err := s.find(text)
	if err != nil {
		return nil, "", err
	}
	return []plan.Instance{i}, plan.InstanceID(s.Plan.Nodes[i.Node].Name, i.Slot.ID()), nil
}
