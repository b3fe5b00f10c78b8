package sqlast

import (
	"context"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Tables gives the names of the tables that each definition reads, as written
// and each once, without resolving anything: what is needed to put
// definitions in order before they are split. A text that does not parse has
// its diagnostics instead.
func Tables(ctx context.Context, p Parser, defs []Definition) ([][]string, []diag.List) {
	names := make([][]string, len(defs))
	diags := make([]diag.List, len(defs))
	preps := make([]prepared, len(defs))
	texts := make([]string, len(defs))
	for i, d := range defs {
		preps[i] = prepare(d.SQL, newParams(d).verbatim)
		texts[i] = preps[i].text
	}
	trees, err := p.ParseSelects(ctx, texts)
	for i, d := range defs {
		if err != nil {
			diags[i] = diag.List{diag.Errorf("parser_failed", "the SQL parser failed").
				WithDetail("sqlast: parse %s: %v", d.File, err).At(diag.Pos{File: d.File})}
			continue
		}
		a := newAnalyzer(d, preps[i], nil)
		root := a.statement(trees[i])
		if len(a.diags) > 0 {
			diags[i] = a.diags
			continue
		}
		if root == nil {
			continue
		}
		for _, r := range a.references(root) {
			names[i] = append(names[i], r.Table)
		}
		names[i] = sortedUnique(names[i])
	}
	return names, diags
}
