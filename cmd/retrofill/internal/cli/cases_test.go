package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// result is what a run of the command line left.
type result struct {
	Code           int
	Stdout, Stderr string
}

// invoke runs the command line in a folder, at a fixed time, without engines.
func invoke(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return invokeInput(t, dir, "", args...)
}

func invokeInput(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(args, Env{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC) }, Dir: dir,
	})
	return result{code, out.String(), errs.String()}
}

// document decodes the JSON that a command printed; unknown keys are errors.
func document[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(r.Stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v\nstdout: %s\nstderr: %s", err, r.Stdout, r.Stderr)
	}
	if r.Stderr != "" {
		t.Errorf("stderr: %s", r.Stderr)
	}
	return v
}

// readCases reads the cases of a file that keep holds, with defaults.
func readCases[C any](t *testing.T, name string, keep func(map[string]any) bool) []C {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../../fixtures/cases", name))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Topic    string
		Format   int
		Defaults map[string]any
		Cases    []yaml.MapSlice
	}
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var out []C
	for _, raw := range f.Cases {
		m := map[string]any{}
		for _, item := range raw {
			m[fmt.Sprint(item.Key)] = item.Value
		}
		for k, v := range f.Defaults {
			if _, given := m[k]; !given {
				m[k] = v
			}
		}
		if !keep(m) {
			continue
		}
		doc, err := yaml.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var c C
		if err := yaml.UnmarshalWithOptions(doc, &c, yaml.Strict()); err != nil {
			t.Fatalf("%v: %v", m["id"], err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		t.Fatal("no cases")
	}
	return out
}

// scalars reads a list or a single text, of any scalars.
type scalars []string

func (l *scalars) UnmarshalYAML(b []byte) error {
	var many []any
	if err := yaml.Unmarshal(b, &many); err == nil {
		*l = scalars{}
		for _, v := range many {
			*l = append(*l, fmt.Sprint(v))
		}
		return nil
	}
	var one string
	if err := yaml.Unmarshal(b, &one); err != nil {
		return err
	}
	*l = scalars{one}
	return nil
}

type selectCase struct {
	ID        string   `yaml:"id"`
	Op        string   `yaml:"op"`
	Mode      string   `yaml:"mode"`
	Start     string   `yaml:"start"`
	End       string   `yaml:"end"`
	Dates     scalars  `yaml:"dates"`
	Weekdays  scalars  `yaml:"weekdays"`
	MonthDays scalars  `yaml:"monthdays"`
	MonthEnd  bool     `yaml:"month_end"`
	Order     string   `yaml:"order"`
	Now       string   `yaml:"now"`
	RunAt     string   `yaml:"run_at"`
	Zone      string   `yaml:"zone"`
	Want      scalars  `yaml:"want"`
	WantCount int      `yaml:"want_count"`
	WantFirst string   `yaml:"want_first"`
	WantLast  string   `yaml:"want_last"`
	Error     string   `yaml:"error"`
	Warn      []string `yaml:"warn"`
	Decided   bool     `yaml:"decided"`
	Why       string   `yaml:"why"`
}

// args gives the command line of a case. A cycle without a rule is written as
// an empty one.
func (c selectCase) args() []string {
	args := []string{"dates", "-o", "json", "--now", c.Now, "--zone", c.Zone, "--order", c.Order}
	if c.Mode == "list" {
		if len(c.Dates) == 0 {
			args = append(args, "--dates=")
		}
		for _, d := range c.Dates {
			args = append(args, "--dates="+d)
		}
	} else {
		args = append(args, "--start-date="+c.Start, "--end-date="+c.End)
	}
	if c.MonthEnd {
		c.MonthDays = append(c.MonthDays, "last")
	}
	for _, w := range c.Weekdays {
		args = append(args, "--weekdays="+w)
	}
	for _, m := range c.MonthDays {
		args = append(args, "--monthdays="+m)
	}
	if c.Mode == "cycle" && len(c.Weekdays)+len(c.MonthDays) == 0 {
		args = append(args, "--weekdays=")
	}
	if c.RunAt != "" {
		args = append(args, "--run-at", c.RunAt)
	}
	return args
}

type told struct {
	Severity, Code, Summary, Detail, File, Hint string
	Line, Column                                int
}

func codes(l []told, severity string) []string {
	out := []string{}
	for _, d := range l {
		if d.Severity == severity {
			out = append(out, d.Code)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestDateCases(t *testing.T) {
	t.Parallel()
	for _, c := range readCases[selectCase](t, "dates.yaml", func(m map[string]any) bool { return m["op"] == "select" }) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			r := invoke(t, t.TempDir(), c.args()...)
			doc := document[struct {
				Dates       []string
				Groups      [][]string
				Diagnostics []told
			}](t, r)
			checkTold(t, r, doc.Diagnostics, c.Error, c.Warn)
			if doc.Dates == nil || doc.Groups == nil || doc.Diagnostics == nil {
				t.Errorf("a list is null: %s", r.Stdout)
			}
			if c.Error != "" {
				if len(doc.Dates)+len(doc.Groups) > 0 {
					t.Errorf("dates beside an error: %s", r.Stdout)
				}
				return
			}
			if c.Want != nil {
				if d := cmp.Diff([]string(c.Want), doc.Dates); d != "" {
					t.Error(d)
				}
			}
			n := len(doc.Dates)
			if c.WantCount > 0 && n != c.WantCount || c.WantFirst != "" && doc.Dates[0] != c.WantFirst || c.WantLast != "" && doc.Dates[n-1] != c.WantLast {
				t.Errorf("%d dates %v", n, doc.Dates)
			}
			if d := cmp.Diff(doc.Dates, slices.Concat(doc.Groups...)); d != "" {
				t.Errorf("groups are not the dates: %s", d)
			}
		})
	}
}

func checkTold(t *testing.T, r result, found []told, wantError string, warn []string) {
	t.Helper()
	wantErrors, wantCode := []string{}, exitOK
	if wantError != "" {
		wantErrors, wantCode = []string{wantError}, exitRefused
	}
	if d := cmp.Diff(wantErrors, codes(found, "error")); d != "" {
		t.Fatalf("errors: %s\n%s", d, r.Stdout)
	}
	if d := cmp.Diff(append([]string{}, warn...), codes(found, "warning")); d != "" && wantError == "" {
		t.Errorf("warnings: %s", d)
	}
	if r.Code != wantCode {
		t.Errorf("exit code %d, want %d", r.Code, wantCode)
	}
	for _, d := range found {
		if d.Summary == "" || d.Hint == "" && d.Severity == "error" {
			t.Errorf("no summary or hint: %+v", d)
		}
	}
}

type exprCase struct {
	ID        string   `yaml:"id"`
	Dialect   string   `yaml:"dialect"`
	Bizdate   string   `yaml:"bizdate"`
	At        string   `yaml:"at"`
	Scheduled string   `yaml:"scheduled"`
	Zone      string   `yaml:"zone"`
	Expr      string   `yaml:"expr"`
	Want      string   `yaml:"want"`
	Error     string   `yaml:"error"`
	Warn      []string `yaml:"warn"`
	Decided   bool     `yaml:"decided"`
	Why       string   `yaml:"why"`
}

func TestParamExpressionCases(t *testing.T) {
	t.Parallel()
	for _, c := range readCases[exprCase](t, "params.yaml", func(m map[string]any) bool { return m["expr"] != nil }) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			args := []string{"params", "--expr", c.Expr, "--dialect", c.Dialect, "--zone", c.Zone, "-o", "json"}
			if c.Scheduled != "" {
				args = append(args, "--scheduled", c.Scheduled)
			} else {
				args = append(args, "--bizdate", c.Bizdate, "--at", c.At)
			}
			r := invoke(t, t.TempDir(), args...)
			doc := document[struct {
				Value       *string
				Diagnostics []told
			}](t, r)
			checkTold(t, r, doc.Diagnostics, c.Error, c.Warn)
			switch {
			case c.Error != "" && doc.Value != nil:
				t.Errorf("a value beside an error: %q", *doc.Value)
			case c.Error == "" && (doc.Value == nil || *doc.Value != c.Want):
				t.Errorf("got %s, want %q", r.Stdout, c.Want)
			}
		})
	}
}
