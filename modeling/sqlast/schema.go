package sqlast

import (
	"sort"
	"strings"
)

// Nullability of a column. Unknown is treated as nullable where a rule needs
// the column to be never NULL, and as not null where ties are looked for.
type Nullability string

// The nullabilities.
const (
	NullUnknown Nullability = ""
	NotNull     Nullability = "not null"
	Nullable    Nullability = "nullable"
)

// Column is a declared column of a table.
type Column struct {
	Name        string      `json:"name"`
	Type        string      `json:"type,omitempty"` // engine type, "" unknown
	Nullability Nullability `json:"nullability,omitempty"`
}

// Table is what the splitter knows of a table.
type Table struct {
	// Name is written as in a definition, e.g. src.orders or "a b".c; a logical
	// table's is its own name, without quotes whatever it holds.
	Name    string     `json:"name"`
	Columns []Column   `json:"columns"`
	Unique  [][]string `json:"unique,omitempty"` // each a unique key: column names
	Logical bool       `json:"logical,omitempty"`
}

// column finds a column by name, without letter case.
func (t *Table) column(name string) (Column, bool) {
	for _, c := range t.Columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return Column{}, false
}

// Schema is the tables a definition may name. It is read-only once made and
// may be shared.
type Schema struct {
	tables map[string]*Table
	names  []string
}

// NewSchema makes a schema. Of two tables of one name the last one counts.
func NewSchema(tables ...Table) *Schema {
	s := &Schema{tables: make(map[string]*Table, len(tables))}
	for i := range tables {
		t := &tables[i]
		k := tableKey(t.parts())
		if _, ok := s.tables[k]; !ok {
			s.names = append(s.names, t.Name)
		}
		s.tables[k] = t
	}
	sort.Strings(s.names)
	return s
}

// parts splits the table's name. A logical table's is one name, whatever it
// holds; a source's is written as SQL writes it.
func (t *Table) parts() []string {
	if t.Logical {
		return []string{t.Name}
	}
	return identParts(t.Name)
}

// NameParts splits a qualified name as SQL writes it (`src."My.Table"`),
// quotes removed. A logical table's name is one part and not for it.
func NameParts(name string) []string { return identParts(name) }

func tableKey(parts []string) string {
	return strings.ToLower(strings.Join(parts, "\x00"))
}

// Lookup finds a table by its qualified name as SQL writes it, or a logical
// table by its own name; without letter case.
func (s *Schema) Lookup(name string) (*Table, bool) {
	t, ok := s.lookup(identParts(name))
	if ok || s == nil {
		return t, ok
	}
	if t, ok = s.tables[tableKey([]string{name})]; ok && t.Logical {
		return t, true
	}
	return nil, false
}

func (s *Schema) lookup(parts []string) (*Table, bool) {
	if s == nil {
		return nil, false
	}
	t, ok := s.tables[tableKey(parts)]
	if !ok && len(parts) > 1 && strings.EqualFold(parts[len(parts)-2], "main") {
		t, ok = s.tables[tableKey(parts[len(parts)-1:])] // the engine's default schema
	}
	return t, ok
}

// SchemaSnapshot is the tables that one definition reads, as they were when it
// was analysed; with the Definition it lets a newer parser judge it again.
type SchemaSnapshot []Table

// Schema makes the snapshot usable for Split.
func (s SchemaSnapshot) Schema() *Schema { return NewSchema(s...) }
