package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
)

var _ planner.Acceptor = (*Ledger)(nil)

// Accept records that older logic is accepted before a date. The definitions
// that the acceptances name are stored with them. An acceptance of the same
// table and fields by the same definition is replaced.
func (l *Ledger) Accept(ctx context.Context, environment, by string, list []plan.Acceptance, defs map[string]plan.Definition) error {
	return l.apply(ctx, "record acceptance", func(t *tx) error {
		used := maps.Clone(defs)
		maps.DeleteFunc(used, func(id string, _ plan.Definition) bool {
			return !slices.ContainsFunc(list, func(a plan.Acceptance) bool { return a.Definition == id })
		})
		if err := insertDefinitions(t, used); err != nil {
			return err
		}
		for _, a := range list {
			var definition int64
			found, err := t.get(&definition, "SELECT id FROM definitions WHERE digest = ?", a.Definition)
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("definition %s is not stored", a.Definition)
			}
			fields := ""
			if a.Fields != nil {
				sorted := slices.Clone(a.Fields)
				slices.Sort(sorted)
				b, err := json.Marshal(sorted)
				if err != nil {
					return err
				}
				fields = string(b)
			}
			if _, err := t.exec("DELETE FROM acceptances WHERE environment = ? AND tbl = ? AND fields = ? AND definition = ?",
				environment, a.Table, fields, definition); err != nil {
				return err
			}
			if _, err := t.exec("INSERT INTO acceptances (environment, tbl, fields, before, definition, at, by_whom) VALUES (?, ?, ?, ?, ?, ?, ?)",
				environment, a.Table, fields, int(a.Before), definition, toMicros(t.now), by); err != nil {
				return err
			}
		}
		return nil
	})
}

// Acceptances gives what is accepted in an environment, oldest first.
func (l *Ledger) Acceptances(ctx context.Context, environment string) ([]planner.Acceptance, error) {
	var rows []struct {
		Tbl, Fields, Definition, By string
		Before                      int
		At                          micros
	}
	if err := l.list(ctx, "read acceptances", &rows, `SELECT a.tbl, a.fields, a.before, coalesce(d.digest, '') AS definition, a.at, a.by_whom AS "by"
		FROM acceptances a LEFT JOIN definitions d ON d.id = a.definition WHERE a.environment = ? ORDER BY a.id`, environment); err != nil {
		return nil, err
	}
	out := make([]planner.Acceptance, len(rows))
	for i, r := range rows {
		out[i] = planner.Acceptance{Acceptance: plan.Acceptance{Table: r.Tbl, Before: bizdate.Date(r.Before), Definition: r.Definition}, By: r.By, At: r.At.time()}
		if r.Fields == "" {
			continue
		}
		if err := json.Unmarshal([]byte(r.Fields), &out[i].Fields); err != nil {
			return nil, l.problem("read acceptances", err)
		}
	}
	return out, nil
}
