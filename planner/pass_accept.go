package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// loadAcceptances reads what is accepted, and adds what this request accepts,
// which must not be dates that it refreshes.
func (b *build) loadAcceptances(ctx context.Context) error {
	b.checkEffectiveDates()
	b.accepted = nil
	if l, ok := b.deps.Ledger.(Acceptor); ok {
		list, err := l.Acceptances(ctx, b.deps.Environment)
		if err != nil {
			return fmt.Errorf("planner: read acceptances: %w", err)
		}
		b.accepted = list
	}
	for _, a := range b.plan.Accepts {
		b.accepted = append(b.accepted, Acceptance{Acceptance: a, By: "this request"})
	}
	return nil
}

// checkEffective checks --effective-from and notes what it accepts.
func (b *build) checkEffective() {
	if b.req.EffectiveFrom == nil || b.diags.HasErrors() {
		return
	}
	if len(b.targets) == 0 {
		b.errorf("usage", "--effective-from needs the tables whose older logic is accepted").Hint = "name them"
		return
	}
	for _, n := range b.targets {
		if !n.IsTable() || n.Analysis == nil {
			b.errorf("usage", "--effective-from accepts older logic of a logical table; %s has none that is known", n.Name)
			continue
		}
		a, def, err := Accept(n, b.fieldsAsked(n), *b.req.EffectiveFrom)
		if err != nil {
			b.errorf("internal", "%v", err)
			continue
		}
		b.plan.Definitions[a.Definition] = def
		b.plan.Accepts = append(b.plan.Accepts, a)
	}
}

// Accept gives the acceptance of older logic of some fields of a table (nil =
// all, and the row set) before a date, with the definition that it names.
func Accept(n *lineage.Node, fields []string, before bizdate.Date) (plan.Acceptance, plan.Definition, error) {
	id, def, err := DefinitionOf(n)
	if err != nil {
		return plan.Acceptance{}, def, err
	}
	return plan.Acceptance{Table: n.Name, Fields: fields, Before: before, Definition: id}, def, nil
}

// fieldsAsked gives the selected fields in their declared spelling, nil for the
// whole table. Names that the table does not have are reported by the closure.
func (b *build) fieldsAsked(n *lineage.Node) []string {
	if !b.req.FieldsGiven {
		return nil
	}
	out := []string{}
	for _, f := range b.req.Fields {
		if f = declaredName(n, f); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// checkEffectiveDates refuses dates on which this request accepts the older
// logic.
func (b *build) checkEffectiveDates() {
	if b.req.EffectiveFrom == nil || len(b.dates) == 0 || b.req.Stale || b.dates[0] >= *b.req.EffectiveFrom {
		return
	}
	b.errorf("before_effective", "%s lies before --effective-from %s: the older logic is accepted there", b.dates[0], *b.req.EffectiveFrom).
		Hint = fmt.Sprintf("select dates from %s on, or leave --effective-from out", *b.req.EffectiveFrom)
}

// unaccepted takes the dates off on which a field's older logic is accepted: it
// is no longer recommended there. The key is never taken off: whether a table
// can be refreshed by field does not depend on consent.
func (b *build) unaccepted(n *lineage.Node, field string, list []change) []change {
	if len(b.accepted) == 0 || n.Table.IsKey(field) {
		return list
	}
	before := bizdate.Date(-1 << 30)
	f := strings.ToLower(field)
	for _, a := range b.accepted {
		if !strings.EqualFold(a.Table, n.Name) || a.Fields != nil && !containsFold(a.Fields, field) {
			continue
		}
		def, ok := b.defs[a.Definition]
		if !ok {
			def, ok = b.plan.Definitions[a.Definition]
		}
		if !ok || def.Fields[f] == "" {
			continue
		}
		for _, x := range n.Analysis.Fields {
			if strings.EqualFold(x.Name, field) && x.Fingerprint == def.Fields[f] {
				before = max(before, a.Before)
			}
		}
	}
	var out []change
	for _, c := range list {
		if c.from = max(c.from, before); c.from <= c.to {
			out = append(out, c)
		}
	}
	return out
}
