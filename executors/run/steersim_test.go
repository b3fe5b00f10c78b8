package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors/faultengine"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// meddler is a claim beside which a user operates on random instances.
type meddler struct {
	*ledger.Claim
	mu    sync.Mutex
	rnd   *rand.Rand
	l     *ledger.Ledger
	p     *plan.Plan
	all   []plan.Instance
	did   []string
	again bool // an operation ran something again: two commits are right then
}

func (m *meddler) Start(ctx context.Context, k ledger.Key) (ledger.Attempt, error) {
	m.meddle(ctx)
	a, err := m.Claim.Start(ctx, k)
	m.meddle(ctx)
	return a, err
}

func (m *meddler) Finish(ctx context.Context, o ...ledger.Outcome) error {
	err := m.Claim.Finish(ctx, o...)
	m.meddle(ctx)
	return err
}

// meddle does an operation now and then. Refusals are right; anything else
// than success is reported by the test.
func (m *meddler) meddle(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rnd.IntN(4) > 0 || len(m.did) > 30 {
		return
	}
	ops := []status.Op{status.Rerun, status.RerunDescendants, status.ForceRerun, status.Stop, status.SetSuccess, status.Pause, status.Unpause, status.RemoveDependency}
	s := run.Steering{Op: ops[m.rnd.IntN(len(ops))], Targets: []plan.Instance{m.all[m.rnd.IntN(len(m.all))]}, By: "eve"}
	s.Upstream, s.Word = m.all[m.rnd.IntN(len(m.all))], s.Op.String()
	_, err := run.Operate(ctx, m.l, m.p, s)
	var refused *status.Refusal
	switch {
	case errors.As(err, &refused), ctx.Err() != nil:
	case err != nil:
		m.did = append(m.did, "ERROR "+err.Error())
	default:
		m.did = append(m.did, s.Word+" "+plan.InstanceID(m.p.Nodes[s.Targets[0].Node].Name, s.Targets[0].Slot.ID()))
		m.again = m.again || s.Op == status.Rerun || s.Op == status.RerunDescendants || s.Op == status.ForceRerun
	}
}

// TestSteeredSimulation: whatever users do to instances while random plans
// run, the run ends, counts and records agree, every instance that did not
// succeed says why, and afterwards the rest can be brought to its end.
func TestSteeredSimulation(t *testing.T) {
	t.Parallel()
	first, n := uint64(1), 60
	if testing.Short() {
		n = 20
	}
	if s := os.Getenv("STEER_SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("STEER_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, n = v, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		if err := steered(t, seed); err != nil {
			t.Fatalf("STEER_SEED=%d: %v", seed, err)
		}
	}
}

func steered(t *testing.T, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 11))
	script := randomPlan(rnd)
	w := newWorld(t, planOf(t, script))
	x, err := plan.NewExpander(&w.plan)
	if err != nil {
		return err
	}
	m := &meddler{rnd: rnd, p: &w.plan, l: w.open()}
	defer w.shut(m.l)
	for d := range w.plan.Dates {
		for i := range w.plan.Nodes {
			in, err := x.Expand(d, i)
			if err != nil {
				return err
			}
			m.all = append(m.all, in...)
		}
	}
	if len(m.all) == 0 {
		return nil
	}
	faults, err := faultengine.ParseFaults(randomFaults(rnd))
	if err != nil {
		return err
	}
	engine := faultengine.New(w.store, faultengine.Options{Faults: faults, Sleep: noSleep})
	once := func(o run.Options) (run.Summary, error) {
		var err error
		if m.Claim, err = m.l.Claim(t.Context(), "b", owner); err != nil {
			return run.Summary{}, err
		}
		o.Heartbeat = time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := run.Run(ctx, run.Deps{Engine: engine, Ledger: m, Clock: clock, Sleep: noSleep}, w.plan, o)
		if ctx.Err() != nil {
			return s, errors.New("it does not end")
		}
		return s, err
	}
	for range 3 {
		s, err := once(run.Options{Parallel: 1 + rnd.IntN(4)})
		if err != nil {
			return fmt.Errorf("%s%v: %w", script, m.did, err)
		}
		if err := w.agree(s); err != nil {
			return fmt.Errorf("%s%v: %w", script, m.did, err)
		}
	}
	for _, d := range m.did {
		if len(d) > 5 && d[:5] == "ERROR" {
			return fmt.Errorf("%s: %s", script, d)
		}
	}
	// The user lets it go on, without more operations.
	m.did = make([]string, 100)
	if _, err := run.Operate(t.Context(), m.l, &w.plan, run.Steering{Op: status.Unpause, Targets: m.all, Word: "unpause"}); err != nil && refusal(err) == "" {
		return err
	}
	engine = faultengine.New(w.store, faultengine.Options{Sleep: noSleep})
	var s run.Summary
	for range 3 { // forced instances hold what is below them for one run
		if s, err = once(run.Options{RerunFailed: true}); err != nil {
			return err
		}
	}
	if s.State != ledger.Succeeded {
		return fmt.Errorf("%safter all it is %s (%s): %v", script, s.State, s.Note, w.statuses())
	}
	if r := w.store.Repeated(); len(r) > 0 && !m.again {
		return fmt.Errorf("%scommitted twice: %v", script, r)
	}
	return nil
}

// agree compares a run's counts with the ledger.
func (w *world) agree(s run.Summary) error {
	var counts status.Counts
	counts.Add(status.State{}, w.plan.Instances)
	for id, i := range w.statuses() {
		counts.Add(status.State{}, -1)
		counts.Add(status.State{Status: i.Status, Paused: i.Paused}, 1)
		if i.Status.Broken() && i.Reason == "" {
			return fmt.Errorf("%s is %s without a reason", id, i.Status)
		}
		if i.Status.Active() {
			return fmt.Errorf("%s is left %s", id, i.Status)
		}
	}
	for _, st := range status.All() {
		if counts.Of(st) != s.Counts.Of(st) {
			return fmt.Errorf("%d %s counted, %d recorded", s.Counts.Of(st), st, counts.Of(st))
		}
	}
	return nil
}
