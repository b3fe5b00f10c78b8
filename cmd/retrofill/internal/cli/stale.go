package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
)

// acceptsOnly tells that a request with --effective-from selects no date: the
// older logic is accepted and nothing is run.
func (o planOptions) acceptsOnly() bool {
	s := o.Request.Selection
	return o.Request.EffectiveFrom != nil && !o.Request.Stale &&
		s.Start == "" && s.End == "" && len(s.Lists) == 0 && len(s.Weekdays) == 0 && len(s.MonthDays) == 0
}

// acceptedDocument is the JSON of a request that accepts older logic and runs
// nothing.
type acceptedDocument struct {
	Accepts     []plan.Acceptance `json:"accepts"`
	Diagnostics diag.List         `json:"diagnostics"`
}

// accept records, or only shows, what --effective-from accepts.
func (s *session) accept(ctx context.Context, o planOptions, record bool) error {
	doc := acceptedDocument{Accepts: []plan.Acceptance{}, Diagnostics: append(diag.List{}, s.Warnings...)}
	defs := map[string]plan.Definition{}
	var refused diag.List
	if len(o.Request.Nodes) == 0 {
		refused = append(refused, diag.Errorf("usage", "--effective-from needs the tables whose older logic is accepted").WithHint("name them"))
	}
	for _, name := range o.Request.Nodes {
		n := s.model.Node(name)
		if n == nil || !n.IsTable() || n.Analysis == nil {
			refused = append(refused, diag.Errorf("unknown_table", "no logical table that can be analysed is called %q", name).
				WithHint("%s", diag.DidYouMean(name, s.model.Names(), "`retrofill ls` lists the nodes")))
			continue
		}
		var fields []string
		for _, f := range o.Request.Fields {
			known := false
			for _, x := range n.FieldNames() {
				if strings.EqualFold(x, f) && !n.Table.IsKey(x) {
					fields, known = append(fields, x), true
				}
			}
			if !known {
				refused = append(refused, diag.Errorf("unknown_field", "table %s has no field %q besides its key", n.Name, f).
					WithHint("%s", diag.DidYouMean(f, n.FieldNames(), "`retrofill show "+n.Name+"` lists its fields")))
			}
		}
		a, def, err := planner.Accept(n, fields, *o.Request.EffectiveFrom)
		if err != nil {
			return err
		}
		defs[a.Definition] = def
		doc.Accepts = append(doc.Accepts, a)
	}
	if refused.HasErrors() {
		return refuse(refused)
	}
	if record {
		if err := s.ledger.Accept(ctx, s.Environment.Name, userName(s.env), doc.Accepts, defs); err != nil {
			return err
		}
	}
	if o.Output == "json" {
		return writeJSON(s.env.Stdout, doc)
	}
	s.env.diagnostics(doc.Diagnostics)
	return writeText(s.env.Stdout, acceptedText(doc.Accepts, record))
}

func acceptedText(list []plan.Acceptance, recorded bool) string {
	var b strings.Builder
	verb := "would accept"
	if recorded {
		verb = "accepted"
	}
	for _, a := range list {
		what := "all fields and the row set"
		if a.Fields != nil {
			what = strings.Join(a.Fields, ", ")
		}
		fmt.Fprintf(&b, "%s: the older logic of %s (%s) before %s\n", verb, a.Table, what, a.Before)
	}
	b.WriteString("nothing is run: no dates are selected\n")
	return b.String()
}

// userName names the person who runs the command.
func userName(env *Env) string {
	for _, k := range []string{"USER", "USERNAME", "LOGNAME"} {
		if v := env.Getenv(k); v != "" {
			return v
		}
	}
	return fmt.Sprintf("user %d", os.Getuid())
}

// instead does what a request wants in place of the plan or its run: nothing,
// where nothing is stale, or the rows that would change.
func (s *session) instead(ctx context.Context, o planOptions, p *plan.Plan, run bool) (bool, error) {
	nothing := false
	for _, d := range p.Diagnostics {
		nothing = nothing || d.Code == planner.NothingStale
	}
	switch {
	case nothing:
		if run && len(p.Accepts) > 0 {
			if err := s.ledger.Accept(ctx, p.Environment, userName(s.env), p.Accepts, p.Definitions); err != nil {
				return true, err
			}
		}
		if o.Output == "json" {
			return true, writeJSON(s.env.Stdout, map[string]any{"backfill": "", "nodes": []string{}, "accepts": append([]plan.Acceptance{}, p.Accepts...), "diagnostics": p.Diagnostics})
		}
		rest := diag.List{}
		for _, d := range p.Diagnostics {
			if d.Code != planner.NothingStale {
				rest = append(rest, d)
				continue
			}
			if err := writeText(s.env.Stdout, d.Summary+"\n"); err != nil {
				return true, err
			}
		}
		s.env.diagnostics(rest)
		return true, nil
	case o.Diff:
		return true, s.diffPlan(ctx, p, o.Output, s.env)
	}
	return false, nil
}
