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
	"github.com/retrofill/retrofill/planner/selector"
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
		{"left out", passLeaveOut},
		{"steps", passSteps},
		{"sources", passSources},
		{"dependencies", passDependencies},
		{"preflight", passPreflight},
		{"strategy", passStrategy},
		{"compile", passCompile},
		{"running", passRunning},
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

	targets   []*lineage.Node
	isTargets map[*lineage.Node]bool
	graph     *selector.Graph // made by selection
	excluded  *selector.Set   // by position; nil = none
	below     *selector.Set   // what --children and --downstream allow; nil = levels alone
	listed    *selector.Set   // the descendants that lists keep; nil = all

	dates   []bizdate.Date // ascending
	window  *bizdate.Window
	impact  bizdate.Impact
	records map[string][]Built // by materialization node, lower case
	// from and to bound the business dates that records hold.
	from, to  bizdate.Date
	segs      map[string][]segment // made by segments
	notColumn map[string]string    // made by whyNotColumn
	defs      map[string]plan.Definition
	model     *fields.Model
	picked    []*picked // in dependency order
	byNode    map[*lineage.Node]*picked
	typed     map[*lineage.Node]compile.Table // made by compilable
	// accepted is older logic that counts as current, this request's included.
	accepted []Acceptance
	// idle says that nothing is to be done: the passes that follow have nothing
	// to work on.
	idle bool
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
	// parts are the dates with what is written on them, where that is not the
	// same on all (a plan of what is stale).
	parts []part
	// reasons says why fields are stale, by field name.
	reasons map[string]string
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
	list := passes()
	if req.Stale {
		list = stalePasses()
	}
	for _, p := range list {
		if err := p.run(ctx, b); err != nil {
			return plan.Plan{}, b.diags, err
		}
		if b.diags.HasErrors() && p.name != "request" {
			break // later passes would only repeat it
		}
		if b.idle {
			break
		}
	}
	b.diags = distinct(b.diags)
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
