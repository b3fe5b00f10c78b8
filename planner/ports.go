// Package planner turns a request into a frozen plan: an ordered list of
// passes over the project, the ledger's records and the engine's catalog.
//
// Invariants: Build never writes anything; with the same inputs it gives the
// same plan, byte for byte; a plan without a real run is an error.
package planner

import (
	"context"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

// Built says what built a run of slots of one materialization node. Later
// build numbers win, field by field.
type Built struct {
	Node string // materialization node, or the task's name
	// SlotFrom and SlotTo are slot ids (bizdate.Slot.ID), both included: runs
	// of daily slots with equal content are joined; sub-daily slots are single.
	SlotFrom, SlotTo string
	// Date is the business date of SlotFrom, DateTo that of SlotTo.
	Date, DateTo bizdate.Date
	Fields       []string // nil = every field of the node
	Definition   string   // id in Definitions
	Build        int64    // rising number, drawn when the commit was recorded
	// Began is a number of the same row, drawn before the inputs were read: an
	// input whose Build is greater was rebuilt since (semantics §4.6).
	Began    int64
	Backfill string // name of the backfill
	BuiltAt  time.Time
	Rows     int64 // rows of the slot (of each slot, for a run: the sum)
}

// Ledger is what planning asks of the durable records. All reads.
type Ledger interface {
	// Built gives the records of the nodes whose business dates meet
	// [from, to], ordered by node, slot, build.
	Built(ctx context.Context, environment string, nodes []string, from, to bizdate.Date) ([]Built, error)
	// Definitions gives definitions by id; unknown ids are absent.
	Definitions(ctx context.Context, ids []string) (map[string]plan.Definition, error)
	// Digest identifies the records of the nodes on business dates in
	// [from, to]: a different digest at apply time means a stale plan.
	Digest(ctx context.Context, environment string, nodes []string, from, to bizdate.Date) (string, error)
	// NextNumber gives the next n of the default backfill name
	// <node>_<yyyyMMdd>_<n>, from 1.
	NextNumber(ctx context.Context, node string, day bizdate.Date) (int, error)
	// NameTaken tells whether a backfill of that name exists.
	NameTaken(ctx context.Context, name string) (bool, error)
}

// Acceptance is accepted older logic, with who accepted it when.
type Acceptance struct {
	plan.Acceptance
	By string
	At time.Time
}

// Acceptor is a Ledger that keeps accepted older logic (forward-only).
type Acceptor interface {
	// Acceptances gives what is accepted in an environment, oldest first.
	Acceptances(ctx context.Context, environment string) ([]Acceptance, error)
}

// Table is a table as the catalog knows it.
type Table struct {
	Name    string // schema.table, as readers write it
	Columns []Column
	Keys    [][]string // constraints of the engine, not declarations
	Rows    int64      // estimate, -1 unknown
	View    bool
}

// Column is a column with the engine's type.
type Column struct{ Name, Type string }

// Catalog is what planning asks of the engine, possibly from a cache when the
// engine cannot be opened now.
type Catalog interface {
	// Table gives a table by "schema.name", without letter case; false when
	// the engine does not have it.
	Table(ctx context.Context, name string) (Table, bool, error)
}

// Prober asks the engine for what no catalog knows. It is used once for each
// source with a declared partition that a plan reads.
type Prober interface {
	// Partitions gives the different values of a partition column that lie in
	// [from, to] and have rows, as text: dates as YYYY-MM-DD. table is a name
	// as readers write it.
	Partitions(ctx context.Context, table, column, from, to string) ([]string, error)
}
