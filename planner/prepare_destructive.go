package planner

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/planner/compile"
	"github.com/retrofill/retrofill/planner/fields"
)

// dropRemoved gives the DDL that drops the columns of fields that a written
// table no longer has, with --drop-removed. Without it they are kept; a
// rewritten slot holds NULL there.
func (b *build) dropRemoved(p *picked, t compile.Table, n compile.Node, have Table) []string {
	var out, names []string
	columns := t.NodeColumns(n)
	for _, h := range have.Columns {
		if slices.ContainsFunc(columns, func(c compile.Column) bool { return strings.EqualFold(c.Name, h.Name) }) {
			continue
		}
		names = append(names, h.Name)
		out = append(out, t.Dialect.DropColumn(t.Physical(n.Name), t.Physical(t.Name), h.Name))
	}
	if len(names) == 0 {
		return nil
	}
	list := strings.Join(names, ", ")
	if !b.req.DropRemoved {
		if slices.ContainsFunc(p.writes, func(w fields.Write) bool { return w.Node == n.Name }) {
			b.warnf("removed_kept", "%s stores %s, which %s no longer has", n.Name, list, p.node.Name).
				Hint = "the stored columns are kept; --drop-removed drops them"
		}
		return nil
	}
	b.warnf("removed_dropped", "%s of %s will be dropped, with the values of all dates", list, n.Name)
	return out
}

// retype gives the DDL of a type change that may lose values, with
// --allow-destructive: what does not fit the new type becomes NULL, on all
// dates.
func (b *build) retype(p *picked, t compile.Table, n compile.Node, c compile.Column, was string) string {
	b.warnf("type_lossy", "field %s of %s becomes %s, stored as %s in %s: values that do not fit become NULL on all dates", c.Name, p.node.Name, c.Type, was, n.Name)
	return t.Dialect.RetypeColumn(t.Physical(n.Name), t.Physical(t.Name), c.Name, c.Type)
}
