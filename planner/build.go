package planner

import (
	"context"
	"slices"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/compile"
	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// pass is one step of planning: it reads what the passes before it found and
// adds its own part. A pass whose ground is missing because of earlier errors
// returns at once.
type pass struct {
	name string
	run  func(context.Context, *build) error
}

// passes gives the list of passes in order.
func passes() []pass {
	return []pass{
		{"request", passRequest},
		{"dates", passDates},
		{"records", passRecords},
		{"fields", passFields},
		{"steps", passSteps},
		{"sources", passSources},
		{"dependencies", passDependencies},
		{"strategy", passStrategy},
		{"compile", passCompile},
		{"partitions", passPartitions},
		{"prepare", passPrepare},
		{"estimate", passEstimate},
		{"name", passName},
	}
}

// build is the state that the passes share.
type build struct {
	req     Request
	deps    Deps
	dialect dialect.Dialect
	diags   diag.List
	plan    plan.Plan

	targets []*lineage.Node
	dates   []bizdate.Date // ascending
	window  *bizdate.Window
	impact  bizdate.Impact
	records map[string][]Built // by materialization node, lower case
	defs    map[string]plan.Definition
	model   *fields.Model
	picked  []*picked // in dependency order
	byNode  map[*lineage.Node]*picked
	typed   map[*lineage.Node]compile.Table // made by compilable
}

// picked is a node of the plan in the making.
type picked struct {
	node   *lineage.Node
	level  int
	why    string
	whole  bool
	fields []fields.Field
	writes []fields.Write
	// real and dry are its business dates, in run order.
	real, dry []bizdate.Date
	isReal    map[bizdate.Date]bool // made by realDates
	dryWhy    string
	out       plan.Node
}

// realDates gives the real dates as a set.
func (p *picked) realDates() map[bizdate.Date]bool {
	if p.isReal == nil {
		p.isReal = make(map[bizdate.Date]bool, len(p.real))
		for _, d := range p.real {
			p.isReal[d] = true
		}
	}
	return p.isReal
}

// Build plans a backfill. All problems are reported together where they do
// not hide each other; with an error among them the plan is not valid. The
// error is for failures of ledger, catalog or engine, never for a bad request.
func Build(ctx context.Context, req Request, deps Deps) (plan.Plan, diag.List, error) {
	d, err := dialect.For(deps.Engine.Type)
	if err != nil {
		return plan.Plan{}, diag.List{diag.Errorf("unknown_engine", "%v", err)}, nil
	}
	b := &build{req: req, deps: deps, dialect: d, byNode: map[*lineage.Node]*picked{}, typed: map[*lineage.Node]compile.Table{}}
	b.plan = plan.Plan{
		FormatVersion: plan.FormatVersion,
		CreatedAt:     deps.Now.UTC().Format(time.RFC3339),
		Project:       deps.Model.Project.Name,
		ProjectDigest: deps.Model.Project.Digest,
		Environment:   deps.Environment, Schema: deps.Schema, Engine: deps.Engine,
		Zone: deps.Model.Project.Zone, Dialect: deps.Model.Project.Dialect,
		Request: req.Display, Retries: req.Retries, AllowEmpty: req.AllowEmpty,
		Definitions: map[string]plan.Definition{},
	}
	for _, p := range passes() {
		if err := p.run(ctx, b); err != nil {
			return plan.Plan{}, b.diags, err
		}
		if b.diags.HasErrors() && p.name != "request" {
			break // later passes would only repeat it
		}
	}
	b.plan.Diagnostics = slices.Clone(b.diags)
	return b.plan, b.diags, nil
}

func (b *build) errorf(code, format string, args ...any) *diag.Diagnostic {
	b.diags = append(b.diags, diag.Errorf(code, format, args...))
	return &b.diags[len(b.diags)-1]
}

func (b *build) warnf(code, format string, args ...any) *diag.Diagnostic {
	b.diags = append(b.diags, diag.Warnf(code, format, args...))
	return &b.diags[len(b.diags)-1]
}

// todayIn gives the calendar date of the creation in the project's zone.
func todayIn(b *build) bizdate.Date { return bizdate.FromTime(b.deps.Now.In(b.deps.Model.Zone)) }
