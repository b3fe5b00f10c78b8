// Package dialect knows how each engine spells things: quoting, literals,
// types and limits. It holds no drivers.
package dialect

import (
	"fmt"
	"strings"
)

// Dialect is one engine's spelling. The zero value is not valid; use For.
type Dialect struct {
	Name string // duckdb, postgres, trino
	// Transactional: several statements commit as one.
	Transactional bool
	// UpdatesInPlace: UPDATE of single columns exists (column refresh).
	UpdatesInPlace bool
	// MaxIdentifier is the longest identifier in bytes, 0 = unlimited.
	MaxIdentifier int
	// DefaultSchema is where a table's name without a schema is looked for.
	DefaultSchema string
}

// The names of the dialects that differ from DuckDB's.
const (
	postgres = "postgres"
	trino    = "trino"
)

// For gives the dialect of an engine type.
func For(engineType string) (Dialect, error) {
	switch engineType {
	case "duckdb":
		return Dialect{Name: "duckdb", Transactional: true, UpdatesInPlace: true, DefaultSchema: "main"}, nil
	case postgres:
		return Dialect{Name: postgres, Transactional: true, UpdatesInPlace: true, MaxIdentifier: 63, DefaultSchema: "public"}, nil
	case trino:
		return Dialect{Name: trino, UpdatesInPlace: true, MaxIdentifier: 128, DefaultSchema: "default"}, nil
	}
	return Dialect{}, fmt.Errorf("dialect: find engine type %q: known are duckdb, postgres, trino", engineType)
}

// Quote quotes one identifier.
func (d Dialect) Quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Table quotes schema and name.
func (d Dialect) Table(schema, name string) string {
	if schema == "" {
		return d.Quote(name)
	}
	return d.Quote(schema) + "." + d.Quote(name)
}

// Columns quotes and joins identifiers with ", ", each behind prefix (an
// alias with its dot, or "").
func (d Dialect) Columns(prefix string, names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = prefix + d.Quote(n)
	}
	return strings.Join(q, ", ")
}

// String writes a string literal.
func (d Dialect) String(v string) string {
	return "'" + strings.ReplaceAll(v, "'", "''") + "'"
}

// Typed writes a literal of the given SQL type; "" and VARCHAR give a plain
// string literal.
func (d Dialect) Typed(v, sqlType string) string {
	switch strings.ToUpper(sqlType) {
	case "", "VARCHAR", "TEXT":
		return d.String(v)
	}
	return "CAST(" + d.String(v) + " AS " + sqlType + ")"
}
