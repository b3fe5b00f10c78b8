package stale

import (
	"slices"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// State is what a cell of the matrix is (semantics §4.6).
type State string

// The states. Of several that hold, the first in this order counts.
const (
	NeverBuilt   State = "never_built"
	Accepted     State = "accepted"      // built by other logic, which is accepted (forward-only)
	OtherLogic   State = "other_logic"   // built by other logic
	InputRebuilt State = "input_rebuilt" // an input was rebuilt since
	Current      State = "current"
)

// Stale tells whether a cell of this state is to be refreshed.
func (s State) Stale() bool { return s == NeverBuilt || s == OtherLogic || s == InputRebuilt }

// Table is the matrix of one logical table.
type Table struct {
	Table string `json:"table"`
	// Dates is the number of real business dates looked at: dates on which the
	// table is scheduled.
	Dates int   `json:"dates"`
	Rows  []Row `json:"fields"`

	dates []bizdate.Date
	cells [][]cellState // by row and date; nil = all of the row is current
}

// Row is a field in one of the nodes that store it.
type Row struct {
	Field string `json:"field"` // "" = the rows of a node without fields of its own
	Node  string `json:"node"`  // materialization node
	Runs  []Run  `json:"runs"`  // ascending; real dates without a run between them are joined
}

// Run is a run of consecutive real dates in the same state for the same reason.
type Run struct {
	From  bizdate.Date `json:"from"`
	To    bizdate.Date `json:"to"`
	Dates int          `json:"dates"` // real dates
	State State        `json:"state"`
	// RowSet says that the reason is the table's row set or key, so that the
	// table can only be refreshed as a whole.
	RowSet bool `json:"row_set,omitempty"`
	// Definition, Backfill and BuiltAt tell what built the values (the first
	// date's time); empty where nothing did, and for current runs that several
	// backfills built.
	Definition string    `json:"definition,omitempty"`
	Backfill   string    `json:"backfill,omitempty"`
	BuiltAt    time.Time `json:"built_at,omitzero"`
	// Inputs are what was rebuilt since.
	Inputs []Rebuilt `json:"inputs,omitempty"`
}

// Rebuilt is an input that was rebuilt since.
type Rebuilt struct {
	Table string `json:"table"`
	Field string `json:"field,omitempty"` // "" = its rows
	// Backfill rebuilt it (of the run's first date); "" when the plan itself does.
	Backfill string `json:"backfill,omitempty"`
}

// String gives table.field, or the table where its rows are meant.
func (r Rebuilt) String() string {
	if r.Field == "" {
		return r.Table
	}
	return r.Table + "." + r.Field
}

// Part is some dates of a table on which the same fields are stale.
type Part struct {
	Dates []bizdate.Date // ascending
	// Rows: the row set is stale, so the table is refreshed as a whole.
	Rows   bool
	Fields []string // stale fields, in the table's order; all the same with Rows
}

// Stale groups the dates on which anything is stale by what is. Parts come in
// the order of their first dates.
func (t *Table) Stale() []Part {
	if !slices.ContainsFunc(t.cells, func(c []cellState) bool { return c != nil }) {
		return nil
	}
	at := map[string]int{}
	var out []Part
	sig := make([]byte, 0, len(t.Rows)+1)
	for i, d := range t.dates {
		sig = append(sig[:0], '-')
		any := false
		for r := range t.Rows {
			if t.cells[r] == nil || !t.cells[r][i].state.stale() {
				sig = append(sig, '-')
				continue
			}
			c := t.cells[r][i]
			any = true
			sig = append(sig, 'x')
			if c.rowSet || t.Rows[r].Field == "" {
				sig[0] = 'R'
			}
		}
		if !any {
			continue
		}
		if sig[0] == 'R' {
			sig = sig[:1]
		}
		k, known := at[string(sig)]
		if !known {
			k = len(out)
			at[string(sig)] = k
			p := Part{Rows: sig[0] == 'R'}
			for r := 1; r < len(sig); r++ {
				if f := t.Rows[r-1].Field; sig[r] == 'x' && !containsFold(p.Fields, f) {
					p.Fields = append(p.Fields, f)
				}
			}
			out = append(out, p)
		}
		out[k].Dates = append(out[k].Dates, d)
	}
	return out
}

// code is a State in one byte; higher codes win where a cell has several.
type code uint8

const (
	isCurrent code = iota
	isInput
	isOther
	isAccepted
	isNever
)

func (c code) stale() bool { return c == isInput || c == isOther || c == isNever }

func (c code) name() State {
	return [...]State{Current, InputRebuilt, OtherLogic, Accepted, NeverBuilt}[c]
}

// cellState is one cell in the making.
type cellState struct {
	state  code
	rowSet bool
	rec    int32 // record in the node's facts, −1 = none
}
