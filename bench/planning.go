package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner"
)

// Goals of issue 4, "Scale", in seconds.
const (
	goalWarm1000  = 0.3
	goalWarm10000 = 2.0
	goalCold1000  = 3.0
)

// generatedFile is the database of a generated project.
const generatedFile = "generated.duckdb"

// size is a generated project to plan.
type size struct {
	tables     int
	warm, cold float64 // goals, 0 = none
}

// selection is what is planned of a project, over 366 dates.
type selection struct {
	name string
	req  func(Generated) planner.Request
	args func(Generated) []string
}

func selections() []selection {
	return []selection{
		{"single", func(g Generated) planner.Request { return planner.Request{Nodes: []string{g.Single}} },
			func(g Generated) []string { return []string{g.Single} }},
		{"deep", func(g Generated) planner.Request {
			return planner.Request{Nodes: []string{g.Leaf}, Upstream: planner.AllLevels}
		}, func(g Generated) []string { return []string{g.Leaf, "--upstream", "all"} }},
		{"wide", func(g Generated) planner.Request {
			return planner.Request{Nodes: []string{g.Hub}, Downstream: planner.AllLevels}
		}, func(g Generated) []string { return []string{g.Hub, "--downstream", "all"} }},
	}
}

// planning measures plans of generated projects: through the command, from
// process start to end, and in this process; with a warm cache and, for 1,000
// tables, with none.
func planning(ctx context.Context, r *runner) error {
	sizes := []size{{1000, goalWarm1000, goalCold1000}, {3000, 0, 0}, {10_000, goalWarm10000, 0}}
	if r.cfg.Short {
		sizes = []size{{100, goalWarm1000, goalCold1000}, {200, goalWarm10000, 0}}
	}
	if r.cfg.Binary == "" {
		r.note("the cases of the command are left out: no built command is given")
	}
	var points [][2]float64
	for _, s := range sizes {
		dir := filepath.Join(r.cfg.Dir, fmt.Sprintf("generated-%d", s.tables))
		g, err := Generate(dir, s.tables)
		if err != nil {
			return err
		}
		db, err := bare(ctx, filepath.Join(dir, generatedFile), g.Sources)
		if err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return fmt.Errorf("write sources: %w", err)
		}
		if r.cfg.Binary != "" {
			seconds, err := r.command(ctx, dir, g, s)
			if err != nil {
				return err
			}
			points = append(points, [2]float64{float64(s.tables), seconds})
		}
		if err := r.library(ctx, dir, g, s); err != nil {
			return err
		}
	}
	if len(points) > 1 {
		a, b, worst := fit(points)
		r.note("warm plan of one table through the command: %s s + %s s for each 1,000 tables; no size is more than %.0f %% off that line", short(a), short(b*1000), worst*100)
	}
	return nil
}

var year = []string{"--start-date", "2024-01-01", "--end-date", "2024-12-31"}

// command measures the built command and gives the time of the smallest plan.
func (r *runner) command(ctx context.Context, dir string, g Generated, s size) (float64, error) {
	run := func(ctx context.Context, args []string) (sample, error) {
		p, err := r.process(ctx, dir, append(append([]string{"plan", "-o", "json"}, args...), year...)...)
		if err != nil {
			return sample{}, err
		}
		var doc struct {
			Estimate struct{ Instances, Statements int64 }
			Nodes    []struct{ Name string }
		}
		if err := json.Unmarshal(p.out, &doc); err != nil {
			return sample{}, fmt.Errorf("read the plan: %w", err)
		}
		return sample{seconds: p.seconds, statements: doc.Estimate.Statements, cpu: p.cpu, peakMB: p.peakMB,
			sum: fmt.Sprint(len(doc.Nodes), doc.Estimate.Instances, doc.Estimate.Statements)}, nil
	}
	if s.cold > 0 {
		err := r.measure(ctx, measured{name: fmt.Sprintf("command_cold_%d", s.tables), target: 1, goal: s.cold,
			run: func(ctx context.Context, _ int) (sample, error) {
				if err := os.RemoveAll(filepath.Join(dir, ".retrofill")); err != nil {
					return sample{}, fmt.Errorf("empty the cache: %w", err)
				}
				return run(ctx, []string{g.Single})
			}})
		if err != nil {
			return 0, err
		}
	}
	var first float64
	for i, sel := range selections() {
		if _, err := run(ctx, sel.args(g)); err != nil { // fills the cache
			return 0, err
		}
		if err := r.measure(ctx, warm(fmt.Sprintf("command_warm_%d_%s", s.tables, sel.name), s, func(ctx context.Context, _ int) (sample, error) {
			return run(ctx, sel.args(g))
		})); err != nil {
			return 0, err
		}
		if i == 0 {
			first = r.res.Cases[len(r.res.Cases)-1].Seconds
		}
	}
	return first, nil
}

// warm makes a case with the goal of its size; sizes without one are only for
// the line, and are compared with one second.
func warm(name string, s size, run func(context.Context, int) (sample, error)) measured {
	m := measured{name: name, target: 1, goal: s.warm, run: run}
	if s.warm == 0 {
		m.target, m.goal = 0, 1
	}
	return m
}

// library measures loading, analysing and planning in this process.
func (r *runner) library(ctx context.Context, dir string, g Generated, s size) (err error) {
	work, err := openSession(ctx, dir, generatedFile, 1, r.cfg.Clock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	run := func(ctx context.Context, sel selection) (out sample, err error) {
		req := sel.req(g)
		req.Selection = bizdate.Selection{Start: year[1], End: year[3], AllowLongRange: true}
		out.seconds, err = r.seconds(func() error {
			p, err := work.plan(ctx, req)
			out.statements = int64(p.Estimate.Statements)
			out.sum = fmt.Sprint(len(p.Nodes), p.Instances, p.Estimate.Statements)
			return err
		})
		return out, err
	}
	if s.cold > 0 {
		err := r.measure(ctx, measured{name: fmt.Sprintf("library_cold_%d", s.tables), target: 1, goal: s.cold,
			run: func(ctx context.Context, _ int) (sample, error) {
				clear(work.cache)
				return run(ctx, selections()[0])
			}})
		if err != nil {
			return err
		}
	}
	for _, sel := range selections() {
		if _, err := run(ctx, sel); err != nil {
			return err
		}
		if err := r.measure(ctx, warm(fmt.Sprintf("library_warm_%d_%s", s.tables, sel.name), s, func(ctx context.Context, _ int) (sample, error) {
			return run(ctx, sel)
		})); err != nil {
			return err
		}
	}
	return nil
}

// fit fits y = a + b·x by least squares and gives the greatest relative
// distance of a point from it.
func fit(points [][2]float64) (a, b, worst float64) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		n, sx, sy, sxx, sxy = n+1, sx+p[0], sy+p[1], sxx+p[0]*p[0], sxy+p[0]*p[1]
	}
	b = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	a = (sy - b*sx) / n
	for _, p := range points {
		worst = max(worst, math.Abs(p[1]-a-b*p[0])/p[1])
	}
	return a, b, worst
}
