package postgres

import (
	"fmt"
	"testing"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/enginetest"
	"github.com/retrofill/retrofill/executors/postgres/pgtest"
	"github.com/retrofill/retrofill/planner/dialect"
)

func TestEngine(t *testing.T) {
	t.Parallel()
	pgtest.Server(t)
	d, err := dialect.For("postgres")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Run(t, enginetest.Harness{
		Open:    func(t *testing.T) executors.Engine { return fresh(t, pgtest.Database(t)) },
		Dialect: d,
		Types:   types(),
		Stage:   func(name, query string) string { return "CREATE TEMP TABLE " + name + " AS " + query },
		Digest: func(columns ...string) string {
			return "bit_xor(hashtextextended(ROW(" + d.Columns("", columns) + ")::text, 0))"
		},
		WaitsForLocks: true,
		Long:          "SELECT count(*) AS n FROM generate_series(1, 100000000) a, generate_series(1, 100000) b WHERE (a * b) % 7 = 3",
		Numbers: func(n int) string {
			return fmt.Sprintf("SELECT CAST(g - 1 AS BIGINT) AS n FROM generate_series(1, %d) AS g", n)
		},
	})
}

func fresh(t *testing.T, dsn string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// types are PostgreSQL's types with what a person is shown of them.
func types() []enginetest.Type {
	return []enginetest.Type{
		{Name: "BOOLEAN", Literal: "true", Want: true},
		{Name: "SMALLINT", Literal: "32767", Want: int64(32767)},
		{Name: "INTEGER", Literal: "-2147483648", Want: int64(-2147483648)},
		{Name: "BIGINT", Literal: "9223372036854775807", Want: int64(9223372036854775807)},
		{Name: "OID", Literal: "4294967295", Want: int64(4294967295)},
		{Name: "REAL", Literal: "0.1", Want: 0.1},
		{Name: "DOUBLE PRECISION", Literal: "1e300", Want: 1e300},
		{Name: "NUMERIC(9,2)", Literal: "1.50", Want: "1.50"},
		{Name: "NUMERIC", Literal: "-123456789012345678901234567890.0123456789", Want: "-123456789012345678901234567890.0123456789"},
		{Name: "NUMERIC", Literal: "'NaN'", Want: "NaN"},
		{Name: "TEXT", Literal: "'it''s ☃'", Want: "it's ☃"},
		{Name: "VARCHAR(10)", Literal: "''", Want: ""},
		{Name: "CHAR(3)", Literal: "'a'", Want: "a  "},
		{Name: "BYTEA", Literal: `'\x00ff61'::bytea`, Want: `\x00ff61`},
		{Name: "DATE", Literal: "DATE '2013-02-28'", Want: "2013-02-28"},
		{Name: "DATE", Literal: "DATE '0044-03-15 BC'", Want: "0044-03-15 BC"},
		{Name: "DATE", Literal: "'infinity'::DATE", Want: "infinity"},
		{Name: "TIME", Literal: "TIME '23:59:59.000001'", Want: "23:59:59.000001"},
		{Name: "TIMETZ", Literal: "TIMETZ '01:02:03+05:30'", Want: "01:02:03+05:30"},
		{Name: "TIMESTAMP", Literal: "TIMESTAMP '2013-11-03 01:30:00'", Want: "2013-11-03 01:30:00"},
		{Name: "TIMESTAMP(3)", Literal: "TIMESTAMP '2013-11-03 00:00:00.123456'", Want: "2013-11-03 00:00:00.123"},
		{Name: "TIMESTAMPTZ", Literal: "TIMESTAMPTZ '2013-11-03 01:30:00-04'", Want: "2013-11-03 05:30:00+00"},
		{Name: "INTERVAL", Literal: "INTERVAL '1 year 2 days 03:04:05'", Want: "1 year 2 days 03:04:05"},
		{Name: "UUID", Literal: "'6f1c9a1e-0000-4000-8000-00000000000a'::UUID", Want: "6f1c9a1e-0000-4000-8000-00000000000a"},
		{Name: "JSON", Literal: `'{"b": 1, "a": [1.10]}'::JSON`, Want: `{"b": 1, "a": [1.10]}`},
		{Name: "JSONB", Literal: `'{"b": 1, "a": [1.10]}'::JSONB`, Want: `{"a": [1.10], "b": 1}`},
		{Name: "BIT(5)", Literal: "B'10101'", Want: "10101"},
		{Name: "INET", Literal: "'10.0.0.1/8'::INET", Want: "10.0.0.1/8"},
		{Name: "INTEGER[]", Literal: "ARRAY[1, NULL, 3]", Want: "{1,NULL,3}"},
		{Name: "INT4RANGE", Literal: "'[1,5)'::INT4RANGE", Want: "[1,5)"},
	}
}
