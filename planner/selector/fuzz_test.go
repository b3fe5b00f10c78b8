package selector

import "testing"

// FuzzWhere: an expression either selects, the same nodes each time and never
// more than without it, or is told to be wrong.
func FuzzWhere(f *testing.F) {
	for _, s := range []string{`kind == "fact"`, `"n" in tags or paused`, `config.retries > 2`, `level >= 0`, `all(fields, # != "")`, `name matches "["`, `1 / 0 == 1`, `now()`, `kind ==`, "\xff", ``} {
		f.Add(s)
	}
	g := world(f)
	every, problems := g.Select(Query{Select: []string{"*"}})
	if problems.HasErrors() {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, where string) {
		if len(where) > 100 {
			t.Skip()
		}
		q := Query{Select: []string{"*"}, Where: where}
		s, problems := g.Select(q)
		again, problems2 := g.Select(q)
		if s.Nodes.Len() != again.Nodes.Len() || len(problems) != len(problems2) {
			t.Fatalf("%q: %v %v, then %v %v", where, g.Labels(s.Nodes), problems, g.Labels(again.Nodes), problems2)
		}
		for i := range s.Nodes.All() {
			if !every.Nodes.Has(i) || !again.Nodes.Has(i) {
				t.Fatalf("%q: %v", where, g.Labels(s.Nodes))
			}
		}
	})
}
