package bench

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/load"
)

// TestSuites runs every suite once, small, so that none rots. The cases that
// start the built command are run by .ci/run, through the command.
func TestSuites(t *testing.T) {
	t.Parallel()
	for _, s := range suites() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			res, err := Run(t.Context(), Config{Suites: []string{s.name}, Short: true, Dir: t.TempDir(), Clock: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Cases) == 0 {
				t.Fatal("no case")
			}
			for _, c := range res.Cases {
				if c.Suite != s.name || c.Target != 0 || !c.Equal || c.Seconds == 0 || c.Statements == 0 {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

func TestUnknownSuite(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Suites: []string{"overhead", "speed"}, Clock: time.Now})
	var unknown *UnknownSuiteError
	if !errors.As(err, &unknown) || unknown.Name != "speed" || !strings.Contains(err.Error(), "overhead, planner") {
		t.Errorf("error %v", err)
	}
	if _, err := Run(t.Context(), Config{Clock: time.Now}); err == nil {
		t.Error("no suite, but no error")
	}
}

// TestMeasure feeds made-up times: rounds are interleaved, sides swap, and the
// ratio is the median of the rounds'.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var order []string
	r := &runner{cfg: Config{Rounds: 3}, suite: "s"}
	mine, floor := []float64{2, 30, 4}, []float64{1, 10, 4}
	err := r.measure(t.Context(), measured{name: "c", target: 1.5,
		run: func(_ context.Context, i int) (sample, error) {
			order = append(order, "case")
			return sample{seconds: mine[i], rows: 7, sum: "x"}, nil
		},
		floor: func(_ context.Context, i int) (sample, error) {
			order = append(order, "floor")
			return sample{seconds: floor[i], sum: "x"}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"case", "floor", "floor", "case", "case", "floor"}, order); diff != "" {
		t.Error(diff)
	}
	want := Case{Suite: "s", Name: "c", Seconds: 4, Floor: 4, Ratio: 2, Target: 1.5, Equal: true, Rows: 7, Spread: 7, Rounds: 3}
	if diff := cmp.Diff([]Case{want}, r.res.Cases); diff != "" {
		t.Error(diff)
	}
	if r.res.Cases[0].Met() {
		t.Error("a ratio of 2 meets a target of 1.5")
	}
}

func TestMeasureUnequal(t *testing.T) {
	t.Parallel()
	r := &runner{cfg: Config{Rounds: 2, Short: true}}
	err := r.measure(t.Context(), measured{name: "c", target: 1, goal: 2, run: func(_ context.Context, i int) (sample, error) {
		return sample{seconds: 1, sum: []string{"a", "b"}[i]}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.res.Cases[0]; c.Equal || c.Ratio != 0.5 || !c.Goal || c.Target != 0 {
		t.Errorf("%+v", c)
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	res := Result{Rounds: 3, Machine: Machine{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1", Engine: "DuckDB v1"}, Notes: []string{"s: a note"}, Cases: []Case{
		{Suite: "s", Name: "met", Seconds: 0.12345678, Floor: 0.25, Ratio: 0.4938271, Target: 1, Goal: true, Equal: true, Rows: 3, Statements: 4, PeakMB: 99.6},
		{Suite: "s", Name: "not", Seconds: 12, Floor: 4, Ratio: 3, Target: 1.1, Statements: 1},
		{Suite: "s", Name: "none", Seconds: 1, Floor: 1, Ratio: 1, Equal: true},
	}}
	var b bytes.Buffer
	if err := JSONL(&b, res); err != nil {
		t.Fatal(err)
	}
	want := `{"suite":"s","case":"met","seconds":0.123457,"floor_seconds":0.25,"ratio":0.493827,"target":1,"equal":true,"rows":3,"statements":4}
{"suite":"s","case":"not","seconds":12,"floor_seconds":4,"ratio":3,"target":1.1,"equal":false,"rows":0,"statements":1}
{"suite":"s","case":"none","seconds":1,"floor_seconds":1,"ratio":1,"equal":true,"rows":0,"statements":0}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	for name, f := range map[string]func() error{"text": func() error { return Text(&b, res) }, "markdown": func() error { return Markdown(&b, res) }} {
		b.Reset()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"s/met", "s/not", "≤ 1.1", "NO", "(goal)", "100 MB", "a note", "DuckDB v1", "3 rounds"} {
			if !strings.Contains(b.String(), s) {
				t.Errorf("%s lacks %q:\n%s", name, s, b.String())
			}
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	a, b, worst := fit([][2]float64{{1, 3}, {2, 5}, {4, 9}})
	if a < 0.999 || a > 1.001 || b < 1.999 || b > 2.001 || worst > 1e-9 {
		t.Errorf("%g + %g·x, off by %g", a, b, worst)
	}
}

// TestGenerate: the same number gives the same project, which loads without a
// word, and every table but the first level's reads another.
func TestGenerate(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	g, err := Generate(one, 250)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Generate(two, 250)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, again); diff != "" {
		t.Error(diff)
	}
	err = fs.WalkDir(os.DirFS(one), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		a, err := fs.ReadFile(os.DirFS(one), path)
		if err != nil {
			return err
		}
		b, err := fs.ReadFile(os.DirFS(two), path)
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, diags := load.Dir(one)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if len(p.Tables) != 250 || len(p.Sources) != 12 {
		t.Errorf("%d tables, %d sources", len(p.Tables), len(p.Sources))
	}
	for _, table := range p.Tables {
		if leaf := strings.HasSuffix(table.Name, "_l0"); leaf == strings.Contains(table.SQL, "FROM t") {
			t.Errorf("%s reads:\n%s", table.Name, table.SQL)
		}
	}
}
