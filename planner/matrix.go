package planner

import (
	"context"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/stale"
)

// Matrix gives the staleness matrix (semantics §4.6) of some tables, on the
// given business dates, or on all recorded ones where none is given. It reads
// model, ledger and environment of deps only. Diagnostics: unknown_node,
// not_a_table, broken_table; tables with an error are left out.
func Matrix(ctx context.Context, deps Deps, tables []string, dates []bizdate.Date) ([]*stale.Table, diag.List, error) {
	b := &build{deps: deps, dates: dates}
	for _, name := range tables {
		n := deps.Model.Node(name)
		switch {
		case n == nil:
			b.diags = append(b.diags, diag.Errorf("unknown_node", "no table is called %q", name).
				WithHint("%s", diag.DidYouMean(name, deps.Model.Names(), "`retrofill ls` lists the nodes")))
		case !n.IsTable():
			b.errorf("not_a_table", "%s is a task: it has no fields", n.Name)
		case n.Analysis == nil || n.Diagnostics.HasErrors():
			b.diags = append(b.diags, n.Diagnostics...)
			b.errorf("broken_table", "%s cannot be analysed", n.Name).Hint = "`retrofill validate` tells why"
		default:
			b.targets = append(b.targets, n)
		}
	}
	if len(b.targets) == 0 {
		return nil, b.diags, nil
	}
	if err := b.loadStale(ctx); err != nil {
		return nil, nil, err
	}
	x := stale.New(deps.Model, b.facts())
	lists := make([][]bizdate.Date, len(b.targets))
	var all []bizdate.Date
	for i, n := range b.targets {
		lists[i] = StaleDates(x, n, dates)
		all = append(all, lists[i]...)
	}
	derive := lineage.NewDeriver(deps.Model, all)
	out := make([]*stale.Table, len(b.targets))
	for i, n := range b.targets {
		out[i] = x.Judge(n, lists[i], derive).Table()
	}
	return out, b.diags, nil
}
