package run_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/faultengine"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// staged is an engine whose units the test ends one by one.
type staged struct {
	*faultengine.Engine
	calls chan call
}

type call struct {
	id     string
	answer chan error
}

func (s *staged) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	c := call{u.Marker.Instance, make(chan error)}
	s.calls <- c
	select {
	case err := <-c.answer:
		if err != nil {
			return executors.Result{}, err
		}
		return s.Engine.Execute(ctx, u)
	case <-ctx.Done():
		return executors.Result{}, ctx.Err()
	}
}

var errWrong = errors.New("something is wrong")

// stage runs a world's plan while the test steers it.
type stage struct {
	*world
	l        *ledger.Ledger
	engine   *staged
	reloaded chan struct{}
	stopping chan struct{}
	done     chan error
	sum      run.Summary
	open     map[string]call
}

func newStage(t *testing.T, script string, o run.Options) *stage {
	t.Helper()
	w := newWorld(t, planOf(t, script))
	s := &stage{world: w, l: w.open(), reloaded: make(chan struct{}, 100), done: make(chan error, 1), open: map[string]call{}}
	t.Cleanup(func() { w.shut(s.l) })
	s.begin(o)
	return s
}

func (s *stage) begin(o run.Options) {
	s.t.Helper()
	s.engine = &staged{Engine: faultengine.New(s.store, faultengine.Options{}), calls: make(chan call, 100)}
	l := s.world.open()
	s.t.Cleanup(func() { s.shut(l) })
	claim, err := l.Claim(s.t.Context(), s.plan.Backfill, owner)
	if err != nil {
		s.t.Fatal(err)
	}
	o.Heartbeat = time.Millisecond
	s.stopping = make(chan struct{})
	go func() {
		var err error
		s.sum, err = run.Run(context.Background(), run.Deps{Engine: s.engine, Ledger: claim, Clock: clock, Events: func(e run.Event) {
			switch e.Kind {
			case run.Reloaded:
				s.reloaded <- struct{}{}
			case run.Stopping:
				close(s.stopping)
			}
		}}, s.plan, o)
		s.done <- err
	}()
}

// end ends a unit that must begin, with an error or well.
func (s *stage) end(id string, err error) {
	s.t.Helper()
	for {
		if c, known := s.open[id]; known {
			delete(s.open, id)
			c.answer <- err
			return
		}
		select {
		case c := <-s.engine.calls:
			s.open[c.id] = c
		case <-time.After(10 * time.Second):
			s.t.Fatalf("%s does not begin; open: %v", id, s.open)
		}
	}
}

// await waits until a unit has begun.
func (s *stage) await(id string) {
	s.t.Helper()
	for s.open[id].answer == nil {
		select {
		case c := <-s.engine.calls:
			s.open[c.id] = c
		case <-time.After(10 * time.Second):
			s.t.Fatalf("%s does not begin; open: %v", id, s.open)
		}
	}
}

// become waits until an instance has a status in the ledger.
func (s *stage) become(id string, st status.Status) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); s.statuses()[id].Status != st; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s does not become %s", id, st)
		}
	}
}

// key gives an instance of the plan by its id.
func (s *stage) key(id string) plan.Instance {
	s.t.Helper()
	name, slot, _ := strings.Cut(id, "@")
	x, err := plan.NewExpander(&s.plan)
	if err != nil {
		s.t.Fatal(err)
	}
	for n := range s.plan.Nodes {
		for _, d := range s.plan.Dates {
			for _, sl := range x.Slots(n, d) {
				if s.plan.Nodes[n].Name == name && sl.ID() == slot {
					return plan.Instance{Node: n, Step: x.Step(n, d), Slot: sl}
				}
			}
		}
	}
	s.t.Fatalf("no instance %s", id)
	return plan.Instance{}
}

func (s *stage) try(op status.Op, id, up string) (run.Outcome, error) {
	s.t.Helper()
	o := run.Steering{Op: op, Targets: []plan.Instance{s.key(id)}, By: "eve", Reason: "test", Word: op.String(), Target: id}
	if up != "" {
		o.Upstream = s.key(up)
	}
	return run.Operate(s.t.Context(), s.l, &s.plan, o)
}

// do operates on an instance and, while it runs, waits until the runner knows.
func (s *stage) do(op status.Op, id, up string, running bool) run.Outcome {
	s.t.Helper()
	for len(s.reloaded) > 0 {
		<-s.reloaded
	}
	out, err := s.try(op, id, up)
	if err != nil {
		s.t.Fatal(err)
	}
	if running {
		select {
		case <-s.reloaded:
		case <-time.After(10 * time.Second):
			s.t.Fatal("the runner does not notice")
		}
	}
	return out
}

// finish waits for the run's end and compares state and statuses, written as
// "a@2024-01-01 succeeded".
func (s *stage) finish(state ledger.State, want ...string) {
	s.t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatalf("it does not end: %v", s.statuses())
	}
	if s.sum.State != state {
		s.t.Errorf("state %s, want %s (%s)", s.sum.State, state, s.sum.Note)
	}
	have := s.statuses()
	var counts status.Counts
	counts.Add(status.State{}, s.plan.Instances)
	for _, i := range have {
		counts.Add(status.State{}, -1)
		counts.Add(status.State{Status: i.Status, Paused: i.Paused}, 1)
	}
	for _, st := range status.All() {
		if counts.Of(st) != s.sum.Counts.Of(st) {
			s.t.Errorf("%d %s counted, %d recorded", s.sum.Counts.Of(st), st, counts.Of(st))
		}
	}
	for _, w := range want {
		id, st, _ := strings.Cut(w, " ")
		if got := have[id].Status.String(); got != st {
			s.t.Errorf("%s is %s, want %s (%s)", id, got, st, have[id].Reason)
		}
	}
}

const chain = "dates 2024-01-01 2\nnode a\nnode b needs a\nnode c needs b\nnode d"

func TestRerunWhileRunning(t *testing.T) {
	t.Parallel()
	s := newStage(t, chain, run.Options{})
	s.end("a@2024-01-01", errWrong) // blocks b and c
	s.await("d@2024-01-01")
	s.do(status.Rerun, "a@2024-01-01", "", true)
	s.end("d@2024-01-01", nil)
	for _, id := range []string{"a@2024-01-01", "b@2024-01-01", "c@2024-01-01", "a@2024-01-02", "b@2024-01-02", "c@2024-01-02", "d@2024-01-02"} {
		s.end(id, nil)
	}
	s.finish(ledger.Succeeded)
	if err := s.check(true); err != nil {
		t.Error(err)
	}
	ops, err := s.l.Operations(t.Context(), "b")
	if err != nil || len(ops) != 1 || ops[0].By != "eve" || ops[0].Op != "rerun" || ops[0].Target != "a@2024-01-01" || ops[0].Reason != "test" || ops[0].At.IsZero() {
		t.Errorf("%+v, %v", ops, err)
	}
}

func TestPauseWhileRunning(t *testing.T) {
	t.Parallel()
	s := newStage(t, chain, run.Options{})
	s.await("a@2024-01-01")
	s.do(status.Pause, "b@2024-01-02", "", true)
	if _, err := s.try(status.Pause, "b@2024-01-02", ""); refusal(err) != status.CodeAlreadyPaused {
		t.Errorf("paused twice: %v", err)
	}
	for _, id := range []string{"a@2024-01-01", "b@2024-01-01", "c@2024-01-01", "d@2024-01-01", "a@2024-01-02", "d@2024-01-02"} {
		s.end(id, nil)
	}
	s.finish(ledger.Paused, "b@2024-01-02 pending", "c@2024-01-02 pending", "d@2024-01-02 succeeded")
	if !strings.Contains(s.sum.Note, "retrofill unpause b") {
		t.Errorf("note %q", s.sum.Note)
	}
	s.do(status.Unpause, "b@2024-01-02", "", false)
	s.begin(run.Options{})
	s.end("b@2024-01-02", nil)
	s.end("c@2024-01-02", nil)
	s.finish(ledger.Succeeded)
}

// TestPauseFinished: a flag on a finished instance holds what is below it.
func TestPauseFinished(t *testing.T) {
	t.Parallel()
	s := newStage(t, "dates 2024-01-01 1\nnode a\nnode b needs a\nnode z", run.Options{Parallel: 2})
	s.end("a@2024-01-01", nil)
	s.await("b@2024-01-01")
	s.do(status.Pause, "a@2024-01-01", "", true)
	s.end("b@2024-01-01", errWrong) // it was running already
	s.become("b@2024-01-01", status.Failed)
	s.do(status.Rerun, "b@2024-01-01", "", true)
	s.end("z@2024-01-01", nil)
	s.finish(ledger.Paused, "a@2024-01-01 succeeded", "b@2024-01-01 pending")
}

func TestStopInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t, chain, run.Options{})
	s.await("a@2024-01-01")
	s.do(status.Stop, "a@2024-01-01", "", true) // its query is cancelled
	for _, id := range []string{"d@2024-01-01", "a@2024-01-02", "b@2024-01-02", "c@2024-01-02", "d@2024-01-02"} {
		s.end(id, nil)
	}
	s.finish(ledger.Failed, "a@2024-01-01 stopped", "b@2024-01-01 blocked", "c@2024-01-01 blocked", "c@2024-01-02 succeeded")
	if r := s.statuses()["a@2024-01-01"].Reason; !strings.Contains(r, "by the user") {
		t.Errorf("reason %q", r)
	}
	delete(s.open, "a@2024-01-01")
	s.begin(run.Options{}) // resuming runs it
	for _, id := range []string{"a@2024-01-01", "b@2024-01-01", "c@2024-01-01"} {
		s.end(id, nil)
	}
	s.finish(ledger.Succeeded)
}

// TestForceRerun: this one only, whatever its upstream.
func TestForceRerun(t *testing.T) {
	t.Parallel()
	s := newStage(t, chain, run.Options{})
	s.end("a@2024-01-01", errWrong)
	s.await("d@2024-01-01")
	s.do(status.ForceRerun, "b@2024-01-01", "", true)
	s.end("d@2024-01-01", nil)
	for _, id := range []string{"b@2024-01-01", "a@2024-01-02", "b@2024-01-02", "c@2024-01-02", "d@2024-01-02"} {
		s.end(id, nil)
	}
	s.finish(ledger.Failed, "a@2024-01-01 failed", "b@2024-01-01 succeeded")
	// After the run: only that one.
	out := s.do(status.ForceRerun, "c@2024-01-01", "", false)
	if len(out.Run) != 1 {
		t.Fatalf("%v", out.Run)
	}
	s.begin(run.Options{Only: out.Run})
	s.end("c@2024-01-01", nil)
	s.finish(ledger.Failed, "a@2024-01-01 failed", "c@2024-01-01 succeeded")
}

func TestSetSuccess(t *testing.T) {
	t.Parallel()
	s := newStage(t, chain, run.Options{})
	s.end("a@2024-01-01", errWrong)
	s.await("d@2024-01-01")
	s.do(status.SetSuccess, "a@2024-01-01", "", true)
	s.end("d@2024-01-01", nil)
	for _, id := range []string{"b@2024-01-01", "c@2024-01-01", "a@2024-01-02", "b@2024-01-02", "c@2024-01-02", "d@2024-01-02"} {
		s.end(id, nil)
	}
	s.finish(ledger.Succeeded, "a@2024-01-01 succeeded")
	if r := s.statuses()["a@2024-01-01"].Reason; r != "set to success by eve: test" {
		t.Errorf("reason %q", r)
	}
	if _, err := s.try(status.SetSuccess, "a@2024-01-01", ""); refusal(err) != status.CodeNotAllowed {
		t.Error(err)
	}
}

func TestRemoveDependency(t *testing.T) {
	t.Parallel()
	s := newStage(t, "dates 2024-01-01 1\nnode a\nnode e\nnode b needs a e\nnode c needs b\nnode d", run.Options{})
	s.end("a@2024-01-01", errWrong)
	s.await("e@2024-01-01")
	if _, err := s.try(status.RemoveDependency, "c@2024-01-01", "a@2024-01-01"); refusal(err) != status.CodeNoDependency {
		t.Error(err)
	}
	s.do(status.RemoveDependency, "b@2024-01-01", "a@2024-01-01", true)
	s.end("e@2024-01-01", nil) // it still waits for this one
	for _, id := range []string{"b@2024-01-01", "c@2024-01-01", "d@2024-01-01"} {
		s.end(id, nil)
	}
	s.finish(ledger.Failed, "a@2024-01-01 failed", "b@2024-01-01 succeeded", "c@2024-01-01 succeeded")
}

// TestRemoveDependencyOnEarlierDate: the first date of a chain failed, the
// second one does not need it any more.
func TestRemoveDependencyOnEarlierDate(t *testing.T) {
	t.Parallel()
	s := newStage(t, "dates 2024-01-01 3\nnode a needs a:-1..-1", run.Options{})
	s.end("a@2024-01-01", errWrong)
	s.finish(ledger.Failed, "a@2024-01-02 blocked", "a@2024-01-03 blocked")
	s.do(status.RemoveDependency, "a@2024-01-02", "a@2024-01-01", false)
	s.begin(run.Options{})
	s.end("a@2024-01-02", nil)
	s.end("a@2024-01-03", nil)
	s.finish(ledger.Failed, "a@2024-01-01 failed", "a@2024-01-03 succeeded")
}

func TestRerunDescendants(t *testing.T) {
	t.Parallel()
	s := newStage(t, "dates 2024-01-01 1\nnode a\nnode b needs a\nnode d", run.Options{})
	for _, id := range []string{"a@2024-01-01", "b@2024-01-01", "d@2024-01-01"} {
		s.end(id, nil)
	}
	s.finish(ledger.Succeeded)
	out := s.do(status.RerunDescendants, "a@2024-01-01", "", false)
	if out.Changed != 2 || len(out.Run) != 2 {
		t.Fatalf("%+v", out)
	}
	s.begin(run.Options{Only: out.Run})
	s.end("a@2024-01-01", nil)
	s.end("b@2024-01-01", nil)
	s.finish(ledger.Succeeded)
	if i := s.statuses()["a@2024-01-01"]; i.Attempt != 2 {
		t.Errorf("%+v", i)
	}
	// A whole backfill again.
	all, err := run.Restart(t.Context(), s.l, &s.plan, true, run.Steering{By: "eve", Word: "rerun"})
	if err != nil || all.Changed != 3 {
		t.Fatal(all, err)
	}
	if _, err := run.Restart(t.Context(), s.l, &s.plan, false, run.Steering{By: "eve", Word: "rerun"}); refusal(err) != status.CodeEmpty {
		t.Error(err)
	}
}

// TestPauseBackfill: it ends at a step's end, and cannot be resumed before it
// is unpaused.
func TestPauseBackfill(t *testing.T) {
	t.Parallel()
	s := newStage(t, chain, run.Options{})
	s.await("a@2024-01-01")
	on, off := true, false
	if err := s.l.Steer(t.Context(), ledger.Steering{Backfill: "b", Pause: &on, Operation: ledger.Operation{Op: "pause"}}); err != nil {
		t.Fatal(err)
	}
	<-s.stopping
	s.end("a@2024-01-01", nil)
	s.finish(ledger.Paused, "a@2024-01-01 succeeded")
	if _, err := s.l.Claim(t.Context(), "b", owner); !errors.As(err, new(*ledger.PausedError)) {
		t.Errorf("claimed: %v", err)
	}
	if err := s.l.Steer(t.Context(), ledger.Steering{Backfill: "b", Pause: &off, Operation: ledger.Operation{Op: "unpause"}}); err != nil {
		t.Fatal(err)
	}
	if r, _, err := s.run(attempt{}); err != nil || r.State != ledger.Succeeded {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFailurePolicyOutlivesSteering: what the policy stopped stays stopped.
func TestFailurePolicyOutlivesSteering(t *testing.T) {
	t.Parallel()
	s := newStage(t, "dates 2024-01-01 2\non_failure stop\nnode a\nnode b\nnode c needs a", run.Options{Parallel: 2})
	s.await("b@2024-01-01")
	s.end("a@2024-01-01", errWrong)
	s.become("a@2024-01-01", status.Failed)
	s.become("c@2024-01-01", status.Blocked)
	s.do(status.Rerun, "a@2024-01-01", "", true)
	s.end("b@2024-01-01", nil)
	s.finish(ledger.Stopped, "b@2024-01-01 succeeded", "a@2024-01-01 pending")
}

func refusal(err error) string {
	var r *status.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// hand is a clock that only sleeping moves.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) sleep(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
	return ctx.Err()
}

// timed runs a plan on a hand clock; each unit takes a minute.
func timed(t *testing.T, p plan.Plan, start time.Time) (run.Summary, *world, *hand) {
	t.Helper()
	w := newWorld(t, p)
	return again(t, w, start)
}

func again(t *testing.T, w *world, start time.Time) (run.Summary, *world, *hand) {
	t.Helper()
	h := &hand{now: start}
	l := w.open()
	t.Cleanup(func() { w.shut(l) })
	claim, err := l.Claim(t.Context(), "b", owner)
	if err != nil {
		t.Fatal(err)
	}
	e := &minutes{Engine: faultengine.New(w.store, faultengine.Options{}), h: h}
	s, err := run.Run(t.Context(), run.Deps{Engine: e, Ledger: claim, Clock: h.clock, Sleep: h.sleep}, w.plan, run.Options{Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return s, w, h
}

// minutes is an engine whose units take a minute each.
type minutes struct {
	*faultengine.Engine
	h     *hand
	first time.Time
	rows  map[string]executors.Rows
}

func (m *minutes) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	if m.first.IsZero() {
		m.first = m.h.clock()
	}
	if err := m.h.sleep(ctx, time.Minute); err != nil {
		return executors.Result{}, err
	}
	return m.Engine.Execute(ctx, u)
}

func (m *minutes) Query(_ context.Context, sql string, _ int) (executors.Rows, error) {
	r, known := m.rows[sql]
	if !known {
		return executors.Rows{}, errors.New("no such query: " + sql)
	}
	return r, nil
}

func at(hour, minute int) time.Time { return time.Date(2026, 12, 1, hour, minute, 0, 0, time.UTC) }

func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		budget plan.Budget
		start  time.Time
		done   int
		note   string
	}{
		{"duration", plan.Budget{MaxSeconds: 120}, at(10, 0), 2, "--max-duration 2m0s is over"},
		{"rows", plan.Budget{MaxRows: 3}, at(10, 0), 3, "3 rows are written, --max-rows is 3"},
		{"hours", plan.Budget{NotBetween: "10:02-18:00"}, at(10, 0), 2, "nothing begins between 10:02 and 18:00 (it is 10:02); `retrofill resume b` goes on after 18:00"},
		{"at once", plan.Budget{NotBetween: "22:00-06:00"}, at(23, 0), 0, "goes on after 06:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, "dates 2024-01-01 5\nnode a")
			p.Budget = &c.budget
			s, w, _ := timed(t, p, c.start)
			if s.State != ledger.Paused || s.Counts.Of(status.Succeeded) != c.done || s.Counts.Of(status.Pending) != 5-c.done || !strings.Contains(s.Note, c.note) {
				t.Errorf("%+v", s)
			}
			for i := 0; i < 3 && s.State == ledger.Paused; i++ {
				s, _, _ = again(t, w, at(19, 0))
			}
			if s.State != ledger.Succeeded {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestRunAtAndWaitSchedule(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2026-11-30 1\nnode a")
	p.RunAt = "2026-12-01T20:30:00+01:00"
	s, _, h := timed(t, p, at(8, 0))
	if s.State != ledger.Succeeded || h.clock() != at(19, 31) {
		t.Errorf("%+v at %s", s, h.clock())
	}
	p = planOf(t, "dates 2026-11-29 3\nnode a") // the slots' own times: 30, 1 and 2 at 00:00
	p.WaitSchedule = true
	s, _, h = timed(t, p, at(8, 0))
	if want := time.Date(2026, 12, 2, 0, 1, 0, 0, time.UTC); s.State != ledger.Succeeded || h.clock() != want {
		t.Errorf("%+v at %s, want %s", s, h.clock(), want)
	}
}

// TestRunAtIsStopped: nothing has begun, and all is pending.
func TestRunAtIsStopped(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2026-11-30 2\nnode a")
	p.RunAt = "2026-12-01T20:30:00Z"
	w := newWorld(t, p)
	stop := make(chan struct{})
	_, done, sum := w.start(t.Context(), newSlow(w), run.Options{Stop: stop})
	close(stop)
	if err := <-done; err != nil || sum.State != ledger.Stopped || sum.Counts.Of(status.Pending) != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	l := w.open()
	defer w.shut(l)
	if b, err := l.Backfill(t.Context(), "b"); err != nil || !b.RunAt.Equal(time.Date(2026, 12, 1, 20, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestSkipIf(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2024-01-01 7\nnode a\nnode b needs a") // a Monday to a Sunday
	p.Nodes[0].SkipIf = `weekday in ["sat", "sun"] or params.day == "03"`
	p.Nodes[0].Params = map[string]plan.Parameter{"day": {Value: "${dd}"}}
	s, w, _ := timed(t, p, at(8, 0))
	if s.State != ledger.Succeeded || s.Ran != 11 {
		t.Errorf("%+v", s)
	}
	i := w.statuses()["a@2024-01-06"]
	if i.Status != status.Succeeded || i.Attempt != 0 || !strings.HasPrefix(i.Reason, "skipped: skip_if weekday in") {
		t.Errorf("%+v", i)
	}
	p.Nodes[0].SkipIf = `int(params.day) > 3 and params.nothing == ""`
	p.Nodes[0].Params["nothing"] = plan.Parameter{Late: param.LateCross, Node: "z", Output: "y"}
	s, w, _ = timed(t, p, at(8, 0))
	if i := w.statuses()["a@2024-01-06"]; s.State != ledger.Failed || i.Status != status.Failed || i.Reason != "skip_if cannot be evaluated" {
		t.Errorf("%+v, %+v", s, i)
	}
}

// TestPausedNode: its instances are seen as paused, and everything below waits.
func TestPausedNode(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2024-01-01 2\nnode a\nnode b needs a\nnode c")
	p.Nodes[0].Paused = true
	s, w, _ := timed(t, p, at(8, 0))
	if s.State != ledger.Paused || s.Counts.Held() != 2 || s.Counts.Of(status.Pending) != 4 {
		t.Errorf("%+v", s)
	}
	if i := w.statuses()["a@2024-01-02"]; !i.Paused || i.Reason != "the node is paused" {
		t.Errorf("%+v", i)
	}
	l := w.open()
	defer w.shut(l)
	var all []plan.Instance
	x, err := plan.NewExpander(&p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Dates {
		in, err := x.Expand(i, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, in...)
	}
	if o, err := run.Operate(t.Context(), l, &p, run.Steering{Op: status.Unpause, Targets: all, Word: "unpause"}); err != nil || o.Changed != 2 {
		t.Fatal(o, err)
	}
	if s, _, _ := again(t, w, at(8, 0)); s.State != ledger.Succeeded {
		t.Errorf("%+v", s)
	}
}

// TestSets: a SQL task sets a parameter by a query; readers get this run's
// value, the default, or a recorded one with a note.
func TestSets(t *testing.T) {
	t.Parallel()
	one, fifteen := "one", 2
	p := planOf(t, "dates 2024-01-01 2\nnode rates\nnode a needs rates")
	p.Nodes[0].Strategy, p.Nodes[0].Writes = plan.Script, nil
	st := &p.Nodes[0].Steps[0]
	st.Strategy, st.Sets = plan.Script, []plan.Set{{Param: "rate", Query: "select rate on '${yyyy-mm-dd}'"}, {Param: "none", Query: "select none"}}
	p.Nodes[1].Params = map[string]plan.Parameter{
		"r": {Late: param.LateCross, Node: "rates", Output: "rate", Default: &one},
		"n": {Late: param.LateCross, Node: "rates", Output: "none", Default: &one},
		"o": {Late: param.LateCross, Node: "old", Output: "x", Lookback: &fifteen},
	}
	p.Nodes[1].Steps[0].Statements = []plan.Statement{{SQL: "insert '${r}' '${n}' '${o}'", Role: "insert", Target: "t"}}
	w := newWorld(t, p)
	h := &hand{now: at(8, 0)}
	l := w.open()
	defer w.shut(l)
	record(t, l, "old", "x", "v", bizdate.Of(2023, 12, 31))
	claim, err := l.Claim(t.Context(), "b", owner)
	if err != nil {
		t.Fatal(err)
	}
	cell := func(v any) executors.Rows {
		return executors.Rows{Columns: []executors.Column{{Name: "x"}}, Values: [][]any{{v}}}
	}
	e := &minutes{Engine: faultengine.New(w.store, faultengine.Options{}), h: h, rows: map[string]executors.Rows{
		"select rate on '2024-01-01'": cell(1.25), "select rate on '2024-01-02'": cell("x'y"), "select none": cell(nil),
	}}
	texts := &spy{minutes: e}
	s, err := run.Run(t.Context(), run.Deps{Engine: texts, Ledger: claim, Clock: h.clock, Sleep: h.sleep}, p, run.Options{Heartbeat: time.Hour})
	if err != nil || s.State != ledger.Succeeded {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := strings.Join(texts.sql, "\n"); !strings.Contains(got, "insert '1.25' 'one' 'v'") || !strings.Contains(got, "insert 'x''y' 'one' 'v'") {
		t.Errorf("%s", got)
	}
	if r := w.statuses()["a@2024-01-02"].Reason; !strings.Contains(r, "the value of 2023-12-31 is used, 2 days older") {
		t.Errorf("reason %q", r)
	}
	noted, err := l.Instances(t.Context(), "b", ledger.Filter{Noted: true, Status: []status.Status{status.Succeeded}})
	if err != nil || len(noted) != 2 {
		t.Errorf("%+v, %v", noted, err)
	}
}

// spy keeps the statements that are executed.
type spy struct {
	*minutes
	mu  sync.Mutex
	sql []string
}

func (s *spy) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	s.mu.Lock()
	for _, st := range u.Statements {
		s.sql = append(s.sql, st.SQL)
	}
	s.mu.Unlock()
	return s.minutes.Execute(ctx, u)
}

// record stores a parameter value as an earlier backfill would have.
func record(t *testing.T, l *ledger.Ledger, node, name, value string, d bizdate.Date) {
	t.Helper()
	p := planOf(t, "dates "+d.String()+" 1\nnode "+node)
	p.Backfill = "earlier"
	if _, err := l.Create(t.Context(), p, owner); err != nil {
		t.Fatal(err)
	}
	c, err := l.Claim(t.Context(), "earlier", owner)
	if err != nil {
		t.Fatal(err)
	}
	k := ledger.Key{Date: d}
	a, err := c.Start(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Finish(t.Context(), ledger.Outcome{Key: k, Attempt: a.Number, Status: status.Succeeded, Values: map[string]string{name: value}})
	if err = errors.Join(err, c.End(t.Context(), ledger.Succeeded, "")); err != nil {
		t.Fatal(err)
	}
}

func TestSetsFail(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2024-01-01 1\nnode rates\nnode a needs rates")
	p.Nodes[0].Steps[0].Sets = []plan.Set{{Param: "rate", Query: "select rate"}}
	s, w, _ := timed(t, p, at(8, 0))
	if i := w.statuses()["rates@2024-01-01"]; s.State != ledger.Failed || i.Reason != "the values that it sets cannot be read" || !strings.Contains(i.Error, "no such query") {
		t.Errorf("%+v, %+v", s, i)
	}
}

// TestRecreatedLedger: the ledger was deleted and the default name repeats, but
// the commits of the earlier backfill are not taken for those of the new one.
func TestRecreatedLedger(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2024-01-01 2\nnode a\nnode b needs a")
	first := newWorld(t, p)
	if s, _, err := first.run(attempt{}); err != nil || s.State != ledger.Succeeded {
		t.Fatalf("%+v, %v", s, err)
	}
	second := newWorld(t, p)
	second.store = first.store
	before := len(first.store.Commits())
	for crash := 1; ; crash++ { // at every moment, then resumed
		_, proc, _ := second.run(attempt{crashAt: crash})
		if proc.Alive() == nil {
			break
		}
		if crash > 100 {
			t.Fatal("it never ends")
		}
	}
	if n := len(first.store.Commits()) - before; n != 4 {
		t.Errorf("%d new commits, want 4", n)
	}
	if err := second.check(true); err != nil {
		t.Error(err)
	}
}
