package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"run", 2, "name a suite"},
		{"run speed", 2, `no suite "speed"; the suites are overhead, planner`},
		{"run overhead speed -short", 2, `no suite "speed"`},
		{"run overhead -o xml", 2, `-o "xml" is not known`},
		{"run overhead -rounds -3", 2, "-rounds -3"},
		{"run overhead -fast", 2, "fast"},
		{"walk", 2, `no command "walk"`},
		{"list", 0, "overhead"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"retrofill-bench"}, strings.Fields(c.args)...), &out, &errs); code != c.code {
			t.Errorf("%s: exit code %d instead of %d", c.args, code, c.code)
		}
		if all := out.String() + errs.String(); !strings.Contains(all, c.says) {
			t.Errorf("%s says:\n%s", c.args, all)
		}
	}
}

func TestFlagsFirst(t *testing.T) {
	t.Parallel()
	got := flagsFirst(strings.Fields("b run overhead -short planner -o jsonl --rounds=3"))
	if diff := cmp.Diff(strings.Fields("b run -short -o jsonl --rounds=3 overhead planner"), got); diff != "" {
		t.Error(diff)
	}
}
