// Package plan is the frozen plan: the only thing that passes from planning
// to running. Everything a person sees of a backfill is a view of a plan and
// of the ledger's records.
//
// Invariants: a Plan is complete (the runner looks at neither request nor
// project) and never changed after Build; the same inputs give the same bytes;
// each node's steps cover each of the plan's dates exactly once; Decode
// refuses a format version that it does not know.
package plan

import (
	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

// FormatVersion is the version of the JSON document that this code writes.
const FormatVersion = 1

// Plan is one backfill, planned and frozen.
type Plan struct {
	FormatVersion int `json:"format_version"`
	// Digest seals a document for apply: Digest() of the plan without it. ""
	// in a plan that is not sealed.
	Digest        string `json:"digest,omitempty"`
	Backfill      string `json:"backfill"`   // name of the backfill
	CreatedAt     string `json:"created_at"` // RFC 3339, UTC
	Project       string `json:"project"`
	ProjectDigest string `json:"project_digest"`
	// LedgerDigest identifies the ledger rows that planning looked at: a
	// different digest at apply time means a stale plan.
	LedgerDigest string           `json:"ledger_digest"`
	Environment  string           `json:"environment"`
	Schema       string           `json:"schema"` // target schema of the physical tables
	Engine       EngineRef        `json:"engine"`
	Zone         string           `json:"zone"`
	Dialect      string           `json:"dialect"` // of scheduling parameters
	Request      Request          `json:"request"` // for display only
	Order        string           `json:"order"`   // asc or desc
	Dates        []bizdate.Date   `json:"dates"`   // business dates, in run order
	Groups       [][]bizdate.Date `json:"groups"`
	OnFailure    string           `json:"on_failure"` // continue, stop, fail-fast
	Retries      int              `json:"retries"`    // for transient errors only
	AllowEmpty   bool             `json:"allow_empty,omitempty"`
	// RunAt is the instant before which nothing runs, RFC 3339; "" = at once.
	RunAt string `json:"run_at,omitempty"`
	// WaitSchedule lets no instance begin before its slot's own time.
	WaitSchedule bool    `json:"wait_schedule,omitempty"`
	Budget       *Budget `json:"budget,omitempty"`
	// ResourceGroup is the pool of connections that it runs in; nil = one
	// connection for each group of dates.
	ResourceGroup *ResourceGroup `json:"resource_group,omitempty"`
	// Window bounds the slots of hourly and minute nodes, nil = whole days.
	Window *Window `json:"window,omitempty"`
	// Prepare is idempotent, additive DDL that runs before the first step.
	Prepare []string `json:"prepare,omitempty"`
	// Publish is DDL of the outside readers' views, run after Prepare.
	Publish     []string              `json:"publish,omitempty"`
	Nodes       []Node                `json:"nodes"`                 // in dependency order
	Definitions map[string]Definition `json:"definitions,omitempty"` // by id
	SlotMaps    []SlotMap             `json:"slot_maps,omitempty"`
	Recommended []Recommended         `json:"recommended"`
	LeftOut     []LeftOut             `json:"left_out,omitempty"`
	// Accepts is older logic that running this plan accepts.
	Accepts     []Acceptance `json:"accepts,omitempty"`
	Instances   int          `json:"instances"` // all, dry runs included
	Estimate    Estimate     `json:"estimate"`
	Diagnostics diag.List    `json:"diagnostics"`
}

// EngineRef names the engine without secrets.
type EngineRef struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path,omitempty"` // relative to the project, if a file
}

// Request is what the user asked for, as text for display.
type Request struct {
	Command string            `json:"command"`
	Nodes   []string          `json:"nodes"`
	Options map[string]string `json:"options,omitempty"`
	// Params are --param overrides; they are part of the frozen parameters.
	Params map[string]string `json:"params,omitempty"`
}

// Window is a closed range of local clock readings, HH:MM (semantics §3.3).
type Window struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Impact is "all" or "in-window": whether daily, weekly and monthly
	// nodes run only when their time lies in the window.
	Impact string `json:"impact"`
}

// Estimate counts what the plan will do.
type Estimate struct {
	Instances  int   `json:"instances"`
	Real       int   `json:"real"`
	DryRun     int   `json:"dry_run"`
	Statements int   `json:"statements"`
	Rows       int64 `json:"rows"` // -1: the ledger does not know
}

// Strategy says how a step computes.
type Strategy string

// The strategies. PerSlot strategies expand to one unit for each slot.
const (
	Rewrite Strategy = "rewrite" // whole partitions of the written nodes
	Column  Strategy = "column"  // only the refreshed fields, in place
	Script  Strategy = "script"  // a SQL task
	Command Strategy = "command" // an external command
	DryRun  Strategy = "dry_run" // succeeds without executing
)

// Node is one scheduled node of the plan: a logical table or a task.
type Node struct {
	Name     string            `json:"name"`
	Kind     modeling.Kind     `json:"kind"`
	Project  string            `json:"project"`
	Owner    string            `json:"owner,omitempty"`
	Tags     []string          `json:"tags,omitempty"`
	Level    int               `json:"level"` // 0 current, −n upstream, +n downstream
	Schedule modeling.Schedule `json:"schedule"`
	// Whole says that all fields are refreshed.
	Whole bool `json:"whole"`
	// Paused says that the node is paused: its instances stay pending, and
	// everything below them, until they are unpaused (semantics §6.5).
	Paused bool `json:"paused,omitempty"`
	// SkipIf is an expression over parameters and slot (package skipif): where
	// it is true an instance succeeds without running.
	SkipIf   string   `json:"skip_if,omitempty"`
	Strategy Strategy `json:"strategy"` // of its real steps
	Because  string   `json:"because"`  // why this strategy
	// FieldCount is the number of the table's fields without the key.
	FieldCount int     `json:"field_count"`
	Fields     []Field `json:"fields"`
	Writes     []Write `json:"writes,omitempty"`
	// Definition is the id of the definition that this plan builds with.
	Definition string               `json:"definition,omitempty"`
	Key        []string             `json:"key,omitempty"`
	Partition  []Partition          `json:"partition,omitempty"`
	Params     map[string]Parameter `json:"params,omitempty"`
	Needs      []Edge               `json:"needs,omitempty"`
	Steps      []Step               `json:"steps"`
	Why        string               `json:"why"` // why the node is in the plan
}

// Field is one field of a node in this plan, with the reasons for it.
type Field struct {
	Name    string   `json:"name"`
	Written bool     `json:"written"` // false: co-located, kept and proven unchanged
	Nodes   []string `json:"nodes"`   // materialization nodes that hold it
	// Reasons are of: selected, co_located, system, recommended, row_set, reader.
	Reasons []string `json:"reasons"`
	Because string   `json:"because,omitempty"` // one sentence for people
}

// Write is one materialization node that a node's steps write.
type Write struct {
	Node   string   `json:"node"`  // materialization node
	Table  string   `json:"table"` // physical table, quoted
	Action Strategy `json:"action"`
	Fields []string `json:"fields"` // refreshed fields, without key and partition
	Whole  bool     `json:"whole"`  // all fields of the node
	// Because says why it is refreshed this way, where the node's nodes differ.
	Because string `json:"because,omitempty"`
	// RowsKept says that fields are refreshed and not the row set: the ledger
	// goes on to name the older build as the one of the rows.
	RowsKept bool `json:"rows_kept,omitempty"`
}

// Partition is a partition column; Param names the entry of Node.Params
// that gives its value at a slot.
type Partition struct {
	Column string `json:"column"`
	Param  string `json:"param"`
	Type   string `json:"type"` // SQL type
}

// Parameter is one frozen parameter of a node's statements, its references
// resolved: it needs no project to be rendered.
type Parameter = param.Frozen

// Edge says that a node needs another node of the plan.
type Edge struct {
	Node string `json:"node"`
	Kind string `json:"kind"` // lineage, declared, self, cross_cycle, parameter
	// Map is the index into Plan.SlotMaps of the business dates that are
	// read, nil = the same business date.
	Map *int `json:"map,omitempty"`
	// Because names the place that makes the dependency (file:line or words).
	Because string `json:"because,omitempty"`
}

// SlotMap maps each business date of a reader to the business dates of the
// upstream node that it reads. Dates not listed read nothing.
type SlotMap struct {
	Runs []MapRun `json:"runs"`
}

// MapRun says: each reader date D in [From, To] reads D+Lo … D+Hi (days).
type MapRun struct {
	From bizdate.Date `json:"from"`
	To   bizdate.Date `json:"to"`
	Lo   int          `json:"lo"`
	Hi   int          `json:"hi"`
}

// Step is work of one node over some of the plan's dates: what to do, why,
// and what must be true afterwards.
type Step struct {
	ID        string      `json:"id"`
	Strategy  Strategy    `json:"strategy"`
	Because   string      `json:"because"`
	Dates     []DateRange `json:"dates"`
	Instances int         `json:"instances"`
	// Writes says what this step writes, where it is not Node.Writes (a plan of
	// what is stale writes other fields on other dates).
	Writes []Write `json:"writes,omitempty"`
	// Statements run in order, in one transaction where the engine has them.
	Statements []Statement `json:"statements,omitempty"`
	// Verify rules are checked on the collected facts before the commit.
	Verify []Rule `json:"verify,omitempty"`
	// Command is the argv of an external command, with placeholders.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
	// Sets are the cross-node parameters that the step sets.
	Sets []Set `json:"sets,omitempty"`
	// TimeoutSec ends one instance, 0 = none.
	TimeoutSec int `json:"timeout_sec,omitempty"`
}

// DateRange is a run of consecutive business dates, both included.
type DateRange struct {
	From bizdate.Date `json:"from"`
	To   bizdate.Date `json:"to"`
}

// Statement is one SQL statement with ${name} placeholders, all of them
// defined in Node.Params or time expressions of the business date.
type Statement struct {
	SQL    string `json:"sql"`
	Role   string `json:"role"` // executors.Role
	Target string `json:"target,omitempty"`
	Name   string `json:"name,omitempty"` // of facts
	// Plain statements hold no placeholders and are not scanned for any.
	Plain bool `json:"plain,omitempty"`
}

// Rule is one check on the facts of a unit.
type Rule struct {
	// Fact is the number that is looked at.
	Fact string `json:"fact"`
	// Kind: "zero" (must be 0), "equals" (must equal the fact Other),
	// "not_emptied" (0 rows only if the fact Other was 0 too or AllowEmpty).
	Kind  string `json:"kind"`
	Other string `json:"other,omitempty"`
	// Code names the failure: key_duplicate, key_null, keys_differ, emptied…
	Code string `json:"code"`
	// Message says what is wrong, in words for people.
	Message string `json:"message"`
}

// Definition is what the ledger keeps of a logical table's logic: its text
// (so that a newer parser can judge it again) and its fingerprints.
type Definition struct {
	Table string `json:"table"`
	// Version is sqlast.FormatVersion of the fingerprints.
	Version int `json:"version"`
	// Text is the canonical JSON of sqlast.Definition and the snapshot of
	// the tables it reads.
	Text string `json:"text"`
	// RowSet, Key and Fields hold fingerprints (hex).
	RowSet string            `json:"row_set"`
	Key    string            `json:"key"`
	Fields map[string]string `json:"fields"`
	// Nodes tells which fields each materialization node held, all lower case:
	// a field that moved was not built where it is now.
	Nodes map[string][]string `json:"nodes,omitempty"`
}

// Acceptance says that older logic is accepted for business dates before one
// (forward-only). It ends when the logic is no longer that of Definition.
type Acceptance struct {
	Table      string       `json:"table"`
	Fields     []string     `json:"fields,omitempty"` // absent = every field and the row set
	Before     bizdate.Date `json:"before"`
	Definition string       `json:"definition"` // id of what is current
}

// Recommended is one offered field with the reason.
type Recommended struct {
	Table string `json:"table"`
	Field string `json:"field"`
	// Reason: logic_changed, primary_pk_changed, child_pk_of_changed_primary.
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Taken  bool   `json:"taken"`
	// Dates are the selected ones that the reason holds for.
	Dates []DateRange `json:"dates,omitempty"`
}

// LeftOut is a node that was in reach but is not part of the plan.
type LeftOut struct {
	Node   string `json:"node"`
	Reason string `json:"reason"` // excluded, paused, below_paused, not_listed, reads_nothing_written, limit
	Detail string `json:"detail,omitempty"`
}

// Instance is node × slot: a value computed from a plan, never stored in it.
type Instance struct {
	Node int // index into Plan.Nodes
	Step int // index into Node.Steps
	Slot bizdate.Slot
}
