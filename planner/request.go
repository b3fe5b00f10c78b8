package planner

import (
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// AllLevels as a number of levels means every level.
const AllLevels = -1

// Request is what a user asks for. The zero value of each option is its
// default.
type Request struct {
	// Nodes are the current nodes: one, unless several whole nodes are taken.
	Nodes []string
	// Select and Exclude are selections in dbt's language (semantics §5.2);
	// Select adds whole nodes, Exclude takes nodes out of the plan.
	Select, Exclude []string
	// Fields selects specified-fields mode (semantics §4.1); nil = full table.
	Fields []string
	// FieldsGiven says that --fields was written, so that an empty list is an
	// error rather than the full table.
	FieldsGiven bool
	// Recommended is all, none or a list (semantics §4.4).
	Recommended string
	// Upstream and Downstream are numbers of levels, AllLevels = all.
	Upstream, Downstream int
	// DownstreamWhole takes downstream logical tables as a whole.
	DownstreamWhole bool
	// Refresh is auto (""), rewrite or column (semantics §4.8).
	Refresh string

	Selection bizdate.Selection
	RunAt     *time.Time
	Groups    int // 0 = 1
	// WindowFrom, WindowTo bound the slots of hourly and minute nodes.
	WindowFrom, WindowTo, HourlyImpact string

	Params map[string]string // --param overrides
	Name   string            // "" = the default name
	// OnFailure is continue (""), stop or fail-fast (semantics §6.6).
	OnFailure      string
	Retries        int
	AllowEmpty     bool
	Strict         bool
	DryRunThisNode bool
	IncludePaused  bool
	// PausedTasks is block (""), dry-run or run; DryRunTasks dry-run ("") or run.
	PausedTasks, DryRunTasks string
	// Display is what the plan keeps of the request for people.
	Display plan.Request
}

// Deps is what planning works with.
type Deps struct {
	Model   *lineage.Model
	Typer   *lineage.Typer
	Ledger  Ledger
	Catalog Catalog
	// Parser shortens SELECTs to the fields that a step writes; nil = they
	// stay whole.
	Parser      sqlast.Parser
	Environment string
	Schema      string
	Engine      plan.EngineRef
	Now         time.Time
	// Judge analyses definitions of an older format again; nil = such records
	// count as changed.
	Judge func(definition plan.Definition) (plan.Definition, bool)
}
