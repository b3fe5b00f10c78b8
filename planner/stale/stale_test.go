package stale_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/sqlast"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/stale"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the matrices in testdata")

// tableCase is a logical table: Fields maps a field to its fingerprint today.
type tableCase struct {
	Name     string              `yaml:"name"`
	Key      []string            `yaml:"key,omitempty"`
	Nodes    []nodeCase          `yaml:"nodes"`
	Fields   map[string]string   `yaml:"fields"`
	RowSet   string              `yaml:"row_set"`
	Reads    map[string][]string `yaml:"reads,omitempty"`     // field → table.field
	RowReads []string            `yaml:"row_reads,omitempty"` // table.field
	Offset   map[string][]int    `yaml:"offset,omitempty"`    // input → days read, where not the same date
	Cycle    string              `yaml:"cycle,omitempty"`     // daily, weekly (mondays' business dates), hourly
}

type nodeCase struct {
	Node   string   `yaml:"node"`
	Fields []string `yaml:"fields"`
}

type definitionCase struct {
	Fields map[string]string   `yaml:"fields"`
	RowSet string              `yaml:"row_set"`
	Nodes  map[string][]string `yaml:"nodes,omitempty"`
}

// matrixCase is one matrix. A record is "node dates[@slot] definition
// began-build backfill [fields]".
type matrixCase struct {
	ID          string                    `yaml:"id"`
	Why         string                    `yaml:"why"`
	Tables      []tableCase               `yaml:"tables"`
	Definitions map[string]definitionCase `yaml:"definitions"`
	Records     []string                  `yaml:"records"`
	Accept      []string                  `yaml:"accept,omitempty"`  // "table before definition [fields]"
	Planned     []string                  `yaml:"planned,omitempty"` // "node dates rows|fields"
	Dates       string                    `yaml:"dates,omitempty"`   // absent = all recorded
	Want        map[string]string         `yaml:"want"`              // by table
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	const file = "testdata/matrix.yaml"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []matrixCase
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		got := map[string]string{}
		for name := range c.Want {
			got[name] = matrix(t, c, name)
		}
		if *rewrite {
			cases[i].Want = got
			continue
		}
		if diff := cmp.Diff(c.Want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.ID, diff)
		}
	}
	if *rewrite {
		out, err := yaml.MarshalWithOptions(cases, yaml.UseLiteralStyleIfMultiline(true))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// matrix gives the matrix of a table as text: a line a run, and the parts.
func matrix(t *testing.T, c matrixCase, table string) string {
	t.Helper()
	m := model(t, c.Tables)
	x := stale.New(m, facts(t, c))
	for _, p := range c.Planned {
		w := strings.Fields(p)
		fields := strings.Split(w[2], ",")
		rows := fields[len(fields)-1] == "rows"
		x.Planned(w[0], fields, rows, dates(t, w[1]))
	}
	n := m.Nodes[slices.IndexFunc(m.Nodes, func(n *lineage.Node) bool { return n.Name == table })]
	list := x.Recorded(n)
	if c.Dates != "" {
		list = slices.DeleteFunc(dates(t, c.Dates), func(d bizdate.Date) bool { return !n.Schedule.Scheduled(d) })
	}
	return render(x.Judge(n, list, lineage.NewDeriver(m, list)).Table())
}

func render(tb *stale.Table) string {
	var b strings.Builder
	for _, r := range tb.Rows {
		for _, x := range r.Runs {
			fmt.Fprintf(&b, "%s.%s %s..%s (%d) %s", r.Node, r.Field, x.From, x.To, x.Dates, x.State)
			if x.RowSet {
				b.WriteString(" row_set")
			}
			if x.Definition != "" && x.State != stale.Current {
				b.WriteString(" " + x.Definition)
			}
			if x.Backfill != "" {
				b.WriteString(" by " + x.Backfill)
			}
			for _, in := range x.Inputs {
				fmt.Fprintf(&b, " [%s by %s]", in, in.Backfill)
			}
			b.WriteString("\n")
		}
	}
	for _, p := range tb.Stale() {
		what := strings.Join(p.Fields, ",")
		if p.Rows {
			what = "whole"
		}
		fmt.Fprintf(&b, "stale: %s on %s\n", what, bizdate.SetOf(p.Dates...))
	}
	return b.String()
}

func dates(t *testing.T, s string) []bizdate.Date {
	t.Helper()
	from, to, ok := strings.Cut(s, "..")
	if !ok {
		to = from
	}
	a, err := bizdate.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	z, err := bizdate.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var out []bizdate.Date
	for ; a <= z; a++ {
		out = append(out, a)
	}
	return out
}

func facts(t *testing.T, c matrixCase) stale.Facts {
	t.Helper()
	f := stale.Facts{Definitions: map[string]plan.Definition{}}
	for id, d := range c.Definitions {
		f.Definitions[id] = plan.Definition{Version: sqlast.FormatVersion, RowSet: d.RowSet, Key: "k", Fields: d.Fields, Nodes: d.Nodes}
	}
	for _, r := range c.Records {
		w := strings.Fields(r)
		days, slot, _ := strings.Cut(w[1], "@")
		list := dates(t, days)
		began, build, _ := strings.Cut(w[3], "-")
		x := stale.Record{Node: w[0], From: list[0], To: list[len(list)-1], Definition: w[2], Backfill: w[4],
			Began: number(t, began), Build: number(t, build), BuiltAt: time.Unix(number(t, build), 0)}
		if slot != "" {
			x.Slot = days + "T" + slot
		}
		if len(w) > 5 {
			x.Fields = strings.Split(w[5], ",")
		}
		f.Records = append(f.Records, x)
	}
	for _, a := range c.Accept {
		w := strings.Fields(a)
		x := stale.Acceptance{Table: w[0], Before: dates(t, w[1])[0], Definition: w[2]}
		if len(w) > 3 {
			x.Fields = strings.Split(w[3], ",")
		}
		f.Acceptances = append(f.Acceptances, x)
	}
	return f
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// model makes an analysed project by hand, tables in dependency order.
func model(t *testing.T, tables []tableCase) *lineage.Model {
	t.Helper()
	m := &lineage.Model{Project: &modeling.Project{}, Zone: time.UTC}
	position := map[string]int{}
	for i, c := range tables {
		position[c.Name] = i
	}
	for i, c := range tables {
		if c.Key == nil {
			c.Key = []string{"id"}
		}
		n := &lineage.Node{Position: i, Name: c.Name, Kind: modeling.Fact, Table: &modeling.Table{Name: c.Name, Key: c.Key}}
		s, diags := lineage.ParseSchedule(schedule(c.Cycle))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		n.Schedule = s
		a := &sqlast.Analysis{Version: sqlast.FormatVersion, RowSet: sqlast.RowSet{Fingerprint: c.RowSet, KeyFingerprint: "k"}}
		for _, k := range c.Key {
			n.Fields = append(n.Fields, sqlast.Column{Name: k})
		}
		refs := map[string]*sqlast.Reference{}
		ref := func(read string) (*sqlast.Reference, string) {
			table, column, _ := strings.Cut(read, ".")
			if refs[table] == nil {
				refs[table] = &sqlast.Reference{Table: table, Known: true, Logical: true}
			}
			refs[table].Columns = append(refs[table].Columns, column)
			return refs[table], column
		}
		for _, r := range c.RowReads {
			x, column := ref(r)
			x.RowSet, x.RowColumns = true, append(x.RowColumns, column)
		}
		for k, mat := range c.Nodes {
			n.Table.Nodes = append(n.Table.Nodes, modeling.MaterializationNode{Name: mat.Node, Anchor: k == 0, Fields: mat.Fields})
			for _, f := range mat.Fields {
				if slices.ContainsFunc(a.Fields, func(x sqlast.Field) bool { return x.Name == f }) {
					continue
				}
				field := sqlast.Field{Name: f, Fingerprint: c.Fields[f]}
				for _, r := range c.Reads[f] {
					x, column := ref(r)
					if !slices.Contains(x.Fields, f) {
						x.Fields = append(x.Fields, f)
					}
					field.Reads = append(field.Reads, sqlast.ColumnRef{Table: x.Table, Column: column})
				}
				a.Fields = append(a.Fields, field)
				n.Fields = append(n.Fields, sqlast.Column{Name: f})
			}
		}
		for _, name := range slices.Sorted(mapsKeys(refs)) {
			in := lineage.Input{Name: name, Node: position[name], References: []int{len(a.References)}}
			if o := c.Offset[name]; o != nil {
				in.Declared = []modeling.Dependency{{Node: name, From: o[0], To: o[1]}}
			}
			a.References = append(a.References, *refs[name])
			n.Inputs = append(n.Inputs, in)
		}
		n.Analysis = a
		m.Nodes = append(m.Nodes, n)
	}
	return m
}

func mapsKeys(m map[string]*sqlast.Reference) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func schedule(cycle string) modeling.Schedule {
	switch cycle {
	case "weekly":
		return modeling.Schedule{Cycle: modeling.Weekly, At: "01:00", Weekdays: []string{"mon"}}
	case "hourly":
		return modeling.Schedule{Cycle: modeling.Hourly, Every: 60}
	}
	return modeling.Schedule{Cycle: modeling.Daily, At: "01:00"}
}

// The matrix of random facts equals a naive one that looks at every cell by
// itself.
func TestAgainstNaive(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		c := random(r)
		for _, name := range []string{"a", "b"} {
			got, want := matrix(t, c, name), ""
			m := model(t, c.Tables)
			x := stale.New(m, facts(t, c))
			n := m.Nodes[map[string]int{"a": 0, "b": 1}[name]]
			list := dates(t, c.Dates)
			tb := x.Judge(n, list, lineage.NewDeriver(m, list)).Table()
			for _, row := range tb.Rows {
				for _, d := range list {
					state := naive(t, c, name, row.Node, row.Field, d)
					for _, run := range row.Runs {
						if run.From <= d && d <= run.To && run.State != state {
							want += fmt.Sprintf("%s.%s %s should be %s\n", row.Node, row.Field, d, state)
						}
					}
				}
			}
			if want != "" {
				t.Fatalf("seed %d, table %s:\n%s\n%s\nrecords %s", seed, name, got, want, strings.Join(c.Records, "\n"))
			}
		}
	}
}

// random gives two tables, of which b reads a (the date and the day before),
// with records of random fields, logic and order.
func random(r *rand.Rand) matrixCase {
	c := matrixCase{Dates: "2024-01-01..2024-01-08"}
	c.Tables = []tableCase{
		{Name: "a", Nodes: []nodeCase{{"a1", []string{"f", "g"}}, {"a2", []string{"g", "h"}}}, Fields: map[string]string{"f": "1", "g": "1", "h": "1"}, RowSet: "1"},
		{Name: "b", Nodes: []nodeCase{{"b1", []string{"x", "y"}}}, Fields: map[string]string{"x": "1", "y": "1"}, RowSet: "1",
			Reads: map[string][]string{"x": {"a.f", "a.g"}, "y": {"a.h"}}, Offset: map[string][]int{"a": {-1, 0}}},
	}
	if r.IntN(3) == 0 {
		c.Tables[1].RowReads = []string{"a.f"}
	}
	c.Definitions = map[string]definitionCase{}
	for i := range 3 {
		p := func() string { return fmt.Sprint(1 + r.IntN(4)/3) }
		d := definitionCase{RowSet: "1", Fields: map[string]string{"f": p(), "g": p(), "h": p(), "x": p(), "y": p()}}
		if r.IntN(4) == 0 {
			delete(d.Fields, "g")
		}
		if r.IntN(6) == 0 {
			d.RowSet = "2"
		}
		c.Definitions[fmt.Sprintf("d%d", i)] = d
	}
	for n := range 20 {
		node := []string{"a1", "a2", "b1"}[r.IntN(3)]
		from := 1 + r.IntN(8)
		to := min(8, from+r.IntN(5))
		rec := fmt.Sprintf("%s 2024-01-%02d..2024-01-%02d d%d %d-%d bf%d", node, from, to, r.IntN(3), 10*n+1+r.IntN(3), 10*n+5, n)
		if r.IntN(3) == 0 {
			rec += " " + map[string]string{"a1": "g", "a2": "h", "b1": "y"}[node]
		}
		c.Records = append(c.Records, rec)
	}
	return c
}

// naive judges one cell: the newest record that covers it, then its logic, then
// whatever it reads.
func naive(t *testing.T, c matrixCase, table, node, field string, d bizdate.Date) stale.State {
	f := facts(t, c)
	newest := func(node, field string, d bizdate.Date) *stale.Record {
		var best *stale.Record
		for i := range f.Records {
			r := &f.Records[i]
			if !strings.EqualFold(r.Node, node) || d < r.From || d > r.To {
				continue
			}
			if _, has := f.Definitions[r.Definition].Fields[field]; !has || r.Fields != nil && !slices.Contains(r.Fields, field) {
				continue
			}
			if best == nil || r.Build > best.Build {
				best = r
			}
		}
		return best
	}
	tc := c.Tables[slices.IndexFunc(c.Tables, func(x tableCase) bool { return x.Name == table })]
	mine := newest(node, field, d)
	if mine == nil {
		return stale.NeverBuilt
	}
	def := f.Definitions[mine.Definition]
	if def.Fields[field] != tc.Fields[field] || def.RowSet != tc.RowSet {
		return stale.OtherLogic
	}
	reads := append(slices.Clone(tc.Reads[field]), tc.RowReads...)
	for _, r := range reads {
		_, column, _ := strings.Cut(r, ".")
		for _, u := range []bizdate.Date{d - 1, d} {
			for _, up := range c.Tables[0].Nodes {
				if !slices.Contains(up.Fields, column) {
					continue
				}
				if x := newest(up.Node, column, u); x != nil && x.Build > mine.Began {
					return stale.InputRebuilt
				}
			}
		}
	}
	if len(tc.RowReads) > 0 || len(tc.Reads) > 0 { // declared with References: the rows count
		for _, u := range []bizdate.Date{d - 1, d} {
			var rows, first *stale.Record
			for i := range f.Records {
				r := &f.Records[i]
				if r.Node != "a1" || u < r.From || u > r.To {
					continue
				}
				if r.Fields == nil && (rows == nil || r.Build > rows.Build) {
					rows = r
				}
				if first == nil || r.Build < first.Build {
					first = r
				}
			}
			if rows == nil {
				rows = first
			}
			if rows != nil && rows.Build > mine.Began {
				return stale.InputRebuilt
			}
		}
	}
	return stale.Current
}
