package plantest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// randomProject writes the files of a small project: tables that read each
// other on the same day, on earlier ones or themselves, with several nodes,
// schedules and tasks in between.
func randomProject(r *rand.Rand) (files map[string]string, names []string) {
	files = map[string]string{"retrofill.yml": `name: random
zone: America/New_York
engines:
  local: {type: duckdb, path: w.duckdb}
environments:
  dev: {engine: local, schema: dw}
params: {day: "${yyyy-mm-dd}", n: "3"}
resource_groups:
  pool: {connections: 3, settings: {threads: 2}}
sources:
  - table: src.raw
    columns: {ds: DATE, k: BIGINT, v0: BIGINT, v1: BIGINT, v2: BIGINT}
`}
	type table struct {
		name   string
		fields int
	}
	var made []table
	for i := range 4 + r.IntN(6) {
		name := fmt.Sprintf("t%d", i)
		if i > 1 && r.IntN(8) == 0 {
			up := made[r.IntN(len(made))].name
			files["tasks/"+name+".yml"] = fmt.Sprintf("command: [run, \"${bizdate}\"]\nreads: [%s]\n", up)
			names = append(names, name)
			continue
		}
		from, where, columns := "src.raw a", "a.ds = DATE '${day}'", 3
		prefix := "v"
		if len(made) > 0 && r.IntN(4) > 0 {
			up := made[r.IntN(len(made))]
			columns, prefix = up.fields, "f"
			from = up.name + " a"
			where = [...]string{
				"a.ds = DATE '${day}'", "a.ds = DATE '${day}'", "a.ds = DATE '${yyyy-mm-dd-1}'",
				"a.ds BETWEEN DATE '${yyyy-mm-dd-3}' AND DATE '${day}'", "a.ds >= DATE '${yyyy-mm}-01' AND a.ds <= DATE '${day}'",
			}[r.IntN(5)]
		}
		join, extra := "", ""
		if len(made) > 0 && r.IntN(2) == 0 {
			up := made[r.IntN(len(made))]
			join = fmt.Sprintf(" LEFT JOIN %s b ON b.k = a.k AND b.ds = DATE '%s'", up.name, [...]string{"${day}", "${yyyy-mm-dd-1}"}[r.IntN(2)])
			extra = fmt.Sprintf(" + coalesce(b.f%d, 0)", r.IntN(up.fields))
		}
		if r.IntN(5) == 0 {
			join += fmt.Sprintf(" LEFT JOIN %s me ON me.k = a.k AND me.ds = DATE '${yyyy-mm-dd-1}'", name)
			extra += " + coalesce(me.f0, 0)"
		}
		t := table{name, 1 + r.IntN(4)}
		var sql strings.Builder
		sql.WriteString("SELECT a.k")
		for f := range t.fields {
			fmt.Fprintf(&sql, ", sum(a.%s%d%s) * ${n} AS f%d", prefix, r.IntN(columns), [...]string{extra, ""}[min(f, 1)], f)
		}
		fmt.Fprintf(&sql, " FROM %s%s WHERE %s GROUP BY a.k\n", from, join, where)
		yml := "key: [k]\npartition: {ds: \"${yyyy-mm-dd}\"}\n"
		switch r.IntN(8) {
		case 0:
			yml += "schedule: {cycle: weekly, weekdays: [mon, thu]}\n"
		case 1:
			yml += "schedule: {cycle: monthly, monthdays: [1, last]}\n"
		case 2:
			yml = "key: [k]\npartition: {ds: \"${yyyy-mm-dd}\", at_utc: \"${slotutc}\"}\nschedule: {cycle: hourly, every: 6h}\n"
		}
		if t.fields > 1 && r.IntN(2) == 0 {
			yml += fmt.Sprintf("materialize:\n  - {node: %s_a, anchor: true, fields: [f0]}\n  - {node: %s_b, fields: [%s]}\n", name, name, fieldList(r.IntN(2), t.fields))
		}
		if r.IntN(12) == 0 {
			yml += "paused: true\n"
		}
		files["models/fact/"+name+".yml"], files["models/fact/"+name+".sql"] = yml, sql.String()
		made, names = append(made, t), append(names, name)
	}
	return files, names
}

func fieldList(from, n int) string {
	var out []string
	for f := from; f < n; f++ {
		out = append(out, fmt.Sprintf("f%d", f))
	}
	return strings.Join(out, ", ")
}

// randomRequest asks for something of a project.
func randomRequest(r *rand.Rand, names []string) planner.Request {
	q := planner.Request{Nodes: []string{names[r.IntN(len(names))]}}
	if r.IntN(4) == 0 {
		q.Nodes = append(q.Nodes, names[r.IntN(len(names))])
	} else if r.IntN(2) == 0 && strings.HasPrefix(q.Nodes[0], "t") {
		q.Fields, q.FieldsGiven = []string{"f0"}, true
	}
	levels := []int{0, 0, 1, 2, planner.AllLevels}
	q.Upstream, q.Downstream = levels[r.IntN(5)], levels[r.IntN(5)]
	if r.IntN(3) == 0 {
		q.Exclude = []string{names[r.IntN(len(names))]}
	}
	q.Refresh = []string{"", "rewrite"}[r.IntN(2)]
	q.IncludePaused = r.IntN(2) == 0
	first := bizdate.Of(2024, 2, 20) + bizdate.Date(r.IntN(10))
	q.Selection.Start, q.Selection.End = first.String(), (first + bizdate.Date(r.IntN(20))).String()
	if r.IntN(4) == 0 {
		q.Selection = bizdate.Selection{Lists: []string{fmt.Sprintf("%s,%s,%s", first, first+3, first+4)}}
	}
	if r.IntN(3) == 0 {
		q.Groups = 1 + r.IntN(4)
	}
	if r.IntN(4) == 0 {
		q.WindowFrom, q.WindowTo = "00:00", "12:00"
	}
	if r.IntN(5) == 0 && (q.Upstream != 0 || q.Downstream != 0) {
		q.ResourceGroup = "pool"
	}
	q.Display = plan.Request{Command: "plan", Nodes: q.Nodes}
	return q
}

// TestProperties plans random requests of random projects and checks what
// holds for every plan.
func TestProperties(t *testing.T) {
	t.Parallel()
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	planned, asked := 0, 0
	shared := newBench(t, nil)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		files, names := randomProject(r)
		b := *shared
		b.files, b.cache, b.loaded, b.broken = files, memory{}, map[string]*modeling.Project{}, map[string]diag.List{}
		for k := range 8 {
			asked++
			s := b.scene(t, randomRecords(r, names))
			q := randomRequest(r, names)
			p, diags := s.build(t, q, nil)
			if diags.HasErrors() {
				for _, d := range diags.Errors() {
					switch d.Code {
					case "internal", "sql_error", "syntax", "broken_table", "unknown_column", "unknown_table", "parser_failed":
						t.Fatalf("seed %d %+v: %v\n%v", seed, q, diags, files)
					}
				}
				continue
			}
			planned++
			if problem := s.check(t, q, p, k == 0); problem != "" {
				t.Fatalf("seed %d: %s\nrequest %+v\nfiles %v", seed, problem, q, files)
			}
		}
	}
	t.Logf("%d of %d requests were planned", planned, asked)
	if planned < asked/4 {
		t.Errorf("only %d of %d requests were planned", planned, asked)
	}
}

func randomRecords(r *rand.Rand, names []string) string {
	var w strings.Builder
	for range r.IntN(4) {
		fmt.Fprintf(&w, "built %s 2024-02-%02d..2024-03-%02d by b%d", []string{"all", names[r.IntN(len(names))]}[r.IntN(2)], 1+r.IntN(28), 1+r.IntN(20), r.IntN(9))
		if r.IntN(3) == 0 {
			w.WriteString(" fields f0")
		}
		w.WriteString("\n")
	}
	return w.String()
}

// check names the first property that a plan does not have, "" for none.
func (s *scene) check(t *testing.T, q planner.Request, p plan.Plan, withCold bool) string {
	t.Helper()
	if err := plan.Validate(&p); err != nil {
		return fmt.Sprintf("not valid: %v", err)
	}
	doc, err := plan.Encode(p)
	if err != nil {
		return err.Error()
	}
	back, err := plan.Decode(doc)
	if err != nil {
		return err.Error()
	}
	again, err := plan.Encode(back)
	if err != nil || !bytes.Equal(doc, again) {
		return "decoded and encoded again it differs: " + cmp.Diff(string(doc), string(again))
	}
	// The same inputs give the same bytes, with a warm cache and a cold one.
	cold := *s.bench
	cold.cache = memory{}
	for _, b := range []*bench{s.bench, &cold} {
		if b == &cold && !withCold {
			continue
		}
		other := *s
		other.bench = b
		p2, _ := other.build(t, q, nil)
		if doc2, err := plan.Encode(p2); err != nil || !bytes.Equal(doc, doc2) {
			return "planned again it differs: " + cmp.Diff(string(doc), string(doc2))
		}
	}
	if problem := ordered(p); problem != "" {
		return problem
	}
	if problem := s.contracted(t, p); problem != "" {
		return problem
	}
	return s.turned(t, q, p)
}

// ordered checks that groups cut the dates evenly, and that within the plan's
// order every slot that is read comes before its reader: the graph of all
// instances is acyclic.
func ordered(p plan.Plan) string {
	small, large := len(p.Dates), 0
	for _, g := range p.Groups {
		small, large = min(small, len(g)), max(large, len(g))
	}
	if len(p.Groups) > 0 && large-small > 1 {
		return "the groups are not balanced"
	}
	at := map[string]int{}
	for i := range p.Nodes {
		at[p.Nodes[i].Name] = i
	}
	inPlan := map[bizdate.Date]bool{}
	for _, d := range p.Dates {
		inPlan[d] = true
	}
	total := 0
	x, err := plan.NewExpander(&p)
	if err != nil {
		return err.Error()
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for k, d := range p.Dates {
			list, err := x.Expand(k, i)
			if err != nil {
				return err.Error()
			}
			total += len(list)
			for _, e := range n.Needs {
				lo, hi := p.Reads(e, d)
				for u := lo; u <= hi; u++ {
					if inPlan[u] && (u > d || u == d && at[e.Node] >= i) {
						return fmt.Sprintf("%s@%s needs %s@%s, which comes later", n.Name, d, e.Node, u)
					}
				}
				if e.Map != nil && e.Kind != "self" && e.Kind != "cross_cycle" {
					return fmt.Sprintf("%s needs %s with a map, as %s", n.Name, e.Node, e.Kind)
				}
			}
		}
	}
	if total != p.Instances {
		return fmt.Sprintf("%d instances are counted, %d expanded", p.Instances, total)
	}
	crossing := slices.ContainsFunc(p.Nodes, func(n plan.Node) bool {
		return slices.ContainsFunc(n.Needs, func(e plan.Edge) bool { return e.Map != nil })
	})
	if crossing && (len(p.Groups) > 1 || p.Order == "desc" && len(p.Dates) > 1) {
		return "groups or descending order with a dependency between cycles"
	}
	return ""
}

// contracted checks that nodes which others outside the plan connect keep
// their order, against the selector's own contraction.
func (s *scene) contracted(t *testing.T, p plan.Plan) string {
	t.Helper()
	m, _ := s.bench.model(t, s.version, nil)
	g, err := m.Graph(nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := g.Empty()
	above := map[int]map[int]bool{} // by position: what is before it in the plan
	for i := range p.Nodes {
		n := m.Node(p.Nodes[i].Name)
		kept.Add(n.Position)
		above[n.Position] = map[int]bool{}
		for _, e := range p.Nodes[i].Needs {
			up := m.Node(e.Node).Position
			above[n.Position][up] = true
			for a := range above[up] {
				above[n.Position][a] = true
			}
		}
	}
	for _, pair := range g.Contract(kept) {
		direct := slices.ContainsFunc(m.Nodes[pair[1]].Inputs, func(in lineage.Input) bool { return in.Node == pair[0] })
		if !direct && !above[pair[1]][pair[0]] {
			return fmt.Sprintf("%s is not kept before %s", m.Nodes[pair[0]].Name, m.Nodes[pair[1]].Name)
		}
	}
	return ""
}

// turned checks that descending order gives the same plan backwards.
func (s *scene) turned(t *testing.T, q planner.Request, p plan.Plan) string {
	t.Helper()
	q.Selection.Direction = bizdate.Desc
	d, diags := s.build(t, q, nil)
	if diags.HasErrors() {
		for _, x := range diags.Errors() {
			if x.Code != "desc_with_cross_cycle" {
				return "only descending is refused: " + x.String()
			}
		}
		return ""
	}
	dates := slices.Clone(d.Dates)
	slices.Reverse(dates)
	if !slices.Equal(dates, p.Dates) || len(d.Groups) != len(p.Groups) {
		return "descending dates are not the reverse"
	}
	d.Order, d.Dates, d.Groups = p.Order, p.Dates, p.Groups
	if diff := cmp.Diff(p, d); diff != "" {
		return "descending order changes more than the order: " + diff
	}
	return ""
}
