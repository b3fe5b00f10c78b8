package modeling

import (
	"strings"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Metrics are what the files under metrics/ define. Atomic, derived and
// composite metrics share one space of names; filters and periods have one
// each. Letter case does not tell two names apart.
type Metrics struct {
	Atomics    []Atomic       `json:"atomics,omitempty"`
	Filters    []MetricFilter `json:"filters,omitempty"`
	Periods    []Period       `json:"periods,omitempty"`
	Derived    []Derived      `json:"derived,omitempty"`
	Composites []Composite    `json:"composites,omitempty"`
}

// Atomic is one aggregate over the fields of one logical table.
type Atomic struct {
	Name        string   `json:"name"`
	Table       string   `json:"table"`
	Expr        string   `json:"expr"` // one aggregate call
	Description string   `json:"description,omitempty"`
	Pos         diag.Pos `json:"-"`
	TablePos    diag.Pos `json:"-"`
	ExprPos     diag.Pos `json:"-"`
}

// MetricFilter is a business filter: a named predicate over the fields of one
// logical table.
type MetricFilter struct {
	Name        string   `json:"name"`
	Table       string   `json:"table"`
	Where       string   `json:"where"`
	Description string   `json:"description,omitempty"`
	Pos         diag.Pos `json:"-"`
	TablePos    diag.Pos `json:"-"`
	WherePos    diag.Pos `json:"-"`
}

// Period is a statistical period: the business dates from the start of unit
// number From to the end of unit number To, both relative to the unit of the
// business date D (0). A To of 0 ends at D itself, included. Weeks start on
// Monday.
type Period struct {
	Name        string   `json:"name"`
	Unit        string   `json:"unit,omitempty"` // day (""), week, month, year
	From        int      `json:"from"`           // ≤ To
	To          int      `json:"to"`             // ≤ 0
	Description string   `json:"description,omitempty"`
	Pos         diag.Pos `json:"-"`
}

// Derived is a metric narrowed by filters and a period.
type Derived struct {
	Name        string     `json:"name"`
	Metric      string     `json:"metric"`
	Filters     []string   `json:"filters,omitempty"`
	Period      string     `json:"period,omitempty"` // "" = 1d
	Description string     `json:"description,omitempty"`
	Pos         diag.Pos   `json:"-"`
	MetricPos   diag.Pos   `json:"-"`
	PeriodPos   diag.Pos   `json:"-"`
	FilterPos   []diag.Pos `json:"-"` // of Filters, one each
}

// Composite is an expression over other metrics.
type Composite struct {
	Name        string   `json:"name"`
	Expr        string   `json:"expr"`
	Description string   `json:"description,omitempty"`
	Pos         diag.Pos `json:"-"`
	ExprPos     diag.Pos `json:"-"`
}

// Compose says what a composed table's SELECT is made of.
type Compose struct {
	From    string   `json:"from"`
	Grain   []string `json:"grain"`
	Metrics []string `json:"metrics"`
	Filters []string `json:"filters,omitempty"` // every row passes them

	Pos       diag.Pos   `json:"-"`
	FromPos   diag.Pos   `json:"-"`
	GrainPos  []diag.Pos `json:"-"` // one each, as the next two
	MetricPos []diag.Pos `json:"-"`
	FilterPos []diag.Pos `json:"-"`

	// Spans tell where the parts of the generated SELECT come from: bytes of
	// Table.SQL, inner spans behind the ones around them.
	Spans []Span `json:"-"`
}

// Span is a part of a generated text and the place that it comes from.
type Span struct {
	Start, End int
	Pos        diag.Pos
}

// CodeFile names the text of the SELECT in diagnostics of it: the SQL file,
// or a name of its own for a composed one, whose places Relocate turns into
// those of the YAML.
func (t *Table) CodeFile() string {
	if t.Compose != nil {
		return t.SQLFile + " (composed SELECT)"
	}
	return t.SQLFile
}

// CodePos gives the start of the SELECT: of its file, or of what it is
// composed of.
func (t *Table) CodePos() diag.Pos {
	if t.Compose != nil {
		return t.Compose.Pos
	}
	return diag.Pos{File: t.SQLFile, Line: 1, Column: 1}
}

// Relocate moves diagnostics about a composed SELECT to what it is made of:
// the metric, filter or field in the YAML. Others stay as they are.
func (t *Table) Relocate(list diag.List) {
	if t.Compose == nil {
		return
	}
	for i := range list {
		if list[i].File != t.CodeFile() {
			continue
		}
		list[i].Pos = t.origin(list[i].Pos)
	}
}

func (t *Table) origin(p diag.Pos) diag.Pos {
	found := t.Compose.Pos
	off := offsetOf(t.SQL, p)
	for _, s := range t.Compose.Spans {
		if s.Start <= off && off < s.End {
			found = s.Pos
		}
	}
	return found
}

// offsetOf gives the byte of a line and column (in characters), -1 = unknown.
func offsetOf(text string, p diag.Pos) int {
	if p.Line < 1 {
		return -1
	}
	off := 0
	for range p.Line - 1 {
		i := strings.IndexByte(text[off:], '\n')
		if i < 0 {
			return -1
		}
		off += i + 1
	}
	for range p.Column - 1 {
		if off >= len(text) {
			return -1
		}
		_, n := utf8.DecodeRuneInString(text[off:])
		off += n
	}
	return off
}
