package plan_test

import (
	"bytes"
	"testing"

	"github.com/retrofill/retrofill/planner/plan"
)

// FuzzDecode: a document that is read is written and read again as the same
// bytes, seals, and is either refused by Validate or expands into as many
// instances as it counts.
func FuzzDecode(f *testing.F) {
	good, err := plan.Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, r := range [][2]string{
		{`"groups":`, `"resource_group":{"name":"g","connections":0},"groups":`},
		{`"groups":`, `"run_at":"2024-01-01T00:00:00Z","groups":`},
		{`2013-11-01`, `9999-12-31`}, {`2013-11-03`, `2013-11-01`},
		{`"zone":"America/New_York"`, `"zone":"UTC"`}, {`"instances":10`, `"instances":-10`},
		{`"node":"d"`, `"node":"w"`}, {`"map":0`, `"map":9`}, {`"lo":-2`, `"lo":9223372036854775807`},
	} {
		f.Add(bytes.ReplaceAll(good, []byte(r[0]), []byte(r[1])))
	}
	f.Add([]byte(`{"format_version":1}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := plan.Decode(doc)
		if err != nil {
			return
		}
		once, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := plan.Decode(once)
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, once)
		}
		twice, err := plan.Encode(back)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%s\n%s", err, once, twice)
		}
		sealed, err := plan.Seal(p)
		if err != nil {
			t.Fatal(err)
		}
		if back, err = plan.Decode(sealed); err != nil {
			t.Fatal(err)
		}
		if err := plan.Unseal(&back); err != nil {
			t.Fatal(err)
		}
		if p.Parallel() < 1 {
			t.Errorf("%d instances at once", p.Parallel())
		}
		if len(p.Dates) > 400 || len(p.Nodes) > 20 || plan.Validate(&p) != nil {
			return
		}
		total := 0
		for d := range p.Dates {
			for n := range p.Nodes {
				list, err := plan.Expand(&p, d, n)
				if err != nil {
					t.Fatal(err)
				}
				total += len(list)
			}
		}
		if total != p.Instances {
			t.Errorf("%d instances are counted, %d expanded", p.Instances, total)
		}
	})
}

func FuzzDayPart(f *testing.F) {
	for _, s := range []string{"08:00-18:00", "22:00-06:00", "00:00-23:59", "24:00-01:00", "8-9", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.ParseDayPart(text)
		if err == nil && (p.From == p.To || p.From.String()+"-"+p.To.String() != text) {
			t.Errorf("%q reads as %v", text, p)
		}
	})
}
