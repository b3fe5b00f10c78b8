package sqlast

import "context"

// Outputs gives the names of each definition's output columns as far as its
// text alone tells them: aliases and plain columns, stars left out. It is what
// a table that reads itself is first known by. A text that does not parse
// gives none: Tables reports it.
func Outputs(ctx context.Context, p Parser, defs []Definition) ([][]string, error) {
	names := make([][]string, len(defs))
	preps := make([]prepared, len(defs))
	texts := make([]string, len(defs))
	for i, d := range defs {
		preps[i] = prepare(d.SQL, newParams(d).verbatim)
		texts[i] = preps[i].text
	}
	trees, err := p.ParseSelects(ctx, texts)
	if err != nil {
		return nil, err
	}
	for i, d := range defs {
		q := newAnalyzer(d, preps[i], nil).statement(trees[i])
		for q != nil && q.Left != nil {
			q = q.Left // a set operation takes the names of its first side
		}
		if q == nil {
			continue
		}
		for _, item := range q.SelectList {
			name := preps[i].restore(item.Alias)
			if name == "" && item.Class == "COLUMN_REF" {
				name = item.Names[len(item.Names)-1]
			}
			if name != "" {
				names[i] = append(names[i], name)
			}
		}
	}
	return names, nil
}
