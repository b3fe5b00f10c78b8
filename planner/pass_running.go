package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/skipif"
)

// ParamValue is a recorded value of a cross-node parameter.
type ParamValue struct {
	Date       bizdate.Date
	Value      string
	FinishedAt time.Time
}

// ParamLedger is a Ledger that knows recorded values of cross-node parameters:
// the last one of each business date in [from, to].
type ParamLedger interface {
	ParamValues(ctx context.Context, environment, node, param string, from, to bizdate.Date) ([]ParamValue, error)
}

// passRunning freezes what the run needs beside statements: when it may begin,
// its budget, pauses, conditions, and the parameters that nodes set for each
// other (semantics §2.6, §6.5).
func passRunning(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	if b.req.RunAt != nil {
		b.plan.RunAt = b.req.RunAt.In(b.deps.Model.Zone).Format(time.RFC3339)
	}
	b.plan.WaitSchedule = b.req.WaitSchedule
	b.budget()
	byName := map[string]*plan.Node{}
	for i := range b.plan.Nodes {
		byName[b.plan.Nodes[i].Name] = &b.plan.Nodes[i]
	}
	for _, p := range b.picked {
		n := byName[p.node.Name]
		if n == nil {
			continue
		}
		if b.pausedNode(p) && (b.req.PausedTasks == "" || b.req.PausedTasks == "block") && len(p.real) > 0 {
			n.Paused = true
			b.warnf("paused", "%s is paused: its instances stay pending, and everything below them waits", n.Name).
				Hint = "`retrofill unpause BACKFILL " + n.Name + "` releases them later; or choose --paused-tasks dry-run or run"
		}
		b.skip(p, n)
		b.sets(p, n)
		if err := b.crossParams(ctx, p, n, byName); err != nil {
			return err
		}
	}
	return nil
}

// budget checks and freezes the bounds of a run.
func (b *build) budget() {
	r := b.req
	if r.MaxDuration < 0 || r.MaxRows < 0 || r.MaxDuration > 0 && r.MaxDuration < time.Second {
		b.errorf("bad_value", "a budget cannot be negative, or shorter than a second").Hint = "give --max-duration such as 2h, --max-rows such as 1000000"
		return
	}
	if r.NotBetween != "" {
		if _, err := plan.ParseDayPart(r.NotBetween); err != nil {
			b.errorf("bad_time", "--not-between %q is not a part of the day", r.NotBetween).Hint = "write HH:MM-HH:MM, such as 08:00-18:00; 22:00-06:00 passes midnight"
			return
		}
	}
	if r.MaxDuration > 0 || r.MaxRows > 0 || r.NotBetween != "" {
		b.plan.Budget = &plan.Budget{MaxSeconds: int64(r.MaxDuration / time.Second), MaxRows: r.MaxRows, NotBetween: r.NotBetween}
	}
}

// skip compiles a node's condition and freezes the parameters that it reads.
func (b *build) skip(p *picked, n *plan.Node) {
	text, at := "", diag.Pos{}
	if t := p.node.Table; t != nil {
		text, at = t.SkipIf, t.SkipIfPos
	} else {
		text, at = p.node.Task.SkipIf, p.node.Task.SkipIfPos
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	e, diags := skipif.Compile(text, at)
	b.diags = append(b.diags, diags...)
	if e == nil {
		return
	}
	for _, name := range e.Params() {
		f, ok := p.node.Params.Freeze(name)
		if !ok {
			b.diags = append(b.diags, diag.Errorf("undefined", "skip_if of %s reads params.%s, which is not defined", n.Name, name).At(at).
				WithHint("declare %s under params", name))
			continue
		}
		n.Params = withParam(n.Params, name, f)
	}
	n.SkipIf = text
}

func withParam(params map[string]plan.Parameter, name string, f plan.Parameter) map[string]plan.Parameter {
	if params == nil {
		params = map[string]plan.Parameter{}
	}
	params[name] = f
	return params
}

// sets freezes the parameters that a task sets.
func (b *build) sets(p *picked, n *plan.Node) {
	if p.node.Task == nil || len(p.real) == 0 {
		return
	}
	var queries plan.Step
	var out []plan.Set
	for _, s := range p.node.Task.Sets {
		if s.Query == "" && n.Strategy == plan.Script {
			continue // only its default counts
		}
		query := ""
		if s.Query != "" {
			spans := param.StatementSpans(s.Query)
			if len(spans) != 1 {
				b.diags = append(b.diags, diag.Errorf("bad_value", "the query of parameter %s of %s is not one statement", s.Name, n.Name).At(s.QueryPos).
					WithHint("write one SELECT of one row with one column"))
				continue
			}
			query = s.Query[spans[0].Start:spans[0].End]
			queries.Statements = append(queries.Statements, plan.Statement{SQL: query})
		}
		out = append(out, plan.Set{Param: s.Name, Query: query})
	}
	for name, f := range b.freeze(p, queries) {
		n.Params = withParam(n.Params, name, f)
	}
	for _, s := range out {
		if s.Query == "" {
			continue
		}
		if t, diags := param.Thaw(param.Dialect(b.plan.Dialect), param.Source{Text: s.Query, Pos: p.node.Pos()}, n.Params); t == nil {
			b.diags = append(b.diags, diags...)
		}
	}
	for i := range n.Steps {
		if n.Steps[i].Strategy != plan.DryRun {
			n.Steps[i].Sets = out
		}
	}
}

// crossParams resolves what can be known of the parameters that a node reads
// from others: a value that will be missing is an error now, an older one a
// warning.
func (b *build) crossParams(ctx context.Context, p *picked, n *plan.Node, byName map[string]*plan.Node) error {
	names := make([]string, 0, len(n.Params))
	for name, f := range n.Params {
		if f.Late == param.LateCross {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	ledger, can := b.deps.Ledger.(ParamLedger)
	for _, name := range names {
		f := n.Params[name]
		producer := b.deps.Model.Node(f.Node)
		if producer == nil || len(p.real) == 0 {
			continue // told by the analysis
		}
		runs := map[bizdate.Date]bool{}
		if up := byName[producer.Name]; up != nil {
			runs = b.byNode[producer].realDates()
		}
		first, last := slices.Min(p.real), slices.Max(p.real)
		var recorded []param.CrossRecord
		if can {
			values, err := ledger.ParamValues(ctx, b.deps.Environment, producer.Name, f.Output, first-bizdate.Date(f.Days()), last)
			if err != nil {
				return fmt.Errorf("planner: read parameter %s of %s: %w", f.Output, producer.Name, err)
			}
			for _, v := range values {
				recorded = append(recorded, param.CrossRecord{Bizdate: v.Date, Finished: v.FinishedAt, Value: &v.Value, Success: true})
			}
		}
		found := map[string][]bizdate.Date{}
		said := map[string]diag.Diagnostic{}
		for _, d := range p.real {
			if runs[d] {
				continue // known when it has run
			}
			_, diags := param.ResolveCross(param.CrossRead{
				Name: producer.Name + "." + f.Output, Bizdate: d, Direct: true, Declared: true, InBackfill: param.Absent,
				Records: recorded, Default: f.Default, Lookback: f.Days(),
			})
			for _, x := range diags {
				found[x.Code] = append(found[x.Code], d)
				if _, twice := said[x.Code]; !twice {
					said[x.Code] = x
				}
			}
		}
		for _, code := range []string{"no_value", "stale"} {
			dates := found[code]
			if len(dates) == 0 {
				continue
			}
			d := said[code]
			what := "the value of an earlier date is used"
			if code == "no_value" {
				what = "there is no recorded value and no default"
			}
			first := d.Summary
			d.Summary = fmt.Sprintf("%s reads %s of %s: for %d of its dates %s", n.Name, f.Output, producer.Name, len(dates), what)
			slices.Sort(dates)
			d.Detail = rangesText(dates) + "\n" + first
			if code == "no_value" {
				d.Hint = fmt.Sprintf("give it a default, or backfill %s too (--upstream 1)", producer.Name)
			}
			b.diags = append(b.diags, d.At(p.node.Pos()))
		}
	}
	return nil
}
