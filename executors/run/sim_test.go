package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/retrofill/retrofill/executors/faultengine"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

const crashPlan = `prepare create schema dw
dates 2024-01-01 3
retries 1
window 00:00 01:00
node a
node h hourly needs a
node w dry_on 2024-01-02 needs a
node s needs w s:-1..-1`

// TestCrashEverywhere kills the process before and after every durable write
// of engine and ledger, then runs again.
func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	faults, err := faultengine.ParseFaults("ambiguous after commit of a@2024-01-02\ntransient before statement 1 of s@2024-01-03")
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; ; at++ {
		w := newWorld(t, planOf(t, crashPlan))
		s, proc, err := w.run(attempt{crashAt: at, faults: faults, opts: run.Options{Parallel: 1}})
		if proc.Alive() == nil {
			if err != nil || s.State != ledger.Succeeded || at < 50 {
				t.Fatalf("the last run, %d steps: %+v, %v", at, s, err)
			}
			t.Logf("%d moments", at-1)
			return
		}
		if err == nil {
			t.Fatalf("%s: the crash was not noticed", proc.Where())
		}
		s, _, err = w.run(attempt{opts: run.Options{Parallel: 1}})
		if err != nil || s.State != ledger.Succeeded {
			t.Fatalf("%s: after it %+v, %v", proc.Where(), s, err)
		}
		if err := w.check(true); err != nil {
			t.Fatalf("%s: %v", proc.Where(), err)
		}
	}
}

// randomPlan writes a plan of up to 6 nodes and 6 dates in planOf's language.
func randomPlan(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dates 2024-01-0%d %d\nretries %d\nwindow 00:00 0%d:00\n", 1+r.IntN(9), 1+r.IntN(6), r.IntN(3), r.IntN(3))
	fmt.Fprintf(&b, "on_failure %s\n", []string{"continue", "continue", "stop", "fail-fast"}[r.IntN(4)])
	cyclic := r.IntN(3) == 0
	if !cyclic {
		fmt.Fprintf(&b, "groups %d\norder %s\n", 1+r.IntN(3), []string{"asc", "desc"}[r.IntN(2)])
	}
	nodes := 1 + r.IntN(6)
	for i := range nodes {
		fmt.Fprintf(&b, "node n%d", i)
		switch r.IntN(8) {
		case 0:
			b.WriteString(" dry")
		case 1, 2:
			b.WriteString(" hourly")
		}
		b.WriteString(" needs")
		for up := range i {
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, " n%d", up)
			}
		}
		if cyclic && r.IntN(2) == 0 {
			lo := -1 - r.IntN(3)
			fmt.Fprintf(&b, " n%d:%d..%d", r.IntN(nodes), lo, lo+r.IntN(-lo))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func randomFaults(r *rand.Rand) string {
	var b strings.Builder
	actions := []string{"fail before statement 2", "transient before statement 1", "ambiguous before commit", "ambiguous after commit", "fail before lookup", "transient before lookup"}
	for range r.IntN(5) {
		fmt.Fprintf(&b, "%s skip %d times %d\n", actions[r.IntN(len(actions))], 1+r.IntN(6), 1+r.IntN(3))
	}
	return b.String()
}

// TestSimulation runs random plans with random faults, crashes and stops until
// they are done. RUN_SEED repeats one seed, RUN_SEEDS sets their number.
func TestSimulation(t *testing.T) {
	t.Parallel()
	first, n := uint64(1), 150
	if testing.Short() {
		n = 30
	}
	if s := os.Getenv("RUN_SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("RUN_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, n = v, 1
	}
	for part := range uint64(4) {
		t.Run(fmt.Sprint("part", part), func(t *testing.T) {
			t.Parallel()
			for seed := first + part; seed < first+uint64(n); seed += 4 {
				if err := simulate(t, seed); err != nil {
					t.Fatalf("seed %d (repeat with RUN_SEED=%d): %v", seed, seed, err)
				}
			}
		})
	}
}

func simulate(t *testing.T, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 7))
	script := randomPlan(r)
	p := planOf(t, script)
	w := newWorld(t, p)
	x, err := plan.NewExpander(&p)
	if err != nil {
		return err
	}
	watch := &order{plan: &p, world: w, x: x}
	for round := 0; ; round++ {
		a := attempt{opts: run.Options{Parallel: 1 + r.IntN(4), RerunFailed: round > 0}, events: watch.event}
		calm := round >= 4
		var faults string
		if !calm {
			faults = randomFaults(r)
			var err error
			if a.faults, err = faultengine.ParseFaults(faults); err != nil {
				return err
			}
			if r.IntN(2) == 0 {
				a.crashAt = 1 + r.IntN(60)
			}
			if r.IntN(3) == 0 {
				stop := make(chan struct{})
				after := r.IntN(10)
				a.opts.Stop = stop
				once := sync.OnceFunc(func() { close(stop) })
				a.events = func(e run.Event) {
					watch.event(e)
					if after--; after < 0 {
						once()
					}
				}
			}
		}
		s, proc, err := w.run(a)
		fail := func(err error) error {
			return fmt.Errorf("round %d: %w\nplan:\n%sfaults:\n%ssummary %+v\ndied %s", round, err, script, faults, s, proc.Where())
		}
		dead := proc.Alive() != nil
		if err != nil && !dead {
			return fail(err)
		}
		if err := watch.verdict(); err != nil {
			return fail(err)
		}
		if dead {
			continue
		}
		if err := w.check(s.State == ledger.Succeeded); err != nil {
			return fail(err)
		}
		if s.State == ledger.Succeeded {
			return nil
		}
		if calm {
			return fail(fmt.Errorf("a run without faults left it %s", s.State))
		}
	}
}

// order watches that no instance begins before what it reads has succeeded,
// and that a date of a group begins only after the one before it.
type order struct {
	plan  *plan.Plan
	world *world
	x     *plan.Expander
	mu    sync.Mutex
	done  map[string]status.Status
	errs  []error
}

func (o *order) event(e run.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e.Kind {
	case run.Begun:
		o.done = map[string]status.Status{}
		for id, i := range o.world.statusesQuietly() {
			if i.Status == status.Succeeded {
				o.done[id] = i.Status
			}
		}
	case run.Finished:
		o.done[e.ID] = e.Status
	case run.Started:
		o.started(e)
	}
}

func (o *order) started(e run.Event) {
	name, slot, _ := strings.Cut(e.ID, "@")
	d, err := bizdate.Parse(slot[:10])
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	if len(slot) > 10 {
		d-- // a sub-daily slot lies on the day after its business date
	}
	for i := range o.plan.Nodes {
		n := &o.plan.Nodes[i]
		if n.Name != name {
			continue
		}
		for _, need := range n.Needs {
			lo, hi := o.plan.Reads(need, d)
			for x := lo; x <= hi; x++ {
				o.want(e.ID, need.Node, x)
			}
		}
	}
}

// want checks that all slots of an upstream date are done.
func (o *order) want(id, up string, d bizdate.Date) {
	x := o.x
	for i := range o.plan.Nodes {
		if o.plan.Nodes[i].Name != up || x.Step(i, d) < 0 {
			continue
		}
		for _, s := range x.Slots(i, d) {
			if upID := plan.InstanceID(up, s.ID()); o.done[upID] != status.Succeeded && upID != id {
				o.errs = append(o.errs, fmt.Errorf("%s began while %s is %v", id, upID, o.done[upID]))
			}
		}
	}
}

func (o *order) verdict() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.errs...)
}

// statusesQuietly reads the ledger from another goroutine than the test's.
func (w *world) statusesQuietly() map[string]ledger.Instance {
	out := map[string]ledger.Instance{}
	l, err := ledger.Open(context.Background(), w.path, ledger.Options{Clock: clock, ReadOnly: true})
	if err != nil {
		return out
	}
	defer func() { _ = l.Close() }()
	list, err := l.Instances(context.Background(), w.plan.Backfill, ledger.Filter{})
	if err != nil {
		return out
	}
	for _, i := range list {
		out[i.ID] = i
	}
	return out
}
