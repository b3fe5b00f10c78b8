package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/skipif"
	"github.com/retrofill/retrofill/planner/status"
)

// maxCheap bounds how many outcomes of cheap instances wait for one write.
const maxCheap = 1000

// runner is one run. The goroutine of run owns order, board and cheap; the
// workers report to it.
type runner struct {
	deps Deps
	plan *plan.Plan
	opts Options
	x    *plan.Expander
	// marker is what commit markers call the backfill.
	marker string
	// clauses are the compiled skip_if conditions, by node.
	clauses []*skipif.Expr
	bounds  bounds
	began   time.Time
	index   map[string]int // nodes by name
	first   []int          // index of each group's first date
	ups     [][]int        // same-date upstream nodes
	downs   [][]int        // same-date readers
	order   *groups.Order
	board   *board
	steps   [][]*compiled
	mail    *mailbox
	cheap   []ledger.Outcome
	// steer says that other processes have changed records.
	steer chan struct{}
	// inflight are the items that workers have; halt says that the failure
	// policy lets nothing new begin, whatever order is made anew.
	inflight map[groups.Item]bool
	halt     bool

	mu       sync.Mutex
	gen      int // rises when the board is read again
	live     map[ledger.Key]*live
	refused  bool // an instance was found paused when it should begin
	counts   status.Counts
	ran      int
	rows     int64
	failures []Failure
}

// Causes of a cancelled context, shown as the reason of stopped instances.
var (
	errStopped  = errors.New("stopped by the user")
	errFailFast = errors.New("stopped because another instance failed (fail-fast)")
)

func newRunner(ctx context.Context, deps Deps, p *plan.Plan, opts Options) (*runner, error) {
	x, err := plan.NewExpander(p)
	if err != nil {
		return nil, fmt.Errorf("run: start %s: %w", p.Backfill, err)
	}
	r := &runner{steer: make(chan struct{}, 1), inflight: map[groups.Item]bool{}, live: map[ledger.Key]*live{}, marker: p.Backfill,
		deps: deps, plan: p, opts: opts, x: x, index: map[string]int{}, board: newBoard(p), steps: make([][]*compiled, len(p.Nodes)),
		ups: make([][]int, len(p.Nodes)), downs: make([][]int, len(p.Nodes))}
	for i := range p.Nodes {
		r.index[p.Nodes[i].Name] = i
		r.steps[i] = make([]*compiled, len(p.Nodes[i].Steps))
		for j := range r.steps[i] {
			r.steps[i][j] = &compiled{}
		}
	}
	if s, can := deps.Ledger.(Steered); can {
		r.marker = s.Marker()
	}
	if err := r.conditions(); err != nil {
		return nil, fmt.Errorf("run: start %s: %w", p.Backfill, err)
	}
	n := 0
	for _, g := range p.Groups {
		r.first = append(r.first, n)
		n += len(g)
	}
	r.counts.Add(status.State{}, p.Instances)
	if err := r.board.load(ctx, deps.Ledger, &r.counts, nil); err != nil {
		return nil, fmt.Errorf("run: start %s: %w", p.Backfill, err)
	}
	if err := r.board.orphans(ctx, deps.Ledger, &r.counts); err != nil {
		return nil, fmt.Errorf("run: start %s: %w", p.Backfill, err)
	}
	return r, nil
}

func (r *runner) dateIndex(it groups.Item) int { return r.first[it.Group] + it.Date }

func (r *runner) subDaily(node int) bool { return r.x.Schedule(node).Cycle.SubDaily() }

// run is the whole run, from the first heartbeat to the final state.
func (r *runner) run(ctx context.Context) (Summary, error) {
	began := r.deps.Clock()
	r.began = began
	r.mail = newMailbox(r.deps.Events)
	defer r.mail.close(2 * time.Second)
	hard, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	soft, stop := context.WithCancelCause(hard)
	defer stop(nil)
	go func() { // a nil channel never gives anything
		select {
		case <-r.opts.Stop:
			stop(errStopped)
		case <-soft.Done():
		}
	}()
	beat := r.startHeartbeat(hard, kill, stop)
	defer beat()

	r.event(Event{Kind: Begun})
	err := r.untilRunAt(soft)
	if soft.Err() == nil {
		r.began = r.deps.Clock() // budgets count from here
		if cause := r.exhausted(); cause != nil {
			stop(cause) // nothing may begin now
		}
	}
	if err == nil && soft.Err() == nil {
		err = r.prepare(hard)
	}
	if err == nil && soft.Err() == nil {
		r.event(Event{Kind: Prepared})
		err = r.loop(hard, soft, kill, stop)
	}
	beat() // no heartbeat after the end
	return r.end(ctx, soft, began, err)
}

// startHeartbeat shows that this process lives until the returned function is
// called, and obeys signals from other processes.
func (r *runner) startHeartbeat(hard context.Context, kill, stop context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(hard))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(r.opts.Heartbeat)
		defer tick.Stop()
		for failed := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			signal, err := r.deps.Ledger.Heartbeat(ctx)
			switch {
			case err == nil:
				failed = 0
			case errors.Is(err, ledger.ErrFenced):
				kill(err)
				return
			case ctx.Err() == nil:
				if failed++; failed >= 5 { // by now others may take us for dead
					kill(fmt.Errorf("run: heartbeat: %w", err))
					return
				}
			}
			switch signal {
			case ledger.SignalStop:
				stop(errStopped)
			case ledger.SignalKill:
				kill(errStopped)
			case ledger.SignalPause:
				stop(r.pausedByUser())
			case ledger.SignalSteer:
				r.poke()
			}
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-done })
}

// result is what a worker reports of an item.
type result struct {
	item groups.Item
	// status is that of the item: succeeded, failed, unknown, or stopped or
	// pending for one that goes on in another run.
	status status.Status
	// fatal ends the run: the ledger or the engine as a whole is unusable.
	fatal error
	gen   int // of the board that the worker knew
}

// loop starts what may start and records what is blocked, until nothing is
// left or nothing may start any more.
func (r *runner) loop(hard, soft context.Context, kill, stop context.CancelCauseFunc) (fatal error) {
	pol, err := policy(r.plan.OnFailure)
	if err != nil {
		return err
	}
	if err := r.arrange(pol); err != nil {
		return err
	}
	results := make(chan result)
	running := 0
	stopping := soft.Done()
	for {
		select {
		case <-r.opts.Stop: // seen here too, so that nothing begins after it was closed
			stop(errStopped)
		default:
		}
		if soft.Err() != nil && stopping != nil {
			stopping = nil
			r.order.Stop()
			r.event(Event{Kind: Stopping, Reason: context.Cause(soft).Error()})
		}
		if fatal == nil && soft.Err() == nil {
			select {
			case <-r.steer:
				fatal = r.reload(hard, pol)
			default:
			}
		}
		for fatal == nil && running < r.opts.Parallel {
			if cause := r.exhausted(); cause != nil && soft.Err() == nil {
				stop(cause)
				break
			}
			it, ok := r.order.Next()
			if !ok {
				break
			}
			if r.inflight[it] {
				continue // a worker has it already; its end is read from the ledger
			}
			if r.isDry(it) {
				if fatal = r.dry(it); fatal == nil && len(r.cheap) >= maxCheap {
					fatal = r.flush(hard)
				}
				continue
			}
			if fatal = r.flush(hard); fatal != nil {
				break
			}
			running++
			r.inflight[it] = true
			board, gen := r.board, r.gen
			go func() {
				res := r.item(hard, soft, it, board, gen)
				res.gen = gen
				results <- res
			}()
		}
		if err := r.flush(hard); err != nil && fatal == nil {
			fatal = err
		}
		if fatal != nil {
			kill(fatal)
		}
		if running == 0 && fatal == nil && soft.Err() != nil && stopping != nil {
			continue // a budget ended it: say so
		}
		if running == 0 {
			if fatal != nil || soft.Err() != nil || !r.steered(hard) {
				return fatal
			}
			continue
		}
		select {
		case res := <-results:
			running--
			delete(r.inflight, res.item)
			if res.fatal != nil && fatal == nil {
				fatal = res.fatal
			}
			if (res.status == status.Failed || res.status == status.Unknown) && pol != groups.Continue {
				r.halt = true
			}
			if res.gen != r.gen {
				// Records were changed while it ran; what became of it is there too.
				if pol == groups.FailFast && r.halt {
					kill(errFailFast)
				} else if fatal == nil && soft.Err() == nil {
					fatal = r.reload(hard, pol)
				}
				continue
			}
			if err := r.settle(res); err != nil && fatal == nil {
				fatal = err
			}
			if r.order.Cancel() {
				kill(errFailFast)
			}
		case <-r.steer:
			r.poke() // for the top of the loop
		case <-stopping:
		}
	}
}

// settle takes a worker's report into the order and the board.
func (r *runner) settle(res result) error {
	if res.fatal != nil {
		res.status = status.Stopped
	}
	di := r.dateIndex(res.item)
	r.board.cells[r.board.at(di, res.item.Node)] = res.status
	switch {
	case res.status == status.Stopped:
		r.halt = true
		r.order.Stop() // before it begins another date
	case res.status == status.Pending:
		// Found paused: what is below it waits too.
		if _, err := r.order.Hold(res.item); err != nil {
			return fmt.Errorf("run: order: %w", err)
		}
		return nil
	case res.status.Broken():
		r.doom(di, res.item.Node)
	}
	blocked, err := r.order.Finish(res.item, res.status == status.Succeeded)
	if err != nil {
		return fmt.Errorf("run: order: %w", err)
	}
	if res.status.Broken() && res.status != status.Stopped {
		r.block(blocked)
	}
	// What was stopped or paused goes on in another run: what is below it
	// stays pending.
	return nil
}

func (r *runner) isDry(it groups.Item) bool {
	step := r.x.Step(it.Node, r.plan.Dates[r.dateIndex(it)])
	return step >= 0 && r.plan.Nodes[it.Node].Steps[step].Strategy == plan.DryRun
}

// dry lets the instances of an item succeed without executing, with the reason
// that the plan gives.
func (r *runner) dry(it groups.Item) error {
	di := r.dateIndex(it)
	d := r.plan.Dates[di]
	step := &r.plan.Nodes[it.Node].Steps[r.x.Step(it.Node, d)]
	r.cheaply(it.Node, d, status.Succeeded, step.Because)
	r.board.cells[r.board.at(di, it.Node)] = status.Succeeded
	blocked, err := r.order.Finish(it, true)
	if err != nil {
		return fmt.Errorf("run: order: %w", err)
	}
	r.block(blocked)
	return nil
}

// block records instances that cannot run, and by whom.
func (r *runner) block(items []groups.Blocked) {
	for _, b := range items {
		if b.Held {
			continue // it waits for the paused one, and stays pending
		}
		r.blockItem(r.dateIndex(b.Item), b.Node, b.By, b.On)
	}
}

func (r *runner) blockItem(dateIndex, node, by int, on bizdate.Date) {
	di := r.board.dates[on]
	why := r.board.cells[r.board.at(di, by)]
	if !why.Broken() {
		why = status.Failed
	}
	reason := fmt.Sprintf("upstream %s %s", plan.InstanceID(r.plan.Nodes[by].Name, on.String()), blockedBy(why))
	r.cheaply(node, r.plan.Dates[dateIndex], status.Blocked, reason)
	r.board.cells[r.board.at(dateIndex, node)] = status.Blocked
}

func blockedBy(s status.Status) string {
	switch s {
	case status.Blocked:
		return "is blocked"
	case status.Unknown:
		return "has an unknown outcome"
	}
	return s.String() // failed, stopped
}

// cheaply gives the instances of an item a status without asking the engine.
func (r *runner) cheaply(node int, d bizdate.Date, s status.Status, reason string) {
	for _, slot := range r.x.Slots(node, d) {
		k := ledger.KeyOf(plan.Instance{Node: node, Slot: slot})
		was := r.board.record(k)
		if was.status == status.Succeeded || was.status == s {
			continue
		}
		r.cheap = append(r.cheap, ledger.Outcome{Key: k, Status: s, Reason: reason})
		r.finished(k, was.status, ledger.Outcome{Key: k, Status: s, Reason: reason})
	}
}

// flush makes the cheap outcomes durable.
func (r *runner) flush(ctx context.Context) error {
	for len(r.cheap) > 0 {
		n := min(maxCheap, len(r.cheap))
		if err := r.deps.Ledger.Finish(context.WithoutCancel(ctx), r.cheap[:n]...); err != nil {
			return fmt.Errorf("run: record outcomes: %w", err)
		}
		r.cheap = append(r.cheap[:0], r.cheap[n:]...)
	}
	return nil
}

// event sends an event with the counts of this moment.
func (r *runner) event(e Event) {
	r.mu.Lock()
	e.Counts = r.counts
	r.mu.Unlock()
	e.At = r.deps.Clock()
	if e.ID == "" {
		e.Node = -1
	}
	r.mail.send(e)
}

// move counts an instance in its new status.
func (r *runner) move(k ledger.Key, from, to status.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.live[k]; j != nil {
		j.status = to
	}
	r.counts.Add(status.State{Status: from}, -1)
	r.counts.Add(status.State{Status: to}, 1)
}

// finished counts and announces an instance's status.
func (r *runner) finished(k ledger.Key, from status.Status, o ledger.Outcome) {
	id := r.id(k)
	r.move(k, from, o.Status)
	r.mu.Lock()
	if o.Status == status.Succeeded && o.Rows > 0 {
		r.rows += o.Rows
	}
	if (o.Status == status.Failed || o.Status == status.Unknown) && len(r.failures) < maxFailures {
		r.failures = append(r.failures, Failure{ID: id, Status: o.Status, Error: o.Error})
	}
	r.mu.Unlock()
	r.event(Event{Kind: Finished, Node: k.Node, ID: id, Attempt: o.Attempt, Status: o.Status, Reason: o.Reason, Error: o.Error, Rows: o.Rows})
}

func (r *runner) id(k ledger.Key) string {
	return plan.InstanceID(r.plan.Nodes[k.Node].Name, k.SlotID())
}

// isLocked tells whether the engine as a whole is out of reach.
func (r *runner) isLocked(err error) bool {
	return errors.Is(err, executors.ErrLocked) || r.deps.Engine.Classify(err) == executors.Locked
}
