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
	// Where keeps of Select only nodes for which this expression is true
	// (selector.Env has its names).
	Where string
	// Fields selects specified-fields mode (semantics §4.1); nil = full table.
	Fields []string
	// FieldsGiven says that --fields was written, so that an empty list is an
	// error rather than the full table.
	FieldsGiven bool
	// Recommended is all, none or a list (semantics §4.4). RecommendedNames
	// are further ones, `field` or `table.field`, that are not cut at commas.
	Recommended      string
	RecommendedNames []string
	// Upstream and Downstream are numbers of levels, AllLevels = all.
	Upstream, Downstream int
	// Children are level-1 children that are taken with everything below them.
	Children []string
	// Names, IDs and Outputs keep those descendants of the current nodes, and
	// no others, of the levels and children that are asked for or else of all
	// levels (semantics §5.5); nil = not given, while an empty list keeps none.
	Names, IDs, Outputs []string
	// DownstreamWhole takes downstream logical tables as a whole.
	DownstreamWhole bool
	// Refresh is auto (""), rewrite or column (semantics §4.8).
	Refresh string

	// Stale refreshes what the staleness matrix shows (semantics §4.6) of the
	// nodes, all tables where none is named, on the selected dates, all
	// recorded ones where none is.
	Stale bool
	// EffectiveFrom accepts older logic of the selected fields before this
	// date (forward-only); nil = none.
	EffectiveFrom *bizdate.Date
	// DropRemoved drops stored columns of fields that the written tables no
	// longer have; AllowDestructive lets types change that may lose values.
	DropRemoved, AllowDestructive bool

	Selection bizdate.Selection
	RunAt     *time.Time
	Groups    int // 0 = 1
	// WindowFrom, WindowTo bound the slots of hourly and minute nodes.
	WindowFrom, WindowTo, HourlyImpact string

	Params map[string]string // --param overrides
	Name   string            // "" = the default name
	// OnFailure is continue (""), stop or fail-fast (semantics §6.6).
	OnFailure  string
	Retries    int
	AllowEmpty bool
	Strict     bool
	// Allow lets the plan do what the preflight warns of or refuses.
	Allow          Allow
	DryRunThisNode bool
	IncludePaused  bool
	// WaitSchedule lets no instance begin before its slot's own time.
	WaitSchedule bool
	// MaxDuration and MaxRows bound a run, NotBetween (HH:MM-HH:MM) is a part
	// of the day in which nothing new begins; zero values are no bounds.
	MaxDuration time.Duration
	MaxRows     int64
	NotBetween  string
	// PausedTasks is block (""), dry-run or run; DryRunTasks dry-run ("") or run.
	PausedTasks, DryRunTasks string
	// ResourceGroup names the pool of connections to run in, "" = none
	// (semantics §6.5).
	ResourceGroup string
	// Display is what the plan keeps of the request for people.
	Display plan.Request
}

// Allow overrides findings of the preflight, each by itself: what would be an
// error is a warning, what would be a warning is left out.
type Allow struct {
	MissingSource bool // partitions of a source without rows
	PastRetention bool // partitions older than the source keeps them
	Lifecycle     bool // dates that the target's engine drops
	Snapshot      bool // old dates of a source's latest state
}

// Deps is what planning works with.
type Deps struct {
	Model   *lineage.Model
	Typer   *lineage.Typer
	Ledger  Ledger
	Catalog Catalog
	// Parser shortens SELECTs to the fields that a step writes, and judges
	// definitions of an older format again; nil = SELECTs stay whole and such
	// records count as changed.
	Parser      sqlast.Parser
	Environment string
	Schema      string
	Engine      plan.EngineRef
	Now         time.Time
	// Prober looks at the sources' partitions; nil = nothing is looked at.
	// NotProbed says why not, for a warning; "" = none is given.
	Prober    Prober
	NotProbed string
	// Paused tells of nodes that are paused in the ledger, besides those of the
	// project; nil = none.
	Paused func(node string) bool
}
