// Package executors declares the seam between the runner and the SQL engines.
//
// Invariants: an Engine commits a Unit completely or not at all, and the
// commit marker is durable exactly when the Unit's writes are; an Engine
// classifies its own errors and the caller decides what to do; nothing in a
// Unit is looked up in a project.
package executors

import (
	"context"
	"errors"
	"fmt"
)

// Class tells what an engine's error means for the caller.
type Class int

// The classes. Ambiguous means that the engine may or may not have committed:
// the caller must look the marker up before it does anything.
const (
	Permanent Class = iota
	Transient
	Ambiguous
	// Locked: another process holds the database (exit code 4).
	Locked
)

// String gives the class's name.
func (c Class) String() string {
	switch c {
	case Permanent:
		return "permanent"
	case Transient:
		return "transient"
	case Ambiguous:
		return "ambiguous"
	case Locked:
		return "locked"
	}
	return fmt.Sprintf("class(%d)", int(c))
}

// Marker identifies one attempt of one step of one backfill. It is written
// into the target together with the data (design "Writing safely").
type Marker struct {
	Backfill string // name of the backfill, unique in the ledger
	Instance string // "<node>@<slot id>" or a step's id: unique inside the backfill
	Attempt  int    // from 1
	Token    int64  // the lease's fencing token, rising
}

// Role says what a statement is for.
type Role string

// The roles. Facts statements return exactly one row of named BIGINT-like
// columns; NULL counts as 0. The others return nothing.
const (
	RoleDDL    Role = "ddl"   // additive schema change, idempotent (IF NOT EXISTS)
	RoleStage  Role = "stage" // temporary table of this unit
	RoleDelete Role = "delete"
	RoleInsert Role = "insert"
	RoleUpdate Role = "update"
	RoleScript Role = "script" // a user's SQL task
	RoleFacts  Role = "facts"  // one row of numbers, collected into Result.Facts
)

// Statement is one rendered SQL statement: final text, no placeholders.
type Statement struct {
	SQL    string
	Role   Role
	Target string // physical table it writes or inspects, for messages and facts
	Name   string // facts: prefix of the collected names ("" = none)
}

// Unit is the work of one instance: what must happen atomically.
type Unit struct {
	Marker     Marker
	Statements []Statement // run in order on one connection
	// Accept is called with all collected facts just before the commit; an
	// error rolls everything back and is returned wrapped in *RejectedError.
	Accept func(Facts) error
}

// Facts are the numbers collected by RoleFacts statements: "<Name>.<column>"
// (or "<column>" for an unnamed statement) → value. An unsigned 64-bit value
// keeps its bits. The affected rows of the unit's insert, update and delete
// statements are summed as "inserted.<Target>", "updated.<Target>" and
// "deleted.<Target>", and all three as "rows_affected.<Target>".
type Facts map[string]int64

// Result is the outcome of a committed Unit.
type Result struct {
	Facts Facts
	// QueryIDs are the engine's own ids of the statements, where it has them.
	QueryIDs []string
}

// RejectedError says that Accept refused: nothing was written.
type RejectedError struct{ Err error }

// Error gives the refusal's own text.
func (e *RejectedError) Error() string { return e.Err.Error() }

// Unwrap gives the refusal.
func (e *RejectedError) Unwrap() error { return e.Err }

// StatementError is an engine's error with the statement that caused it.
type StatementError struct {
	Index int // 0-based position in Unit.Statements
	Role  Role
	SQL   string
	Err   error
}

// Error gives the engine's text with the statement's place.
func (e *StatementError) Error() string {
	return fmt.Sprintf("statement %d (%s): %v", e.Index+1, e.Role, e.Err)
}

// Unwrap gives the engine's error.
func (e *StatementError) Unwrap() error { return e.Err }

// ErrLocked is wrapped by errors that say that another process holds the
// database file.
var ErrLocked = errors.New("the database is held by another process")

// ErrFenced is wrapped by errors that say that a newer lease (a higher fencing
// token) has already committed this instance: the caller has lost its lease.
var ErrFenced = errors.New("a newer lease has committed this instance")

// Outcome is what a marker look-up found.
type Outcome int

// The outcomes of a look-up.
const (
	NotCommitted Outcome = iota
	Committed
)

// Column is a column as the engine reports it.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	NotNull bool   `json:"not_null,omitempty"`
}

// TableInfo is a table or view as the engine's catalog reports it.
type TableInfo struct {
	Schema  string     `json:"schema"`
	Name    string     `json:"name"`
	View    bool       `json:"view,omitempty"`
	Columns []Column   `json:"columns"`
	Keys    [][]string `json:"keys,omitempty"` // primary keys and unique constraints
	Rows    int64      `json:"rows"`           // the engine's estimate, -1 unknown
}

// Rows is a small result for people: column names, types and values as Go
// values: nil, bool, int64, float64 or string. What has no exact Go value (dates,
// times, decimals, big integers, lists…) is the engine's own text of it.
type Rows struct {
	Columns []Column
	Values  [][]any
	// Truncated says that the limit cut rows off.
	Truncated bool
}

// Engine is one SQL engine. It is safe for concurrent use.
type Engine interface {
	// Execute runs the unit in one transaction (or the engine's equal of it)
	// and writes its marker. On error nothing of it is written, unless
	// Classify says Ambiguous. Errors of a statement are *StatementError.
	Execute(ctx context.Context, u Unit) (Result, error)
	// Lookup tells whether any attempt of the marker's backfill and instance
	// has been committed, and which.
	Lookup(ctx context.Context, m Marker) (Outcome, Marker, error)
	// Query runs one reading statement; more than limit rows are cut off
	// (limit 0 = all).
	Query(ctx context.Context, sql string, limit int) (Rows, error)
	// Catalog lists the tables and views of the given schemas (nil = all
	// user schemas) with their columns.
	Catalog(ctx context.Context, schemas []string) ([]TableInfo, error)
	// Classify tells what an error of this engine means.
	Classify(err error) Class
	Close() error
}

// Describer gives names and types of a query's columns without running it.
type Describer interface {
	Describe(ctx context.Context, sql string) ([]Column, error)
}

// Preparer runs additive schema statements (schemas, tables, views, columns)
// outside any unit, before data steps; each is idempotent.
type Preparer interface {
	Prepare(ctx context.Context, ddl []string) error
}

// Versioner tells the engine's name and version for people.
type Versioner interface {
	Version(ctx context.Context) (string, error)
}
