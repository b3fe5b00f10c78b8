package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/modeling/sqlast"
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
	var text definitionText
	if err := json.Unmarshal([]byte(d.Text), &text); err != nil {
		return d, false, fmt.Errorf("planner: read definition of %s: %w", d.Table, err)
	}
	a, diags := sqlast.Split(ctx, p, text.Definition, text.Schema.Schema())
	if a == nil || diags.HasErrors() {
		return d, false, nil
	}
	out := d
	out.Version, out.RowSet, out.Key = a.Version, a.RowSet.Fingerprint, a.RowSet.KeyFingerprint
	out.Fields = make(map[string]string, len(a.Fields))
	for _, f := range a.Fields {
		out.Fields[strings.ToLower(f.Name)] = f.Fingerprint
	}
	return out, true, nil
}
