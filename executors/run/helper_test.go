package run_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors/faultengine"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// planOf reads a plan from a small language, one line each:
//
//	dates 2024-01-01 3
//	groups 2 | order desc | on_failure stop | retries 2 | window 00:00 02:00
//	node a
//	node b needs a a:-2..-1       same date, and the two dates before
//	node c dry | hourly | command /bin/true | timeout 1
//	node d dry_on 2024-01-02      a dry run on that date only
func planOf(t testing.TB, script string) plan.Plan {
	t.Helper()
	p := plan.Plan{Backfill: "b", Project: "p", Environment: "dev", Zone: "UTC", Dialect: "dataphin", Order: "asc", OnFailure: "continue"}
	parts := 1
	for line := range strings.Lines(script) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		switch w[0] {
		case "dates":
			d, err := bizdate.Parse(w[1])
			if err != nil {
				t.Fatal(err)
			}
			for i := range number(t, w[2]) {
				p.Dates = append(p.Dates, d+bizdate.Date(i))
			}
		case "groups":
			parts = number(t, w[1])
		case "order":
			p.Order = w[1]
		case "on_failure":
			p.OnFailure = w[1]
		case "retries":
			p.Retries = number(t, w[1])
		case "window":
			p.Window = &plan.Window{From: w[1], To: w[2]}
		case "prepare":
			p.Prepare = append(p.Prepare, strings.Join(w[1:], " "))
		case "node":
			p.Nodes = append(p.Nodes, nodeOf(t, &p, w[1:]))
		default:
			t.Fatalf("plan line %q", line)
		}
	}
	var diags error
	split, d := groups.Split(p.Dates, parts, bizdate.Direction(p.Order))
	if d.HasErrors() {
		diags = d
	}
	if diags != nil {
		t.Fatal(diags)
	}
	p.Groups, p.Dates = split, nil
	for _, g := range split {
		p.Dates = append(p.Dates, g...)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		x, err := plan.NewExpander(&p)
		if err != nil {
			t.Fatal(err)
		}
		for j := range n.Steps {
			s := &n.Steps[j]
			for _, r := range s.Dates {
				for d := r.From; d <= r.To; d++ {
					s.Instances += x.Count(i, d)
				}
			}
			p.Instances += s.Instances
		}
	}
	return p
}

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func nodeOf(t testing.TB, p *plan.Plan, w []string) plan.Node {
	t.Helper()
	table := `"dw"."` + w[0] + `"`
	n := plan.Node{Name: w[0], Kind: "fact", Strategy: plan.Rewrite, Why: "test", Writes: []plan.Write{{Node: w[0], Table: table, Action: plan.Rewrite, Whole: true}}}
	step := plan.Step{ID: "real", Strategy: plan.Rewrite, Because: "test", Statements: []plan.Statement{
		{SQL: "delete from " + table + " where ds = '${yyyy-mm-dd}'", Role: "delete", Target: table},
		{SQL: "insert into " + table + " select '${yyyy-mm-dd}'", Role: "insert", Target: table},
	}}
	var dry []bizdate.Date
	for i := 1; i < len(w); i++ {
		switch w[i] {
		case "dry":
			step.Strategy, step.Because, step.Statements = plan.DryRun, "not scheduled", nil
		case "dry_on":
			i++
			d, err := bizdate.Parse(w[i])
			if err != nil {
				t.Fatal(err)
			}
			dry = append(dry, d)
		case "hourly":
			n.Schedule.Cycle = "hourly"
		case "timeout":
			i++
			step.TimeoutSec = number(t, w[i])
		case "command":
			step.Strategy, step.Statements, step.Command = plan.Command, nil, w[i+1:]
			n.Strategy, n.Kind, n.Writes = plan.Command, "command", nil
			i = len(w)
		case "needs":
		default:
			n.Needs = append(n.Needs, edgeOf(t, p, w[i]))
		}
	}
	real := []bizdate.Date{}
	for _, d := range p.Dates {
		if !contains(dry, d) {
			real = append(real, d)
		}
	}
	step.Dates = plan.Ranges(real)
	n.Steps = []plan.Step{step}
	if len(dry) > 0 {
		n.Steps = append(n.Steps, plan.Step{ID: "dry", Strategy: plan.DryRun, Because: "not scheduled", Dates: plan.Ranges(dry)})
	}
	return n
}

func contains(s []bizdate.Date, d bizdate.Date) bool {
	for _, x := range s {
		if x == d {
			return true
		}
	}
	return false
}

func edgeOf(t testing.TB, p *plan.Plan, text string) plan.Edge {
	t.Helper()
	name, reach, mapped := strings.Cut(text, ":")
	e := plan.Edge{Node: name, Kind: "lineage"}
	if mapped {
		lo, hi, _ := strings.Cut(reach, "..")
		m := len(p.SlotMaps)
		p.SlotMaps = append(p.SlotMaps, plan.SlotMap{Runs: []plan.MapRun{{From: p.Dates[0], To: p.Dates[len(p.Dates)-1], Lo: number(t, lo), Hi: number(t, hi)}}})
		e.Map, e.Kind = &m, "cross_cycle"
	}
	return e
}

// world is what outlives a process: the ledger file and the target.
type world struct {
	t     testing.TB
	path  string
	store *faultengine.Store
	plan  plan.Plan
	// marker is what commit markers call the backfill.
	marker string
}

func newWorld(t testing.TB, p plan.Plan) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "ledger.db"), store: &faultengine.Store{}, plan: p}
	l := w.open()
	if _, err := l.Create(t.Context(), p, owner); err != nil {
		t.Fatal(err)
	}
	b, err := l.Backfill(t.Context(), p.Backfill)
	if err != nil {
		t.Fatal(err)
	}
	w.marker = b.Marker
	w.shut(l)
	return w
}

var owner = ledger.Owner{Host: "here", PID: 1}

func clock() time.Time { return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC) }

func (w *world) open() *ledger.Ledger {
	w.t.Helper()
	l, err := ledger.Open(context.Background(), w.path, ledger.Options{Clock: clock, Unflushed: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) shut(l *ledger.Ledger) {
	w.t.Helper()
	if err := l.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// mortal is a claim whose process may die before and after each write.
type mortal struct {
	*ledger.Claim
	p *faultengine.Process
	// onStart is called with each attempt that became durable.
	onStart func(ledger.Key)
}

func (m *mortal) Start(ctx context.Context, k ledger.Key) (ledger.Attempt, error) {
	if err := m.p.Step("before start", k.SlotID()); err != nil {
		return ledger.Attempt{}, err
	}
	a, err := m.Claim.Start(ctx, k)
	if err != nil {
		return a, err
	}
	if m.onStart != nil {
		m.onStart(k)
	}
	return a, m.p.Step("after start", k.SlotID())
}

func (m *mortal) Finish(ctx context.Context, o ...ledger.Outcome) error {
	if len(o) == 0 {
		return nil
	}
	if err := m.p.Step("before finish", o[0].Key.SlotID()); err != nil {
		return err
	}
	return errors.Join(m.Claim.Finish(ctx, o...), m.p.Step("after finish", o[0].Key.SlotID()))
}

func (m *mortal) End(ctx context.Context, s ledger.State, note string) error {
	if err := m.p.Step("before end", string(s)); err != nil {
		return err
	}
	return errors.Join(m.Claim.End(ctx, s, note), m.p.Step("after end", string(s)))
}

func (m *mortal) Heartbeat(ctx context.Context) (string, error) {
	if err := m.p.Alive(); err != nil {
		return "", err
	}
	return m.Claim.Heartbeat(ctx)
}

// attempt is one process that runs the backfill of a world.
type attempt struct {
	faults  []faultengine.Fault
	crashAt int
	opts    run.Options
	events  func(run.Event)
	trace   *faultengine.Trace
}

func (w *world) run(a attempt) (run.Summary, *faultengine.Process, error) {
	w.t.Helper()
	l := w.open()
	defer w.shut(l)
	proc := &faultengine.Process{CrashAt: a.crashAt}
	claim, err := l.Claim(context.Background(), w.plan.Backfill, owner)
	if err != nil {
		w.t.Fatal(err)
	}
	engine := faultengine.New(w.store, faultengine.Options{Faults: a.faults, Process: proc, Trace: a.trace, Sleep: noSleep})
	if a.opts.Heartbeat == 0 {
		a.opts.Heartbeat = time.Hour
	}
	s, err := run.Run(context.Background(), run.Deps{
		Engine: engine, Ledger: &mortal{Claim: claim, p: proc}, Clock: clock, Sleep: noSleep,
		Rand: func() float64 { return 0.5 }, Events: a.events,
	}, w.plan, a.opts)
	return s, proc, err
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// statuses gives the status of every instance that has a record.
func (w *world) statuses() map[string]ledger.Instance {
	w.t.Helper()
	l := w.open()
	defer w.shut(l)
	list, err := l.Instances(context.Background(), w.plan.Backfill, ledger.Filter{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]ledger.Instance{}
	for _, i := range list {
		out[i.ID] = i
	}
	return out
}

// check compares ledger, target and plan: what a finished backfill must be.
func (w *world) check(complete bool) error {
	have := w.statuses()
	x, err := plan.NewExpander(&w.plan)
	if err != nil {
		return err
	}
	l := w.open()
	defer w.shut(l)
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r := w.store.Repeated(); len(r) > 0 {
		bad("committed twice: %v", r)
	}
	planned := map[string]bool{}
	for di := range w.plan.Dates {
		for n := range w.plan.Nodes {
			insts, err := x.Expand(di, n)
			if err != nil {
				return err
			}
			for _, in := range insts {
				node := &w.plan.Nodes[n]
				id := plan.InstanceID(node.Name, in.Slot.ID())
				planned[id] = true
				i, known := have[id]
				_, done := w.store.Lookup(w.marker, id)
				dry := node.Steps[in.Step].Strategy == plan.DryRun
				switch {
				case complete && i.Status != status.Succeeded:
					bad("%s is %v (%s %s)", id, i.Status, i.Reason, i.Error)
				case known && !i.Status.Terminal():
					bad("%s is left %v", id, i.Status)
				case i.Status != status.Succeeded && known && i.Reason == "":
					bad("%s is %v without a reason", id, i.Status)
				case !dry && done != (i.Status == status.Succeeded) && i.Status != status.Unknown:
					bad("%s: committed %v, recorded %v", id, done, i.Status)
				}
				if complete && !dry && len(node.Writes) > 0 {
					b, err := l.Built(context.Background(), "dev", []string{node.Name}, in.Slot.Date, in.Slot.Date)
					if err != nil {
						return err
					}
					n := 0
					for _, r := range b {
						if r.SlotFrom == in.Slot.ID() {
							n++
						}
					}
					if n != 1 {
						bad("%s has %d built records", id, n)
					}
				}
			}
		}
	}
	for id := range have {
		if !planned[id] {
			bad("%s was never planned", id)
		}
	}
	return errors.Join(errs...)
}

// recorder collects events as lines.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(e run.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := string(e.Kind)
	if e.ID != "" {
		s += " " + e.ID
	}
	if e.Attempt > 0 {
		s += " #" + strconv.Itoa(e.Attempt)
	}
	if e.Kind == run.Finished {
		s += " " + e.Status.String()
	}
	if e.Rows != 0 {
		s += fmt.Sprintf(" rows=%d", e.Rows)
	}
	if e.Wait > 0 {
		s += " wait=" + e.Wait.String()
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Error != "" {
		s += " [" + e.Error + "]"
	}
	r.lines = append(r.lines, s)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n") + "\n"
}
