package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// diffOptions are what the flags of `diff` say.
type diffOptions struct {
	projectOptions
	Table     string
	Date      string
	Fields    []string
	Samples   int
	Overrides []param.Declared
	Output    string
}

func diffCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare what a table stores of a date with what today's logic gives",
		UsageText: "retrofill diff TABLE --date D [--fields a,b] [-o text|json]",
		Description: "Computes the date over what is stored upstream and counts, by field, the rows whose value would change, and the rows " +
			"that only one side has. Nothing is written.",
		Flags: append(projectFlags(), outputFlag("text", "json"),
			&cli.StringFlag{Name: "date", Usage: "business date, `YYYY-MM-DD`"},
			&cli.StringSliceFlag{Name: "fields", Usage: "compare only these `FIELDS`"},
			&cli.IntFlag{Name: "samples", Value: 3, Usage: "show the first `N` rows that differ of each field"},
			&cli.StringSliceFlag{Name: "param", Usage: "override a parameter, `NAME=VALUE`; repeatable"}),
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one table"); err != nil {
				return err
			}
			o := diffOptions{projectOptions: projectOptionsOf(c), Table: c.Args().First(), Date: c.String("date"),
				Fields: listOf(c.StringSlice("fields")), Samples: c.Int("samples")}
			var err error
			if o.Output, err = outputOf(c, "text", "json"); err != nil {
				return err
			}
			var diags diag.List
			if o.Overrides, _, diags = overridesOf(c.StringSlice("param")); diags.HasErrors() {
				return refuse(diags)
			}
			if o.Table == "" || o.Date == "" {
				return refuse(diag.List{diag.Errorf("usage", "diff needs a table and a date").WithHint("retrofill diff TABLE --date YYYY-MM-DD")})
			}
			return runDiff(c.Context, o, env)
		},
	}
}

func runDiff(ctx context.Context, o diffOptions, env *Env) (err error) {
	date, err := bizdate.Parse(o.Date)
	if err != nil {
		return refuse(diag.List{diag.Errorf("bad_date", "--date %q is not a date", o.Date).WithHint("write an existing date as YYYY-MM-DD")})
	}
	if o.Samples < 0 || o.Samples > maxSamples {
		return refuse(diag.List{diag.Errorf("bad_value", "--samples %d is out of range", o.Samples).WithHint("give 0 to %d", maxSamples)})
	}
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions, Overrides: o.Overrides}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.needsEngine(); err != nil {
		return err
	}
	deps, err := s.planDeps()
	if err != nil {
		return err
	}
	list, diags, err := planner.Compare(ctx, deps, o.Table, nil, o.Fields, o.Samples)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return refuse(diags)
	}
	n := s.model.Node(o.Table)
	if !n.Schedule.Scheduled(date) {
		return refuse(diag.List{diag.Errorf("not_scheduled", "%s has no real slot on %s: it is scheduled %s", n.Name, date, n.Schedule).
			WithHint("a slot of business date D runs on D + 1")})
	}
	doc := view.Diff{Table: n.Name, Environment: s.Environment.Name, Date: date, Nodes: []view.NodeDiff{}, Diagnostics: append(append(diag.List{}, s.Warnings...), diags...)}
	for i := range list {
		d, err := s.compare(ctx, n, &list[i], date, o.Samples)
		if err != nil {
			return err
		}
		doc.Nodes = append(doc.Nodes, d)
	}
	if o.Output == "json" {
		return writeJSON(env.Stdout, doc)
	}
	env.diagnostics(doc.Diagnostics)
	return view.DiffText(env.Stdout, doc)
}

// maxSamples is the most samples of one field.
const maxSamples = 1000

// needsEngine refuses to go on without the database.
func (s *session) needsEngine() error {
	switch {
	case s.engine != nil:
		return nil
	case s.held != nil:
		return s.held
	}
	return refuse(diag.List{diag.Errorf("missing_database", "the database of environment %s is not there yet", s.Environment.Name).
		WithHint("backfill something first")})
}

// compare runs a comparison for every slot of a date and adds the counts.
func (s *session) compare(ctx context.Context, n *lineage.Node, c *planner.Comparison, date bizdate.Date, samples int) (view.NodeDiff, error) {
	out := view.NodeDiff{Node: c.Node, Key: c.Key, Fields: make([]view.FieldDiff, len(c.Fields))}
	for i, f := range c.Fields {
		out.Fields[i] = view.FieldDiff{Field: f, Nondeterministic: c.Nondeterministic[f], Samples: []view.Sample{}}
	}
	for _, slot := range n.Schedule.Slots(date, s.Zone, nil) {
		text, err := s.render(ctx, n, c, c.Counts, slot)
		if err != nil {
			return out, err
		}
		rows, err := s.engine.Query(ctx, text, 0)
		if err != nil {
			return out, fmt.Errorf("compare %s@%s: %w", n.Name, slot.ID(), err)
		}
		counts := map[string]int64{}
		for i, col := range rows.Columns {
			if v, ok := rows.Values[0][i].(int64); ok {
				counts[col.Name] = v
			}
		}
		out.Stored += counts["stored"]
		out.Computed += counts["computed"]
		out.OnlyStored += counts["only_stored"]
		out.OnlyComputed += counts["only_computed"]
		for i := range c.Fields {
			f := &out.Fields[i]
			changed := counts[fmt.Sprintf("changed_%d", i)]
			f.Changed += changed
			if changed == 0 || samples <= len(f.Samples) || i >= len(c.Samples) {
				continue
			}
			if err := s.sample(ctx, n, c, i, slot, f, samples); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// sample adds the first rows of a slot whose value of a field differs.
func (s *session) sample(ctx context.Context, n *lineage.Node, c *planner.Comparison, i int, slot bizdate.Slot, f *view.FieldDiff, most int) error {
	text, err := s.render(ctx, n, c, c.Samples[i], slot)
	if err != nil {
		return err
	}
	rows, err := s.engine.Query(ctx, text, 0)
	if err != nil {
		return fmt.Errorf("compare %s@%s: %w", n.Name, slot.ID(), err)
	}
	for _, v := range rows.Values {
		if len(f.Samples) == most {
			return nil
		}
		k := len(c.Key)
		f.Samples = append(f.Samples, view.Sample{Key: v[:k], Stored: v[k], Computed: v[k+1]})
	}
	return nil
}

// render writes a comparison's query at a slot. Values of other nodes come from
// the ledger.
func (s *session) render(ctx context.Context, n *lineage.Node, c *planner.Comparison, text string, slot bizdate.Slot) (string, error) {
	params := make(map[string]param.Frozen, len(c.Params))
	for name, f := range c.Params {
		params[strings.ToLower(name)] = f
	}
	t, diags := param.Thaw(param.Dialect(s.Project.Dialect), param.Source{Text: text, Pos: diag.Pos{File: n.Table.SQLFile}}, params)
	if t == nil {
		return "", refuse(diags)
	}
	late := param.Late{}
	for _, ref := range t.Late() {
		switch ref.Kind {
		case param.LateNodeID:
			late[ref.Key] = n.Name
		case param.LateInstanceID:
			late[ref.Key] = plan.InstanceID(n.Name, slot.ID())
		case param.LateCross:
			v, diags, err := recorded(ctx, s.ledger, s.Environment.Name, ref, slot.Date)
			if err != nil {
				return "", err
			}
			if diags.HasErrors() {
				return "", refuse(diags)
			}
			late[ref.Key] = v
		}
	}
	out, diags := t.Render(param.At(slot), late)
	if diags.HasErrors() {
		return "", refuse(diags)
	}
	return out, nil
}

// recorded gives the value of a cross-node parameter for a business date out
// of the ledger (semantics §2.6).
func recorded(ctx context.Context, l *ledger.Ledger, environment string, ref param.LateRef, d bizdate.Date) (string, diag.List, error) {
	read := param.CrossRead{Name: ref.Node + "." + ref.Output, Bizdate: d, Direct: true, Declared: true, InBackfill: param.Absent, Lookback: param.DefaultLookback}
	found, err := l.Values(ctx, environment, ref.Node, ref.Output, d-param.DefaultLookback, d)
	if err != nil {
		return "", nil, err
	}
	for _, v := range found {
		read.Records = append(read.Records, param.CrossRecord{Bizdate: v.Date, Finished: v.FinishedAt, Value: &v.Value, Success: true})
	}
	v, diags := param.ResolveCross(read)
	return v.Value, diags, nil
}

// diffPlan reports, by field and date, how many rows a plan would change.
// Readers are computed over what is stored upstream now, not over what the plan
// would write there.
func (s *session) diffPlan(ctx context.Context, p *plan.Plan, output string, env *Env) error {
	if err := s.needsEngine(); err != nil {
		return err
	}
	deps, err := s.planDeps()
	if err != nil {
		return err
	}
	doc := view.PlanDiff{Backfill: p.Backfill, Environment: p.Environment, Tables: []view.TableDiff{}, Diagnostics: append(diag.List{}, p.Diagnostics...)}
	for i := range p.Nodes {
		node := &p.Nodes[i]
		n := s.model.Node(node.Name)
		if n == nil || !n.IsTable() {
			continue
		}
		t := view.TableDiff{Table: n.Name, Dates: []view.DateDiff{}}
		for k := range node.Steps {
			step := &node.Steps[k]
			if step.Strategy == plan.DryRun {
				continue
			}
			d, err := s.diffStep(ctx, deps, n, node, step)
			if err != nil {
				return err
			}
			t.Dates = append(t.Dates, d...)
		}
		slices.SortStableFunc(t.Dates, func(a, b view.DateDiff) int { return int(a.Date - b.Date) })
		doc.Tables = append(doc.Tables, t)
	}
	if output == "json" {
		return writeJSON(env.Stdout, doc)
	}
	env.diagnostics(doc.Diagnostics)
	return view.PlanDiffText(env.Stdout, doc)
}

// planSamples is the number of samples of one field and date in a plan's diff.
const planSamples = 1

func (s *session) diffStep(ctx context.Context, deps planner.Deps, n *lineage.Node, node *plan.Node, step *plan.Step) ([]view.DateDiff, error) {
	writes := node.Writes
	if step.Writes != nil {
		writes = step.Writes
	}
	var of []planner.Compared
	for _, w := range writes {
		of = append(of, planner.Compared{Node: w.Node, Fields: w.Fields})
	}
	list, diags, err := planner.Compare(ctx, deps, n.Name, of, nil, planSamples)
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, refuse(diags)
	}
	var out []view.DateDiff
	for _, r := range step.Dates {
		for d := r.From; d <= r.To; d++ {
			x := view.DateDiff{Date: d, Nodes: []view.NodeDiff{}}
			for i := range list {
				c, err := s.compare(ctx, n, &list[i], d, planSamples)
				if err != nil {
					return nil, err
				}
				x.Nodes = append(x.Nodes, c)
			}
			out = append(out, x)
		}
	}
	return out, nil
}
