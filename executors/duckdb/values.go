package duckdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/retrofill/retrofill/executors"
)

// wrapping is a query inside one that casts what Go has no exact value for.
type wrapping struct {
	stmt    *duck.Stmt         // nil: the query cannot be wrapped
	columns []executors.Column // of the query itself
}

// wrap makes DuckDB write the values that have no exact Go value, and stop
// after one row more than limit.
func wrap(ctx context.Context, conn *duck.Conn, sql string, limit int) (w wrapping, err error) {
	w.columns, err = describe(ctx, conn, sql)
	if ctx.Err() != nil {
		return wrapping{}, ctx.Err()
	}
	if err != nil {
		// DESCRIBE, SHOW and SUMMARIZE are SELECTs too, of the kind that
		// cannot be described; they are read as they are.
		return wrapping{}, nil
	}
	selected, labels := make([]string, len(w.columns)), make([]string, len(w.columns))
	for i, c := range w.columns {
		labels[i] = fmt.Sprintf("c%d", i)
		selected[i] = labels[i]
		if !exact(c.Type) {
			selected[i] = "CAST(" + labels[i] + " AS VARCHAR)"
		}
	}
	text := "SELECT " + strings.Join(selected, ", ") + " FROM (\n" + sql + "\n) AS q(" + strings.Join(labels, ", ") + ")"
	if limit > 0 {
		text += " LIMIT " + strconv.Itoa(limit+1)
	}
	w.stmt, err = prepare(conn, text)
	if err != nil {
		return wrapping{}, nil
	}
	return w, nil
}

// describe gives the columns of a query as DESCRIBE spells them.
func describe(ctx context.Context, conn *duck.Conn, sql string) (out []executors.Column, err error) {
	stmt, err := prepare(conn, "DESCRIBE "+sql)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	rows, err := stmt.QueryContext(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	// column_name, column_type, null, key, default, extra
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		c := executors.Column{Name: fmt.Sprint(row[0]), Type: fmt.Sprint(row[1]), NotNull: row[2] == "NO"}
		if c.Type == `"NULL"` {
			c.Type = "NULL"
		}
		out = append(out, c)
	}
}

// exact tells whether the driver gives the type's values as they are.
func exact(typ string) bool {
	switch typ {
	case "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
		"UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "VARCHAR":
		return true
	}
	return strings.HasPrefix(typ, "ENUM(")
}

// plain makes one of executors.Rows' kinds of values. Everything but numbers
// reaches it only from statements that could not be wrapped.
func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, string:
		return v
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		if v > math.MaxInt64 {
			return strconv.FormatUint(v, 10)
		}
		return int64(v)
	case float32:
		// The shortest decimal of the single, not the double that is nearest
		// to it: 0.1, not 0.10000000149011612.
		if f, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64); err == nil {
			return f
		}
		return float64(v)
	case float64:
		return v
	case *big.Int:
		if v.IsInt64() {
			return v.Int64()
		}
		return v.String()
	case duck.Decimal:
		return v.String()
	case time.Time:
		if v.Hour() == 0 && v.Minute() == 0 && v.Second() == 0 && v.Nanosecond() == 0 {
			return v.Format("2006-01-02")
		}
		return v.Format("2006-01-02 15:04:05.999999999")
	case []byte:
		return fmt.Sprintf("%x", v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = fmt.Sprint(plain(x))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(v)
}
