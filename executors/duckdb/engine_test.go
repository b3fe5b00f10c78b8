package duckdb

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/enginetest"
	"github.com/retrofill/retrofill/planner/dialect"
)

func TestEngine(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) Options{
		"memory": func(*testing.T) Options { return Options{} },
		"file":   func(t *testing.T) Options { return Options{Path: filepath.Join(t.TempDir(), "a.duckdb"), Create: true} },
		// Signs that the driver would read as a URL's.
		"odd_path": func(t *testing.T) Options {
			return Options{Path: filepath.Join(t.TempDir(), "50% of?a#b'ü.duckdb"), Create: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, harness(t, open))
		})
	}
}

func harness(t *testing.T, options func(t *testing.T) Options) enginetest.Harness {
	t.Helper()
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Harness{
		Open: func(t *testing.T) executors.Engine {
			opt := options(t)
			opt.MemoryLimit, opt.Threads = "512MB", 2
			e, err := Open(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Dialect: d,
		Types:   types(),
		Stage:   func(name, query string) string { return "CREATE OR REPLACE TEMP TABLE " + name + " AS " + query },
		Digest: func(columns ...string) string {
			return "bit_xor(hash(" + d.Columns("", columns) + "))"
		},
		Long:    "SELECT count(*) AS n FROM range(100000000) a, range(100000) b WHERE (a.range * b.range) % 7 = 3",
		Numbers: func(n int) string { return fmt.Sprintf("SELECT range AS n FROM range(%d)", n) },
	}
}

// types are DuckDB's types with what a person is shown of them.
func types() []enginetest.Type {
	return []enginetest.Type{
		{Name: "BOOLEAN", Literal: "true", Want: true},
		{Name: "TINYINT", Literal: "-128", Want: int64(-128)},
		{Name: "SMALLINT", Literal: "32767", Want: int64(32767)},
		{Name: "INTEGER", Literal: "-2147483648", Want: int64(-2147483648)},
		{Name: "BIGINT", Literal: "9223372036854775807", Want: int64(9223372036854775807)},
		{Name: "UTINYINT", Literal: "255", Want: int64(255)},
		{Name: "USMALLINT", Literal: "65535", Want: int64(65535)},
		{Name: "UINTEGER", Literal: "4294967295", Want: int64(4294967295)},
		{Name: "UBIGINT", Literal: "18446744073709551615", Want: "18446744073709551615"},
		{Name: "HUGEINT", Literal: "42", Want: int64(42)},
		{Name: "HUGEINT", Literal: "-170141183460469231731687303715884105727", Want: "-170141183460469231731687303715884105727"},
		{Name: "UHUGEINT", Literal: "340282366920938463463374607431768211455", Want: "340282366920938463463374607431768211455"},
		{Name: "FLOAT", Literal: "0.1", Want: 0.1},
		{Name: "DOUBLE", Literal: "1e300", Want: 1e300},
		{Name: "DECIMAL(9,2)", Literal: "1.50", Want: "1.50"},
		{Name: "DECIMAL(38,10)", Literal: "-1234567890123456789012345678.0123456789", Want: "-1234567890123456789012345678.0123456789"},
		{Name: "DECIMAL(4,2)", Literal: "0", Want: "0.00"},
		{Name: "VARCHAR", Literal: "'it''s ☃'", Want: "it's ☃"},
		{Name: "VARCHAR", Literal: "''", Want: ""},
		{Name: "BLOB", Literal: `'\x00\xFFa'::BLOB`, Want: `\x00\xFFa`},
		{Name: "DATE", Literal: "DATE '2013-02-28'", Want: "2013-02-28"},
		{Name: "DATE", Literal: "DATE '0044-03-15 (BC)'", Want: "0044-03-15 (BC)"},
		{Name: "DATE", Literal: "'infinity'::DATE", Want: "infinity"},
		{Name: "TIME", Literal: "TIME '23:59:59.000001'", Want: "23:59:59.000001"},
		{Name: "TIMETZ", Literal: "TIMETZ '01:02:03+05:30'", Want: "01:02:03+05:30"},
		{Name: "TIMESTAMP", Literal: "TIMESTAMP '2013-11-03 01:30:00'", Want: "2013-11-03 01:30:00"},
		{Name: "TIMESTAMP", Literal: "TIMESTAMP '2013-11-03 00:00:00'", Want: "2013-11-03 00:00:00"},
		{Name: "TIMESTAMP_S", Literal: "TIMESTAMP_S '2013-11-03 01:30:00'", Want: "2013-11-03 01:30:00"},
		{Name: "TIMESTAMP_NS", Literal: "TIMESTAMP_NS '2013-11-03 01:30:00.123456789'", Want: "2013-11-03 01:30:00.123456789"},
		{Name: "TIMESTAMPTZ", Literal: "TIMESTAMPTZ '2013-11-03 01:30:00-04'", Want: "2013-11-03 05:30:00+00"},
		{Name: "INTERVAL", Literal: "INTERVAL '1 year 2 days 03:04:05'", Want: "1 year 2 days 03:04:05"},
		{Name: "UUID", Literal: "'6f1c9a1e-0000-4000-8000-00000000000a'::UUID", Want: "6f1c9a1e-0000-4000-8000-00000000000a"},
		{Name: "ENUM('low', 'high')", Literal: "'high'", Want: "high"},
		{Name: "BIT", Literal: "'10101'::BIT", Want: "10101"},
		{Name: "JSON", Literal: `'{"b": 1, "a": [1.10]}'::JSON`, Want: `{"b": 1, "a": [1.10]}`},
		{Name: "INTEGER[]", Literal: "[1, NULL, 3]", Want: "[1, NULL, 3]"},
		{Name: "INTEGER[2]", Literal: "[1, 2]", Want: "[1, 2]"},
		{Name: "STRUCT(b INTEGER, a VARCHAR)", Literal: "{'b': 1, 'a': 'x'}", Want: "{'b': 1, 'a': x}"},
		{Name: "MAP(VARCHAR, INTEGER)", Literal: "MAP {'z': 1, 'a': 2}", Want: "{z=1, a=2}"},
	}
}
