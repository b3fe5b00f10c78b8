package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

var me = ledger.Owner{Host: "here", PID: 7}

func open(t *testing.T, path string, o ledger.Options) *ledger.Ledger {
	t.Helper()
	if o.Clock == nil {
		o.Clock = newClock().now
	}
	l, err := ledger.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "a b%?", "ledger.db") }

var day = bizdate.Of(2024, 1, 1)

// onePlan is a plan of one table with one node over n days.
func onePlan(name string, from bizdate.Date, n int, fields ...string) plan.Plan {
	p := plan.Plan{
		Backfill: name, Project: "p", Environment: "dev", Zone: "UTC", Order: "asc", Instances: n,
		Definitions: map[string]plan.Definition{"def1": {Table: "t", Text: "select 1", RowSet: "r", Key: "k", Fields: map[string]string{"a": "1"}}},
	}
	for i := range n {
		p.Dates = append(p.Dates, from+bizdate.Date(i))
	}
	p.Groups = [][]bizdate.Date{p.Dates}
	w := plan.Write{Node: "t_node", Table: `"dw"."t_node"`, Action: plan.Rewrite, Whole: true}
	if len(fields) > 0 {
		w = plan.Write{Node: "t_node", Table: `"dw"."t_node"`, Action: plan.Column, Fields: fields}
	}
	p.Nodes = []plan.Node{{
		Name: "t", Kind: "fact", Strategy: w.Action, Writes: []plan.Write{w}, Definition: "def1",
		Steps: []plan.Step{{ID: "s1", Strategy: w.Action, Dates: plan.Ranges(p.Dates), Instances: n}},
	}}
	return p
}

func create(t *testing.T, l *ledger.Ledger, p plan.Plan) *ledger.Claim {
	t.Helper()
	if _, err := l.Create(t.Context(), p, me); err != nil {
		t.Fatal(err)
	}
	c, err := l.Claim(t.Context(), p.Backfill, me)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run makes one instance succeed.
func run(t *testing.T, c *ledger.Claim, d bizdate.Date, fields []string, rows int64) {
	t.Helper()
	k := ledger.Key{Date: d}
	a, err := c.Start(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), ledger.Outcome{
		Key: k, Attempt: a.Number, Status: status.Succeeded, Rows: rows, Facts: map[string]int64{"inserted.x": rows},
		Built: []ledger.Record{{Node: "t_node", Fields: fields, Definition: "def1", Rows: rows}}, Values: map[string]string{"rate": fmt.Sprint(rows)},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestLife(t *testing.T) {
	t.Parallel()
	path := file(t)
	l := open(t, path, ledger.Options{})
	p := onePlan("b1", day, 3)
	c := create(t, l, p)
	run(t, c, day, nil, 10)
	if err := c.Finish(t.Context(), ledger.Outcome{Key: ledger.Key{Date: day + 1}, Status: status.Blocked, Reason: "upstream"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Log(t.Context(), ledger.Key{Date: day}, 1, 0, "hello\n"); err != nil {
		t.Fatal(err)
	}

	second := open(t, path, ledger.Options{ReadOnly: true}) // while the first is open
	counts, err := second.Counts(t.Context(), "b1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[status.Status]int{}
	for _, s := range status.All() {
		if n := counts[0].Counts.Of(s); n > 0 {
			got[s] = n
		}
	}
	if d := cmp.Diff(map[status.Status]int{status.Pending: 1, status.Succeeded: 1, status.Blocked: 1}, got); d != "" {
		t.Error(d)
	}
	if counts[0].Rows != 10 || counts[0].Instances != 3 || counts[0].Node != "t" {
		t.Errorf("counts %+v", counts[0])
	}
	list, err := second.Instances(t.Context(), "b1", ledger.Filter{Status: []status.Status{status.Succeeded}, HasDates: true, From: day, To: day, Node: "t", Slot: "2024-01-01", Limit: 5})
	if err != nil || len(list) != 1 || list[0].ID != "t@2024-01-01" || list[0].Attempt != 1 {
		t.Errorf("instances %+v, %v", list, err)
	}
	tries, err := second.Attempts(t.Context(), "b1", ledger.Key{Date: day})
	if err != nil || len(tries) != 1 || tries[0].Facts["inserted.x"] != 10 {
		t.Errorf("attempts %+v, %v", tries, err)
	}
	logs, err := second.Logs(t.Context(), "b1", ledger.Key{Date: day}, 0, -1)
	if err != nil || len(logs) != 1 || logs[0].Text != "hello\n" {
		t.Errorf("logs %+v, %v", logs, err)
	}
	back, err := second.Plan(t.Context(), "b1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, back, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(plan.Plan{}, "FormatVersion")); d != "" {
		t.Error(d)
	}
	if _, err := c.Start(t.Context(), ledger.Key{Date: day}); !errors.Is(err, ledger.ErrDone) {
		t.Errorf("second start of a succeeded instance: %v", err)
	}
	if err := c.End(t.Context(), ledger.Succeeded, ""); err != nil {
		t.Fatal(err)
	}
	b, err := l.Backfill(t.Context(), "b1")
	if err != nil || b.State != ledger.Succeeded || b.FinishedAt.IsZero() || b.StartedAt.IsZero() {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := l.Backfill(t.Context(), "nope"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("unknown backfill: %v", err)
	}
	values, err := l.Values(t.Context(), "dev", "t", "rate", day-5, day)
	if err != nil || len(values) != 1 || values[0].Value != "10" || values[0].Backfill != "b1" {
		t.Errorf("values %+v, %v", values, err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	l := open(t, file(t), ledger.Options{})
	for _, n := range []string{"t_20240101_1", "t_20240101_12", "t_20240101_x", "t_20240102_40", "tt_20240101_50", "t%20240101_60"} {
		if _, err := l.Create(t.Context(), onePlan(n, day+bizdate.Date(len(n)*30), 1), ledger.Owner{}); err != nil {
			var conflict *ledger.ConflictError
			if !errors.As(err, &conflict) {
				t.Fatal(err)
			}
		}
	}
	n, err := l.NextNumber(t.Context(), "t", day)
	if err != nil || n != 13 {
		t.Errorf("next number %d, %v", n, err)
	}
	_, err = l.Create(t.Context(), onePlan("t_20240101_1", day, 1), me)
	var taken *ledger.NameTakenError
	if !errors.As(err, &taken) {
		t.Errorf("same name: %v", err)
	}
	if yes, err := l.NameTaken(t.Context(), "t_20240101_1"); !yes || err != nil {
		t.Error(yes, err)
	}
}

func TestBuilt(t *testing.T) {
	t.Parallel()
	l := open(t, file(t), ledger.Options{})
	before, err := l.Digest(t.Context(), "dev", []string{"t_node"}, day, day+9)
	if err != nil {
		t.Fatal(err)
	}
	c := create(t, l, onePlan("full", day, 2))
	run(t, c, day, nil, 10)
	run(t, c, day+1, nil, 20)
	if err := c.End(t.Context(), ledger.Succeeded, ""); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		fields []string
		want   [][]string // field sets left on the first day, by build
	}{
		{[]string{"b", "a"}, [][]string{nil, {"a", "b"}}},
		{[]string{"c"}, [][]string{nil, {"a", "b"}, {"c"}}},
		{[]string{"a"}, [][]string{nil, {"a", "b"}, {"c"}, {"a"}}},
		{[]string{"a", "b", "c"}, [][]string{nil, {"a", "b", "c"}}},
		{nil, [][]string{nil}},
	}
	digests := map[string]bool{before: true}
	var lastBuild int64
	for i, s := range steps {
		c := create(t, l, onePlan(fmt.Sprint("part", i), day, 1, "x"))
		run(t, c, day, s.fields, 5)
		if err := c.End(t.Context(), ledger.Succeeded, ""); err != nil {
			t.Fatal(err)
		}
		got, err := l.Built(t.Context(), "dev", []string{"t_node", "other"}, day, day)
		if err != nil {
			t.Fatal(err)
		}
		var sets [][]string
		for _, b := range got {
			sets = append(sets, b.Fields)
			if b.Began >= b.Build {
				t.Errorf("began %d, build %d", b.Began, b.Build)
			}
		}
		if d := cmp.Diff(s.want, sets); d != "" {
			t.Errorf("step %d: %s", i, d)
		}
		if last := got[len(got)-1].Build; last <= lastBuild {
			t.Errorf("build %d after %d", last, lastBuild)
		} else {
			lastBuild = last
		}
		d, err := l.Digest(t.Context(), "dev", []string{"other", "t_node", "t_node"}, day, day+9)
		if err != nil || digests[d] {
			t.Errorf("step %d: digest %s seen before, %v", i, d, err)
		}
		digests[d] = true
	}
	defs, err := l.Definitions(t.Context(), []string{"def1", "def2"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(onePlan("", day, 1).Definitions, defs); d != "" {
		t.Error(d)
	}
	all, err := l.Built(t.Context(), "dev", []string{"t_node"}, day, day+9)
	if err != nil || len(all) != 2 || all[1].Rows != 20 || all[1].Backfill != "full" || all[1].SlotFrom != "2024-01-02" {
		t.Errorf("%+v, %v", all, err)
	}
	var _ planner.Ledger = l
}

func TestLeases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		a, b     plan.Plan
		conflict bool
	}{
		{"same dates", onePlan("a", day, 3), onePlan("b", day+2, 3), true},
		{"other dates", onePlan("a", day, 3), onePlan("b", day+3, 3), false},
		{"other fields", onePlan("a", day, 3, "x"), onePlan("b", day, 3, "y"), false},
		{"common field", onePlan("a", day, 3, "x", "y"), onePlan("b", day, 3, "y", "z"), true},
		{"all and a field", onePlan("a", day, 3), onePlan("b", day, 3, "y"), true},
		{"a field and all", onePlan("a", day, 3, "y"), onePlan("b", day, 3), true},
		{"other environment", onePlan("a", day, 3), inEnv(onePlan("b", day, 3), "prod"), false},
		{"dry run", onePlan("a", day, 3), dry(onePlan("b", day, 3)), false},
		{"other hours", hours(onePlan("a", day, 1), "00:00", "05:59"), hours(onePlan("b", day, 1), "06:00", "12:00"), false},
		{"same hours", hours(onePlan("a", day, 1), "00:00", "06:00"), hours(onePlan("b", day, 1), "06:00", "12:00"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := open(t, file(t), ledger.Options{})
			claim := create(t, l, c.a)
			_, err := l.Create(t.Context(), c.b, me)
			var conflict *ledger.ConflictError
			if got := errors.As(err, &conflict); got != c.conflict || !got && err != nil {
				t.Fatalf("conflict %v, error %v", got, err)
			}
			if c.conflict && (conflict.Backfill != "a" || !strings.Contains(err.Error(), "backfill a")) {
				t.Errorf("the other one is not named: %v", err)
			}
			if err := claim.End(t.Context(), ledger.Succeeded, ""); err != nil {
				t.Fatal(err)
			}
			if c.conflict { // the refused one left nothing behind
				if _, err := l.Create(t.Context(), c.b, me); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func inEnv(p plan.Plan, env string) plan.Plan { p.Environment = env; return p }

func dry(p plan.Plan) plan.Plan { p.Nodes[0].Steps[0].Strategy = plan.DryRun; return p }

func hours(p plan.Plan, from, to string) plan.Plan {
	p.Window = &plan.Window{From: from, To: to}
	p.Nodes[0].Schedule.Cycle = "hourly"
	return p
}

func TestTakeover(t *testing.T) {
	t.Parallel()
	clk := newClock()
	dead := map[int]bool{}
	l := open(t, file(t), ledger.Options{Clock: clk.now, Alive: func(o ledger.Owner) bool { return !dead[o.PID] }})
	first := create(t, l, onePlan("first", day, 2))
	other := ledger.Owner{Host: "here", PID: 8}
	if _, err := l.Claim(t.Context(), "first", other); err == nil {
		t.Fatal("a living process lost its backfill")
	} else if owned := new(ledger.OwnedError); !errors.As(err, &owned) || owned.Owner != me {
		t.Fatalf("unexpected: %v", err)
	}
	clk.add(10 * time.Second)
	if _, err := first.Heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	clk.add(10 * time.Second)
	if _, err := l.Create(t.Context(), onePlan("second", day, 2), other); err == nil {
		t.Fatal("a lease with a fresh heartbeat was taken")
	}
	dead[me.PID] = true
	if b, _ := l.Backfill(t.Context(), "first"); b.State != ledger.Interrupted {
		t.Errorf("state %s", b.State)
	}
	took, err := l.Create(t.Context(), onePlan("second", day, 2), other)
	if err != nil || len(took) != 1 || took[0] != "first" {
		t.Fatalf("took over %v, %v", took, err)
	}
	// The first owner was only asleep.
	if _, err := first.Start(t.Context(), ledger.Key{Date: day}); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("start: %v", err)
	}
	if err := first.Finish(t.Context(), ledger.Outcome{Status: status.Succeeded}); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("finish: %v", err)
	}
	if _, err := first.Heartbeat(t.Context()); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("heartbeat: %v", err)
	}
	// Resuming the first must wait for the second.
	if _, err := l.Claim(t.Context(), "first", me); err == nil {
		t.Error("both hold the lease")
	}
	clk.add(time.Minute) // the second dies without a word
	if _, err := l.Claim(t.Context(), "first", ledger.Owner{Host: "there", PID: 1}); err != nil {
		t.Error(err)
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	l := open(t, file(t), ledger.Options{})
	c := create(t, l, onePlan("b", day, 1))
	if err := l.Signal(t.Context(), "b", "stop"); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Heartbeat(t.Context()); s != "stop" || err != nil {
		t.Error(s, err)
	}
	if err := l.Signal(t.Context(), "x", "stop"); !errors.Is(err, ledger.ErrNotFound) {
		t.Error(err)
	}
}

func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	path := file(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			l, err := ledger.Open(context.WithoutCancel(t.Context()), path, ledger.Options{Clock: newClock().now})
			if err != nil {
				errs[i] = err
				return
			}
			defer func() { errs[i] = errors.Join(errs[i], l.Close()) }()
			name := fmt.Sprint("b", i)
			if _, errs[i] = l.Create(t.Context(), onePlan(name, day+bizdate.Date(100*i), 50), me); errs[i] != nil {
				return
			}
			c, err := l.Claim(t.Context(), name, me)
			for d := bizdate.Date(0); d < 50 && err == nil; d++ {
				k := ledger.Key{Date: day + bizdate.Date(100*i) + d}
				var a ledger.Attempt
				if a, err = c.Start(t.Context(), k); err == nil {
					err = c.Finish(t.Context(), ledger.Outcome{Key: k, Attempt: a.Number, Status: status.Succeeded, Built: []ledger.Record{{Node: "t_node"}}})
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	l := open(t, path, ledger.Options{})
	all, err := l.Built(t.Context(), "dev", []string{"t_node"}, day, day+1000)
	if err != nil || len(all) != 200 {
		t.Errorf("%d built, %v", len(all), err)
	}
	seen := map[int64]bool{}
	for _, b := range all {
		if seen[b.Build] {
			t.Fatalf("build number %d twice", b.Build)
		}
		seen[b.Build] = true
	}
}

// TestGroupCommit: a failing caller does not take the others' writes along.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	l := open(t, file(t), ledger.Options{})
	c := create(t, l, onePlan("b", day, 100))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			k := ledger.Key{Date: day + bizdate.Date(i)}
			o := ledger.Outcome{Key: k, Status: status.Succeeded, Reason: "not scheduled"}
			if i%10 == 3 {
				o.Attempt = 9 // never started
			}
			err := c.Finish(t.Context(), o)
			if (err != nil) != (i%10 == 3) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	counts, err := l.Counts(t.Context(), "b")
	if err != nil || counts[0].Counts.Of(status.Succeeded) != 90 || counts[0].Counts.Of(status.Pending) != 10 {
		t.Errorf("%+v, %v", counts, err)
	}
}

func TestSmallRecords(t *testing.T) {
	t.Parallel()
	l := open(t, file(t), ledger.Options{})
	ctx := t.Context()
	if err := l.Pause(ctx, "p", "n", true, "ann", "broken"); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Paused(ctx, "p"); err != nil || len(got) != 1 || got[0].Reason != "broken" {
		t.Error(got, err)
	}
	if err := l.Pause(ctx, "p", "n", false, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Paused(ctx, "p"); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	if err := l.Record(ctx, ledger.Operation{By: "ann", Op: "rerun", Backfill: "b", Target: "t@x", Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Operations(ctx, "b"); err != nil || len(got) != 1 || got[0].Op != "rerun" {
		t.Error(got, err)
	}
	if _, _, ok, err := l.Catalog(ctx, "dev"); ok || err != nil {
		t.Error(ok, err)
	}
	if err := l.SaveCatalog(ctx, "dev", []byte(`[1]`)); err != nil {
		t.Fatal(err)
	}
	if got, _, ok, err := l.Catalog(ctx, "dev"); !ok || err != nil || string(got) != "[1]" {
		t.Error(string(got), ok, err)
	}
	if got, err := l.Backfills(ctx, "", 0); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database at all ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.db")
	func() {
		l := open(t, damaged, ledger.Options{})
		create(t, l, onePlan("b", day, 3))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		doc, err := os.ReadFile(damaged)
		if err != nil {
			t.Fatal(err)
		}
		for i := 100; i < len(doc); i++ {
			doc[i] = 0xff
		}
		if err := os.WriteFile(damaged, doc, 0o600); err != nil {
			t.Fatal(err)
		}
	}()
	for _, c := range []struct {
		name, path, code string
		readOnly         bool
	}{
		{"text", text, ledger.CodeForeign, false},
		{"damaged", damaged, ledger.CodeCorrupt, false},
		{"folder", dir, ledger.CodeUnopenable, false},
		{"below a file", filepath.Join(text, "x", "ledger.db"), ledger.CodeUnopenable, false},
		{"missing", filepath.Join(dir, "none.db"), ledger.CodeMissing, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ledger.Open(t.Context(), c.path, ledger.Options{Clock: newClock().now, ReadOnly: c.readOnly})
			var problem *ledger.Error
			if !errors.As(err, &problem) || problem.Code != c.code {
				t.Fatalf("got %v, want %s", err, c.code)
			}
			if d := problem.Diagnostic(); d.Hint == "" || !strings.Contains(d.Summary, c.path) {
				t.Errorf("diagnostic %+v", d)
			}
		})
	}
}

func TestReadOnlyRefusesWrites(t *testing.T) {
	t.Parallel()
	path := file(t)
	open(t, path, ledger.Options{})
	l := open(t, path, ledger.Options{ReadOnly: true})
	err := l.Pause(t.Context(), "p", "n", true, "", "")
	var problem *ledger.Error
	if !errors.As(err, &problem) || problem.Code != ledger.CodeReadOnly {
		t.Errorf("%v", err)
	}
}

func BenchmarkStartFinish(b *testing.B) {
	l, err := ledger.Open(b.Context(), filepath.Join(b.TempDir(), "l.db"), ledger.Options{Clock: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p := onePlan("b", day, 300)
	if _, err := l.Create(b.Context(), p, me); err != nil {
		b.Fatal(err)
	}
	c, err := l.Claim(b.Context(), "b", me)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("real", func(b *testing.B) {
		i := bizdate.Date(0)
		for b.Loop() {
			i++
			k := ledger.Key{Date: i}
			a, err := c.Start(b.Context(), k)
			if err == nil {
				err = c.Finish(b.Context(), ledger.Outcome{Key: k, Attempt: a.Number, Status: status.Succeeded, Rows: 1, Marked: true,
					Facts: map[string]int64{"inserted.t": 5}, Built: []ledger.Record{{Node: "t_node", Definition: "def1", Rows: 1}}})
			}
			if err != nil && !errors.Is(err, ledger.ErrDone) {
				b.Fatal(err)
			}
		}
	})
	b.Run("noop", func(b *testing.B) {
		i := bizdate.Date(100000)
		for b.Loop() {
			batch := make([]ledger.Outcome, 500)
			for j := range batch {
				i++
				batch[j] = ledger.Outcome{Key: ledger.Key{Date: i}, Status: status.Succeeded, Reason: "not scheduled"}
			}
			if err := c.Finish(b.Context(), batch...); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N*500)/b.Elapsed().Seconds(), "instances/s")
	})
}
