package sqlast

import (
	"context"
	"encoding/json"
)

// Parser turns SELECT statements into the engine's tree (DuckDB's
// json_serialize_sql). One call parses many texts; the results come in the
// order of the texts. An error is a failure of the parser itself, never a
// problem of a text.
type Parser interface {
	ParseSelects(ctx context.Context, sqls []string) ([]ParseResult, error)
}

// ParseResult is the tree of one text, or why there is none.
type ParseResult struct {
	Tree      json.RawMessage // nil when Message is set
	Message   string          // the parser's complaint
	NotSelect bool            // the text is a statement, but no SELECT
	Position  int             // byte offset of the complaint, -1 unknown
}

// Definition is what defines a logical table's fields and rows. It is enough,
// with a SchemaSnapshot, to analyse the table again.
type Definition struct {
	SQL      string            `json:"sql"`
	File     string            `json:"file,omitempty"` // for diagnostics
	Key      []string          `json:"key,omitempty"`
	Params   map[string]string `json:"params,omitempty"`   // name -> value expression
	Verbatim []string          `json:"verbatim,omitempty"` // names left as written
}

// ColumnRef is a column of a table, both as declared.
type ColumnRef struct {
	Table  string `json:"table"`
	Column string `json:"column"`
}

// String gives table.column.
func (c ColumnRef) String() string { return c.Table + "." + c.Column }

// Field is one output column (semantics §1).
type Field struct {
	Name             string      `json:"name"`
	Reads            []ColumnRef `json:"reads,omitempty"`            // of its own derivation, not of the row set
	Params           []string    `json:"params,omitempty"`           // names, lower case; time expressions as written
	Joins            []string    `json:"joins,omitempty"`            // aliases of the row-neutral joins it needs
	Nondeterministic string      `json:"nondeterministic,omitempty"` // why, "" = deterministic
	Canonical        string      `json:"canonical"`
	Fingerprint      string      `json:"fingerprint"`
}

// RowSet is what decides which rows exist (semantics §1).
type RowSet struct {
	Reads            []ColumnRef `json:"reads,omitempty"` // includes what the key fields read
	Sources          []string    `json:"sources,omitempty"`
	Params           []string    `json:"params,omitempty"`
	Nondeterministic string      `json:"nondeterministic,omitempty"`
	Canonical        string      `json:"canonical"`
	Fingerprint      string      `json:"fingerprint"`     // of the rows without the key
	Key              []string    `json:"key,omitempty"`   // lower case, sorted
	KeyCanonical     string      `json:"key_canonical"`   // names and derivations of the key fields
	KeyFingerprint   string      `json:"key_fingerprint"` // of KeyCanonical
}

// NeutralJoin is a row-neutral join that belongs to fields, not to the row set.
type NeutralJoin struct {
	Alias  string   `json:"alias"`
	Table  string   `json:"table,omitempty"` // "" for a subquery
	Fields []string `json:"fields,omitempty"`
}

// Unsplittable tells why a valid table can only be refreshed as a whole.
type Unsplittable struct {
	Kind   string `json:"kind"` // recursive_cte, positional_join, pivot, external_read, dynamic_columns, too_complex, unsupported_syntax
	Reason string `json:"reason"`
	Offset int    `json:"offset"` // byte offset in the definition's SQL, -1 unknown
}

// Analysis is one definition taken apart. It is plain data: it marshals to
// JSON and back unchanged.
type Analysis struct {
	Version      int            `json:"version"`
	Definition   Definition     `json:"definition"`
	Schema       SchemaSnapshot `json:"schema,omitempty"`
	Fields       []Field        `json:"fields"` // in SELECT order; only names where unsplittable
	RowSet       RowSet         `json:"row_set"`
	Joins        []NeutralJoin  `json:"joins,omitempty"`
	Unsplittable *Unsplittable  `json:"unsplittable,omitempty"`
	References   []Reference    `json:"references,omitempty"`
}

// FormatVersion is the version of the analysis and of its canonical texts. It
// rises whenever the same definition may give other texts; records of an older
// version are analysed again from their Definition and SchemaSnapshot.
const FormatVersion = 1

// Field finds a field by name, without letter case.
func (a *Analysis) Field(name string) (*Field, bool) {
	for i := range a.Fields {
		if equalFold(a.Fields[i].Name, name) {
			return &a.Fields[i], true
		}
	}
	return nil, false
}

// Span is a byte range [Start, End) of the definition's SQL text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Reference is one place of the text that names a table.
type Reference struct {
	Table      string      `json:"table"` // as declared; as written if unknown
	Known      bool        `json:"known"`
	Logical    bool        `json:"logical,omitempty"`
	Name       Span        `json:"name"`                  // the qualified name alone
	Alias      string      `json:"alias"`                 // as written, "" = none
	RowSet     bool        `json:"row_set,omitempty"`     // the row set reads this reference
	Fields     []string    `json:"fields,omitempty"`      // fields that read columns of it or need its join
	Columns    []string    `json:"columns,omitempty"`     // all columns read through it, as declared
	RowColumns []string    `json:"row_columns,omitempty"` // those the row set reads
	AllColumns bool        `json:"all_columns,omitempty"` // unsplittable: any column may be read
	Predicates []Predicate `json:"predicates,omitempty"`
}

// Predicate is a conjunct that limits the rows read through a reference to
// constants and parameters (for semantics §3.7).
type Predicate struct {
	Column     string  `json:"column"`                // as declared
	ColumnCast string  `json:"column_cast,omitempty"` // the column is wrapped in this cast
	Op         string  `json:"op"`                    // = in between < <= > >=
	Values     []Value `json:"values"`                // between: two
	Derived    bool    `json:"derived,omitempty"`     // through an equality with another column
}

// Value is a literal with its placeholders, e.g. `${bizdate}` or `${yyyymm}01`.
type Value struct {
	Text    string `json:"text"`              // the literal's content, placeholders as written
	Quoted  bool   `json:"quoted,omitempty"`  // it is a string literal
	Cast    string `json:"cast,omitempty"`    // type it is cast to
	Complex bool   `json:"complex,omitempty"` // an expression of constants: Text is canonical SQL
}
