// Package spine compiles a SELECT with scheduling parameters into ONE
// statement over many dates (semantics §6.4, design "Single instance, many
// dates"): each date keeps its own rows, as if it had been run alone.
//
// There are four forms. Lateral runs the body once per row of a date spine
// whose columns are the parameter values. Constants is Lateral with the
// parameters that are equal on all dates written into the text. Repaired is
// Lateral over a body that was rewritten around a fault of the engine. UnionAll
// writes the body once per date.
//
// Invariants:
//   - Nothing is looked up and nothing is run: the same input gives the same
//     text. The parser is pure, too; the optional Prober only asks an engine to
//     bind a statement.
//   - A value reaches SQL as a constant of the spine or through the rendering of
//     modeling/param; it never becomes syntax. The engine's own parse of each
//     date's text must equal the parse of the spine form but for the literals
//     that hold parameters: that is the proof that the text kept its meaning.
//   - A shape that the engine is known to compute wrong (engineering-notes.md)
//     is refused by its syntax, with the place in the author's file.
package spine

import (
	"context"
	"fmt"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/dialect"
)

// Form is how one statement computes many dates.
type Form string

// The forms, fastest first (DuckDB: UnionAll measured 4.5 times Lateral).
const (
	Lateral   Form = "lateral"
	Constants Form = "constants"
	Repaired  Form = "repaired"
	UnionAll  Form = "union_all"
)

// Kind says why a form is refused; the kinds are those of the cases.
type Kind string

// The kinds of refusals.
const (
	InIdentifier     Kind = "parameter_in_identifier"
	InTableFunction  Kind = "parameter_in_table_function"
	InPosition       Kind = "parameter_in_position"
	ChangesSyntax    Kind = "parameter_changes_syntax"
	TypeVaries       Kind = "parameter_type_varies"
	Unsupported      Kind = "unsupported_by_engine"
	WrongOnEngine    Kind = "wrong_on_engine"
	Nondeterministic Kind = "nondeterministic"
	Sample           Kind = "sample"
	MultiStatement   Kind = "multi_statement"
	NotASelect       Kind = "not_a_select"
	SelfDependency   Kind = "self_dependency"
	BadSyntax        Kind = "syntax"
	UnknownValue     Kind = "unknown_value" // a value cannot be computed when the plan is made
)

// Refusal says why a form cannot be used, and where in the author's file.
type Refusal struct {
	Kind   Kind
	Pos    diag.Pos // zero = the body as a whole
	Reason string
	Hint   string
	// All says that no form can keep the meaning, UnionAll neither.
	All bool
}

// Error gives kind, place and reason in one line.
func (r *Refusal) Error() string {
	s := string(r.Kind) + ": " + r.Reason
	if p := r.Pos.String(); p != "" {
		s = p + ": " + s
	}
	return s
}

// Diagnostic gives the refusal as an error for the user.
func (r *Refusal) Diagnostic() diag.Diagnostic {
	d := diag.Errorf(string(r.Kind), "single instance: %s", r.Reason).At(r.Pos)
	if r.Hint != "" {
		d = d.WithHint("%s", r.Hint)
	}
	return d
}

func refuse(k Kind, pos diag.Pos, format string, args ...any) *Refusal {
	r := &Refusal{Kind: k, Pos: pos, Reason: fmt.Sprintf(format, args...)}
	switch k {
	case Nondeterministic, Sample, MultiStatement, NotASelect, SelfDependency, BadSyntax:
		r.All = true
	}
	r.Hint = hints(k)
	return r
}

func hints(k Kind) string {
	switch k {
	case InIdentifier:
		return "write the name out, or leave out --single-instance"
	case InTableFunction:
		return "declare the files as a source, or leave out --single-instance"
	case InPosition:
		return "order by the column's name"
	case MultiStatement, NotASelect:
		return "a single instance needs one SELECT; leave out --single-instance"
	case SelfDependency:
		return "a table that reads its own earlier dates is built date by date; leave out --single-instance"
	case Nondeterministic, Sample:
		return "make the rows a function of the data (a total ORDER BY, no clock, no random), or leave out --single-instance"
	}
	return ""
}

// Slot is one date (or hour) of the backfill.
type Slot struct {
	ID string // bizdate.Slot.ID, for messages
	At param.Instant
	// Late are the late-bound values of this slot, if they are known.
	Late param.Late
	// Partition holds the values of the partition columns, in their order.
	Partition []string
}

// Column is a partition column with its SQL type.
type Column struct{ Name, Type string }

// Body is the SELECT of a node and what is known of its surroundings.
type Body struct {
	Template *param.Template
	// Schema gives column types where rules need them; nil = none is known.
	Schema *sqlast.Schema
	Parser sqlast.Parser
	// Self are the physical and logical names of the node's own table.
	Self []string
	// Nondeterministic is what sqlast's analysis said of the rows and of the
	// fields computed here, "" = nothing.
	Nondeterministic string
}

// Prober asks an engine whether it accepts a statement, without running it
// (DuckDB: EXPLAIN on a connection of its own). A nil error means yes; any
// other error is the engine's refusal.
type Prober interface {
	Probe(ctx context.Context, sql string) error
}

// Input is one single-instance computation.
type Input struct {
	Dialect   dialect.Dialect
	Body      Body
	Slots     []Slot // at least one, in run order
	Partition []Column
	// Probe is asked about the chosen statement; nil = syntax alone decides.
	Probe Prober
	// Dense says that the slots are most of what the sources hold: the engine
	// may then compute all partitions and drop the others, which is faster for
	// all of them and much slower for a few.
	Dense bool
	// MaxUnion bounds the dates in one UNION ALL statement; 0 = DefaultUnion.
	MaxUnion int
}

// DefaultUnion is the number of dates in one UNION ALL statement: engines bound
// it by stages (Trino 150 a statement) and by the time to plan.
const DefaultUnion = 30

// OrdinalColumn is the first column of a Chunk's rows: the position of the slot
// in Input.Slots, INTEGER. The partition columns' values follow from it.
const OrdinalColumn = "_rf_slot"

// PartitionColumn names the column of a Chunk's rows that holds the value of
// partition column i.
func PartitionColumn(i int) string { return fmt.Sprintf("_rf_part_%d", i) }

// Chunk is one query for the slots [From, To) of Input.Slots. Its columns are
// OrdinalColumn, a PartitionColumn for each partition column, then the body's.
type Chunk struct {
	From, To int
	SQL      string
}

// Choice is the form taken and why.
type Choice struct {
	Form   Form
	Why    string
	Chunks []Chunk
	// Refused holds why each form tried before it was refused.
	Refused map[Form]*Refusal
	// Warnings are the orders that may be no total ones: equal rows up to ties.
	Warnings diag.List
	// Repairs tells what a Repaired body changed.
	Repairs []string
}
