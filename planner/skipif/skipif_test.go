package skipif

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

func TestEval(t *testing.T) {
	t.Parallel()
	slot := bizdate.Slot{Date: bizdate.Of(2024, 2, 29), At: time.Date(2024, 3, 1, 2, 30, 0, 0, time.UTC)} // a Thursday, the last of its month
	for _, c := range []struct {
		text   string
		want   bool
		params string
	}{
		{`weekday == "thu"`, true, ""},
		{`weekday in ["sat", "sun"]`, false, ""},
		{`last_day and day == 29 and month == 2 and year == 2024`, true, ""},
		{`date < "2024-03-01"`, true, ""},
		{`slot == date`, true, ""},
		{`hour == 2 and minute == 30`, true, ""},
		{`params.Rate == "0"`, true, "rate"},
		{`params["rate"] != "0" or int(params.b) > 3`, true, "b rate"},
		{"not (params.rate\n  startsWith '0')", false, "rate"},
	} {
		e, diags := Compile(c.text, diag.Pos{})
		if e == nil {
			t.Errorf("%s: %v", c.text, diags)
			continue
		}
		if got := strings.Join(e.Params(), " "); got != c.params {
			t.Errorf("%s reads %q, want %q", c.text, got, c.params)
		}
		got, err := e.Eval(slot, time.UTC, map[string]string{"rate": "0", "b": "4"})
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.text, got, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	at := diag.Pos{File: "t.yml", Line: 7, Column: 10}
	for text, want := range map[string]string{
		`weekday ==`:              "t.yml:7:19",
		`wekday == "sat"`:         "t.yml:7:10",
		`day + 1`:                 "t.yml:7:",
		`params[weekday] == "1"`:  "t.yml:7:17",
		"day == 1 or\n  nope > 2": "t.yml:8:3",
		`now().Year() == 2024`:    "t.yml:7:10",
		`params.rate > 3`:         "t.yml:7:22",
	} {
		e, diags := Compile(text, at)
		if e != nil || len(diags) != 1 || diags[0].Code != "skip_if" || diags[0].Hint == "" {
			t.Errorf("%q: %v", text, diags)
			continue
		}
		if got := diags[0].Pos.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q: at %s, want %s (%s)", text, got, want, diags[0].Summary)
		}
	}
}

func TestParamsAreSorted(t *testing.T) {
	t.Parallel()
	e, _ := Compile(`params.z == params.a and params.Z == ""`, diag.Pos{})
	if e == nil || !slices.Equal(e.Params(), []string{"a", "z"}) {
		t.Error(e)
	}
}

func TestRuntimeError(t *testing.T) {
	t.Parallel()
	e, _ := Compile(`int(params.n) > 1`, diag.Pos{})
	if _, err := e.Eval(bizdate.Slot{Date: 1}, time.UTC, map[string]string{"n": "many"}); err == nil {
		t.Error("no error")
	}
}
