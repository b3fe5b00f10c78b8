package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

var day = bizdate.Of(2013, 11, 1)

// sample is a valid plan: three dates around the end of daylight saving time,
// a daily, an hourly and a weekly node.
func sample() plan.Plan {
	zero := 0
	dates := []bizdate.Date{day, day + 1, day + 2}
	all := []plan.DateRange{{From: day, To: day + 2}}
	return plan.Plan{
		FormatVersion: plan.FormatVersion, Backfill: "b", Zone: "America/New_York", Dates: dates, Groups: [][]bizdate.Date{dates[:2], dates[2:]},
		Window: &plan.Window{From: "00:00", To: "02:00"}, Instances: 3 + 10 + 3,
		SlotMaps:    []plan.SlotMap{{Runs: []plan.MapRun{{From: day, To: day + 1, Lo: -2, Hi: -1}}}},
		Definitions: map[string]plan.Definition{"x": {Table: "t"}, "a": {Table: "u"}},
		Nodes: []plan.Node{
			{Name: "d", Schedule: modeling.Schedule{At: "02:30"}, Steps: []plan.Step{{ID: "s", Strategy: plan.Rewrite, Dates: all, Instances: 3}}},
			{Name: "h", Schedule: modeling.Schedule{Cycle: modeling.Hourly, Every: 60}, Needs: []plan.Edge{{Node: "d"}, {Node: "h", Map: &zero}},
				Steps: []plan.Step{{ID: "s", Strategy: plan.Script, Dates: all, Instances: 10}}},
			{Name: "w", Schedule: modeling.Schedule{Cycle: modeling.Weekly, Weekdays: []string{"sun"}}, Needs: []plan.Edge{{Node: "h"}}, Steps: []plan.Step{
				{ID: "real", Strategy: plan.Rewrite, Dates: []plan.DateRange{{From: day + 1, To: day + 1}}, Instances: 1},
				{ID: "dry", Strategy: plan.DryRun, Because: "not scheduled", Dates: []plan.DateRange{{From: day, To: day}, {From: day + 2, To: day + 2}}, Instances: 2}}},
		},
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	p := sample()
	for _, c := range []struct {
		date, node int
		want       string
	}{
		{0, 0, "0:2013-11-01"},
		{0, 1, "0:2013-11-02T00:00:00-04:00 0:2013-11-02T01:00:00-04:00 0:2013-11-02T02:00:00-04:00"},
		{1, 1, "0:2013-11-03T00:00:00-04:00 0:2013-11-03T01:00:00-04:00 0:2013-11-03T01:00:00-05:00 0:2013-11-03T02:00:00-05:00"},
		{0, 2, "1:2013-11-01"},
		{1, 2, "0:2013-11-02"},
		{2, 2, "1:2013-11-03"},
	} {
		got, err := plan.Expand(&p, c.date, c.node)
		if err != nil {
			t.Fatal(err)
		}
		var s []string
		for _, i := range got {
			s = append(s, string(rune('0'+i.Step))+":"+i.Slot.ID())
		}
		if d := cmp.Diff(c.want, strings.Join(s, " ")); d != "" {
			t.Errorf("%d/%d: %s", c.date, c.node, d)
		}
	}
	for _, bad := range [][2]int{{-1, 0}, {3, 0}, {0, 3}, {0, -1}} {
		if _, err := plan.Expand(&p, bad[0], bad[1]); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestStepInDescendingRanges(t *testing.T) {
	t.Parallel()
	p := sample()
	p.Nodes[2].Steps[1].Dates = []plan.DateRange{{From: day + 2, To: day + 2}, {From: day, To: day}}
	x, err := plan.NewExpander(&p)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{-1, 1, 0, 1, -1} {
		if got := x.Step(2, day+bizdate.Date(i)-1); got != want {
			t.Errorf("%d: step %d, want %d", i, got, want)
		}
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	p := sample()
	doc, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := plan.Decode(doc)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	again, err := plan.Encode(back)
	if err != nil || !bytes.Equal(doc, again) {
		t.Errorf("encoding is not stable: %v", err)
	}
	if d := cmp.Diff(sample(), p); d != "" {
		t.Errorf("encoding changed the plan: %s", d)
	}
	a, err := plan.Digest(p)
	if err != nil || a != plan.DigestOf(doc) || len(a) != 64 {
		t.Error(a, err)
	}
	p.Retries++
	if b, err := plan.Digest(p); err != nil || a == b {
		t.Error("the digest does not see a change", err)
	}
}

// TestSeal: any edit of a sealed plan is found, another layout is none.
func TestSeal(t *testing.T) {
	t.Parallel()
	doc, err := plan.Seal(sample())
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, doc, "", "    "); err != nil {
		t.Fatal(err)
	}
	for _, d := range [][]byte{doc, pretty.Bytes()} {
		p, err := plan.Decode(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Unseal(&p); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(sample(), p, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	}
	for name, edit := range map[string]func(*plan.Plan){
		"no digest": func(p *plan.Plan) { p.Digest = "" },
		"node":      func(p *plan.Plan) { p.Nodes[0].Name += "x" },
		"schema":    func(p *plan.Plan) { p.Schema = "other" },
		"retries":   func(p *plan.Plan) { p.Retries++ },
	} {
		p, err := plan.Decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		edit(&p)
		if plan.Unseal(&p) == nil {
			t.Errorf("%s: the edit is not found", name)
		}
	}
}

// TestNoNull: whatever list is nil, no reader of the JSON sees null.
func TestNoNull(t *testing.T) {
	t.Parallel()
	var p plan.Plan
	fill(reflect.ValueOf(&p).Elem(), 0)
	doc, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(doc, []byte("null")); i >= 0 {
		t.Errorf("null in …%s…", doc[max(0, i-60):min(len(doc), i+20)])
	}
}

// fill gives every list of structs one element and leaves the others nil.
func fill(v reflect.Value, depth int) {
	if depth > 8 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Struct {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), e)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good, err := plan.Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string]string{
		"newer version":   strings.Replace(string(good), `"format_version":1`, `"format_version":2`, 1),
		"no version":      `{"backfill":"b"}`,
		"unknown key":     strings.Replace(string(good), `"backfill":`, `"bakfill":`, 1),
		"unknown in node": strings.Replace(string(good), `"why":`, `"wy":`, 1),
		"trailing":        string(good) + `{}`,
		"not JSON":        "plan",
		"empty":           "",
	} {
		_, err := plan.Decode([]byte(doc))
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		var version *plan.VersionError
		if errors.As(err, &version) != (name == "newer version") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := sample()
	if err := plan.Validate(&good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		spoil      func(p *plan.Plan)
	}{
		{"no name", "no name", func(p *plan.Plan) { p.Backfill = "" }},
		{"uncovered date", "0 steps of d cover 2013-11-03", func(p *plan.Plan) { p.Nodes[0].Steps[0].Dates[0].To--; p.Nodes[0].Steps[0].Instances-- }},
		{"covered twice", "2 steps of w cover 2013-11-02", func(p *plan.Plan) { p.Nodes[2].Steps[1].Dates[0].To++; p.Nodes[2].Steps[1].Instances++ }},
		{"foreign date", "cover dates that the plan does not have", func(p *plan.Plan) { p.Nodes[2].Steps[1].Dates[1].To++; p.Nodes[2].Steps[1].Instances++ }},
		{"wrong count", "counts 4 instances, its dates make 3", func(p *plan.Plan) { p.Nodes[0].Steps[0].Instances++ }},
		{"wrong total", "counts 17 instances", func(p *plan.Plan) { p.Instances++ }},
		{"unknown upstream", "needs x, which is not in the plan", func(p *plan.Plan) { p.Nodes[1].Needs[0].Node = "x" }},
		{"backward edge", "which comes after it", func(p *plan.Plan) { p.Nodes[0].Needs = []plan.Edge{{Node: "w"}} }},
		{"self on the same date", "which comes after it", func(p *plan.Plan) { p.Nodes[1].Needs[1].Map = nil }},
		{"unknown map", "slot map 7", func(p *plan.Plan) { n := 7; p.Nodes[1].Needs[1].Map = &n }},
		{"name twice", "listed twice", func(p *plan.Plan) { p.Nodes[1].Name = "d" }},
		{"step id twice", "used twice", func(p *plan.Plan) { p.Nodes[2].Steps[1].ID = "real" }},
		{"groups", "the groups are not the dates", func(p *plan.Plan) { p.Groups = p.Groups[:1] }},
		{"zone", "expand", func(p *plan.Plan) { p.Zone = "Mars/Phobos" }},
		{"window", "window", func(p *plan.Plan) { p.Window.From = "25:00" }},
		{"schedule", "schedule of d", func(p *plan.Plan) { p.Nodes[0].Schedule.At = "x" }},
	} {
		doc, err := plan.Encode(sample())
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Decode(doc) // a deep copy
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(&p)
		if err := plan.Validate(&p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	p := sample()
	e := p.Nodes[1].Needs[1]
	if lo, hi := p.Reads(e, day+1); lo != day-1 || hi != day {
		t.Error(lo, hi)
	}
	if lo, hi := p.Reads(e, day+2); lo <= hi {
		t.Error("a date without a run reads something")
	}
	if lo, hi := p.Reads(plan.Edge{Node: "d"}, day); lo != day || hi != day {
		t.Error(lo, hi)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	got := plan.Ranges([]bizdate.Date{day + 3, day, day + 1, day + 5, day + 4})
	if d := cmp.Diff([]plan.DateRange{{From: day, To: day + 1}, {From: day + 3, To: day + 5}}, got); d != "" {
		t.Error(d)
	}
	if got := plan.Ranges(nil); got == nil || len(got) != 0 {
		t.Error(got)
	}
}
