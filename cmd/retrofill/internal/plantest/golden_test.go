package plantest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
)

var rewrite = flag.Bool("rewrite", false, "write goldens instead of comparing")

// TestGolden plans the cases of testdata/*.txtar. Each archive is a project
// (files named version:path belong to another version of it) with cases:
// `case/NAME` says what the world is and what is asked, `case/NAME.want` what
// people see, and `case/NAME.json`, where it is there, the document.
func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("goldens: %v %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, name)
		})
	}
}

func golden(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	ar := parseArchive(string(text))
	files := map[string]string{}
	for _, f := range ar.files {
		if !strings.HasPrefix(f.name, "case/") {
			files[f.name] = f.data
		}
	}
	b := newBench(t, files)
	out := archive{comment: ar.comment}
	for i, f := range ar.files {
		caseName, isCase := strings.CutPrefix(f.name, "case/")
		switch {
		case !isCase:
			out.files = append(out.files, f)
			continue
		case strings.HasSuffix(f.name, ".want"), strings.HasSuffix(f.name, ".json"):
			continue
		}
		t.Run(caseName, func(t *testing.T) {
			got, doc := b.run(t, f.data)
			out.files = append(out.files, f, archived{f.name + ".want", got})
			want, wantDoc := "", ""
			for _, g := range ar.files[i+1:] {
				if g.name == f.name+".want" {
					want = g.data
				}
				if g.name == f.name+".json" {
					wantDoc = g.data
					out.files = append(out.files, archived{g.name, doc})
				}
			}
			if *rewrite {
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(wantDoc, doc); wantDoc != "" && d != "" {
				t.Errorf("document (-want +got):\n%s", d)
			}
		})
	}
	if *rewrite {
		if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run plans one case, and gives diagnostics and plan as text, and the document.
func (b *bench) run(t *testing.T, text string) (string, string) {
	t.Helper()
	s := b.scene(t, text)
	req, overrides, sql, err := request(s.args)
	if err != nil {
		t.Fatal(err)
	}
	p, diags := s.build(t, req, overrides)
	var w strings.Builder
	for _, d := range diags {
		w.WriteString(d.String() + "\n")
		if d.Code == "" || d.Summary == "" || d.Hint == "" {
			t.Errorf("incomplete diagnostic: %#v", d)
		}
	}
	if diags.HasErrors() {
		return w.String(), ""
	}
	if err := plan.Validate(&p); err != nil && len(p.Nodes) > 0 {
		t.Errorf("not valid: %v", err)
	}
	s.explainAll(t, &p, req, overrides)
	if len(s.explain) > 0 {
		return w.String() + s.answers(t, &p, req, overrides), ""
	}
	if err := view.Plan(&w, &p, view.PlanOptions{SQL: sql}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(w.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"), document(t, p)
}

// archive is a txtar file.
type archive struct {
	comment string
	files   []archived
}

type archived struct{ name, data string }

func parseArchive(text string) archive {
	var a archive
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
		if name, isMark := strings.CutSuffix(name, " --"); ok && isMark {
			a.files = append(a.files, archived{name: name})
			continue
		}
		if len(a.files) == 0 {
			a.comment += line
			continue
		}
		a.files[len(a.files)-1].data += line
	}
	return a
}

func (a archive) String() string {
	s := a.comment
	for _, f := range a.files {
		s += "-- " + f.name + " --\n" + f.data
	}
	return s
}

// explainAll asks for everything in the project: each answer is complete and
// says of a node that it is in the plan where it is, and of a field where it is
// written or a key of a written table.
func (s *scene) explainAll(t *testing.T, p *plan.Plan, req planner.Request, overrides []param.Declared) {
	t.Helper()
	m, _ := s.bench.model(t, s.version, overrides)
	in := map[string]bool{}
	for _, n := range p.Nodes {
		in[n.Name] = true
		for _, f := range n.Fields {
			in[n.Name+"."+f.Name] = f.Written
		}
		for _, k := range n.Key {
			in[n.Name+"."+k] = true
		}
	}
	for _, n := range m.Nodes {
		asked := []string{n.Name}
		if n.IsTable() {
			for _, f := range n.ReadableNames() {
				asked = append(asked, n.Name+"."+f)
			}
		}
		for _, name := range asked {
			e, diags := planner.Explain(p, m, req, name)
			if diags.HasErrors() || e.Node != n.Name || e.Reason == "" || e.Because == "" || e.In != in[name] {
				t.Errorf("explain %s: in plan %v: %+v %v", name, in[name], e, diags)
			}
		}
	}
}

// answers gives what the case asks of its plan.
func (s *scene) answers(t *testing.T, p *plan.Plan, req planner.Request, overrides []param.Declared) string {
	t.Helper()
	m, _ := s.bench.model(t, s.version, overrides)
	var w strings.Builder
	for _, asked := range s.explain {
		e, diags := planner.Explain(p, m, req, asked)
		if diags.HasErrors() {
			w.WriteString(diags.Error() + "\n")
			continue
		}
		if e.Reason == "" || e.Because == "" || e.Node == "" || e.Kind == "" {
			t.Errorf("incomplete answer: %#v", e)
		}
		w.WriteString("[" + e.Reason + "] ")
		if err := view.Explain(&w, e); err != nil {
			t.Fatal(err)
		}
	}
	return w.String()
}
