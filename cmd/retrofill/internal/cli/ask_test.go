package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

func TestTick(t *testing.T) {
	t.Parallel()
	day := bizdate.Of(2024, 1, 1)
	list := []plan.Recommended{
		{Table: "orders", Field: "amount", Reason: "logic_changed", Detail: "logic changed since 2024-01-01 (built by first)", Dates: []plan.DateRange{{From: day, To: day + 2}, {From: day + 5, To: day + 5}}},
		{Table: "party", Field: "id", Reason: "primary_pk_changed"},
		{Table: "orders", Field: "id", Reason: "child_pk_of_changed_primary"},
	}
	for _, c := range []struct{ in, want, problem string }{
		{"\n", "none", ""},
		{"", "none", ""},
		{"none\n", "none", ""},
		{" NONE \r\n", "none", ""},
		{"all\n", "orders.amount,party.id,orders.id", ""},
		{"1-3\n", "orders.amount,party.id,orders.id", ""},
		{"1,3", "orders.amount,orders.id", ""},
		{"3 1, 1\n", "orders.amount,orders.id", ""},
		{"2-3\n", "party.id,orders.id", ""},
		{"x\n2\n", "party.id", `"x" is no entry of the list: it has 1 to 3.`},
		{"0\n4\n1\n", "orders.amount", `"4" is no entry`},
		{"3-1\n-1\n1-\n", "", `"1-" is no entry`},
		{"1-99999999999999999999\nall\n", "orders.amount,party.id,orders.id", "is no entry"},
		{"9", "", `"9" is no entry`},
	} {
		var errs bytes.Buffer
		// A reader that gives one byte at a time, as slow typing does.
		names, err := tick(&Env{Stdin: iotest.OneByteReader(strings.NewReader(c.in)), Stderr: &errs}, list)
		got := strings.Join(names, ",")
		if err == nil && len(names) == 0 {
			got = "none"
		}
		if got != c.want || (err != nil) != (c.want == "") || c.problem != "" && c.want != "" && !strings.Contains(errs.String(), c.problem) {
			t.Errorf("%q: %q, %v, want %q\n%s", c.in, got, err, c.want, errs.String())
		}
		if err != nil && exitCode(err) != exitRefused {
			t.Errorf("%q: %v", c.in, err)
		}
	}
	var errs bytes.Buffer
	if _, err := tick(&Env{Stdin: strings.NewReader("\n"), Stderr: &errs}, list); err != nil {
		t.Fatal(err)
	}
	want := `Recommended fields:
   1  orders.amount  logic changed since 2024-01-01 (built by first), on 2024-01-01..2024-01-03, 2024-01-06
   2  party.id       primary pk changed
   3  orders.id      child pk of changed primary
Take which? Numbers such as 1,3 or 1-3, all, none [none] `
	if d := cmp.Diff(want, errs.String()); d != "" {
		t.Error(d)
	}
	if _, err := tick(&Env{Stdin: iotest.ErrReader(errors.New("gone")), Stderr: &errs}, list); err == nil {
		t.Error("a broken input is no answer")
	}
}

// A question takes its own line only: the next one is still there.
func TestAnswersInARow(t *testing.T) {
	t.Parallel()
	env := &Env{Stdin: strings.NewReader("1\ny\nno\n"), Stderr: &bytes.Buffer{}}
	first, _, err := env.answer("? ")
	if err != nil || first != "1" {
		t.Fatal(first, err)
	}
	for _, want := range []bool{true, false, false} {
		if got, err := ask(env, "? "); got != want || err != nil {
			t.Error(got, err)
		}
	}
}

// Whatever is typed, an answer names entries of the list, each once, or is
// told to be wrong.
func FuzzTicked(f *testing.F) {
	for _, s := range []string{"", "all", "none", "1,3", "2-4", "1 2\t3", "-", ",", "1-2-3", "+1", "0x1", "99999999999999999999"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, line string, n int) {
		n = min(max(n, 0), 1000)
		picked, problem := ticked(line, n)
		if problem != "" && picked != nil {
			t.Errorf("%q: both %v and %s", line, picked, problem)
		}
		for i, k := range picked {
			if k < 0 || k >= n || i > 0 && picked[i-1] >= k {
				t.Errorf("%q: %v of %d", line, picked, n)
			}
		}
	})
}
