package planner

import (
	"strings"

	"github.com/retrofill/retrofill/planner/compile"
)

// spell gives a table's columns the spelling under which the engine keeps
// them: that of its own description of the SELECT, and for the columns that
// only the YAML names, its rule for names without quotes. On an engine that
// compares names without letter case nothing changes.
func (b *build) spell(t *compile.Table) {
	if b.dialect.Fold("A") == "A" {
		return
	}
	spelled := func(names []string) []string {
		out := make([]string, len(names))
		for i, name := range names {
			out[i] = b.dialect.Fold(name)
			for _, c := range t.Fields {
				if strings.EqualFold(c.Name, name) {
					out[i] = c.Name
				}
			}
		}
		return out
	}
	t.Key = spelled(t.Key)
	for i := range t.Partition {
		t.Partition[i].Column = b.dialect.Fold(t.Partition[i].Column)
	}
	for i := range t.Nodes {
		t.Nodes[i].Fields = spelled(t.Nodes[i].Fields)
	}
}

// checkLengths refuses names that the engine would cut off: two of them could
// become one.
func (b *build) checkLengths(p *picked, t compile.Table) {
	names := []string{b.deps.Schema, t.Name}
	for _, n := range t.Nodes {
		names = append(names, n.Name)
		for _, c := range t.NodeColumns(n) {
			names = append(names, c.Name)
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if !b.dialect.TooLong(name) || seen[name] {
			continue
		}
		seen[name] = true
		d := b.errorf("name_too_long", "%s: the name %s is longer than the %d bytes that %s keeps", p.node.Name, name, b.dialect.MaxIdentifier, b.dialect.Name)
		d.Pos, d.Hint = p.node.Pos(), "choose a shorter name"
	}
}
