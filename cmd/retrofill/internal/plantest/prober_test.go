package plantest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// partitions is a prober in memory. Each source may be asked once.
type partitions struct {
	t     *testing.T
	have  map[string][][2]bizdate.Date
	other map[string]string // a value of another form
	asked map[string]bool
}

// define reads FROM..TO or single dates; "none" = no rows, "broken" = the
// source cannot be asked, =VALUE = a value of another form.
func (p *partitions) define(table string, ranges []string) {
	p.have[table] = [][2]bizdate.Date{}
	for _, r := range ranges {
		if v, ok := strings.CutPrefix(r, "="); ok {
			p.other[table] = v
			continue
		}
		switch r {
		case "none":
			continue
		case "broken":
			p.have[table] = nil
			continue
		}
		from, to, ok := strings.Cut(r, "..")
		if !ok {
			to = from
		}
		p.have[table] = append(p.have[table], [2]bizdate.Date{day(p.t, from), day(p.t, to)})
	}
}

// Partitions implements planner.Prober. Values are written as the bounds are.
func (p *partitions) Partitions(_ context.Context, table, column, from, to string) ([]string, error) {
	list, known := p.have[table]
	if !known || column == "" || from > to || p.asked[table] {
		p.t.Errorf("asked for %s.%s from %s to %s", table, column, from, to)
	}
	p.asked[table] = true
	if list == nil {
		return nil, errors.New("no right to read " + table)
	}
	var out []string
	if v := p.other[table]; v != "" {
		out = append(out, v)
	}
	for _, r := range list {
		for d := r[0]; d <= r[1]; d++ {
			v := d.String()
			if !strings.Contains(from, "-") {
				v = strings.ReplaceAll(v, "-", "")[:len(from)]
			}
			if from <= v && v <= to {
				out = append(out, v)
			}
		}
	}
	return out, nil
}
