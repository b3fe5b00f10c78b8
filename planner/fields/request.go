package fields

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// All as a number of levels means every level.
const All = -1

// Request asks for one closure.
type Request struct {
	Table string
	// Full takes all fields but registered ones (semantics §4.1); otherwise
	// Select names the fields, key columns allowed.
	Full   bool
	Select []string
	// Dates are the selected business dates of Table. DatesOf gives those of
	// another table where they differ (a weekly reader, say); nil = Dates.
	Dates   []bizdate.Date
	DatesOf func(table string) []bizdate.Date
	// Accept says which recommended fields are taken (semantics §4.4).
	Accept Accept
	// Downstream and Upstream are numbers of levels: 0 none, All every one.
	Downstream, Upstream int
	// Below bounds the tables that are taken downstream; nil = no bound but
	// the levels.
	Below func(table string) bool
	// DownstreamWhole takes every downstream logical table as a whole
	// (`--downstream-fields all`).
	DownstreamWhole bool
	// IncludePaused takes downstream tables whose paused fields would be
	// written (semantics §4.7); by default they are left out and listed.
	IncludePaused bool
	// Column tells which materialization nodes are refreshed by column: only
	// the wanted fields are written there, the co-located ones are kept
	// (semantics §4.8). nil = every node is rewritten. A node that must be
	// rewritten (whole table, key selected, system-required field) is not
	// asked for.
	Column func(table, node string) bool
}

// Accept is the value of `--recommended`: all, none (the zero value), or a
// list of `field` or `table.field`.
type Accept struct {
	All   bool
	Names []string
}

// ParseAccept reads `all`, `none` or a list separated by commas.
func ParseAccept(s string) Accept {
	switch strings.TrimSpace(s) {
	case "all":
		return Accept{All: true}
	case "none", "":
		return Accept{}
	}
	var a Accept
	for _, n := range strings.Split(s, ",") {
		if n = strings.TrimSpace(n); n != "" {
			a.Names = append(a.Names, n)
		}
	}
	return a
}

// Code says why a field or table is in a result.
type Code string

// The reasons that plan and JSON name.
const (
	Selected    Code = "selected"
	CoLocated   Code = "co_located"
	System      Code = "system"
	Recommended Code = "recommended"
	RowSet      Code = "row_set"
	Reader      Code = "reader"
)

// Reason is one reason with what it follows from.
type Reason struct {
	Code Code `json:"code"`
	// Via is the field that leads here: for co_located the mate, for reader
	// and row_set the field (or table, Field AnyField) that is read; in an
	// upstream table the reader. The zero Ref where nothing leads.
	Via Ref `json:"via,omitzero"`
	// Node is the shared materialization node of co_located.
	Node string `json:"node,omitempty"`
	// Note is a further kind: why recommended (logic_changed, …), why whole
	// (full_table_only, downstream_fields_all).
	Note string `json:"note,omitempty"`
}

// Kinds of recommendation (semantics §4.4) and of refusal (§4.2).
const (
	LogicChanged    = "logic_changed"
	PrimaryPKChange = "primary_pk_changed"
	ChildPKChange   = "child_pk_of_changed_primary"

	PKChanged     = "pk_changed"
	RowSetChanged = "row_set_changed"
	Unsplittable  = "unsplittable"

	noteFullOnly = "full_table_only"
	noteAll      = "downstream_fields_all"
)

// Field is one field of a result.
type Field struct {
	Name    string   `json:"name"`
	Reasons []Reason `json:"reasons"`
	// Kept marks a required field that a column refresh reads or proves, but
	// does not write.
	Kept bool `json:"kept,omitempty"`
}

// Write is what is written of one materialization node.
type Write struct {
	Node string `json:"node"`
	// Column: only Fields are written, Kept stay; otherwise the node is
	// rewritten with all its fields.
	Column bool     `json:"column,omitempty"`
	Fields []string `json:"fields"`
	Kept   []string `json:"kept,omitempty"`
}

// TableResult is what is written of one table.
type TableResult struct {
	Table string `json:"table"`
	// Level is the distance from the requested table, 0 for itself.
	Level int `json:"level"`
	// Whole: all fields but registered ones and the row set; the key counts as
	// written, too.
	Whole   bool     `json:"whole,omitempty"`
	Because []Reason `json:"because,omitempty"`
	// Fields holds written and kept fields: selected key columns first, then
	// in declared order.
	Fields []Field `json:"fields"`
	Nodes  []Write `json:"nodes"`
}

// Names gives the names of the fields, kept ones included.
func (t TableResult) Names() []string {
	out := []string{}
	for _, f := range t.Fields {
		out = append(out, f.Name)
	}
	return out
}

// Required gives the fields that were added to the selected and accepted
// ones, each with its reason: system wins over co_located.
func (t TableResult) Required() map[string]Code {
	out := map[string]Code{}
	for _, f := range t.Fields {
		has := func(c Code) bool {
			return slices.ContainsFunc(f.Reasons, func(r Reason) bool { return r.Code == c })
		}
		switch {
		case has(Selected) || has(Recommended):
		case has(System):
			out[f.Name] = System
		case has(CoLocated):
			out[f.Name] = CoLocated
		}
	}
	return out
}

// Recommendation is a field worth taking, with its kind and the dates on
// which the reason holds.
type Recommendation struct {
	Ref
	Kind  string         `json:"kind"`
	Dates []bizdate.Date `json:"dates"`
}

// UpstreamResult is what is read, and so worth refreshing, of one table above.
type UpstreamResult struct {
	TableResult
	// Rows: the reader takes rows of it or reads its key, whatever fields.
	Rows bool `json:"rows,omitempty"`
	// Registered are fields read that someone else fills.
	Registered []string `json:"registered,omitempty"`
}

// LeftOut is a downstream table that is not taken because of a pause.
type LeftOut struct {
	Table string `json:"table"`
	// Paused are its own paused fields that would be written; empty if it is
	// only below such a field.
	Paused []string `json:"paused,omitempty"`
	// Via is what holds it where it is below: a paused or withheld field.
	Via Ref `json:"via,omitzero"`
}

// Result is a closure.
type Result struct {
	// Target is the requested table.
	Target TableResult `json:"target"`
	// Recommended are the offers not taken.
	Recommended []Recommendation `json:"recommended"`
	// Accepted are the offers taken; an accepted key of another table puts
	// that table into Also, as a whole.
	Accepted []Recommendation `json:"accepted,omitempty"`
	Also     []TableResult    `json:"also,omitempty"`
	// Downstream and Upstream are ordered by level, then name. They start from
	// selected and required fields; accepted recommendations widen neither
	// (semantics §4.7).
	Downstream []TableResult    `json:"downstream"`
	Upstream   []UpstreamResult `json:"upstream"`
	LeftOut    []LeftOut        `json:"left_out,omitempty"`
	// Refusal holds the reasons of a full_table_only refusal (pk_changed,
	// row_set_changed, unsplittable), in that order, with their dates.
	Refusal []Refusal `json:"refusal,omitempty"`
}

// Refusal is one reason why specified fields are refused.
type Refusal struct {
	Reason string         `json:"reason"`
	Dates  []bizdate.Date `json:"dates"`
}

func (r *Request) datesOf(table string) []bizdate.Date {
	if r.DatesOf == nil || table == r.Table {
		return r.Dates
	}
	return r.DatesOf(table)
}

// check finds the table and the selected fields, and reports everything that
// is wrong with the request.
func (m *Model) check(req *Request) (int32, []int32, []Refusal, diag.List) {
	var problems diag.List
	t, ok := m.tableID[req.Table]
	if !ok {
		names := make([]string, len(m.tables))
		for i := range m.tables {
			names[i] = m.tables[i].Name
		}
		return 0, nil, nil, diag.List{diag.Errorf("unknown_table", "there is no logical table %q", req.Table).
			WithHint("%s", diag.DidYouMean(req.Table, names, "list the tables with `retrofill ls`"))}
	}
	if req.Full {
		return t, nil, nil, nil
	}
	var selected []int32
	for _, n := range req.Select {
		f := m.field(t, n)
		switch {
		case f < 0:
			problems = append(problems, diag.Errorf("unknown_field", "table %s has no field %q", req.Table, n).
				WithHint("%s", diag.DidYouMean(n, m.name[m.first[t]:m.first[t+1]], "list its fields with `retrofill show "+req.Table+"`")))
		case m.kind[f] == kindRegistered:
			problems = append(problems, diag.Errorf("registered_field", "field %s.%s is registered: it is mapped from a table that someone else fills", req.Table, n).
				WithHint("leave it out; registered fields are never computed"))
		case !slices.Contains(selected, f):
			selected = append(selected, f)
		}
	}
	if len(req.Select) == 0 {
		problems = append(problems, diag.Errorf("empty_selection", "no field of table %s is selected", req.Table).
			WithHint("name fields with --fields, or take --full-table"))
	}
	refusal := m.fullOnlyReasons(t, req.Dates)
	if len(refusal) > 0 {
		problems = append(problems, m.fullTableOnly(t, refusal))
	}
	return t, selected, refusal, problems
}

func (m *Model) fullTableOnly(t int32, refusal []Refusal) diag.Diagnostic {
	var detail []string
	for _, r := range refusal {
		line := r.Reason
		if len(r.Dates) > 0 {
			line += ": " + dateList(r.Dates)
		}
		if d := m.tables[t].Differences[r.Reason]; d != "" {
			line += "\n" + d
		}
		detail = append(detail, line)
	}
	return diag.Errorf("full_table_only", "table %s can only be backfilled as a whole for the selected dates", m.tables[t].Name).
		WithDetail("%s", strings.Join(detail, "\n")).
		WithHint("use --full-table, or select dates that were built by today's key and row set")
}

// dateList gives ascending dates as ranges.
func dateList(dates []bizdate.Date) string {
	d := slices.Clone(dates)
	slices.Sort(d)
	var parts []string
	for i := 0; i < len(d); {
		j := i
		for j+1 < len(d) && d[j+1] <= d[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, d[i].String())
		} else {
			parts = append(parts, d[i].String()+".."+d[j].String())
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// fullOnlyReasons tells why a table can only be refreshed as a whole on these
// dates (semantics §4.2); none = fields may be specified.
func (m *Model) fullOnlyReasons(t int32, dates []bizdate.Date) []Refusal {
	var out []Refusal
	tab := &m.tables[t]
	if on := m.keyChanged(t, dates); len(on) > 0 {
		out = append(out, Refusal{PKChanged, on})
	}
	if on := Meets(tab.RowSetChanged, dates); len(on) > 0 {
		out = append(out, Refusal{RowSetChanged, on})
	}
	if tab.FullOnly {
		out = append(out, Refusal{Reason: Unsplittable})
	}
	return out
}

// keyChanged gives the dates on which the key's columns or the derivation of
// one of them differ.
func (m *Model) keyChanged(t int32, dates []bizdate.Date) []bizdate.Date {
	tab := &m.tables[t]
	on := Meets(tab.KeyChanged, dates)
	for _, k := range tab.Key {
		on = append(on, Meets(tab.Changed[k], dates)...)
	}
	slices.Sort(on)
	return slices.Compact(on)
}
