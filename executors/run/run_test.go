package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/faultengine"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// slow is an engine whose units last until they are let go or cancelled.
type slow struct {
	*faultengine.Engine
	began chan string
	goOn  chan struct{}
}

func (s *slow) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	s.began <- u.Marker.Instance
	select {
	case <-s.goOn:
		return s.Engine.Execute(ctx, u)
	case <-ctx.Done():
		return executors.Result{}, ctx.Err()
	}
}

// start runs a world's plan with the given engine in the background.
func (w *world) start(ctx context.Context, e executors.Engine, o run.Options) (claim *ledger.Claim, done chan error, sum *run.Summary) {
	w.t.Helper()
	l := w.open()
	w.t.Cleanup(func() { w.shut(l) })
	claim, err := l.Claim(ctx, w.plan.Backfill, owner)
	if err != nil {
		w.t.Fatal(err)
	}
	done, sum = make(chan error, 1), &run.Summary{}
	go func() {
		var err error
		*sum, err = run.Run(ctx, run.Deps{Engine: e, Ledger: claim, Clock: clock}, w.plan, o)
		done <- err
	}()
	return claim, done, sum
}

func newSlow(w *world) *slow {
	return &slow{Engine: faultengine.New(w.store, faultengine.Options{}), began: make(chan string, 100), goOn: make(chan struct{}, 100)}
}

func TestGentleStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planOf(t, "dates 2024-01-01 3\nnode a\nnode b needs a"))
	e := newSlow(w)
	stop := make(chan struct{})
	_, done, sum := w.start(t.Context(), e, run.Options{Stop: stop})
	<-e.began
	close(stop)
	e.goOn <- struct{}{} // the running one finishes
	if err := <-done; err != nil || sum.State != ledger.Stopped {
		t.Fatalf("%+v, %v", sum, err)
	}
	if n := sum.Counts.Of(status.Succeeded); n != 1 || sum.Counts.Of(status.Pending) != 5 {
		t.Errorf("%d succeeded, %d pending", n, sum.Counts.Of(status.Pending))
	}
	s, _, err := w.run(attempt{})
	if err != nil || s.State != ledger.Succeeded || w.check(true) != nil {
		t.Errorf("%+v, %v, %v", s, err, w.check(true))
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"context", "ledger"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, planOf(t, "dates 2024-01-01 3\nnode a\nnode b needs a"))
			e := newSlow(w)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, done, sum := w.start(ctx, e, run.Options{Heartbeat: time.Millisecond})
			<-e.began
			if signal == "context" {
				cancel()
			} else {
				l := w.open()
				if err := l.Signal(t.Context(), "b", "kill"); err != nil {
					t.Fatal(err)
				}
				w.shut(l)
			}
			if err := <-done; err != nil || sum.State != ledger.Stopped {
				t.Fatalf("%+v, %v", sum, err)
			}
			i := w.statuses()["a@2024-01-01"]
			if i.Status != status.Stopped || i.Reason == "" {
				t.Errorf("%+v", i)
			}
			s, _, err := w.run(attempt{})
			if err != nil || s.State != ledger.Succeeded || w.check(true) != nil {
				t.Errorf("%+v, %v, %v", s, err, w.check(true))
			}
		})
	}
}

// TestFenced: a process that lost its backfill stops and writes nothing more.
func TestFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planOf(t, "dates 2024-01-01 3\nnode a"))
	e := newSlow(w)
	_, done, _ := w.start(t.Context(), e, run.Options{Heartbeat: time.Millisecond})
	<-e.began
	l := w.open()
	if _, err := l.Claim(t.Context(), "b", owner); err != nil { // as another process would, much later
		t.Fatal(err)
	}
	w.shut(l)
	if err := <-done; !errors.Is(err, ledger.ErrFenced) {
		t.Fatal(err)
	}
	if len(w.store.Commits()) != 0 {
		t.Error("something was committed")
	}
}

// TestParallel: groups run side by side, and so do independent nodes.
func TestParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planOf(t, "dates 2024-01-01 4\ngroups 2\nnode a\nnode b\nnode c needs a b"))
	e := newSlow(w)
	_, done, sum := w.start(t.Context(), e, run.Options{Parallel: 4})
	seen := map[string]bool{}
	for range 4 {
		seen[<-e.began] = true
	}
	for _, id := range []string{"a@2024-01-01", "b@2024-01-01", "a@2024-01-03", "b@2024-01-03"} {
		if !seen[id] {
			t.Errorf("%s does not run beside %v", id, seen)
		}
	}
	for range 12 {
		e.goOn <- struct{}{}
	}
	if err := <-done; err != nil || sum.State != ledger.Succeeded {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestDeafConsumer: a consumer of events that never returns delays nothing but
// the very end.
func TestDeafConsumer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planOf(t, "dates 2024-01-01 3\nnode a"))
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	s, _, err := w.run(attempt{events: func(run.Event) { <-never }})
	if err != nil || s.State != ledger.Succeeded {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPaused(t *testing.T) {
	t.Parallel()
	p := planOf(t, "dates 2024-01-01 1\nnode a\nnode b needs a\nnode c")
	w := newWorld(t, p)
	claim := &pausing{node: 0}
	l := w.open()
	defer w.shut(l)
	c, err := l.Claim(t.Context(), "b", owner)
	if err != nil {
		t.Fatal(err)
	}
	claim.Claim = c
	s, err := run.Run(t.Context(), run.Deps{Engine: faultengine.New(w.store, faultengine.Options{}), Ledger: claim, Clock: clock}, p, run.Options{})
	if err != nil || s.State != ledger.Paused || s.Counts.Of(status.Pending) != 2 || s.Counts.Of(status.Succeeded) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// pausing is a claim in which another process has paused a node's instances.
type pausing struct {
	*ledger.Claim
	node int
}

func (p *pausing) Start(ctx context.Context, k ledger.Key) (ledger.Attempt, error) {
	if k.Node == p.node {
		return ledger.Attempt{}, fmt.Errorf("ledger: start: %w", ledger.ErrPaused)
	}
	return p.Claim.Start(ctx, k)
}

func TestRules(t *testing.T) {
	t.Parallel()
	facts := executors.Facts{"nulls": 0, "dups": 2, "inserted": 5, "rows": 5, "before": 3, "none": 0}
	for _, c := range []struct {
		rule  plan.Rule
		empty bool
		want  string
	}{
		{plan.Rule{Fact: "nulls", Kind: "zero", Code: "key_null"}, false, ""},
		{plan.Rule{Fact: "dups", Kind: "zero", Code: "key_duplicate", Message: "twice"}, false, "key_duplicate: twice (dups = 2)"},
		{plan.Rule{Fact: "inserted", Kind: "equals", Other: "rows", Code: "x"}, false, ""},
		{plan.Rule{Fact: "inserted", Kind: "equals", Other: "before", Code: "keys_differ", Message: "m"}, false, "keys_differ: m (inserted = 5, before = 3)"},
		{plan.Rule{Fact: "none", Kind: "not_emptied", Other: "before", Code: "emptied", Message: "m"}, false, "emptied: m (none = 0, before = 3)"},
		{plan.Rule{Fact: "none", Kind: "not_emptied", Other: "before", Code: "emptied"}, true, ""},
		{plan.Rule{Fact: "none", Kind: "not_emptied", Other: "none", Code: "emptied"}, false, ""},
		{plan.Rule{Fact: "absent", Kind: "zero"}, false, "run: verify: the fact absent was not collected"},
		{plan.Rule{Fact: "rows", Kind: "equals", Other: "absent"}, false, "run: verify: the fact absent was not collected"},
		{plan.Rule{Fact: "rows", Kind: "guess"}, false, `run: verify: the rule kind "guess" is not known`},
	} {
		got := ""
		if err := run.Check([]plan.Rule{c.rule}, facts, c.empty); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.rule, got, c.want)
		}
	}
}

// commandWorld is a backfill of one command over n dates.
func commandWorld(t *testing.T, lines string, argv ...string) *world {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the test's commands are POSIX ones")
	}
	p := planOf(t, lines)
	p.Nodes[0].Steps[0].Command = argv
	return newWorld(t, p)
}

func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := commandWorld(t, "dates 2024-01-01 1\nnode load command x", "sh", "-c", `echo "day $0 in $(pwd -P)"; echo oops >&2; echo "rate=1.5 $LEVEL" >> "$RETROFILL_OUTPUT"`, "${bizdate}")
	w.plan.Nodes[0].Steps[0].Env = []string{"LEVEL=l${yyyy}"}
	w.plan.Nodes[0].Steps[0].Sets = []plan.Set{{Param: "rate"}}
	w.plan.Nodes[0].Params = map[string]plan.Parameter{"bizdate": {Value: "${yyyymmdd}"}}
	l := w.open()
	defer w.shut(l)
	claim, err := l.Claim(t.Context(), "b", owner)
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Run(t.Context(), run.Deps{Engine: faultengine.New(w.store, faultengine.Options{}), Ledger: claim, Clock: clock, Dir: dir}, w.plan, run.Options{})
	if err != nil || s.State != ledger.Succeeded {
		t.Fatalf("%+v, %v", s, err)
	}
	k := ledger.Key{Date: w.plan.Dates[0]}
	chunks, err := l.Logs(t.Context(), "b", k, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, c := range chunks {
		text += c.Text
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := "day 20240101 in " + real + "\noops\n"; text != want {
		t.Errorf("log %q, want %q", text, want)
	}
	v, err := l.Values(t.Context(), "dev", "load", "rate", k.Date, k.Date)
	if err != nil || len(v) != 1 || v[0].Value != "1.5 l2024" {
		t.Errorf("outputs %+v, %v", v, err)
	}
	if b, err := l.Built(t.Context(), "dev", []string{"load"}, k.Date, k.Date); err != nil || len(b) != 1 {
		t.Errorf("built %+v, %v", b, err)
	}
}

func TestCommandFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, lines string
		argv        []string
		reason      string
	}{
		{"exit status", "", []string{"sh", "-c", "exit 7"}, "exit status 7"},
		{"missing", "", []string{"no-such-program-here"}, "the command did not run to its end"},
		{"bad outputs", "", []string{"sh", "-c", `echo nonsense > "$RETROFILL_OUTPUT"`}, "the command's outputs cannot be read"},
		{"timeout", " timeout 1", []string{"sleep", "60"}, "timed out after 1 s"},
		{"stubborn", " timeout 1", []string{"sh", "-c", `trap "" TERM; sleep 60 & wait; sleep 60`}, "timed out after 1 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := commandWorld(t, "dates 2024-01-01 1\nnode load"+c.lines+" command x", c.argv...)
			s, _, err := w.run(attempt{})
			i := w.statuses()["load@2024-01-01"]
			if err != nil || s.State != ledger.Failed || i.Status != status.Failed || i.Reason != c.reason || i.Error == "" {
				t.Errorf("%+v, %v, %+v", s, err, i)
			}
		})
	}
}

// TestCommandTree: stopping a command ends its children too.
func TestCommandTree(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	w := commandWorld(t, "dates 2024-01-01 1\nnode load command x", "sh", "-c", `sh -c 'trap "" TERM; echo $$ > "$0"; while :; do sleep 0.1; done' "$0" & wait`, file)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, done, sum := w.start(ctx, faultengine.New(w.store, faultengine.Options{}), run.Options{})
	var pid int
	for pid == 0 {
		if doc, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(doc), "\n") {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(doc)))
		}
		runtime.Gosched()
	}
	cancel()
	if err := <-done; err != nil || sum.State != ledger.Stopped {
		t.Fatalf("%+v, %v", sum, err)
	}
	for i := 0; syscall.Kill(pid, 0) == nil; i++ { // killed, but its new parent may be slow to bury it
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			break
		}
		if i > 5000 {
			t.Fatal("a child outlived its command")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCommandUnknown: a command that ran when the process was killed cannot be
// looked up.
func TestCommandUnknown(t *testing.T) {
	t.Parallel()
	w := commandWorld(t, "dates 2024-01-01 1\nnode load command x\nnode b needs load", "true")
	for at := 1; ; at++ { // die right after the start is durable
		_, proc, _ := w.run(attempt{crashAt: at})
		if strings.Contains(proc.Where(), "after start") {
			break
		}
		if proc.Alive() == nil {
			t.Fatal("no such moment")
		}
	}
	s, _, err := w.run(attempt{})
	if err != nil || s.State != ledger.Unknown || s.Counts.Of(status.Unknown) != 1 || s.Counts.Of(status.Blocked) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	s, _, err = w.run(attempt{opts: run.Options{RerunUnknown: true}})
	if err != nil || s.State != ledger.Succeeded {
		t.Fatalf("%+v, %v", s, err)
	}
}

// TestNoOps: many dry runs are durable and fast.
func TestNoOps(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("dates 2024-01-01 300\ngroups 4\nnode n0 dry\n")
	for i := 1; i < 20; i++ {
		fmt.Fprintf(&b, "node n%d dry needs n%d\n", i, i-1)
	}
	w := newWorld(t, planOf(t, b.String()))
	var events atomic.Int64
	began := time.Now()
	s, _, err := w.run(attempt{events: func(run.Event) { events.Add(1) }})
	if err != nil || s.Counts.Of(status.Succeeded) != 6000 || events.Load() != 6003 {
		t.Fatalf("%+v, %v, %d events", s, err, events.Load())
	}
	t.Logf("%.0f instances/s", 6000/time.Since(began).Seconds())
}
