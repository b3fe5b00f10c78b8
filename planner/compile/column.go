package compile

import (
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/planner/plan"
)

// RefreshColumns gives the statements that refresh only some fields in place
// (semantics §4.8): the slot's key and the refreshed fields are computed once,
// each written node is updated by key, and the transaction proves that every
// stored key was matched exactly once, that no row of the row set is missing
// from the table, and that every other column is as it was (a digest before
// and after). Nodes' Fields to refresh are given by node name.
func RefreshColumns(t Table, refreshed map[string][]string) ([]plan.Statement, []plan.Rule, error) {
	if len(t.Key) == 0 {
		return nil, nil, fmt.Errorf("compile: refresh columns of %s: no key is declared", t.Name)
	}
	d := t.Dialect
	given := refreshed
	refreshed = make(map[string][]string, len(given))
	for node, fields := range given {
		refreshed[node] = t.spelled(fields)
	}
	var written []Node
	cols := append([]string(nil), t.Key...)
	for _, n := range t.Nodes {
		if len(refreshed[n.Name]) == 0 {
			continue
		}
		written = append(written, n)
		for _, f := range refreshed[n.Name] {
			if containsFold(t.Key, f) {
				return nil, nil, fmt.Errorf("compile: refresh columns of %s: %s is a key column", t.Name, f)
			}
			if !containsFold(cols, f) {
				cols = append(cols, f)
			}
		}
	}
	stmts := []plan.Statement{{
		Role: "stage", Target: stage,
		SQL: d.Stage(stage, fmt.Sprintf("SELECT %s FROM (\n%s\n) AS q", d.Columns("q.", cols), t.Body)),
	}}
	facts, rules, _ := t.keyFacts("stage", stage, "", cols)
	stmts = append(stmts, facts)
	where := t.where("")
	for _, n := range written {
		phys := t.Physical(n.Name)
		sets := make([]string, len(refreshed[n.Name]))
		for i, f := range refreshed[n.Name] {
			sets[i] = d.Quote(f) + " = q." + d.Quote(f)
		}
		on := make([]string, len(t.Key))
		for i, k := range t.Key {
			on[i] = "t." + d.Quote(k) + " = q." + d.Quote(k)
		}
		digest := t.digest(n, refreshed[n.Name])
		stmts = append(stmts,
			plan.Statement{Role: "facts", Target: n.Name, Name: "before." + n.Name,
				SQL: fmt.Sprintf("SELECT count(*) AS rows, %s FROM %s WHERE %s", digest, phys, where)},
			plan.Statement{Role: "update", Target: phys,
				SQL: fmt.Sprintf("UPDATE %s AS t SET %s FROM %s AS q WHERE %s AND %s",
					phys, strings.Join(sets, ", "), stage, t.where("t."), strings.Join(on, " AND "))},
			plan.Statement{Role: "facts", Target: n.Name, Name: "after." + n.Name,
				SQL: fmt.Sprintf("SELECT count(*) AS rows, %s FROM %s WHERE %s", digest, phys, where)},
		)
		differ := func(fact, other, message string) plan.Rule {
			return plan.Rule{Fact: fact, Kind: "equals", Other: other, Code: "keys_differ", Message: message}
		}
		kept := func(fact string) plan.Rule {
			return plan.Rule{Fact: "after." + n.Name + "." + fact, Kind: "equals", Other: "before." + n.Name + "." + fact, Code: "kept_changed",
				Message: fmt.Sprintf("columns of node %s that were to be kept have changed", n.Name)}
		}
		rules = append(rules,
			differ("updated."+phys, "stage."+factRows, fmt.Sprintf("the row set has keys that node %s does not hold", n.Name)),
			differ("updated."+phys, "before."+n.Name+"."+factRows, fmt.Sprintf("node %s holds keys that the row set does not have", n.Name)),
			kept("kept"), kept("rows"),
		)
	}
	return stmts, rules, nil
}

// digest gives an order-free digest of every column of the node that is not
// refreshed, partition and key included, as a BIGINT named kept.
func (t Table) digest(n Node, refreshed []string) string {
	var names []string
	for _, c := range t.NodeColumns(n) {
		if !containsFold(refreshed, c.Name) {
			names = append(names, c.Name)
		}
	}
	return t.Dialect.Digest(names) + " AS kept"
}
