package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/duckdb"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/load"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// session plans and runs backfills in this process, as the command does.
type session struct {
	dir    string
	clock  func() time.Time
	engine *recorder
	parser *duckdb.Parser
	ledger *ledger.Ledger
	cache  memory
	tables map[string]planner.Table
}

// openSession opens a project folder with its database file (made if need be)
// and a ledger.
func openSession(ctx context.Context, dir, file string, connections int, clock func() time.Time) (_ *session, err error) {
	s := &session{dir: dir, clock: clock, cache: memory{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	eng, err := duckdb.Open(ctx, duckdb.Options{Path: filepath.Join(dir, file), Create: true, Connections: connections})
	if err != nil {
		return nil, err
	}
	s.engine = &recorder{Engine: eng}
	if s.parser, err = duckdb.NewParser(); err != nil {
		return nil, err
	}
	s.ledger, err = ledger.Open(ctx, filepath.Join(dir, "ledger.db"), ledger.Options{Clock: clock})
	return s, err
}

func (s *session) close() error {
	var errs []error
	if s.ledger != nil {
		errs = append(errs, s.ledger.Close())
	}
	if s.parser != nil {
		errs = append(errs, s.parser.Close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	return errors.Join(errs...)
}

// plan loads and analyses the project and plans a request, all of it anew but
// for the session's cache of analyses.
func (s *session) plan(ctx context.Context, req planner.Request) (plan.Plan, error) {
	p, diags := load.Dir(s.dir)
	if diags.HasErrors() {
		return plan.Plan{}, fmt.Errorf("load project: %w", diags)
	}
	list, err := s.engine.Catalog(ctx, nil)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("read catalog: %w", err)
	}
	s.tables = make(map[string]planner.Table, len(list))
	for _, t := range list {
		pt := planner.Table{Name: t.Schema + "." + t.Name, Keys: t.Keys, Rows: t.Rows, View: t.View}
		for _, c := range t.Columns {
			pt.Columns = append(pt.Columns, planner.Column{Name: c.Name, Type: c.Type})
		}
		s.tables[strings.ToLower(pt.Name)] = pt
	}
	env := p.Environment("")
	e := p.Engine(env.Engine)
	model, err := lineage.Analyze(ctx, lineage.Deps{
		Project: p, Environment: env.Name, EngineType: e.Type, Parser: s.parser, Cache: s.cache, Source: s.source,
	})
	if err != nil {
		return plan.Plan{}, fmt.Errorf("analyse: %w", err)
	}
	d, err := dialect.For(e.Type)
	if err != nil {
		return plan.Plan{}, err
	}
	now := s.clock()
	out, diags, err := planner.Build(ctx, req, planner.Deps{
		Model:  model,
		Typer:  &lineage.Typer{Model: model, Engine: s, Dialect: d, Cache: s.cache, Sample: bizdate.Of(now.Year()-1, time.June, 15)},
		Ledger: s.ledger, Catalog: s, Parser: s.parser, Environment: env.Name, Schema: env.Schema,
		Engine: plan.EngineRef{Name: e.Name, Type: e.Type, Path: e.Path}, Now: now,
	})
	if err != nil {
		return plan.Plan{}, fmt.Errorf("plan: %w", err)
	}
	if diags.HasErrors() {
		return plan.Plan{}, fmt.Errorf("plan: %w", diags)
	}
	return out, nil
}

// claim stores a plan in the ledger and takes it for running.
func (s *session) claim(ctx context.Context, p plan.Plan) (*ledger.Claim, error) {
	me := ledger.Owner{Host: "bench", PID: 1}
	if _, err := s.ledger.Create(ctx, p, me); err != nil {
		return nil, err
	}
	return s.ledger.Claim(ctx, p.Backfill, me)
}

// run carries a claimed plan out; anything but success is an error.
func (s *session) run(ctx context.Context, p plan.Plan, claim *ledger.Claim) (run.Summary, error) {
	sum, err := run.Run(ctx, run.Deps{Engine: s.engine, Ledger: claim, Clock: s.clock, Dir: s.dir}, p, run.Options{})
	if err != nil {
		return sum, err
	}
	if sum.State != ledger.Succeeded {
		return sum, fmt.Errorf("backfill %s is %s: %s %+v", p.Backfill, sum.State, sum.Note, sum.Failures)
	}
	return sum, nil
}

// Table implements planner.Catalog.
func (s *session) Table(_ context.Context, name string) (planner.Table, bool, error) {
	t, ok := s.tables[strings.ToLower(name)]
	return t, ok, nil
}

func (s *session) source(_ context.Context, name string) (lineage.SourceTable, bool, error) {
	t, ok := s.tables[strings.ToLower(name)]
	if !ok {
		return lineage.SourceTable{}, false, nil
	}
	out := lineage.SourceTable{Keys: slices.Clone(t.Keys)}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, sqlast.Column{Name: c.Name, Type: c.Type})
	}
	return out, true, nil
}

// Describe implements lineage.Describer.
func (s *session) Describe(ctx context.Context, sql string) ([]sqlast.Column, error) {
	got, err := s.engine.Describe(ctx, sql)
	if err != nil {
		return nil, err
	}
	out := make([]sqlast.Column, len(got))
	for i, c := range got {
		out[i] = sqlast.Column{Name: c.Name, Type: c.Type}
	}
	return out, nil
}

// memory is a cache of analyses in this process.
type memory map[string][]byte

// Get implements lineage.Cache.
func (m memory) Get(key string) ([]byte, bool) { v, ok := m[key]; return v, ok }

// Put implements lineage.Cache.
func (m memory) Put(key string, value []byte) { m[key] = value }

// recorder keeps what the engine is given, for the floor to run the same.
type recorder struct {
	*duckdb.Engine
	mu       sync.Mutex
	units    []executors.Unit
	prepared []string
}

// Execute implements executors.Engine.
func (r *recorder) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	r.mu.Lock()
	r.units = append(r.units, executors.Unit{Statements: u.Statements})
	r.mu.Unlock()
	return r.Engine.Execute(ctx, u)
}

// Prepare implements executors.Preparer.
func (r *recorder) Prepare(ctx context.Context, ddl []string) error {
	r.mu.Lock()
	r.prepared = append(r.prepared, ddl...)
	r.mu.Unlock()
	return r.Engine.Prepare(ctx, ddl)
}

// engineVersion gives the embedded engine's name and version.
func engineVersion(ctx context.Context) (v string, err error) {
	eng, err := duckdb.Open(ctx, duckdb.Options{})
	if err != nil {
		return "", fmt.Errorf("bench: open DuckDB: %w", err)
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	v, err = eng.Version(ctx)
	return v, err
}
