package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// Steering while a backfill runs: other processes change records in the
// ledger, the heartbeat notices it, and the runner then reads board and order
// anew, exactly as a resumed run does. Instances that workers have go on; when
// one of them ends, its outcome is read from the ledger as well.

// errHalted is the cause of an instance that a user stopped by itself.
var errHalted = errors.New("this instance was stopped by the user")

// live is an instance that a worker of this process has.
type live struct {
	status status.Status // that it is counted in
	halt   context.CancelCauseFunc
}

// poke says that records have been changed.
func (r *runner) poke() {
	select {
	case r.steer <- struct{}{}:
	default:
	}
}

// steered looks a last time, before the run ends, whether records have been
// changed.
func (r *runner) steered(ctx context.Context) bool {
	signal, err := r.deps.Ledger.Heartbeat(ctx)
	if err == nil && signal == ledger.SignalSteer {
		r.poke()
	}
	select {
	case <-r.steer:
		r.poke() // for the loop
		return true
	default:
		return false
	}
}

// arrange makes the order of what is left.
func (r *runner) arrange(pol groups.Policy) error {
	order, err := groups.NewOrder(groups.Config{
		Groups: r.plan.Groups, Nodes: len(r.plan.Nodes), Edges: r.edges(), Policy: pol, Known: r.known, Ignores: r.ignores(),
	})
	if err != nil {
		return fmt.Errorf("run: order %s: %w", r.plan.Backfill, err)
	}
	r.order = order
	if r.halt {
		r.order.Stop()
	}
	r.block(r.order.Blocked())
	return nil
}

// ignores gives the removed dependencies to the order, nil if there are none.
func (r *runner) ignores() func(groups.Item) []int {
	if len(r.board.cutUps) == 0 {
		return nil
	}
	return func(it groups.Item) []int { return r.board.cutUps[r.board.at(r.dateIndex(it), it.Node)] }
}

// reload reads the records again and makes a new order from them.
func (r *runner) reload(ctx context.Context, pol groups.Policy) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	b := newBoard(r.plan)
	if err := r.recount(ctx, b); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the run is being ended anyway
		}
		return fmt.Errorf("run: read %s again: %w", r.plan.Backfill, err)
	}
	r.board = b
	if err := r.arrange(pol); err != nil {
		return err
	}
	r.event(Event{Kind: Reloaded, Reason: "another process changed it"})
	return nil
}

// recount loads a board while no worker changes the counts, and tells the
// workers that theirs is old.
func (r *runner) recount(ctx context.Context, b *board) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var counts status.Counts
	counts.Add(status.State{}, r.plan.Instances)
	if err := b.load(ctx, r.deps.Ledger, &counts, r.live); err != nil {
		return err
	}
	r.counts = counts
	r.gen++
	for k, i := range b.wished {
		if j := r.live[k]; i && j != nil {
			j.halt(errHalted)
		}
	}
	return nil
}

// enter registers an instance that a worker is about to run, so that it can be
// counted and stopped by itself; not ok says that the worker's board is old.
func (r *runner) enter(hard, soft context.Context, k ledger.Key, from status.Status, gen int) (h, s context.Context, leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gen != r.gen {
		return hard, soft, nil, false
	}
	h, halt := context.WithCancelCause(hard)
	s, end := context.WithCancelCause(soft)
	stop := context.AfterFunc(h, func() { end(context.Cause(h)) })
	r.live[k] = &live{status: from, halt: halt}
	return h, s, func() {
		stop()
		end(nil)
		halt(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.live, k)
	}, true
}

// refusedStart ends an instance that the ledger did not let begin. One that
// waited for its next attempt does not stay so.
func (j *job) refusedStart(hard context.Context, s status.Status) (status.Status, error) {
	if s != status.Pending || j.from != status.Waiting {
		return s, nil
	}
	o := ledger.Outcome{Key: j.key, Status: status.Pending, Reason: "paused before the next attempt"}
	if hard.Err() != nil {
		o.Status, o.Reason = status.Stopped, context.Cause(hard).Error()+" before the next attempt"
	}
	if err := j.deps.Ledger.Finish(context.WithoutCancel(hard), o); err != nil {
		return s, fmt.Errorf("run: record %s: %w", j.id, err)
	}
	j.move(j.key, j.from, o.Status)
	j.from = o.Status
	return o.Status, nil
}

// chosen tells whether a run of some instances only wants any of an item.
func (r *runner) chosen(it groups.Item) bool {
	if r.opts.Only == nil {
		return true
	}
	d := r.plan.Dates[r.dateIndex(it)]
	for _, s := range r.x.Slots(it.Node, d) {
		if r.opts.Only[ledger.KeyOf(plan.Instance{Node: it.Node, Slot: s})] {
			return true
		}
	}
	return false
}

func (r *runner) heldNote() string {
	return fmt.Sprintf("paused instances hold %d that are left: `retrofill unpause %s INSTANCE` releases one, then `retrofill resume %s` goes on",
		r.counts.Of(status.Pending), r.plan.Backfill, r.plan.Backfill)
}
