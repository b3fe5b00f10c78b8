package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/dialect"
)

// prober looks at the partitions of sources on the open engine.
type prober struct {
	engine  executors.Engine
	dialect dialect.Dialect
	catalog *catalog
}

var _ planner.Prober = (*prober)(nil)

// Partitions implements planner.Prober with one query. Bounds are written in
// the column's own type, so that the engine can leave out what lies outside.
func (p *prober) Partitions(ctx context.Context, table, column, from, to string) ([]string, error) {
	t, ok := p.catalog.find(table)
	if !ok {
		return nil, fmt.Errorf("cli: look at partitions of %s: it is not in the engine", table)
	}
	name, typ := "", ""
	for _, c := range t.Columns {
		if strings.EqualFold(c.Name, column) {
			name, typ = c.Name, c.Type
		}
	}
	if name == "" {
		return nil, fmt.Errorf("cli: look at partitions of %s: it has no column %s", table, column)
	}
	schema, table, _ := strings.Cut(t.Name, ".")
	col := p.dialect.Quote(name)
	shown, high := col, col+" <= "+p.dialect.Typed(to, typ)
	if strings.HasPrefix(strings.ToUpper(typ), "TIMESTAMP") && len(to) == len("2006-01-02") { // all of the last day
		shown = "CAST(" + col + " AS DATE)"
		high = fmt.Sprintf("%s < %s + INTERVAL '1' DAY", col, p.dialect.Typed(to, typ))
	}
	rows, err := p.engine.Query(ctx, fmt.Sprintf("SELECT DISTINCT CAST(%s AS VARCHAR) AS v FROM %s WHERE %s >= %s AND %s",
		shown, p.dialect.Table(schema, table), col, p.dialect.Typed(from, typ), high), 0)
	if err != nil {
		return nil, fmt.Errorf("cli: look at partitions of %s: %w", t.Name, err)
	}
	out := make([]string, 0, len(rows.Values))
	for _, r := range rows.Values {
		v, ok := r[0].(string)
		if !ok {
			return nil, errors.New("cli: look at partitions of " + t.Name + ": the engine gave no text")
		}
		out = append(out, v)
	}
	return out, nil
}
