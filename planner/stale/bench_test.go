package stale_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/stale"
)

// BenchmarkMatrix judges 1,000 tables of 10 fields on 1,000 dates, each date
// built by a commit of its own, each table reading three fields of the one
// before: 10 million cells.
func BenchmarkMatrix(b *testing.B) {
	const tables, days, fields = 1000, 1000, 10
	var cases []tableCase
	prints := map[string]string{}
	var names []string
	for f := range fields {
		names = append(names, fmt.Sprintf("f%d", f))
		prints[names[f]] = "1"
	}
	for i := range tables {
		c := tableCase{Name: fmt.Sprintf("t%d", i), Nodes: []nodeCase{{fmt.Sprintf("n%d", i), names}}, Fields: prints, RowSet: "1"}
		if i > 0 {
			up := fmt.Sprintf("t%d.", i-1)
			c.Reads = map[string][]string{"f0": {up + "f0"}, "f1": {up + "f1", up + "f2"}}
			c.RowReads = []string{up + "f3"}
		}
		cases = append(cases, c)
	}
	t := &testing.T{}
	m := model(t, cases)
	f := stale.Facts{Definitions: map[string]plan.Definition{"d": {Version: m.Nodes[0].Analysis.Version, RowSet: "1", Key: "k", Fields: prints}}}
	first := bizdate.Of(2021, time.January, 1)
	var list []bizdate.Date
	seq := int64(0)
	for d := range bizdate.Date(days) {
		list = append(list, first+d)
		for i := range tables {
			f.Records = append(f.Records, stale.Record{Node: fmt.Sprintf("n%d", i), From: first + d, To: first + d, Definition: "d", Began: seq + 1, Build: seq + 2, Backfill: "b"})
			seq += 2
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		x := stale.New(m, f)
		derive := lineage.NewDeriver(m, list)
		for _, n := range m.Nodes {
			if parts := x.Judge(n, list, derive).Table().Stale(); len(parts) > 0 {
				b.Fatal(n.Name, parts)
			}
		}
	}
}
