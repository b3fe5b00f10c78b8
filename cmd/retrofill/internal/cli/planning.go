package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// Parser is a SQL parser that holds resources.
type Parser interface {
	sqlast.Parser
	Close() error
}

// session is an opened project with everything that planning needs: ledger,
// engine or what is remembered of it, and the analysed model.
type session struct {
	*workspace
	ledger *ledger.Ledger
	// engine is nil when another process holds the database; then the catalog
	// is the one that was last seen.
	engine  executors.Engine
	held    error // why the engine is not open
	catalog *catalog
	cache   *fileCache
	parser  *lazyParser
	model   *lineage.Model
	typer   *lineage.Typer
	scratch *scratchEngine
}

// sessionOptions say how a session is opened.
type sessionOptions struct {
	projectOptions
	// Run opens the engine for writing and makes the database; otherwise a
	// missing or held database is worked around.
	Run bool
	// Connections is the number of units that run side by side.
	Connections int
	// Settings bound the engine's resources.
	Settings map[string]string
	// ResourceGroup gives connections and settings by its name, where the
	// project has it; whether it may be taken is planning's to say.
	ResourceGroup string
	Overrides     []param.Declared
}

// openSession opens project, ledger and engine and analyses the project.
func openSession(ctx context.Context, o sessionOptions, env *Env) (_ *session, err error) {
	w, err := openProject(o.projectOptions, env)
	if err != nil {
		return nil, err
	}
	s := &session{workspace: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.Environment == nil {
		return nil, refuse(diag.List{diag.Errorf("no_environment", "the project %s has no environment to run in", w.Project.Name).
			WithHint("add `engines` and `environments` to retrofill.yml")})
	}
	if s.ledger, err = w.openLedger(ctx); err != nil {
		var own *ledger.Error
		if o.Run || !errors.As(err, &own) || own.Code != ledger.CodeReadOnly {
			return nil, err
		}
		// Looking needs no right to write, such as in a checked-out copy.
		if s.ledger, err = w.ledger(ctx, true); err != nil {
			return nil, err
		}
	}
	if g := w.Project.ResourceGroup(o.ResourceGroup); g != nil && o.Run {
		o.Connections, o.Settings = g.Connections, s.settingsOf(g)
	}
	if err = s.openCatalog(ctx, o); err != nil {
		return nil, err
	}
	s.cache = openCache(filepath.Join(w.Project.Dir, stateDir, "cache"))
	s.parser = &lazyParser{open: env.NewParser}
	engineType := w.Project.Engine(w.Environment.Engine).Type
	s.model, err = lineage.Analyze(ctx, lineage.Deps{
		Project: w.Project, Environment: w.Environment.Name, EngineType: engineType, Overrides: o.Overrides,
		Parser: s.parser, Cache: s.cache, Source: s.catalog.source,
	})
	if err != nil {
		return nil, err
	}
	d, err := dialect.For(engineType)
	if err != nil {
		return nil, refusef("unknown_engine", "%v", err)
	}
	now, err := env.now(w.Zone)
	if err != nil {
		return nil, err
	}
	s.scratch = &scratchEngine{env: env, session: s}
	s.typer = &lineage.Typer{Model: s.model, Engine: s.scratch, Dialect: d, Cache: s.cache, Sample: sampleDate(now)}
	return s, nil
}

// openCatalog opens the engine and reads its catalog, or takes the remembered
// one when another process holds the database, or none before the database
// exists.
func (s *session) openCatalog(ctx context.Context, o sessionOptions) error {
	s.catalog = &catalog{tables: map[string]planner.Table{}}
	if e := s.Project.Engine(s.Environment.Engine); e != nil {
		if d, err := dialect.For(e.Type); err == nil { // an unknown type is refused when it is opened
			s.catalog.schema = d.DefaultSchema
		}
	}
	// Looking needs no right to write, and readers do not shut each other out.
	eng, err := s.openEngine(ctx, EngineOptions{Create: o.Run, ReadOnly: !o.Run, Connections: o.Connections, Settings: o.Settings})
	var d diag.Diagnostic
	switch {
	case err == nil:
		s.engine = eng
	case errors.Is(err, executors.ErrLocked) && !o.Run:
		s.held = err
		tables, at, ok, cerr := s.ledger.Catalog(ctx, s.Environment.Name)
		if cerr != nil {
			return cerr
		}
		if !ok {
			return err // nothing is remembered: say who holds the file
		}
		s.Warnings = append(s.Warnings, diag.Warnf("held", "the database is held by another process: planning with its catalog of %s", at.In(s.Zone).Format("2006-01-02 15:04:05")))
		return s.catalog.decode(tables)
	case errors.As(err, &d) && d.Code == "missing_database" && !o.Run:
		return nil // planned against an empty database
	default:
		return err
	}
	list, err := eng.Catalog(ctx, nil)
	if err != nil {
		return fmt.Errorf("cli: read catalog: %w", err)
	}
	s.catalog.fill(list)
	return s.remember(ctx, list)
}

// settingsOf gives the settings of a resource group that the environment's
// engine knows.
func (s *session) settingsOf(g *modeling.ResourceGroup) map[string]string {
	e := s.Project.Engine(s.Environment.Engine)
	if e == nil {
		return nil // refused when it is opened
	}
	known := modeling.EngineSettings(e.Type)
	out := maps.Clone(g.Settings)
	maps.DeleteFunc(out, func(k, _ string) bool { return !slices.Contains(known, k) })
	return out
}

// remember keeps the catalog for commands that cannot open the database.
func (s *session) remember(ctx context.Context, list []executors.TableInfo) error {
	b, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("cli: remember catalog: %w", err)
	}
	old, _, ok, err := s.ledger.Catalog(ctx, s.Environment.Name)
	if err != nil {
		return err
	}
	if ok && string(old) == string(b) {
		return nil
	}
	err = s.ledger.SaveCatalog(ctx, s.Environment.Name, b)
	var own *ledger.Error
	if errors.As(err, &own) && own.Code == ledger.CodeReadOnly {
		return nil // the next one who may write remembers it
	}
	return err
}

// close ends everything and saves the cache. A cache that cannot be saved is
// told as a warning on the next run, not as a failure of this one.
func (s *session) close() error {
	var errs []error
	if s.cache != nil {
		if err := s.cache.save(); err != nil {
			fmt.Fprintln(s.env.Stderr, "warning:", err)
		}
	}
	if s.parser != nil {
		errs = append(errs, s.parser.close())
	}
	if s.scratch != nil {
		errs = append(errs, s.scratch.close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.ledger != nil {
		errs = append(errs, s.ledger.Close())
	}
	return errors.Join(errs...)
}

// planDeps gives what planner.Build works with.
func (s *session) planDeps() (planner.Deps, error) {
	now, err := s.env.now(s.Zone)
	if err != nil {
		return planner.Deps{}, err
	}
	e := s.Project.Engine(s.Environment.Engine)
	deps := planner.Deps{
		Model: s.model, Typer: s.typer, Ledger: s.ledger, Catalog: s.catalog, Parser: s.parser,
		Environment: s.Environment.Name, Schema: s.Environment.Schema,
		Engine: plan.EngineRef{Name: e.Name, Type: e.Type, Path: e.Path}, Now: now,
	}
	switch {
	case s.engine != nil:
		deps.Prober = &prober{engine: s.engine, dialect: s.typer.Dialect, catalog: s.catalog}
	case s.held != nil:
		deps.NotProbed = "the database is held by another process"
	}
	return deps, nil
}

// lazyParser opens the parser when the first text has to be parsed: with a
// warm cache none has.
type lazyParser struct {
	open func() (Parser, error)
	mu   sync.Mutex
	p    Parser
}

// ParseSelects implements sqlast.Parser.
func (l *lazyParser) ParseSelects(ctx context.Context, sqls []string) ([]sqlast.ParseResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.p == nil {
		p, err := l.open()
		if err != nil {
			return nil, err
		}
		l.p = p
	}
	return l.p.ParseSelects(ctx, sqls)
}

func (l *lazyParser) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.p == nil {
		return nil
	}
	return l.p.Close()
}

// scratchEngine describes queries on the open engine, or on an empty one in
// memory when the database is held or does not exist yet.
type scratchEngine struct {
	env     *Env
	session *session
	memory  executors.Engine
}

// Describe implements lineage.Describer.
func (e *scratchEngine) Describe(ctx context.Context, sql string) ([]sqlast.Column, error) {
	eng := e.session.engine
	if eng == nil {
		if e.memory == nil {
			m, err := e.env.OpenEngine(ctx, modeling.Engine{Name: "scratch", Type: "duckdb"}, EngineOptions{Getenv: e.env.Getenv})
			if err != nil {
				return nil, err
			}
			e.memory = m
		}
		eng = e.memory
	}
	d, ok := eng.(executors.Describer)
	if !ok {
		return nil, errors.New("cli: describe: the engine cannot describe queries")
	}
	got, err := d.Describe(ctx, sql)
	if err != nil {
		return nil, err
	}
	out := make([]sqlast.Column, len(got))
	for i, c := range got {
		out[i] = sqlast.Column{Name: c.Name, Type: c.Type}
	}
	return out, nil
}

func (e *scratchEngine) close() error {
	if e.memory == nil {
		return nil
	}
	return e.memory.Close()
}

// catalog is the engine's catalog, read at once.
type catalog struct {
	tables map[string]planner.Table
	schema string // where a name without a schema is looked for
}

func (c *catalog) fill(list []executors.TableInfo) {
	for _, t := range list {
		p := planner.Table{Name: t.Schema + "." + t.Name, Keys: t.Keys, Rows: t.Rows, View: t.View}
		for _, col := range t.Columns {
			p.Columns = append(p.Columns, planner.Column{Name: col.Name, Type: col.Type})
		}
		c.tables[strings.ToLower(p.Name)] = p
	}
}

func (c *catalog) decode(b []byte) error {
	var list []executors.TableInfo
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("cli: read remembered catalog: %w", err)
	}
	c.fill(list)
	return nil
}

// Table implements planner.Catalog.
func (c *catalog) Table(_ context.Context, name string) (planner.Table, bool, error) {
	t, ok := c.tables[strings.ToLower(name)]
	return t, ok, nil
}

// find looks a source up; a name without a schema is looked for in the
// engine's default schema.
func (c *catalog) find(name string) (planner.Table, bool) {
	t, ok := c.tables[strings.ToLower(name)]
	if !ok && !strings.Contains(name, ".") {
		t, ok = c.tables[c.schema+"."+strings.ToLower(name)]
	}
	return t, ok
}

// source gives a source's columns to the analysis.
func (c *catalog) source(_ context.Context, name string) (lineage.SourceTable, bool, error) {
	t, ok := c.find(name)
	if !ok {
		return lineage.SourceTable{}, false, nil
	}
	out := lineage.SourceTable{Keys: slices.Clone(t.Keys)}
	for _, col := range t.Columns {
		out.Columns = append(out.Columns, sqlast.Column{Name: col.Name, Type: col.Type})
	}
	return out, true, nil
}
