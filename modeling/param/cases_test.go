package param_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

// CaseHead holds the keys that every case has.
type CaseHead struct {
	ID      string   `yaml:"id"`
	Error   string   `yaml:"error"`
	Errors  []string `yaml:"errors"`
	Warn    []string `yaml:"warn"`
	Decided bool     `yaml:"decided"`
	Why     string   `yaml:"why"`
}

// wantCodes gives the sorted errors and warnings that a case expects.
func (h CaseHead) wantCodes() (errs, warns []string) {
	errs = append([]string{}, h.Errors...)
	if h.Error != "" {
		errs = append(errs, h.Error)
	}
	return kinds(errs), kinds(h.Warn)
}

// kinds sorts and drops repeats: cases compare kinds, not counts.
func kinds(codes []string) []string {
	out := append([]string{}, codes...)
	slices.Sort(out)
	return slices.Compact(out)
}

// caseFile is one YAML case file; unknown keys are errors.
type caseFile[D, C any] struct {
	Topic    string `yaml:"topic"`
	Format   int    `yaml:"format"`
	Defaults D      `yaml:"defaults"`
	Cases    []C    `yaml:"cases"`
}

func readCases[D, C any](t *testing.T, files ...string) caseFile[D, C] {
	t.Helper()
	var all caseFile[D, C]
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f caseFile[D, C]
		if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all.Defaults = f.Defaults
		all.Cases = append(all.Cases, f.Cases...)
	}
	return all
}

type paramDefaults struct {
	Dialect string `yaml:"dialect"`
	At      string `yaml:"at"`
	Zone    string `yaml:"zone"`
}

type paramCase struct {
	CaseHead  `yaml:",inline"`
	Dialect   string        `yaml:"dialect"`
	Bizdate   string        `yaml:"bizdate"`
	At        string        `yaml:"at"`
	Scheduled string        `yaml:"scheduled"`
	Zone      string        `yaml:"zone"`
	Expr      *string       `yaml:"expr"`
	Text      *string       `yaml:"text"`
	Params    yaml.MapSlice `yaml:"params"`
	Overrides yaml.MapSlice `yaml:"overrides"`
	Literal   []string      `yaml:"literal"`
	Want      string        `yaml:"want"`
	// Unsafe: as SQL the text is refused with unsafe_value (own cases only).
	Unsafe bool `yaml:"unsafe_in_sql"`
}

func TestParamCases(t *testing.T) {
	t.Parallel()
	f := readCases[paramDefaults, paramCase](t, "../../fixtures/cases/params.yaml", "testdata/params.yaml")
	for _, c := range f.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			if c.Dialect == "" {
				c.Dialect = f.Defaults.Dialect
			}
			if c.Zone == "" {
				c.Zone = f.Defaults.Zone
			}
			if c.At == "" && c.Scheduled == "" {
				c.At = f.Defaults.At
			}
			d, diags := param.ParseDialect(c.Dialect)
			at, more := param.Moment{Bizdate: c.Bizdate, At: c.At, Scheduled: c.Scheduled, Zone: c.Zone}.Instant()
			if diags = append(diags, more...); diags != nil {
				t.Fatal(diags)
			}
			if c.Expr != nil {
				got, diags := param.EvalOne(d, *c.Expr, at)
				c.check(t, got, diags)
				return
			}
			c.runText(t, d, at)
		})
	}
}

// runText renders the case's code as plain text and as SQL.
func (c paramCase) runText(t *testing.T, d param.Dialect, at param.Instant) {
	t.Helper()
	cfg := param.Config{Dialect: d, Node: declared(c.Params), Overrides: declared(c.Overrides)}
	for _, name := range c.Literal {
		if i := slices.IndexFunc(cfg.Node, func(d param.Declared) bool { return strings.EqualFold(d.Name, name) }); i >= 0 {
			cfg.Node[i].Verbatim = true
			continue
		}
		cfg.Node = append(cfg.Node, param.Declared{Name: name, Verbatim: true})
	}
	set, setDiags := param.NewSet(cfg)
	setDiags = append(setDiags, set.Check(at)...)

	got, diags := param.EvalText(param.Text(*c.Text), set, at, nil)
	c.check(t, got, append(slices.Clone(setDiags), diags...))

	tpl, diags := param.ParseCode(param.Text(*c.Text), set)
	got = ""
	if tpl != nil {
		var more diag.List
		got, more = tpl.Render(at, nil)
		diags = append(diags, more...)
		checkFrozen(t, tpl, at, nil)
	}
	if c.Unsafe {
		if !slices.Equal(diags.Errors().Codes(), []string{"unsafe_value"}) {
			t.Errorf("as SQL: %v", diags)
		}
		return
	}
	c.check(t, got, append(slices.Clone(setDiags), diags...))
}

func (c paramCase) check(t *testing.T, got string, diags diag.List) {
	t.Helper()
	errs, warns := c.wantCodes()
	if d := cmp.Diff(errs, kinds(diags.Errors().Codes())); d != "" {
		t.Errorf("errors: %s\n%v", d, diags)
	}
	if len(errs) > 0 {
		checkPlaced(t, diags)
		return
	}
	if d := cmp.Diff(c.Want, got); d != "" {
		t.Errorf("value: %s\n%v", d, diags)
	}
	if d := cmp.Diff(warns, kinds(diags.Warnings().Codes())); d != "" {
		t.Errorf("warnings: %s", d)
	}
}

// checkPlaced wants a hint in every error.
func checkPlaced(t *testing.T, diags diag.List) {
	t.Helper()
	for _, d := range diags {
		if d.Hint == "" || d.Summary == "" {
			t.Errorf("no summary or hint: %+v", d)
		}
	}
}

func declared(m yaml.MapSlice) []param.Declared {
	var out []param.Declared
	for _, item := range m {
		d := param.Declared{Name: item.Key.(string)}
		if v, ok := item.Value.(string); ok {
			d.Value = &v
		}
		out = append(out, d)
	}
	return out
}

type crossDefaults struct {
	InBackfill string `yaml:"in_backfill"`
	NDays      int    `yaml:"n_days"`
	Declared   bool   `yaml:"declared"`
	Direct     bool   `yaml:"direct"`
}

type crossCase struct {
	CaseHead    `yaml:",inline"`
	Bizdate     string             `yaml:"bizdate"`
	InBackfill  string             `yaml:"in_backfill"`
	ThisRun     map[string]*string `yaml:"this_run"`
	Records     []crossRecord      `yaml:"records"`
	Default     *string            `yaml:"default"`
	NDays       *int               `yaml:"n_days"`
	Declared    *bool              `yaml:"declared"`
	Direct      *bool              `yaml:"direct"`
	Want        string             `yaml:"want"`
	Source      string             `yaml:"source"`
	FromBizdate string             `yaml:"from_bizdate"`
}

type crossRecord struct {
	Bizdate  string  `yaml:"bizdate"`
	Finished string  `yaml:"finished"`
	Value    *string `yaml:"value"`
	Status   string  `yaml:"status"`
}

func TestCrossParamCases(t *testing.T) {
	t.Parallel()
	f := readCases[crossDefaults, crossCase](t, "../../fixtures/cases/crossparams.yaml", "testdata/crossparams.yaml")
	date := func(t *testing.T, s string) bizdate.Date {
		d, err := bizdate.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range f.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			r := param.CrossRead{
				Name: "up.p", Bizdate: date(t, c.Bizdate), Direct: f.Defaults.Direct, Declared: f.Defaults.Declared,
				InBackfill: param.InBackfill(f.Defaults.InBackfill), ThisRun: c.ThisRun[c.Bizdate],
				Default: c.Default, Lookback: f.Defaults.NDays,
			}
			if c.InBackfill != "" {
				r.InBackfill = param.InBackfill(c.InBackfill)
			}
			if c.NDays != nil {
				r.Lookback = *c.NDays
			}
			if c.Declared != nil {
				r.Declared = *c.Declared
			}
			if c.Direct != nil {
				r.Direct = *c.Direct
			}
			for _, rec := range c.Records {
				fin, err := time.Parse("2006-01-02T15:04:05", rec.Finished)
				if err != nil {
					t.Fatal(err)
				}
				r.Records = append(r.Records, param.CrossRecord{Bizdate: date(t, rec.Bizdate), Finished: fin,
					Value: rec.Value, Success: rec.Status == "" || rec.Status == "success"})
			}
			got, diags := param.ResolveCross(r)
			errs, warns := c.wantCodes()
			if d := cmp.Diff(errs, kinds(diags.Errors().Codes())); d != "" {
				t.Fatalf("errors: %s\n%v", d, diags)
			}
			if d := cmp.Diff(warns, kinds(diags.Warnings().Codes())); d != "" {
				t.Errorf("warnings: %s", d)
			}
			if len(errs) > 0 {
				checkPlaced(t, diags)
				return
			}
			from := ""
			if got.Source == param.FromRecent {
				from = got.Bizdate.String()
			}
			if d := cmp.Diff([]string{c.Want, c.Source, c.FromBizdate}, []string{got.Value, string(got.Source), from}); d != "" {
				t.Error(d)
			}
		})
	}
}
