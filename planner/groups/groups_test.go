package groups

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

func TestSplitProperties(t *testing.T) {
	t.Parallel()
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 1000 {
		dates := make([]bizdate.Date, r.IntN(60))
		for j := range dates {
			dates[j] = bizdate.Date(r.IntN(80))
		}
		before := slices.Clone(dates)
		n := 1 + r.IntN(MaxGroups)
		asc, diags := Split(dates, n, bizdate.Asc)
		if len(diags) > 0 || !slices.Equal(before, dates) {
			t.Fatalf("seed %d, case %d: %v, input now %v", seed, i, diags, dates)
		}
		distinct := bizdate.SetOf(dates...).Dates()
		flat := slices.Concat(asc...)
		if !slices.Equal(flat, distinct) {
			t.Fatalf("seed %d, case %d: %v is no partition of %v", seed, i, asc, distinct)
		}
		if len(asc) != min(n, len(distinct)) {
			t.Fatalf("seed %d, case %d: %d groups", seed, i, len(asc))
		}
		for g := 1; g < len(asc); g++ {
			if d := len(asc[0]) - len(asc[g]); d < 0 || d > 1 || len(asc[g]) > len(asc[g-1]) {
				t.Fatalf("seed %d, case %d: sizes %v", seed, i, asc)
			}
		}
		desc, _ := Split(dates, n, bizdate.Desc)
		back := slices.Concat(desc...)
		slices.Reverse(back)
		if !slices.Equal(back, flat) {
			t.Fatalf("seed %d, case %d: desc %v is not the reverse of asc %v", seed, i, desc, asc)
		}
	}
}

func TestSplitDropsRepeats(t *testing.T) {
	t.Parallel()
	got, _ := Split([]bizdate.Date{3, 1, 3, 2, 1}, 2, bizdate.Desc)
	if d := cmp.Diff([][]bizdate.Date{{3, 2}, {1}}, got); d != "" {
		t.Error(d)
	}
	if _, diags := Split(nil, 13, ""); strings.Join(diags.Codes(), ",") != "groups_out_of_range" {
		t.Errorf("13 groups of no dates: %v", diags)
	}
	if got, diags := Split(nil, 3, ""); got != nil || diags != nil {
		t.Errorf("no dates: %v %v", got, diags)
	}
}

func TestCheckNamesEverything(t *testing.T) {
	t.Parallel()
	got := Check(Request{Dates: 2, Groups: 13, Direction: bizdate.Desc, Selected: []string{"c", "a"}, Previous: []PreviousCycle{
		{Node: "c", Reads: "x"}, {Node: "a", Reads: "a"}, {Node: "c", Reads: "c"}, {Node: "c", Reads: "x"}, {Node: "x", Reads: "a"}}})
	var lines []string
	for _, r := range got {
		lines = append(lines, r.Code+" "+strings.Join(r.Nodes, ","))
		if r.Hint == "" {
			t.Errorf("%s has no hint", r.Code)
		}
	}
	want := []string{"groups_out_of_range ", "desc_with_cross_cycle a,c", "groups_with_cross_cycle a,c"}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	detail := "a reads its own previous cycle\nc reads its own previous cycle\nc reads the previous cycle of x"
	if d := cmp.Diff(detail, got[1].Detail); d != "" {
		t.Error(d)
	}
	if got := Check(Request{Dates: 1, Groups: 1, Direction: bizdate.Desc, Selected: []string{"a"},
		Previous: []PreviousCycle{{Node: "a", Reads: "a"}}}); len(got) > 0 {
		t.Errorf("one date descending: %v", got)
	}
}
