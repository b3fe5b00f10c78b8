package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStatements holds the texts in which engines differ.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, what, want string }{
		{"duckdb", "stage", `CREATE OR REPLACE TEMP TABLE s AS SELECT 1`},
		{"postgres", "stage", `CREATE TEMP TABLE s ON COMMIT DROP AS SELECT 1`},
		{"duckdb", "digest", `coalesce(bit_xor(hash("a", "b c") >> 1), 0)::BIGINT`},
		{"postgres", "digest", `coalesce(bit_xor(hashtextextended(ROW("a", "b c")::text, 0)), 0)`},
		{"duckdb", "schema", `CREATE SCHEMA IF NOT EXISTS "o'x"`},
		{"postgres", "schema", "DO $retrofill$ BEGIN\n  IF to_regnamespace('\"o''x\"') IS NULL THEN CREATE SCHEMA IF NOT EXISTS \"o'x\"; END IF;\nEND $retrofill$"},
		{"duckdb", "view", `CREATE OR REPLACE VIEW "v" AS SELECT 1`},
		{"postgres", "view", `DO $retrofill$ BEGIN
  IF obj_description(to_regclass('"v"'), 'pg_class') IS DISTINCT FROM 'kept by retrofill, e004ebd5b5532a4b' THEN
    BEGIN
      CREATE OR REPLACE VIEW "v" AS SELECT 1;
    EXCEPTION WHEN invalid_table_definition THEN
      DROP VIEW "v";
      CREATE OR REPLACE VIEW "v" AS SELECT 1;
    END;
    COMMENT ON VIEW "v" IS 'kept by retrofill, e004ebd5b5532a4b';
  END IF;
END $retrofill$`},
		{"duckdb", "widen", `ALTER TABLE "t" ALTER COLUMN "c" SET DATA TYPE BIGINT`},
		{"duckdb", "index", ``},
		{"postgres", "index", `CREATE INDEX IF NOT EXISTS "n_retrofill_partition" ON "dw"."n" ("ds", "hh")`},
	} {
		d, err := For(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{
			"stage": d.Stage("s", "SELECT 1"), "digest": d.Digest([]string{"a", "b c"}), "schema": d.CreateSchema("o'x"),
			"view": d.CreateView(`"v"`, "SELECT 1"), "widen": d.WidenColumn(`"t"`, `"v"`, "c", "BIGINT"),
			"index": d.PartitionIndex("dw", "n", []string{"ds", "hh"}),
		}[c.what]
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.what, c.engine, d)
		}
	}
	if got := block("", "x $retrofill$ y"); !strings.HasPrefix(got, "DO $retrofill_$ ") {
		t.Errorf("a body that holds the quote: %s", got)
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, from, to, want string }{
		{"duckdb", "INT4", "integer", "same"}, {"duckdb", "VARCHAR(10)", "TEXT", "same"}, {"duckdb", "NUMERIC", "DECIMAL(18, 3)", "same"},
		{"duckdb", "INTEGER", "HUGEINT", "widens"}, {"duckdb", "DECIMAL(9,2)", "DECIMAL(12,3)", "widens"}, {"duckdb", "BIGINT", "INTEGER", "no"},
		{"postgres", "int4", "INTEGER", "same"}, {"postgres", "VARCHAR", "text", "same"}, {"postgres", "character varying", "TEXT", "same"},
		{"postgres", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "same"}, {"postgres", "numeric(9, 2)", "DECIMAL(9,2)", "same"}, {"postgres", "NUMERIC(9)", "NUMERIC(9,0)", "same"},
		{"postgres", "NUMERIC(18,3)", "NUMERIC", "widens"}, {"postgres", "NUMERIC", "NUMERIC(18,3)", "no"}, {"postgres", "NUMERIC(9,2)", "NUMERIC(12,3)", "widens"},
		{"postgres", "VARCHAR(10)", "TEXT", "widens"}, {"postgres", "VARCHAR(10)", "VARCHAR(20)", "widens"}, {"postgres", "VARCHAR(20)", "VARCHAR(10)", "no"},
		{"postgres", "TEXT", "VARCHAR(10)", "no"}, {"postgres", "CHAR(3)", "TEXT", "no"}, {"postgres", "BIGINT", "NUMERIC", "widens"}, {"postgres", "BIGINT", "DOUBLE PRECISION", "no"},
	} {
		d, err := For(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		got := "no"
		if d.SameType(c.from, c.to) {
			got = "same"
		} else if d.Widens(c.from, c.to) {
			got = "widens"
		}
		if got != c.want {
			t.Errorf("%s: %s to %s: %s, want %s", c.engine, c.from, c.to, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	d, err := For("postgres")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ü", 40)
	a, b := d.Shorten(long+"a"), d.Shorten(long+"b")
	if a == b || len(a) > 63 || !strings.HasPrefix(long, a[:52]) {
		t.Errorf("short names %q, %q", a, b)
	}
	if d.TooLong(strings.Repeat("x", 63)) || !d.TooLong(strings.Repeat("x", 64)) {
		t.Error("the limit is 63 bytes")
	}
	if got := d.Fold("Twice"); got != "twice" {
		t.Errorf("Fold gives %q", got)
	}
}
