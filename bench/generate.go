package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Generated describes a project made by Generate.
type Generated struct {
	Tables int
	// Leaf is a table of the last level: with all levels upstream it is a deep
	// selection. Hub is a table that much of the project reads: with all levels
	// downstream it is a wide one. Single is an ordinary fact table.
	Leaf, Hub, Single string
	// Sources is the script that makes the empty source tables, without which
	// no plan is made.
	Sources string
}

// tableFields is the number of fields of each generated table, its two key
// columns included.
const tableFields = 10

// levelShares is how many of each hundred tables stand on each level: few
// projects are deeper than eight.
var levelShares = [...]int{26, 20, 16, 13, 10, 7, 5, 3}

// domainSize is the number of tables that belong together: a table reads
// mostly tables of its own domain.
const domainSize = 100

// generator writes one project.
type generator struct {
	dir    string
	rand   *rand.Rand
	levels [][]string // names by level
	info   Generated
	// deepest is the level of info.Leaf.
	deepest int
}

// Generate writes a project of n tables into dir, which is made: eight levels,
// domains of a hundred tables, one to three upstream tables each, hub tables
// that other domains read too, look-backs of seven days, tables of two
// materialization nodes, sources with declared columns. The same n gives the
// same project.
func Generate(dir string, n int) (Generated, error) {
	g := &generator{dir: dir, rand: rand.New(rand.NewPCG(uint64(n), 7)), levels: make([][]string, len(levelShares))}
	g.info.Tables = n
	if err := g.project(n); err != nil {
		return Generated{}, fmt.Errorf("bench: generate project: %w", err)
	}
	for i := range n {
		if err := g.table(i, n); err != nil {
			return Generated{}, fmt.Errorf("bench: generate table %d: %w", i, err)
		}
	}
	return g.info, nil
}

func (g *generator) write(name, text string) error {
	file := filepath.Join(g.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func (g *generator) project(n int) error {
	var b strings.Builder
	b.WriteString(`name: generated
zone: Europe/Paris
engines:
  local: {type: duckdb, path: generated.duckdb}
environments:
  dev: {engine: local, schema: dw}
params:
  day: "${yyyy-mm-dd}"
  week_ago: "${yyyy-mm-dd-6}"
sources:
`)
	var ddl strings.Builder
	ddl.WriteString("CREATE SCHEMA IF NOT EXISTS src;\n")
	for s := range max(1, n/20) {
		fmt.Fprintf(&ddl, "CREATE TABLE src.events_%04d (id BIGINT, region VARCHAR, v1 DOUBLE, v2 DOUBLE, v3 DOUBLE, v4 DOUBLE, v5 DOUBLE, v6 DOUBLE, v7 DOUBLE, v8 DOUBLE, ds DATE);\n", s)
		fmt.Fprintf(&b, "  - table: src.events_%04d\n    partition: {ds: \"${yyyy-mm-dd}\"}\n    columns: {id: BIGINT, region: VARCHAR", s)
		for f := 1; f <= 8; f++ {
			fmt.Fprintf(&b, ", v%d: DOUBLE", f)
		}
		b.WriteString(", ds: DATE}\n")
	}
	g.info.Sources = ddl.String()
	return g.write("retrofill.yml", b.String())
}

// level gives the level of table i of n: the first tables of a domain stand on
// level 0, the last on the last one.
func level(i int) int {
	at := i % domainSize * 100 / domainSize
	for l, share := range levelShares {
		if at < share {
			return l
		}
		at -= share
	}
	return len(levelShares) - 1
}

func (g *generator) table(i, n int) error {
	l := level(i)
	name := fmt.Sprintf("t%05d_l%d", i, l)
	sql := g.leaf(i, n)
	if l > 0 {
		sql = g.reader(i, l)
	}
	g.levels[l] = append(g.levels[l], name)
	switch {
	case i == 0:
		g.info.Hub = name
	case l == 0:
		g.info.Single = name
	}
	if l >= g.deepest {
		g.info.Leaf, g.deepest = name, l
	}
	var y strings.Builder
	kind := "fact"
	if l > 3 {
		kind = "summary"
	}
	fmt.Fprintf(&y, "table: %s\nkind: %s\ndescription: Generated table %d.\nowner: team%d\ntags: [d%d, l%d]\nkey: [id, region]\npartition: {ds: \"${yyyy-mm-dd}\"}\nschedule: {cycle: daily, at: \"0%d:00\"}\n",
		name, kind, i, i/domainSize%7, i/domainSize, l, l)
	if i%10 == 3 {
		fmt.Fprintf(&y, "materialize:\n  - {node: %s_a, anchor: true, fields: [f1, f2, f3, f4]}\n  - {node: %s_b, fields: [f5, f6, f7, f8]}\n", name, name)
	}
	y.WriteString("fields:\n")
	for f := 1; f < tableFields-1; f++ {
		fmt.Fprintf(&y, "  f%d: {description: \"Measure %d.\"}\n", f, f)
	}
	base := fmt.Sprintf("models/d%03d/%s", i/domainSize, name)
	if err := g.write(base+".yml", y.String()); err != nil {
		return err
	}
	return g.write(base+".sql", sql)
}

// leaf is a SELECT over a source.
func (g *generator) leaf(i, n int) string {
	var b strings.Builder
	b.WriteString("SELECT e.id, e.region")
	for f := 1; f < tableFields-1; f++ {
		fmt.Fprintf(&b, ",\n       e.v%d * %d + coalesce(e.v%d, 0) AS f%d", f, 1+g.rand.IntN(9), 1+g.rand.IntN(8), f)
	}
	fmt.Fprintf(&b, "\nFROM src.events_%04d e\nWHERE e.ds = '${day}'\n  AND e.v1 > %d\n", i%max(1, n/20), g.rand.IntN(50))
	return b.String()
}

// reader is a SELECT over tables of lower levels.
func (g *generator) reader(i, l int) string {
	first := g.pick(i, l-1)
	var joins []string
	for range g.rand.IntN(3) {
		other := g.pick(i, g.rand.IntN(l))
		if g.rand.IntN(20) == 0 {
			other = g.levels[0][g.rand.IntN(1+len(g.levels[0])/200)] // a hub
		}
		if other != first && !slices.Contains(joins, other) {
			joins = append(joins, other)
		}
	}
	aggregate := g.rand.IntN(4) == 0
	var b strings.Builder
	b.WriteString("SELECT a.id, a.region")
	for f := 1; f < tableFields-1; f++ {
		from := "a"
		if k := g.rand.IntN(len(joins) + 1); k > 0 {
			from = fmt.Sprintf("j%d", k)
		}
		expr := fmt.Sprintf("coalesce(%s.f%d, 0) + a.f%d * %d", from, 1+g.rand.IntN(8), f, 1+g.rand.IntN(9))
		if aggregate {
			expr = "sum(" + expr + ")"
		}
		fmt.Fprintf(&b, ",\n       %s AS f%d", expr, f)
	}
	fmt.Fprintf(&b, "\nFROM %s a", first)
	for k, j := range joins {
		fmt.Fprintf(&b, "\nLEFT JOIN %s j%d ON j%d.id = a.id AND j%d.region = a.region AND j%d.ds = '${day}'", j, k+1, k+1, k+1, k+1)
	}
	if i%10 == 7 {
		b.WriteString("\nWHERE a.ds BETWEEN '${week_ago}' AND '${day}'")
	} else {
		b.WriteString("\nWHERE a.ds = '${day}'")
	}
	if g.rand.IntN(3) == 0 {
		fmt.Fprintf(&b, "\n  AND a.f%d > %d", 1+g.rand.IntN(8), g.rand.IntN(50))
	}
	if aggregate {
		b.WriteString("\nGROUP BY a.id, a.region")
	}
	b.WriteString("\n")
	return b.String()
}

// pick gives a table of a level, of the domain of table i.
func (g *generator) pick(i, l int) string {
	names := g.levels[l]
	own := levelShares[l] * domainSize / 100
	last := min(len(names), (i/domainSize+1)*own)
	first := max(0, min(last-1, last-own))
	return names[first+g.rand.IntN(last-first)]
}
