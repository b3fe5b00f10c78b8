package duckdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/sqlscript"
)

// Catalog lists tables and views with their columns, primary keys and unique
// constraints and DuckDB's row estimate (-1 for views), ordered by schema and
// name. Schema names are compared without letter case. Temporary tables and
// the commit markers are left out.
func (e *Engine) Catalog(ctx context.Context, schemas []string) ([]executors.TableInfo, error) {
	var out []executors.TableInfo
	err := guard("read the catalog", func() (err error) {
		out, err = e.readCatalog(ctx, schemas)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("duckdb: read the catalog: %w", cancelled(ctx, explain(err)))
	}
	return out, nil
}

func (e *Engine) readCatalog(ctx context.Context, schemas []string) ([]executors.TableInfo, error) {
	cond := "database_name = current_database() AND NOT internal"
	var args []any
	if schemas != nil {
		if len(schemas) == 0 {
			return nil, nil
		}
		for _, s := range schemas {
			args = append(args, strings.ToLower(s))
		}
		cond += " AND lower(schema_name) IN (?" + strings.Repeat(", ?", len(args)-1) + ")"
	}
	twice := append(append([]any{}, args...), args...)

	var tables []struct {
		Schema string `db:"schema_name"`
		Name   string `db:"name"`
		View   bool   `db:"is_view"`
		Rows   int64  `db:"row_estimate"`
	}
	if err := e.db.SelectContext(ctx, &tables, `
SELECT schema_name, table_name AS name, false AS is_view, coalesce(estimated_size, -1)::BIGINT AS row_estimate FROM duckdb_tables() WHERE NOT temporary AND `+cond+`
UNION ALL
SELECT schema_name, view_name, true, -1 FROM duckdb_views() WHERE NOT temporary AND `+cond+`
ORDER BY 1, 2`, twice...); err != nil {
		return nil, err
	}
	type id struct{ schema, name string }
	out := make([]executors.TableInfo, 0, len(tables))
	at := make(map[id]int, len(tables))
	for _, t := range tables {
		if t.Schema == e.opt.MarkerSchema && t.Name == markerTable {
			continue
		}
		at[id{t.Schema, t.Name}] = len(out)
		out = append(out, executors.TableInfo{Schema: t.Schema, Name: t.Name, View: t.View, Rows: t.Rows})
	}

	var columns []struct {
		Schema   string `db:"schema_name"`
		Table    string `db:"table_name"`
		Name     string `db:"column_name"`
		Type     string `db:"data_type"`
		Nullable bool   `db:"is_nullable"`
	}
	if err := e.db.SelectContext(ctx, &columns, `
SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE `+cond+`
ORDER BY schema_name, table_name, column_index`, args...); err != nil {
		return nil, err
	}
	for _, c := range columns {
		if i, ok := at[id{c.Schema, c.Table}]; ok {
			out[i].Columns = append(out[i].Columns, executors.Column{Name: c.Name, Type: c.Type, NotNull: !c.Nullable})
		}
	}

	rows, err := e.db.QueryContext(ctx, `
SELECT schema_name, table_name, constraint_column_names FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND database_name = current_database()
ORDER BY schema_name, table_name, constraint_type, constraint_index`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t id
		var names duck.Composite[[]string]
		if err := rows.Scan(&t.schema, &t.name, &names); err != nil {
			return nil, err
		}
		if i, ok := at[t]; ok {
			out[i].Keys = append(out[i].Keys, names.Get())
		}
	}
	return out, rows.Err()
}

// Describe gives names and types of a query's columns without running it.
func (e *Engine) Describe(ctx context.Context, sql string) ([]executors.Column, error) {
	stmts := sqlscript.Split(sql)
	if len(stmts) != 1 {
		return nil, fmt.Errorf("duckdb: describe: %d statements where one is expected", len(stmts))
	}
	switch sqlscript.FirstWord(stmts[0]) {
	case "SELECT", "WITH", "FROM", "VALUES", "(", "TABLE", "PIVOT", "UNPIVOT":
	default:
		return nil, fmt.Errorf("duckdb: describe: %s is not a query", sqlscript.FirstWord(stmts[0]))
	}
	conn, err := e.db.Connx(ctx)
	if err != nil {
		return nil, fmt.Errorf("duckdb: describe: %w", cancelled(ctx, explain(err)))
	}
	defer conn.Close()
	var out []executors.Column
	err = guard("describe", func() error {
		return conn.Raw(func(c any) (err error) {
			out, err = describe(ctx, c.(*duck.Conn), stmts[0])
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("duckdb: describe: %w", cancelled(ctx, explain(err)))
	}
	return out, nil
}

// Query runs one reading statement. Booleans, integers, floats and strings
// come as Go values, all other types in DuckDB's own spelling. More than one
// statement, or one that writes, is refused.
func (e *Engine) Query(ctx context.Context, sql string, limit int) (executors.Rows, error) {
	fail := func(err error) (executors.Rows, error) {
		return executors.Rows{}, fmt.Errorf("duckdb: query: %w", cancelled(ctx, explain(err)))
	}
	stmts := sqlscript.Split(sql)
	if len(stmts) != 1 {
		return fail(fmt.Errorf("%d statements where one is expected", len(stmts)))
	}
	conn, err := e.db.Connx(ctx)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	var out executors.Rows
	err = guard("query", func() error {
		return conn.Raw(func(c any) (err error) {
			out, err = query(ctx, c.(*duck.Conn), stmts[0], limit)
			return err
		})
	})
	if err != nil {
		return fail(err)
	}
	return out, nil
}

// query reads on the driver's own connection: only there the types are known
// before anything runs.
func query(ctx context.Context, conn *duck.Conn, sql string, limit int) (out executors.Rows, err error) {
	stmt, err := prepare(conn, sql)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	kind, err := stmt.StatementType()
	if err != nil {
		return out, err
	}
	switch kind {
	case duck.STATEMENT_TYPE_SELECT, duck.STATEMENT_TYPE_EXPLAIN, duck.STATEMENT_TYPE_PRAGMA, duck.STATEMENT_TYPE_RELATION:
	default:
		return out, fmt.Errorf("the statement does not only read: %s", sqlscript.FirstWord(sql))
	}
	if stmt.NumInput() > 0 {
		return out, errors.New("the statement has parameters without values")
	}
	run := stmt
	if kind == duck.STATEMENT_TYPE_SELECT {
		wrapped, err := wrap(ctx, conn, sql, limit)
		if err != nil {
			return out, err
		}
		if wrapped.stmt != nil {
			defer func() { err = errors.Join(err, wrapped.stmt.Close()) }()
			run, out.Columns = wrapped.stmt, wrapped.columns
		}
	}
	rows, err := run.QueryContext(ctx, nil)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if out.Columns == nil {
		types := rows.(driver.RowsColumnTypeDatabaseTypeName)
		for i, name := range rows.Columns() {
			out.Columns = append(out.Columns, executors.Column{Name: name, Type: types.ColumnTypeDatabaseTypeName(i)})
		}
	}
	row := make([]driver.Value, len(out.Columns))
	for {
		if err := ctx.Err(); err != nil {
			return executors.Rows{}, err
		}
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return executors.Rows{}, err
		}
		if limit > 0 && len(out.Values) == limit {
			out.Truncated = true
			return out, nil
		}
		values := make([]any, len(row))
		for i, v := range row {
			values[i] = plain(v)
		}
		out.Values = append(out.Values, values)
	}
}

// prepare refuses more than one statement: the driver's other ways would run
// all but the last one while preparing.
func prepare(conn *duck.Conn, sql string) (*duck.Stmt, error) {
	s, err := conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	return s.(*duck.Stmt), nil
}
