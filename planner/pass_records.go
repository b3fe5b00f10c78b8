package planner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/fields"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// DefinitionOf gives what the ledger keeps of a table's logic, and its id: a
// hash of its text.
func DefinitionOf(n *lineage.Node) (string, plan.Definition, error) {
	a := n.Analysis
	nodes := map[string][]string{}
	for _, m := range n.Table.Nodes {
		list := make([]string, len(m.Fields))
		for i, f := range m.Fields {
			list[i] = strings.ToLower(f)
		}
		slices.Sort(list)
		nodes[strings.ToLower(m.Name)] = list
	}
	text, err := json.Marshal(definitionText{a.Version, a.Definition, a.Schema, nodes})
	if err != nil {
		return "", plan.Definition{}, fmt.Errorf("planner: encode definition of %s: %w", n.Name, err)
	}
	d := plan.Definition{
		Table: n.Name, Version: a.Version, Text: string(text),
		RowSet: a.RowSet.Fingerprint, Key: a.RowSet.KeyFingerprint, Fields: map[string]string{}, Nodes: nodes,
	}
	for _, f := range a.Fields {
		d.Fields[strings.ToLower(f.Name)] = f.Fingerprint
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), d, nil
}

// passRecords reads what built the slots of every table in reach.
func passRecords(ctx context.Context, b *build) error {
	if b.diags.HasErrors() || len(b.dates) == 0 {
		return nil
	}
	var nodes []string
	for _, n := range b.withInputs(b.reach()) {
		if !n.IsTable() {
			continue
		}
		for _, m := range n.Table.Nodes {
			nodes = append(nodes, m.Name)
		}
	}
	return b.load(ctx, nodes, b.dates[0]-lookBack, b.dates[len(b.dates)-1]+lookAhead)
}

// load reads the records of some nodes on some business dates, with their
// definitions and with what is accepted.
func (b *build) load(ctx context.Context, nodes []string, from, to bizdate.Date) error {
	if err := b.loadAcceptances(ctx); err != nil {
		return err
	}
	list, err := b.deps.Ledger.Built(ctx, b.deps.Environment, nodes, from, to)
	if err != nil {
		return fmt.Errorf("planner: read ledger: %w", err)
	}
	if list, err = b.standing(ctx, list); err != nil {
		return err
	}
	b.records, b.segs, b.from, b.to = map[string][]Built{}, nil, from, to
	ids := map[string]bool{}
	for _, r := range list {
		k := strings.ToLower(r.Node)
		b.records[k] = append(b.records[k], r)
		ids[r.Definition] = true
	}
	for _, a := range b.accepted {
		ids[a.Definition] = true
	}
	wanted := make([]string, 0, len(ids))
	for id := range ids {
		wanted = append(wanted, id)
	}
	slices.Sort(wanted)
	if b.defs, err = b.deps.Ledger.Definitions(ctx, wanted); err != nil {
		return fmt.Errorf("planner: read definitions: %w", err)
	}
	for id, d := range b.defs {
		if d.Version == 0 { // the text knows it
			var v struct {
				Version int `json:"version"`
			}
			if err := json.Unmarshal([]byte(d.Text), &v); err != nil {
				return fmt.Errorf("planner: read definition %s: %w", id, err)
			}
			d.Version = v.Version
			b.defs[id] = d
		}
		if d.Version == sqlast.FormatVersion || b.deps.Parser == nil {
			continue
		}
		again, ok, err := Rejudge(ctx, b.deps.Parser, d)
		if err != nil {
			return err
		}
		if ok {
			b.defs[id] = again
		}
	}
	return nil
}

// lookBack and lookAhead are the days around the selection whose records are
// read, for slots outside the backfill that its nodes read.
const (
	lookBack  = 62
	lookAhead = 7
)

// change is a run of dates on which recorded logic differs from today's, with
// the record that shows it.
type change struct {
	from, to bizdate.Date
	record   Built
}

// changes finds, for one table, where the recorded key, row set and fields
// differ from today's.
type changes struct {
	key, rowSet []change
	fields      map[string][]change // by field name as declared
}

func (b *build) changesOf(n *lineage.Node) changes {
	out := changes{fields: map[string][]change{}}
	if !slices.ContainsFunc(n.Table.Nodes, func(m modeling.MaterializationNode) bool { return len(b.records[strings.ToLower(m.Name)]) > 0 }) {
		return out // never built: nothing to compare
	}
	_, now, err := DefinitionOf(n)
	if err != nil {
		return out
	}
	for _, m := range n.Table.Nodes {
		for _, r := range b.records[strings.ToLower(m.Name)] {
			was, ok := b.defs[r.Definition]
			c := change{r.Date, r.DateTo, r}
			if !ok || was.Version != now.Version || was.Key != now.Key {
				out.key = append(out.key, c)
			}
			if ok && was.Version == now.Version && was.RowSet != now.RowSet {
				out.rowSet = append(out.rowSet, c)
			}
		}
		for _, f := range m.Fields {
			out.fields[f] = append(out.fields[f], b.fieldChanges(m.Name, f, false, now)...)
		}
		for _, f := range n.Table.Key {
			out.fields[f] = append(out.fields[f], b.fieldChanges(m.Name, f, true, now)...)
		}
	}
	return out
}

// when makes changes a predicate on dates.
func when(list []change) fields.When {
	if len(list) == 0 {
		return nil
	}
	return fields.Func(func(d bizdate.Date) bool {
		return slices.ContainsFunc(list, func(c change) bool { return c.from <= d && d <= c.to })
	})
}

// firstChange gives the earliest change that meets the selected dates.
func firstChange(list []change, dates []bizdate.Date) (change, bool) {
	best := change{from: noDate}
	for _, c := range list {
		if c.from < best.from && slices.ContainsFunc(dates, func(d bizdate.Date) bool { return c.from <= d && d <= c.to }) {
			best = c
		}
	}
	return best, best.from != noDate
}

const noDate = bizdate.Date(1<<31 - 1)

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

// sortPicked puts nodes in dependency order.
func sortPicked(list []*picked) {
	slices.SortFunc(list, func(a, b *picked) int { return cmp.Compare(a.node.Position, b.node.Position) })
}

// standing leaves out the records of physical tables that the engine no longer
// has: whatever the ledger says, their slots hold nothing now.
func (b *build) standing(ctx context.Context, list []Built) ([]Built, error) {
	gone := map[string]bool{}
	var names []string
	for _, r := range list {
		if _, known := gone[r.Node]; known {
			continue
		}
		_, ok, err := b.deps.Catalog.Table(ctx, b.deps.Schema+"."+r.Node)
		if err != nil {
			return nil, fmt.Errorf("planner: look up %s: %w", r.Node, err)
		}
		if gone[r.Node] = !ok; !ok {
			names = append(names, r.Node)
		}
	}
	if len(names) == 0 {
		return list, nil
	}
	slices.Sort(names)
	w := b.warnf("table_gone", "the ledger says that %s was built, but schema %s has no such table", strings.Join(names, ", "), b.deps.Schema)
	w.Hint = "its slots count as never built; if it was dropped by mistake, restore it before you run this"
	return slices.DeleteFunc(list, func(r Built) bool { return gone[r.Node] }), nil
}
