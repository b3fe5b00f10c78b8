package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// typeOrder lists types of which each holds every value of those before it.
func (d Dialect) typeOrder() [][]string {
	if d.Name == postgres {
		return [][]string{
			{"SMALLINT", "INTEGER", "BIGINT", "NUMERIC"},
			{"REAL", "DOUBLE PRECISION"},
			{"SMALLINT", "INTEGER", "DOUBLE PRECISION"},
			{"DATE", "TIMESTAMP"},
		}
	}
	return [][]string{
		{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"},
		{"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"},
		{"UTINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"},
		{"USMALLINT", "INTEGER", "BIGINT", "HUGEINT"},
		{"UINTEGER", "BIGINT", "HUGEINT"},
		{"FLOAT", "DOUBLE"},
		{"TINYINT", "SMALLINT", "INTEGER", "DOUBLE"},
		{"DATE", "TIMESTAMP"},
	}
}

// Widens tells whether a column of type from may become type to without
// losing a value.
func (d Dialect) Widens(from, to string) bool {
	from, to = d.plainType(from), d.plainType(to)
	for _, chain := range d.typeOrder() {
		i, j := slices.Index(chain, from), slices.Index(chain, to)
		if i >= 0 && j > i {
			return true
		}
	}
	exact := "DECIMAL"
	if d.Name == postgres {
		exact = "NUMERIC"
		var n, m int
		varying := lengths("VARCHAR(%d)", from, &n)
		switch {
		case varying && to == "TEXT", lengths("NUMERIC(%d,%d)", from, &n, &m) && to == "NUMERIC":
			return true
		case varying && lengths("VARCHAR(%d)", to, &m):
			return m >= n
		}
	}
	var p1, s1, p2, s2 int
	if lengths(exact+"(%d,%d)", from, &p1, &s1) && lengths(exact+"(%d,%d)", to, &p2, &s2) {
		return s2 >= s1 && p2-s2 >= p1-s1
	}
	return false
}

// lengths reads the numbers of a type. The whole text must be the type:
// DECIMAL(10,2)[] is a list.
func lengths(format, typ string, into ...*int) bool {
	args, values := make([]any, len(into)), make([]any, len(into))
	for i := range into {
		args[i] = into[i]
	}
	if n, err := fmt.Sscanf(typ, format, args...); err != nil || n != len(into) {
		return false
	}
	for i := range into {
		values[i] = *into[i]
	}
	return fmt.Sprintf(format, values...) == typ
}

// SameType tells whether two spellings mean one type.
func (d Dialect) SameType(a, b string) bool { return d.plainType(a) == d.plainType(b) }

// plainType gives one spelling to a type: upper case, no blanks, no synonyms.
func (d Dialect) plainType(t string) string {
	t = strings.ToUpper(strings.Join(strings.Fields(t), " "))
	t = strings.ReplaceAll(strings.ReplaceAll(t, ", ", ","), "( ", "(")
	if d.Name == postgres {
		return postgresType(t)
	}
	switch t {
	case "INT", "INT4", "SIGNED":
		return "INTEGER"
	case "INT8", "LONG":
		return "BIGINT"
	case "INT2", "SHORT":
		return "SMALLINT"
	case "INT1":
		return "TINYINT"
	case "TEXT", "STRING", "CHAR", "BPCHAR", "CHARACTER VARYING":
		return "VARCHAR"
	case "BOOL", "LOGICAL":
		return "BOOLEAN"
	case "FLOAT8", "DOUBLE PRECISION":
		return "DOUBLE"
	case "FLOAT4", "REAL":
		return "FLOAT"
	case "TIMESTAMP WITHOUT TIME ZONE", "DATETIME":
		return "TIMESTAMP"
	case "TIMESTAMPTZ":
		return "TIMESTAMP WITH TIME ZONE"
	case "DECIMAL", "NUMERIC":
		return "DECIMAL(18,3)"
	}
	if rest, ok := strings.CutPrefix(t, "NUMERIC("); ok {
		return "DECIMAL(" + rest
	}
	if strings.HasPrefix(t, "VARCHAR(") {
		return "VARCHAR"
	}
	return t
}

// postgresType is plainType for PostgreSQL, where a length binds and NUMERIC
// without one is unbounded.
func postgresType(t string) string {
	switch t {
	case "INT", "INT4":
		return "INTEGER"
	case "INT8":
		return "BIGINT"
	case "INT2":
		return "SMALLINT"
	case "BOOL":
		return "BOOLEAN"
	case "FLOAT8", "FLOAT":
		return "DOUBLE PRECISION"
	case "FLOAT4":
		return "REAL"
	case "DECIMAL":
		return "NUMERIC"
	case "VARCHAR", "CHARACTER VARYING": // without a length the two hold the same
		return "TEXT"
	case "TIMESTAMP WITHOUT TIME ZONE":
		return "TIMESTAMP"
	case "TIMESTAMP WITH TIME ZONE":
		return "TIMESTAMPTZ"
	}
	for long, short := range map[string]string{"DECIMAL(": "NUMERIC(", "CHARACTER VARYING(": "VARCHAR(", "CHARACTER(": "CHAR("} {
		if rest, ok := strings.CutPrefix(t, long); ok {
			t = short + rest
		}
	}
	if rest, ok := strings.CutPrefix(t, "NUMERIC("); ok && !strings.Contains(rest, ",") {
		return "NUMERIC(" + strings.TrimSuffix(rest, ")") + ",0)"
	}
	return t
}
