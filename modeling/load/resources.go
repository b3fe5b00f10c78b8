package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

type rawGroup struct {
	place
	Connections int64
	Uses        []word
	Settings    []entry[word]
}

// maxConnections bounds a resource group; engines refuse more on their own.
const maxConnections = 256

func groupValue() value[rawGroup] {
	return object("resource group", "A named pool of engine connections: a backfill in it runs as many instances at once.",
		key("connections", integer(1, maxConnections), required, "How many connections it has.", func(g *rawGroup) *int64 { return &g.Connections }),
		key("uses", list(oneOf(modeling.ResourceUses()...), 1), "[batch]", "What it may be taken for: batch is backfills.", func(g *rawGroup) *[]word { return &g.Uses }),
		key("settings", dict(scalar(false), 0), "", "Settings of the engine meanwhile that bound resources, such as memory_limit and threads (DuckDB) or work_mem (PostgreSQL).", func(g *rawGroup) *[]entry[word] { return &g.Settings }),
	)
}

// groups builds the resource groups.
func (b *builder) groups(r rawProject, p *modeling.Project) {
	var known []string
	for _, t := range engineTypes {
		known = append(known, modeling.EngineSettings(t)...)
	}
	for _, e := range r.ResourceGroups {
		if !b.goodName(e.Key, "resource group") {
			continue
		}
		if p.ResourceGroup(e.Key.Text) != nil {
			b.report(diag.Errorf("duplicate_value", "resource group %q is written twice", clip(e.Key.Text)).At(e.Key.Pos).
				WithHint("remove one of the two (letter case does not count)"))
			continue
		}
		g := modeling.ResourceGroup{Name: e.Key.Text, Connections: int(e.Value.Connections), Pos: e.Key.Pos}
		for _, u := range e.Value.Uses {
			if !g.For(u.Text) {
				g.Uses = append(g.Uses, u.Text)
			}
		}
		if !e.Value.has("uses") {
			g.Uses = []string{modeling.UseBatch}
		}
		slices.Sort(g.Uses)
		for _, s := range e.Value.Settings {
			name := strings.ToLower(s.Key.Text)
			if !slices.Contains(known, name) {
				b.report(diag.Errorf("bad_value", "a resource group cannot set %q", clip(s.Key.Text)).At(s.Key.Pos).
					WithHint("%s", diag.DidYouMean(name, known, "only settings that bound resources: "+strings.Join(known, ", "))))
				continue
			}
			if g.Settings == nil {
				g.Settings = map[string]string{}
			}
			g.Settings[name] = s.Value.Text
		}
		p.ResourceGroups = append(p.ResourceGroups, g)
	}
	slices.SortStableFunc(p.ResourceGroups, func(a, c modeling.ResourceGroup) int { return cmp.Compare(a.Name, c.Name) })
}
