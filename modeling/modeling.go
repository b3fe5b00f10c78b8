// Package modeling holds the nouns of a project as plain values: logical
// tables with their fields and materialization nodes, tasks, sources,
// schedules, parameters, engines and environments (semantics §1).
//
// It imports nothing but the packages below it, the zero value of every type
// is valid, and loaders sort its slices so that output is stable.
package modeling

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Kind is the kind of a node.
type Kind string

// The kinds: three of logical tables, two of tasks, and sources (filled by
// someone else, never run).
const (
	Fact      Kind = "fact"
	Dimension Kind = "dimension"
	Summary   Kind = "summary"
	SQLTask   Kind = "sql_task"
	Command   Kind = "command"
	SourceOf  Kind = "source"
)

// Project is one loaded project folder.
type Project struct {
	Name string `json:"name"`
	// Dir is the folder that holds retrofill.yml. It is never written to a
	// plan or the ledger.
	Dir  string `json:"-"`
	Zone string `json:"zone"` // IANA name
	// Dialect of scheduling parameters: "dataphin" (default) or "dataworks".
	Dialect string   `json:"dialect"`
	Engines []Engine `json:"engines,omitempty"`
	// ResourceGroups are the named pools that a backfill may run in.
	ResourceGroups     []ResourceGroup `json:"resource_groups,omitempty"`
	Environments       []Environment   `json:"environments,omitempty"`
	DefaultEnvironment string          `json:"default_environment,omitempty"`
	Params             []Param         `json:"params,omitempty"` // for every node
	Sources            []Source        `json:"sources,omitempty"`
	Tables             []*Table        `json:"tables,omitempty"`
	Tasks              []*Task         `json:"tasks,omitempty"`
	Metrics            *Metrics        `json:"metrics,omitempty"` // nil = none are defined
	// Digest identifies the content of all project files (hex sha256): the
	// same files give the same digest in any folder and order.
	Digest string `json:"digest,omitempty"`
}

// Engine names one SQL engine of the project. Path and DSN may hold
// ${env:NAME} or ${file:PATH}, which only the process that connects resolves.
type Engine struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"` // duckdb, postgres, trino
	Path    string            `json:"path,omitempty"`
	DSN     string            `json:"-"`
	Options map[string]string `json:"options,omitempty"`
	Pos     diag.Pos          `json:"-"`
}

// Environment is where a run writes: an engine and the target schema of the
// physical tables.
type Environment struct {
	Name   string   `json:"name"`
	Engine string   `json:"engine"`
	Schema string   `json:"schema"`
	Pos    diag.Pos `json:"-"`
}

// Param is one entry of a parameter configuration (semantics §2).
type Param struct {
	Name string `json:"name"`
	// Value is a constant, an expression or $other. Unassigned says that the
	// name was declared without a value.
	Value      string `json:"value"`
	Unassigned bool   `json:"unassigned,omitempty"`
	Verbatim   bool   `json:"verbatim,omitempty"` // left as written in code
	Raw        bool   `json:"raw,omitempty"`      // may become SQL syntax
	// FromNode names the producer of a cross-node parameter (semantics §2.6),
	// FromParam its output ("" = Name) and Default the value of last resort.
	FromNode  string  `json:"from_node,omitempty"`
	FromParam string  `json:"from_param,omitempty"`
	Default   *string `json:"default,omitempty"`
	// LookbackDays is how old a recorded value of the producer may be; nil = 15.
	LookbackDays *int     `json:"lookback_days,omitempty"`
	Pos          diag.Pos `json:"-"`
}

// PartitionColumn is one partition column of a table: its name, the
// scheduling-parameter expression that gives its value, and its SQL type
// ("" = derived: DATE for yyyy-mm-dd, else VARCHAR).
type PartitionColumn struct {
	Name string   `json:"name"`
	Expr string   `json:"expr"`
	Type string   `json:"type,omitempty"`
	Pos  diag.Pos `json:"-"`
}

// Column is a column of a physical or source table.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
}

// Source is a table that someone else fills.
type Source struct {
	Table       string            `json:"table"` // as readers write it: schema.table
	Description string            `json:"description,omitempty"`
	Owner       string            `json:"owner,omitempty"`
	Tags        []string          `json:"tags,omitempty"`
	Keys        [][]string        `json:"keys,omitempty"` // declared unique keys
	Partition   []PartitionColumn `json:"partition,omitempty"`
	Schedule    Schedule          `json:"schedule"`
	// RetentionDays is how long the source keeps its partitions; 0 = forever.
	RetentionDays int      `json:"retention_days,omitempty"`
	Columns       []Column `json:"columns,omitempty"` // "" types allowed; empty = ask the engine
	// Snapshot says that the source holds only its latest state.
	Snapshot bool     `json:"snapshot,omitempty"`
	Pos      diag.Pos `json:"-"`
}

// Cycle is how often a node is scheduled.
type Cycle string

// The cycles. The zero value means Daily.
const (
	Daily   Cycle = "daily"
	Weekly  Cycle = "weekly"
	Monthly Cycle = "monthly"
	Hourly  Cycle = "hourly"
	Minute  Cycle = "minute"
)

// Schedule is a node's regular schedule (semantics §3.4, §3.5). Times are
// local clock readings of the project's zone.
type Schedule struct {
	Cycle Cycle `json:"cycle,omitempty"`
	// At is HH:MM[:SS] of daily, weekly and monthly nodes ("" = 00:00).
	At string `json:"at,omitempty"`
	// Every is the step of hourly and minute nodes, in minutes (hourly: 60).
	Every int `json:"every,omitempty"`
	// From and To bound the grid inside the day, HH:MM, both included.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Weekdays (mon…sun) of weekly and MonthDays (1…31, last) of monthly
	// nodes, of the scheduled date (business date + 1).
	Weekdays  []string `json:"weekdays,omitempty"`
	MonthDays []string `json:"month_days,omitempty"`
}

// MaterializationNode is one physical table of a logical table.
type MaterializationNode struct {
	Name   string   `json:"name"`
	Anchor bool     `json:"anchor,omitempty"` // anchors the row set; exactly one a table
	Fields []string `json:"fields"`           // without key and partition columns
	// AllFields says that the project lists no fields: the node holds every
	// field of the SELECT. Fields is empty until load.CompleteFields fills it.
	AllFields bool       `json:"all_fields,omitempty"`
	At        string     `json:"at,omitempty"` // time of day, if not the table's
	Pos       diag.Pos   `json:"-"`
	FieldPos  []diag.Pos `json:"-"` // of Fields, one each; may be shorter
}

// FieldSpec is what YAML says of a field; its logic is in the SELECT.
type FieldSpec struct {
	Name        string   `json:"name"`
	Type        string   `json:"type,omitempty"` // declared SQL type, "" = derived
	Description string   `json:"description,omitempty"`
	Registered  string   `json:"registered,omitempty"` // table.column someone else fills
	Paused      bool     `json:"paused,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Pos         diag.Pos `json:"-"`
	// RegisteredPos is where Registered was written.
	RegisteredPos diag.Pos `json:"-"`
}

// Dependency is a declared dependency of a node on another (or itself).
type Dependency struct {
	Node string `json:"node"`
	// Cycle offsets the upstream slot: From..To in units of Unit, both ≤ 0
	// for previous cycles; 0..0 is the same business date.
	From int      `json:"from"`
	To   int      `json:"to"`
	Unit Cycle    `json:"unit,omitempty"` // daily (default) or hourly
	Pos  diag.Pos `json:"-"`
}

// Check is one audit of a table (`checks:`).
type Check struct {
	Kind   string   `json:"kind"` // not_null, unique, accepted_values, rows_between, sql
	Fields []string `json:"fields,omitempty"`
	Values []string `json:"values,omitempty"`
	Min    *int64   `json:"min,omitempty"`
	Max    *int64   `json:"max,omitempty"`
	SQL    string   `json:"sql,omitempty"`
	Pos    diag.Pos `json:"-"`
}

// Table is a logical table.
type Table struct {
	Name        string                `json:"name"`
	Kind        Kind                  `json:"kind"`
	Description string                `json:"description,omitempty"`
	Owner       string                `json:"owner,omitempty"`
	Tags        []string              `json:"tags,omitempty"`
	Key         []string              `json:"key,omitempty"`
	Partition   []PartitionColumn     `json:"partition,omitempty"`
	Schedule    Schedule              `json:"schedule"`
	Params      []Param               `json:"params,omitempty"`
	Nodes       []MaterializationNode `json:"nodes,omitempty"` // never empty after loading
	Fields      []FieldSpec           `json:"fields,omitempty"`
	Checks      []Check               `json:"checks,omitempty"`
	DependsOn   []Dependency          `json:"depends_on,omitempty"`
	Parent      string                `json:"parent,omitempty"` // primary table of a child dimension
	Config      map[string]any        `json:"config,omitempty"` // free `config:`/`meta:` for selection
	Paused      bool                  `json:"paused,omitempty"`
	DryRun      bool                  `json:"dry_run,omitempty"`
	// LifecycleDays is how long the engine keeps partitions; 0 = forever.
	LifecycleDays int      `json:"lifecycle_days,omitempty"`
	SkipIf        string   `json:"skip_if,omitempty"`
	SkipIfPos     diag.Pos `json:"-"`
	SQL           string   `json:"sql"`
	SQLFile       string   `json:"sql_file"`  // relative to the project, slashes
	YAMLFile      string   `json:"yaml_file"` // relative to the project, slashes
	// SQLByEngine holds per-engine variants (`<table>.trino.sql`), by engine type.
	SQLByEngine map[string]string `json:"sql_by_engine,omitempty"`
	// Compose is what SQL was generated from; nil for a table with a SQL file.
	Compose *Compose   `json:"compose,omitempty"`
	Pos     diag.Pos   `json:"-"`
	KeyPos  []diag.Pos `json:"-"` // of Key, one each; may be shorter
}

// Output is a declared output of a task.
type Output struct {
	Table     string            `json:"table"`
	Partition []PartitionColumn `json:"partition,omitempty"`
	Pos       diag.Pos          `json:"-"`
}

// SetParam is a cross-node parameter that a task sets (semantics §2.6).
type SetParam struct {
	Name        string  `json:"name"`
	Default     *string `json:"default,omitempty"`
	Description string  `json:"description,omitempty"`
	// Query gives the value: one row with one column (SQL tasks).
	Query    string   `json:"query,omitempty"`
	QueryPos diag.Pos `json:"-"`
	Pos      diag.Pos `json:"-"`
}

// Task is a non-modeling node: a SQL script or an external command.
type Task struct {
	Name        string         `json:"name"`
	Kind        Kind           `json:"kind"` // SQLTask or Command
	Description string         `json:"description,omitempty"`
	Owner       string         `json:"owner,omitempty"`
	Tags        []string       `json:"tags,omitempty"`
	SQL         string         `json:"sql,omitempty"`
	SQLFile     string         `json:"sql_file,omitempty"`
	Command     []string       `json:"command,omitempty"` // argv, run without a shell in the project folder
	Env         []string       `json:"env,omitempty"`     // NAME=value, values may hold parameters
	Outputs     []Output       `json:"outputs,omitempty"`
	Reads       []string       `json:"reads,omitempty"` // declared inputs
	Sets        []SetParam     `json:"sets,omitempty"`
	Schedule    Schedule       `json:"schedule"`
	Params      []Param        `json:"params,omitempty"`
	DependsOn   []Dependency   `json:"depends_on,omitempty"`
	Config      map[string]any `json:"config,omitempty"`
	Paused      bool           `json:"paused,omitempty"`
	DryRun      bool           `json:"dry_run,omitempty"`
	SkipIf      string         `json:"skip_if,omitempty"`
	SkipIfPos   diag.Pos       `json:"-"`
	TimeoutSec  int            `json:"timeout_sec,omitempty"`
	YAMLFile    string         `json:"yaml_file,omitempty"`
	Pos         diag.Pos       `json:"-"`
}

// RegisteredColumn gives table and column that a registered field is mapped
// from; ok is false for other fields.
func (f FieldSpec) RegisteredColumn() (table, column string, ok bool) {
	i := strings.LastIndexByte(f.Registered, '.')
	if i <= 0 {
		return "", "", false
	}
	return f.Registered[:i], f.Registered[i+1:], true
}

// Table finds a logical table by name, without letter case.
func (p *Project) Table(name string) *Table {
	for _, t := range p.Tables {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// Task finds a task by name, without letter case.
func (p *Project) Task(name string) *Task {
	for _, t := range p.Tasks {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// Source finds a source by its table name, without letter case.
func (p *Project) Source(name string) *Source {
	for i := range p.Sources {
		if strings.EqualFold(p.Sources[i].Table, name) {
			return &p.Sources[i]
		}
	}
	return nil
}

// Environment finds an environment; "" means the default one.
func (p *Project) Environment(name string) *Environment {
	if name == "" {
		name = p.DefaultEnvironment
	}
	for i := range p.Environments {
		if p.Environments[i].Name == name {
			return &p.Environments[i]
		}
	}
	return nil
}

// Engine finds an engine by name.
func (p *Project) Engine(name string) *Engine {
	for i := range p.Engines {
		if p.Engines[i].Name == name {
			return &p.Engines[i]
		}
	}
	return nil
}

// IsKey tells whether a field is one of the table's key columns.
func (t *Table) IsKey(field string) bool {
	for _, k := range t.Key {
		if strings.EqualFold(k, field) {
			return true
		}
	}
	return false
}
