package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// definitionText is the text of a plan.Definition: everything that is needed
// to analyse the table again, with the version that made its fingerprints.
type definitionText struct {
	Version    int                   `json:"version"`
	Definition sqlast.Definition     `json:"definition"`
	Schema     sqlast.SchemaSnapshot `json:"schema"`
	Nodes      map[string][]string   `json:"nodes"`
}

// Rejudge analyses a recorded definition again with today's parser, so that a
// record of an older format is compared by its logic instead of counting as
// changed (semantics §4.5). False when its text cannot be analysed any more.
// The error is for a text that is no definition.
func Rejudge(ctx context.Context, p sqlast.Parser, d plan.Definition) (plan.Definition, bool, error) {
	a, err := analyseAgain(ctx, p, d)
	if a == nil || err != nil {
		return d, false, err
	}
	out := d
	out.Version, out.RowSet, out.Key = a.Version, a.RowSet.Fingerprint, a.RowSet.KeyFingerprint
	out.Fields = make(map[string]string, len(a.Fields))
	for _, f := range a.Fields {
		out.Fields[strings.ToLower(f.Name)] = f.Fingerprint
	}
	return out, true, nil
}

// analyseAgain takes a recorded definition apart; nil when that is not
// possible any more.
func analyseAgain(ctx context.Context, p sqlast.Parser, d plan.Definition) (*sqlast.Analysis, error) {
	var text definitionText
	if err := json.Unmarshal([]byte(d.Text), &text); err != nil {
		return nil, fmt.Errorf("planner: read definition of %s: %w", d.Table, err)
	}
	a, diags := sqlast.Split(ctx, p, text.Definition, text.Schema.Schema())
	if diags.HasErrors() {
		return nil, nil
	}
	return a, nil
}

// difference shows how the definition of a record differs from today's in its
// key or row set ("key", "row set"): the canonical texts of both. "" when the
// recorded one cannot be read: the refusal stands without it.
func (b *build) difference(ctx context.Context, n *lineage.Node, r Built, what string) string {
	d, ok := b.defs[r.Definition]
	if !ok {
		return ", whose definition the ledger does not have"
	}
	if b.deps.Parser == nil {
		return ""
	}
	old, err := analyseAgain(ctx, b.deps.Parser, d)
	if err != nil || old == nil {
		return ""
	}
	for _, x := range sqlast.Compare(old, n.Analysis).Reasons {
		if x.What == what {
			return fmt.Sprintf("\nwas: %s\nnow: %s", x.Old, x.New)
		}
	}
	return ""
}
