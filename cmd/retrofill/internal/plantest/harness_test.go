// Package plantest tests planning from project files to the plan that people
// and the runner see, without a database file: the engine parses and describes
// SQL, the ledger and the catalog are what a case says.
package plantest

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/retrofill/retrofill/executors/duckdb"
	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/dialect"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// bench is what the cases of one project share.
type bench struct {
	files  map[string]string // project files; "version:path" replaces path in that version
	engine *duckdb.Engine
	parser *duckdb.Parser
	cache  memory
	loaded map[string]*modeling.Project
	broken map[string]diag.List // problems of a version's loading
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := &bench{files: files, cache: memory{}, loaded: map[string]*modeling.Project{}, broken: map[string]diag.List{}}
	var err error
	if b.engine, err = duckdb.Open(t.Context(), duckdb.Options{Connections: 1}); err != nil {
		t.Fatal(err)
	}
	if b.parser, err = duckdb.NewParser(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []io.Closer{b.parser, b.engine} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

// project loads a version of the project, "" = the files without a version.
func (b *bench) project(version string) (*modeling.Project, diag.List) {
	if p, ok := b.loaded[version]; ok {
		return p, b.broken[version]
	}
	fsys := fstest.MapFS{}
	for name, data := range b.files {
		if _, _, other := strings.Cut(name, ":"); !other {
			fsys[name] = &fstest.MapFile{Data: []byte(data)}
		}
	}
	for name, data := range b.files {
		if v, path, other := strings.Cut(name, ":"); other && v == version {
			fsys[path] = &fstest.MapFile{Data: []byte(data)}
			if strings.TrimSpace(data) == "" {
				delete(fsys, path) // the version does not have the file
			}
		}
	}
	p, diags := load.Load(fsys)
	b.loaded[version], b.broken[version] = p, diags
	return p, diags
}

// model analyses a version.
func (b *bench) model(t *testing.T, version string, overrides []param.Declared) (*lineage.Model, diag.List) {
	t.Helper()
	p, diags := b.project(version)
	if p == nil || diags.HasErrors() {
		return nil, diags
	}
	m, err := lineage.Analyze(t.Context(), lineage.Deps{
		Project: p, Environment: "dev", EngineType: "duckdb", Overrides: overrides, Parser: b.parser, Cache: b.cache,
		Source: func(context.Context, string) (lineage.SourceTable, bool, error) {
			return lineage.SourceTable{}, false, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, diags
}

// scene is one case: the state of the world and a request.
type scene struct {
	bench   *bench
	version string
	now     time.Time
	ledger  *records
	catalog tables
	paused  map[string]bool
	gone    map[string]bool // built nodes whose tables were dropped since
	prober  *partitions     // nil = sources cannot be asked
	silent  string          // why not
	args    []string
	explain []string // what the case asks of the plan, instead of seeing it
}

func (b *bench) scene(t *testing.T, text string) *scene {
	t.Helper()
	s := &scene{bench: b, now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), catalog: tables{}, paused: map[string]bool{}, gone: map[string]bool{},
		ledger: &records{defs: map[string]plan.Definition{}, names: map[string]bool{}}}
	missing := map[string]bool{}
	var built [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		w := words(line)
		if len(w) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		switch w[0] {
		case "with":
			s.version = w[1]
		case "now":
			at, err := time.Parse(time.RFC3339, w[1])
			if err != nil {
				t.Fatal(err)
			}
			s.now = at
		case "missing":
			missing[w[1]] = true
		case "has":
			s.catalog.define(t, strings.TrimPrefix(line, "has "))
		case "gone":
			s.gone[w[1]] = true
		case "partitions": // partitions SOURCE FROM..TO…: no others have rows
			if s.prober == nil {
				s.prober = &partitions{t: t, have: map[string][][2]bizdate.Date{}, asked: map[string]bool{}, other: map[string]string{}}
			}
			s.prober.define(w[1], w[2:])
		case "unprobed":
			s.silent = strings.TrimPrefix(line, "unprobed ")
		case "paused":
			s.paused[w[1]] = true
		case "taken":
			s.ledger.names[w[1]] = true
		case "built":
			built = append(built, w[1:])
		case "slots": // slots TABLE DATE FIRST..LAST by NAME: some slots of a day
			from, to, _ := strings.Cut(w[3], "..")
			built = append(built, append([]string{w[1], w[2], "by", w[5], "first", from, "last", to}, w[6:]...))
		case "explain":
			s.explain = append(s.explain, w[1:]...)
		case "plan":
			s.args = w[1:]
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	p, diags := b.project(s.version)
	if p == nil {
		t.Fatalf("load: %v", diags)
	}
	for _, src := range p.Sources {
		if !missing[src.Table] {
			s.catalog[strings.ToLower(src.Table)] = planner.Table{Name: src.Table, Rows: -1}
		}
	}
	for _, w := range built {
		s.built(t, w)
	}
	return s
}

// words cuts a line at blanks; double quotes keep them together.
func words(line string) []string {
	var out []string
	quoted, open := false, false
	for _, r := range line {
		if r == ' ' && !quoted {
			open = false
			continue
		}
		if !open {
			out, open = append(out, ""), true
		}
		if r == '"' {
			quoted = !quoted
			continue
		}
		out[len(out)-1] += string(r)
	}
	return out
}

// built adds records: built NODES FROM..TO by NAME [fields a,b] [of VERSION]
// [rows N] [format N]. NODES are tables (all their nodes) or nodes, "all" = all.
func (s *scene) built(t *testing.T, w []string) {
	t.Helper()
	if len(w) < 4 || w[2] != "by" {
		t.Fatalf("built %v", w)
	}
	from, to, ok := strings.Cut(w[1], "..")
	if !ok {
		to = from
	}
	first, last := day(t, from), day(t, to)
	opt, version := map[string]string{}, s.version
	for i := 4; i+1 < len(w); i += 2 {
		opt[w[i]] = w[i+1]
	}
	if v, ok := opt["of"]; ok {
		version = strings.TrimPrefix(v, "base")
	}
	m, diags := s.bench.model(t, version, nil)
	if m == nil {
		t.Fatalf("version %q: %v", version, diags)
	}
	var fields []string
	if opt["fields"] != "" {
		fields = strings.Split(opt["fields"], ",")
	}
	rows, _ := strconv.ParseInt(cmp.Or(opt["rows"], "10"), 10, 64)
	for _, n := range m.Nodes {
		if !n.IsTable() || n.Analysis == nil {
			continue
		}
		id, def, err := planner.DefinitionOf(n)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := strconv.Atoi(opt["format"]); err == nil { // as an older version recorded it
			id += "-old"
			def.Version, def.RowSet, def.Key = v, "x"+def.RowSet, "x"+def.Key
			for f := range def.Fields {
				def.Fields[f] = "x" + def.Fields[f]
			}
		}
		for _, x := range n.Table.Nodes {
			asked := strings.Split(w[0], ",")
			if w[0] != "all" && !slices.Contains(asked, n.Name) && !slices.Contains(asked, x.Name) {
				continue
			}
			s.ledger.defs[id] = def
			if k := strings.ToLower("dw." + x.Name); s.catalog[k].Name == "" && !s.gone[x.Name] {
				s.catalog[k] = planner.Table{Name: "dw." + x.Name, Rows: -1} // columns unknown
			}
			for d := first; d <= last; d++ {
				if !n.Schedule.Scheduled(d) {
					continue
				}
				for i, slot := range n.Schedule.Slots(d, m.Zone, nil) {
					if lo, err := strconv.Atoi(opt["first"]); err == nil && i < lo {
						continue
					}
					if hi, err := strconv.Atoi(opt["last"]); err == nil && i > hi {
						continue
					}
					s.ledger.build++
					s.ledger.add(planner.Built{Node: x.Name, SlotFrom: slot.ID(), SlotTo: slot.ID(), Date: d, DateTo: d, Fields: fields,
						Definition: id, Build: s.ledger.build, Began: s.ledger.build, Backfill: w[3], Rows: rows})
				}
			}
		}
	}
}

func day(t *testing.T, s string) bizdate.Date {
	t.Helper()
	d, err := bizdate.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request reads arguments as the command line does, for the flags that
// planning knows.
func request(args []string) (planner.Request, []param.Declared, bool, error) {
	var r planner.Request
	var overrides []param.Declared
	fs := flag.NewFlagSet("plan", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	list := func(name string, to *[]string) {
		fs.Func(name, "", func(v string) error { *to = append(*to, strings.Split(v, ",")...); return nil })
	}
	each := func(name string, to *[]string) {
		fs.Func(name, "", func(v string) error { *to = append(*to, v); return nil })
	}
	level := func(name string, to *int) {
		fs.Func(name, "", func(v string) (err error) {
			if *to = planner.AllLevels; v != "all" {
				*to, err = strconv.Atoi(v)
			}
			return err
		})
	}
	fs.Func("fields", "", func(v string) error {
		r.FieldsGiven = true
		for _, f := range strings.Split(v, ",") {
			if f != "" {
				r.Fields = append(r.Fields, f)
			}
		}
		return nil
	})
	each("select", &r.Select)
	each("exclude", &r.Exclude)
	list("children", &r.Children)
	list("names", &r.Names)
	list("ids", &r.IDs)
	list("outputs", &r.Outputs)
	fs.StringVar(&r.Where, "where", "", "")
	level("upstream", &r.Upstream)
	level("downstream", &r.Downstream)
	fs.StringVar(&r.Recommended, "recommended", "", "")
	fs.StringVar(&r.Refresh, "refresh", "", "")
	fs.Func("downstream-fields", "", func(v string) error { r.DownstreamWhole = v == "all"; return nil })
	fs.StringVar(&r.Selection.Start, "start-date", "", "")
	fs.StringVar(&r.Selection.End, "end-date", "", "")
	list("weekdays", &r.Selection.Weekdays)
	list("monthdays", &r.Selection.MonthDays)
	each("dates", &r.Selection.Lists)
	fs.Func("order", "", func(v string) error { r.Selection.Direction = bizdate.Direction(v); return nil })
	fs.BoolVar(&r.Selection.AllowLongRange, "allow-long-range", false, "")
	fs.IntVar(&r.Groups, "groups", 0, "")
	fs.StringVar(&r.WindowFrom, "from-time", "", "")
	fs.StringVar(&r.WindowTo, "to-time", "", "")
	fs.StringVar(&r.HourlyImpact, "hourly-impact", "", "")
	fs.StringVar(&r.Name, "name", "", "")
	fs.StringVar(&r.OnFailure, "on-failure", "", "")
	fs.StringVar(&r.PausedTasks, "paused-tasks", "", "")
	fs.StringVar(&r.DryRunTasks, "dry-run-tasks", "", "")
	fs.BoolVar(&r.Strict, "strict", false, "")
	fs.BoolVar(&r.Allow.MissingSource, "allow-missing-source", false, "")
	fs.BoolVar(&r.Allow.PastRetention, "allow-past-retention", false, "")
	fs.BoolVar(&r.Allow.Lifecycle, "allow-lifecycle", false, "")
	fs.BoolVar(&r.Allow.Snapshot, "allow-snapshot", false, "")
	fs.BoolVar(&r.Stale, "stale", false, "")
	fs.BoolVar(&r.DryRunThisNode, "dry-run-this-node", false, "")
	fs.BoolVar(&r.IncludePaused, "include-paused", false, "")
	fs.IntVar(&r.Retries, "retries", 0, "")
	fs.StringVar(&r.ResourceGroup, "resource-group", "", "")
	fs.BoolVar(&r.WaitSchedule, "wait-schedule", false, "")
	fs.DurationVar(&r.MaxDuration, "max-duration", 0, "")
	fs.Int64Var(&r.MaxRows, "max-rows", 0, "")
	fs.StringVar(&r.NotBetween, "not-between", "", "")
	fs.Func("run-at", "", func(v string) error {
		at, err := time.Parse(time.RFC3339, v)
		r.RunAt = &at
		return err
	})
	fs.Func("param", "", func(v string) error {
		name, value, _ := strings.Cut(v, "=")
		if r.Params == nil {
			r.Params = map[string]string{}
		}
		r.Params[strings.ToLower(name)] = value
		overrides = append(overrides, param.Declared{Name: name, Value: &value, Pos: diag.Pos{File: "--param " + name}})
		return nil
	})
	sql := fs.Bool("sql", false, "")
	for len(args) > 0 {
		if !strings.HasPrefix(args[0], "-") {
			r.Nodes, args = append(r.Nodes, args[0]), args[1:]
			continue
		}
		if err := fs.Parse(args); err != nil {
			return r, nil, false, err
		}
		args = fs.Args()
	}
	r.Display = plan.Request{Command: "plan", Nodes: r.Nodes, Params: r.Params}
	return r, overrides, *sql, nil
}

// build plans the scene's request, or another one.
func (s *scene) build(t *testing.T, r planner.Request, overrides []param.Declared) (plan.Plan, diag.List) {
	t.Helper()
	m, diags := s.bench.model(t, s.version, overrides)
	if m == nil {
		return plan.Plan{}, diags
	}
	p, more, err := planner.Build(t.Context(), r, s.deps(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return p, append(diags, more...)
}

func (s *scene) deps(t *testing.T, m *lineage.Model) planner.Deps {
	t.Helper()
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	deps := planner.Deps{
		NotProbed: s.silent,
		Model:     m, Typer: &lineage.Typer{Model: m, Engine: describer{s.bench.engine}, Dialect: d, Cache: s.bench.cache, Sample: bizdate.Of(2024, 6, 15)},
		Ledger: s.ledger, Catalog: s.catalog, Parser: s.bench.parser, Environment: "dev", Schema: "dw",
		Engine: plan.EngineRef{Name: "local", Type: "duckdb", Path: "warehouse.duckdb"}, Now: s.now,
		Paused: func(node string) bool { return s.paused[node] },
	}
	if s.prober != nil {
		deps.Prober = s.prober
	}
	return deps
}

type describer struct{ engine *duckdb.Engine }

func (d describer) Describe(ctx context.Context, sql string) ([]sqlast.Column, error) {
	cols, err := d.engine.Describe(ctx, sql)
	out := make([]sqlast.Column, len(cols))
	for i, c := range cols {
		out[i] = sqlast.Column{Name: c.Name, Type: c.Type}
	}
	return out, err
}

// records is a ledger in memory: a record of a whole slot replaces older ones.
type records struct {
	list  []planner.Built
	defs  map[string]plan.Definition
	names map[string]bool
	build int64
}

func (r *records) add(b planner.Built) {
	if b.Fields == nil {
		r.list = slices.DeleteFunc(r.list, func(o planner.Built) bool { return o.Node == b.Node && o.SlotFrom == b.SlotFrom })
	}
	r.list = append(r.list, b)
}

func (r *records) Built(_ context.Context, _ string, nodes []string, from, to bizdate.Date) ([]planner.Built, error) {
	var out []planner.Built
	for _, b := range r.list {
		if slices.Contains(nodes, b.Node) && b.DateTo >= from && b.Date <= to {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b planner.Built) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Date, b.Date), cmp.Compare(a.SlotFrom, b.SlotFrom), cmp.Compare(a.Build, b.Build))
	})
	return out, nil
}

func (r *records) Definitions(_ context.Context, ids []string) (map[string]plan.Definition, error) {
	out := map[string]plan.Definition{}
	for _, id := range ids {
		if d, ok := r.defs[id]; ok {
			out[id] = d
		}
	}
	return out, nil
}

func (r *records) Digest(context.Context, string, []string, bizdate.Date, bizdate.Date) (string, error) {
	return "digest", nil
}
func (r *records) NextNumber(context.Context, string, bizdate.Date) (int, error) { return 1, nil }
func (r *records) NameTaken(_ context.Context, name string) (bool, error)        { return r.names[name], nil }

// tables is a catalog in memory, by lower-case name.
type tables map[string]planner.Table

func (c tables) Table(_ context.Context, name string) (planner.Table, bool, error) {
	t, ok := c[strings.ToLower(name)]
	return t, ok, nil
}

// define reads `schema.table(column TYPE, …)`, or `view schema.name`.
func (c tables) define(t *testing.T, text string) {
	t.Helper()
	if name, ok := strings.CutPrefix(text, "view "); ok {
		c[strings.ToLower(name)] = planner.Table{Name: name, View: true, Rows: -1}
		return
	}
	name, cols, ok := strings.Cut(text, "(")
	if !ok {
		t.Fatalf("has %q", text)
	}
	tab := planner.Table{Name: strings.TrimSpace(name), Rows: -1}
	for _, col := range strings.Split(strings.TrimSuffix(strings.TrimSpace(cols), ")"), "; ") {
		n, typ, _ := strings.Cut(strings.TrimSpace(col), " ")
		tab.Columns = append(tab.Columns, planner.Column{Name: n, Type: typ})
	}
	c[strings.ToLower(tab.Name)] = tab
}

type memory map[string][]byte

func (m memory) Get(key string) ([]byte, bool) { v, ok := m[key]; return v, ok }
func (m memory) Put(key string, value []byte)  { m[key] = value }

// document gives a plan as JSON without what only differs between builds of
// the tool: the project's digest, and the ids of definitions with their text.
func document(t *testing.T, p plan.Plan) string {
	t.Helper()
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	doc["project_digest"], doc["definitions"] = "…", len(p.Definitions)
	nodes, _ := doc["nodes"].([]any)
	for _, n := range nodes {
		if m, ok := n.(map[string]any); ok && m["definition"] != nil {
			m["definition"] = "…"
		}
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) + "\n"
}
