package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Stage makes a temporary table of a unit out of a query, in place of one of
// the same name that the unit made before (PostgreSQL cannot say that: its
// engine drops the earlier one). The name is written as it is given.
func (d Dialect) Stage(name, query string) string {
	if d.Name == postgres {
		return fmt.Sprintf("CREATE TEMP TABLE %s ON COMMIT DROP AS %s", name, query)
	}
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS %s", name, query)
}

// Digest gives an order-free digest of columns over all rows as a BIGINT, 0
// for no row. PostgreSQL hashes the rows' text, so that columns of every type
// can be in it.
func (d Dialect) Digest(columns []string) string {
	if d.Name == postgres {
		return fmt.Sprintf("coalesce(bit_xor(hashtextextended(ROW(%s)::text, 0)), 0)", d.Columns("", columns))
	}
	return fmt.Sprintf("coalesce(bit_xor(hash(%s) >> 1), 0)::BIGINT", d.Columns("", columns))
}

// CreateSchema makes a schema if it is not there. PostgreSQL asks for the
// right to make schemas even where nothing is to be made, so it is asked only
// where something is.
func (d Dialect) CreateSchema(schema string) string {
	create := "CREATE SCHEMA IF NOT EXISTS " + d.Quote(schema)
	if d.Name == postgres {
		return block("", fmt.Sprintf("IF to_regnamespace(%s) IS NULL THEN %s; END IF;", d.String(d.Quote(schema)), create))
	}
	return create
}

// CreateView makes or replaces a view; the name is quoted already.
// PostgreSQL replaces a view only if its columns stay and new ones come last:
// otherwise it is dropped and made again, in one transaction. A view that is as
// it should be, which its comment tells, is left alone there: replacing it
// would wait for every query that reads it, and hold up those behind.
func (d Dialect) CreateView(view, query string) string {
	create := "CREATE OR REPLACE VIEW " + view + " AS " + query
	if d.Name == postgres {
		sum := sha256.Sum256([]byte(query))
		comment := d.String("kept by retrofill, " + hex.EncodeToString(sum[:8]))
		return block("", fmt.Sprintf(`IF obj_description(to_regclass(%[1]s), 'pg_class') IS DISTINCT FROM %[2]s THEN
    BEGIN
      %[3]s;
    EXCEPTION WHEN invalid_table_definition THEN
      DROP VIEW %[4]s;
      %[3]s;
    END;
    COMMENT ON VIEW %[4]s IS %[2]s;
  END IF;`, d.String(view), comment, create, view))
	}
	return create
}

// WidenColumn changes a stored column's type to one that holds every value of
// the old one. PostgreSQL refuses that while readers' view shows the column:
// there the view is dropped, and made again in the same transaction.
func (d Dialect) WidenColumn(table, view, column, typ string) string {
	alter := fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DATA TYPE %s", table, d.Quote(column), typ)
	if d.Name == postgres {
		return d.behindView(view, alter+";")
	}
	return alter
}

// RetypeColumn changes a stored column's type where values may be lost: what
// does not fit becomes NULL. PostgreSQL has no such cast, so a function of the
// session tries each value.
func (d Dialect) RetypeColumn(table, view, column, typ string) string {
	q := d.Quote(column)
	if d.Name == postgres {
		return d.behindView(view, fmt.Sprintf(`CREATE FUNCTION pg_temp.retrofill_fit(v text) RETURNS %[1]s LANGUAGE plpgsql AS $fit$
    DECLARE r %[1]s; BEGIN r := v; RETURN r; EXCEPTION WHEN data_exception THEN RETURN NULL; END $fit$;
  ALTER TABLE %[2]s ALTER COLUMN %[3]s SET DATA TYPE %[1]s USING pg_temp.retrofill_fit(%[3]s::text);
  DROP FUNCTION pg_temp.retrofill_fit(text);`, typ, table, q))
	}
	return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DATA TYPE %s USING TRY_CAST(%s AS %s)", table, q, typ, q, typ)
}

// DropColumn drops a stored column. On PostgreSQL readers' view, which shows
// the column still, goes with it, and comes back when views are made after the
// schema changes.
func (d Dialect) DropColumn(table, view, column string) string {
	drop := fmt.Sprintf("ALTER TABLE %s DROP COLUMN IF EXISTS %s", table, d.Quote(column))
	if d.Name == postgres {
		return block("", fmt.Sprintf("DROP VIEW IF EXISTS %s;\n  %s;", view, drop))
	}
	return drop
}

// behindView runs changes of stored columns while the view that shows them is
// away: PostgreSQL refuses them otherwise.
func (d Dialect) behindView(view, changes string) string {
	return block("shown text := pg_get_viewdef(to_regclass("+d.String(view)+"));",
		fmt.Sprintf("IF shown IS NOT NULL THEN DROP VIEW %s; END IF;\n  %s\n  IF shown IS NOT NULL THEN EXECUTE 'CREATE VIEW ' || %s || ' AS ' || shown; END IF;", view, changes, d.String(view)))
}

// PartitionIndex makes the index that finds a partition's rows, "" for an
// engine that needs none.
func (d Dialect) PartitionIndex(schema, table string, columns []string) string {
	if d.Name != postgres || len(columns) == 0 {
		return ""
	}
	return fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s (%s)", d.Quote(d.Shorten(table+"_retrofill_partition")), d.Table(schema, table), d.Columns("", columns))
}

// Fold gives the spelling under which the engine keeps a name that is written
// without quotes. DuckDB compares names without letter case and keeps what is
// written.
func (d Dialect) Fold(name string) string {
	if d.Name == postgres || d.Name == trino {
		return strings.ToLower(name)
	}
	return name
}

// TooLong tells whether the engine would cut a name off.
func (d Dialect) TooLong(name string) bool { return d.MaxIdentifier > 0 && len(name) > d.MaxIdentifier }

// Shorten gives a name of retrofill's own that fits; different names stay
// different.
func (d Dialect) Shorten(name string) string {
	if !d.TooLong(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := d.MaxIdentifier - 9
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "_" + hex.EncodeToString(sum[:4])
}

// block writes a PL/pgSQL block: one statement, one transaction.
func block(declare, body string) string {
	tag := "$retrofill$"
	for strings.Contains(declare+body, tag) {
		tag = tag[:len(tag)-1] + "_$"
	}
	if declare != "" {
		declare = "DECLARE " + declare + "\n"
	}
	return "DO " + tag + " " + declare + "BEGIN\n  " + body + "\nEND " + tag
}
