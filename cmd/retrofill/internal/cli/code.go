package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// codeOptions are what the flags of `code` say.
type codeOptions struct {
	projectOptions
	Backfill string
	Instance string
	Output   string
}

func codeCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "code",
		Usage:     "show the exact SQL of an instance",
		UsageText: "retrofill code BACKFILL NODE@DATE [-o json]",
		Description: "The text comes from the stored plan, not from the project: it is what ran, or will run. Values that are known " +
			"only while running stay as written until the instance has run.",
		Flags: append(projectFlags(), outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 2, "name a backfill and an instance"); err != nil {
				return err
			}
			o := codeOptions{projectOptions: projectOptionsOf(c), Backfill: c.Args().Get(0), Instance: c.Args().Get(1)}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			if o.Instance == "" {
				return refuse(diag.List{diag.Errorf("usage", "code needs a backfill and an instance").
					WithHint("retrofill code BACKFILL NODE@DATE; `retrofill status` lists the backfills")})
			}
			return runCode(c.Context, o, env)
		},
	}
}

// codeDocument is the JSON of `code`.
type codeDocument struct {
	Backfill    string          `json:"backfill"`
	Instance    string          `json:"instance"`
	Strategy    plan.Strategy   `json:"strategy"`
	Because     string          `json:"because"`
	Statements  []codeStatement `json:"statements"`
	Command     []string        `json:"command,omitempty"`
	Diagnostics diag.List       `json:"diagnostics"`
}

type codeStatement struct {
	Role   string `json:"role"`
	Target string `json:"target,omitempty"`
	SQL    string `json:"sql"`
}

func runCode(ctx context.Context, o codeOptions, env *Env) (err error) {
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
	i, err := b.find(o.Instance)
	if err != nil {
		return err
	}
	doc, err := codeOf(ctx, l, &b.Plan, i)
	if err != nil {
		return err
	}
	if o.Output == "json" {
		err = writeJSON(env.Stdout, doc)
	} else {
		err = writeText(env.Stdout, doc.text())
		env.diagnostics(doc.Diagnostics)
	}
	if err == nil && doc.Diagnostics.HasErrors() {
		return &exitError{code: exitRefused, diags: doc.Diagnostics, silent: true}
	}
	return err
}

// codeOf renders the statements of an instance from the plan alone; values of
// other nodes come from the ledger.
func codeOf(ctx context.Context, l *ledger.Ledger, p *plan.Plan, i plan.Instance) (codeDocument, error) {
	n := &p.Nodes[i.Node]
	st := &n.Steps[i.Step]
	doc := codeDocument{Backfill: p.Backfill, Instance: plan.InstanceID(n.Name, i.Slot.ID()), Strategy: st.Strategy, Because: st.Because,
		Statements: []codeStatement{}, Diagnostics: diag.List{}}
	r := renderer{ledger: l, plan: p, instance: i, params: map[string]param.Frozen{}, late: param.Late{}}
	for name, f := range n.Params {
		r.params[strings.ToLower(name)] = f
	}
	for _, s := range st.Statements {
		sql := s.SQL
		if !s.Plain {
			var err error
			if sql, err = r.text(ctx, s.SQL, param.Thaw); err != nil {
				return doc, err
			}
		}
		doc.Statements = append(doc.Statements, codeStatement{Role: s.Role, Target: s.Target, SQL: sql})
	}
	for _, a := range st.Command {
		word, err := r.text(ctx, a, param.ThawText)
		if err != nil {
			return doc, err
		}
		doc.Command = append(doc.Command, word)
	}
	doc.Diagnostics = append(doc.Diagnostics, r.diags...)
	return doc, nil
}

// renderer writes texts of a plan at one instance.
type renderer struct {
	ledger   *ledger.Ledger
	plan     *plan.Plan
	instance plan.Instance
	params   map[string]param.Frozen // by lower-case name
	late     param.Late
	diags    diag.List
}

// text renders one text; what cannot be rendered stays as written, with a
// diagnostic.
func (r *renderer) text(ctx context.Context, text string, thaw func(param.Dialect, param.Source, map[string]param.Frozen) (*param.Template, diag.List)) (string, error) {
	t, diags := thaw(param.Dialect(r.plan.Dialect), param.Text(text), r.params)
	if t == nil {
		r.diags = append(r.diags, diags...)
		return text, nil
	}
	if err := r.bind(ctx, t.Late()); err != nil {
		return "", err
	}
	out, diags := t.Preview(param.At(r.instance.Slot), r.late)
	if diags.HasErrors() {
		r.diags = append(r.diags, diags...)
		return text, nil
	}
	return out, nil
}

// bind gives late-bound values as the run does (executors/run): those of the
// instance itself, and of other nodes what the ledger knew when the instance
// began. A value that is not known yet stays a placeholder.
func (r *renderer) bind(ctx context.Context, refs []param.LateRef) error {
	node := r.plan.Nodes[r.instance.Node].Name
	for _, ref := range refs {
		switch ref.Kind {
		case param.LateNodeID:
			r.late[ref.Key] = node
		case param.LateInstanceID:
			r.late[ref.Key] = r.plan.Backfill + "." + plan.InstanceID(node, r.instance.Slot.ID())
		case param.LateCross:
			if err := r.cross(ctx, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *renderer) cross(ctx context.Context, ref param.LateRef) error {
	d := r.instance.Slot.Date
	began, err := r.began(ctx)
	if err != nil {
		return err
	}
	read := param.CrossRead{Name: ref.Node + "." + ref.Output, Bizdate: d, Direct: true, Declared: true,
		InBackfill: param.Absent, Default: ref.Default, Lookback: ref.Days()}
	found, err := r.ledger.Values(ctx, r.plan.Environment, ref.Node, ref.Output, d-bizdate.Date(ref.Days()), d)
	if err != nil {
		return err
	}
	ran, err := r.produced(ctx, ref.Node)
	if err != nil {
		return err
	}
	for _, v := range found {
		if ran != nil && v.Date == d && v.Backfill == r.plan.Backfill {
			read.ThisRun = &v.Value
		}
		if began.IsZero() || !v.FinishedAt.After(began) {
			read.Records = append(read.Records, param.CrossRecord{Bizdate: v.Date, Finished: v.FinishedAt, Value: &v.Value, Success: true})
		}
	}
	if ran != nil {
		read.InBackfill = param.Runs
	}
	v, diags := param.ResolveCross(read)
	if diags.HasErrors() || ran != nil && !*ran && read.ThisRun == nil { // not known yet
		r.diags = append(r.diags, diag.Warnf("late_value", "the value of %s is known only once %s has run", read.Name, ref.Node).
			WithHint("it stays a placeholder in this text"))
		return nil
	}
	r.late[ref.Key] = v.Value
	return nil
}

// produced tells whether the producer of a parameter has run in this backfill
// for the instance's date; nil = it does not run in it.
func (r *renderer) produced(ctx context.Context, node string) (*bool, error) {
	x, err := plan.NewExpander(r.plan)
	if err != nil {
		return nil, err
	}
	d := r.instance.Slot.Date
	for i := range r.plan.Nodes {
		n := &r.plan.Nodes[i]
		if s := x.Step(i, d); n.Name != node || s < 0 || n.Steps[s].Strategy == plan.DryRun {
			continue
		}
		found, err := r.ledger.Instances(ctx, r.plan.Backfill, ledger.Filter{Node: node, HasDates: true, From: d, To: d, Status: []status.Status{status.Succeeded}})
		done := len(found) > 0
		return &done, err
	}
	return nil, nil
}

// began gives the start of the instance, zero if it has not begun.
func (r *renderer) began(ctx context.Context) (time.Time, error) {
	found, err := r.ledger.Instances(ctx, r.plan.Backfill, ledger.Filter{Node: r.plan.Nodes[r.instance.Node].Name, Slot: r.instance.Slot.ID()})
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	return found[0].StartedAt, nil
}

func (d codeDocument) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- %s of backfill %s: %s\n", d.Instance, d.Backfill, d.Strategy)
	if d.Because != "" {
		fmt.Fprintf(&b, "-- %s\n", strings.ReplaceAll(d.Because, "\n", " "))
	}
	for _, s := range d.Statements {
		fmt.Fprintf(&b, "\n-- %s", s.Role)
		if s.Target != "" {
			b.WriteString(" " + s.Target)
		}
		b.WriteString("\n" + strings.TrimRight(s.SQL, "; \n\t") + ";\n")
	}
	if len(d.Command) > 0 {
		words := make([]string, len(d.Command))
		for i, a := range d.Command {
			words[i] = shellWord(a)
		}
		b.WriteString("\n" + strings.Join(words, " ") + "\n")
	}
	if len(d.Statements) == 0 && len(d.Command) == 0 {
		b.WriteString("-- nothing is executed\n")
	}
	return b.String()
}
