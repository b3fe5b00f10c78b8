package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/retrofill/retrofill/executors"
)

// typeName spells a type as the server does, its own types in upper case;
// typ and modifier are SQL expressions.
func typeName(typ, modifier string) string {
	return fmt.Sprintf("(SELECT CASE WHEN typnamespace = 'pg_catalog'::regnamespace THEN upper(format_type(oid, %[2]s)) ELSE format_type(oid, %[2]s) END FROM pg_type WHERE oid = %[1]s)", typ, modifier)
}

// Catalog lists tables and views (materialized ones and foreign tables too)
// with their columns, primary keys and unique indexes and the server's row
// estimate (-1 = unknown), ordered by schema and name. Schema names are
// compared without letter case. Temporary tables, the system's schemas and the
// commit markers are left out.
func (e *Engine) Catalog(ctx context.Context, schemas []string) ([]executors.TableInfo, error) {
	out, err := e.readCatalog(ctx, schemas)
	if err != nil {
		return nil, fmt.Errorf("postgres: read the catalog: %w", cancelled(ctx, explain(err)))
	}
	return out, nil
}

func (e *Engine) readCatalog(ctx context.Context, schemas []string) ([]executors.TableInfo, error) {
	if schemas != nil && len(schemas) == 0 {
		return nil, nil
	}
	wanted := make([]string, len(schemas))
	for i, s := range schemas {
		wanted[i] = strings.ToLower(s)
	}
	const from = `
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND NOT (n.nspname = $1 AND c.relname = $2) AND (cardinality($3::text[]) = 0 OR lower(n.nspname) = ANY ($3::text[]))`
	var tables []struct {
		ID     uint32 `db:"oid"`
		Schema string `db:"nspname"`
		Name   string `db:"relname"`
		View   bool   `db:"is_view"`
		Rows   int64  `db:"row_estimate"`
	}
	args := []any{e.opt.MarkerSchema, markerTable, wanted}
	if err := e.db.SelectContext(ctx, &tables, `
SELECT c.oid::bigint AS oid, n.nspname, c.relname, c.relkind IN ('v', 'm') AS is_view,
CASE WHEN c.relkind IN ('v', 'f') OR c.reltuples < 0 THEN -1 ELSE c.reltuples END::bigint AS row_estimate`+from+`
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"`, args...); err != nil {
		return nil, err
	}
	out := make([]executors.TableInfo, len(tables))
	at := make(map[uint32]int, len(tables))
	for i, t := range tables {
		at[t.ID] = i
		out[i] = executors.TableInfo{Schema: t.Schema, Name: t.Name, View: t.View, Rows: t.Rows}
	}
	var columns []struct {
		Table   uint32 `db:"oid"`
		Name    string `db:"attname"`
		Type    string `db:"type_name"`
		NotNull bool   `db:"attnotnull"`
	}
	if err := e.db.SelectContext(ctx, &columns, `
SELECT a.attrelid::bigint AS oid, a.attname, `+typeName("a.atttypid", "a.atttypmod")+` AS type_name, a.attnotnull
FROM pg_attribute a WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (SELECT c.oid`+from+`)
ORDER BY a.attrelid, a.attnum`, args...); err != nil {
		return nil, err
	}
	for _, c := range columns {
		if i, ok := at[c.Table]; ok { // a table may have come between the two
			out[i].Columns = append(out[i].Columns, executors.Column{Name: c.Name, Type: spelled(c.Type), NotNull: c.NotNull})
		}
	}
	var keys []struct {
		Table uint32 `db:"indrelid"`
		Names string `db:"names"`
	}
	if err := e.db.SelectContext(ctx, &keys, `
SELECT i.indrelid::bigint AS indrelid, (SELECT json_agg(a.attname ORDER BY k.position)
  FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, position)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE k.position <= i.indnkeyatts)::text AS names
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indrelid IN (SELECT c.oid`+from+`)
ORDER BY i.indrelid, i.indisprimary DESC, x.relname COLLATE "C"`, args...); err != nil {
		return nil, err
	}
	for _, k := range keys {
		i, ok := at[k.Table]
		if !ok {
			continue
		}
		var names []string
		if err := json.Unmarshal([]byte(k.Names), &names); err != nil {
			return nil, fmt.Errorf("read a key of %s: %w", out[i].Name, err)
		}
		out[i].Keys = append(out[i].Keys, names)
	}
	return out, nil
}

// zoned finds the place of a precision in the long names of times.
var zoned = regexp.MustCompile(`^(TIME|TIMESTAMP)(\(\d\))? (WITH|WITHOUT) TIME ZONE`)

// spelled shortens the type names of the standard to the usual ones, which
// PostgreSQL reads as well.
func spelled(typ string) string {
	if strings.Contains(typ, `"`) {
		return typ
	}
	if m := zoned.FindStringSubmatch(typ); m != nil {
		short := m[1] + m[2]
		if m[3] == "WITH" {
			short = m[1] + "TZ" + m[2]
		}
		return short + typ[len(m[0]):]
	}
	for long, short := range map[string]string{"CHARACTER VARYING": "VARCHAR", "CHARACTER(": "CHAR("} {
		if rest, ok := strings.CutPrefix(typ, long); ok {
			return short + rest
		}
	}
	return typ
}

// Describe gives names and types of a query's columns. The server plans
// nothing and runs nothing: it only reads the text.
func (e *Engine) Describe(ctx context.Context, sql string) ([]executors.Column, error) {
	var out []executors.Column
	err := e.with(ctx, "describe", func(pg *pgconn.PgConn) error {
		text, err := one(sql)
		if err != nil {
			return err
		}
		if !reads(text) {
			return errors.New("the statement is not a query")
		}
		d, err := pg.Prepare(ctx, "", text, nil)
		if err != nil {
			return err
		}
		if len(d.ParamOIDs) > 0 {
			return errors.New("the query has parameters without values")
		}
		if len(d.Fields) == 0 {
			return errors.New("the query gives no columns")
		}
		out, err = columns(ctx, pg, d.Fields)
		return err
	})
	return out, err
}

// columns names the types of a result's fields.
func columns(ctx context.Context, pg *pgconn.PgConn, fields []pgconn.FieldDescription) ([]executors.Column, error) {
	out := make([]executors.Column, len(fields))
	types, modifiers := make([]string, len(fields)), make([]string, len(fields))
	for i, f := range fields {
		out[i].Name = f.Name
		types[i], modifiers[i] = strconv.FormatUint(uint64(f.DataTypeOID), 10), strconv.Itoa(int(f.TypeModifier))
	}
	list := func(items []string) []byte { return []byte("{" + strings.Join(items, ",") + "}") }
	res := pg.ExecParams(ctx, "SELECT "+typeName("f.type", "f.modifier")+
		" FROM unnest($1::oid[], $2::int4[]) WITH ORDINALITY AS f(type, modifier, position) ORDER BY f.position",
		[][]byte{list(types), list(modifiers)}, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	for i, row := range res.Rows {
		out[i].Type = spelled(string(row[0]))
	}
	return out, nil
}

// Query runs one reading statement in a read-only transaction. Booleans,
// integers, floats and strings come as Go values, all other types in the
// server's own spelling. More than one statement, or one that writes, is
// refused.
func (e *Engine) Query(ctx context.Context, sql string, limit int) (executors.Rows, error) {
	var out executors.Rows
	err := e.with(ctx, "query", func(pg *pgconn.PgConn) (err error) {
		out, err = query(ctx, pg, sql, limit)
		return err
	})
	if err != nil {
		return executors.Rows{}, err
	}
	return out, nil
}

func query(ctx context.Context, pg *pgconn.PgConn, sql string, limit int) (out executors.Rows, err error) {
	text, err := one(sql)
	if err != nil {
		return out, err
	}
	if !reads(text) && !shows(text) {
		return out, errors.New("the statement does not only read")
	}
	if _, err := exec(ctx, pg, "BEGIN READ ONLY"); err != nil {
		return out, err
	}
	if limit > 0 && reads(text) {
		// With a cursor the server computes no more than is asked for.
		if _, err := exec(ctx, pg, "DECLARE retrofill_rows NO SCROLL CURSOR FOR "+text); err != nil {
			return out, err
		}
		text = "FETCH FORWARD " + strconv.Itoa(limit+1) + " FROM retrofill_rows"
	}
	rr := pg.ExecParams(ctx, text, nil, nil, nil, nil)
	var fields []pgconn.FieldDescription
	for rr.NextRow() {
		fields = rr.FieldDescriptions()
		if limit > 0 && len(out.Values) == limit {
			out.Truncated = true
			continue // at most one row where there is a cursor
		}
		row := make([]any, len(fields))
		for i, v := range rr.Values() {
			row[i] = plain(fields[i].DataTypeOID, v)
		}
		out.Values = append(out.Values, row)
	}
	fields = append([]pgconn.FieldDescription(nil), rr.FieldDescriptions()...)
	if _, err := rr.Close(); err != nil {
		return out, err
	}
	if out.Columns, err = columns(ctx, pg, fields); err != nil {
		return out, err
	}
	_, err = exec(ctx, pg, "ROLLBACK")
	return out, err
}

// plain makes one of executors.Rows' kinds of values of a value's text.
func plain(oid uint32, v []byte) any {
	if v == nil {
		return nil
	}
	text := string(v)
	switch oid {
	case pgtype.BoolOID:
		return text == "t"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		// The server writes the shortest text that reads back as the same
		// number, 0.1 for a single too.
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	}
	return text
}
