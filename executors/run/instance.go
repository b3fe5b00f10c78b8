package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// lookupPatience bounds the look-ups and records of an instance that is being
// stopped: by then the run's own context has ended.
const lookupPatience = 10 * time.Second

// item runs the slots of a node on one date, in time order.
func (r *runner) item(hard, soft context.Context, it groups.Item, b *board, gen int) result {
	di := r.dateIndex(it)
	insts, err := r.x.Expand(di, it.Node)
	if err != nil {
		return result{item: it, status: status.Failed, fatal: fmt.Errorf("run: %w", err)}
	}
	sum := status.Succeeded
	for _, in := range insts {
		k := ledger.KeyOf(in)
		was := b.record(k)
		switch {
		case was.status == status.Succeeded, r.opts.Only != nil && !r.opts.Only[k]:
			continue
		case k.Slot != "" && b.forced[b.at(di, it.Node)] && !was.forced:
			continue // only one slot of the date is forced
		case was.status == status.Failed && !r.opts.RerunFailed:
			sum = status.Failed
			continue
		case was.paused:
			return result{item: it, status: status.Pending}
		case soft.Err() != nil:
			return result{item: it, status: status.Stopped}
		}
		if sum.Broken() && r.selfDependent(it.Node) {
			o := ledger.Outcome{Key: k, Status: status.Blocked, Reason: "an earlier slot of " + r.plan.Nodes[it.Node].Name + " has no result"}
			if err := r.deps.Ledger.Finish(context.WithoutCancel(hard), o); err != nil {
				return result{item: it, status: sum, fatal: fmt.Errorf("run: record %s: %w", r.id(k), err)}
			}
			r.finished(k, was.status, o)
			continue
		}
		s, err := r.instance(hard, soft, in, was, b, gen)
		if err != nil {
			return result{item: it, status: status.Unknown, fatal: err}
		}
		switch s {
		case status.Succeeded:
		case status.Failed, status.Unknown:
			sum = s
		default: // stopped, or paused meanwhile
			return result{item: it, status: s}
		}
	}
	return result{item: it, status: sum}
}

func (r *runner) selfDependent(node int) bool {
	for _, e := range r.plan.Nodes[node].Needs {
		if r.index[e.Node] == node {
			return true
		}
	}
	return false
}

// job is one instance on its way.
type job struct {
	*runner
	board *board // that the worker knows
	in    plan.Instance
	key   ledger.Key
	id    string
	node  *plan.Node
	step  *plan.Step
	// from is the status that the instance is counted in.
	from status.Status
	// notes are warnings for its record.
	notes []string
}

// instance brings one instance to an end. The error is fatal for the run.
func (r *runner) instance(hard, soft context.Context, in plan.Instance, was record, b *board, gen int) (status.Status, error) {
	k := ledger.KeyOf(in)
	n := &r.plan.Nodes[in.Node]
	j := &job{runner: r, board: b, in: in, key: k, id: r.id(k), node: n, step: &n.Steps[in.Step], from: was.status}
	hard, soft, leave, ok := r.enter(hard, soft, k, was.status, gen)
	if !ok {
		return status.Pending, nil // its records are read anew first
	}
	defer leave()
	if was.status == status.Running || was.status == status.Unknown {
		s, settled, err := j.resolve(hard, was.attempt)
		if settled || err != nil {
			return s, err
		}
	}
	if s, settled, err := j.ahead(hard, soft); settled || err != nil {
		return s, err
	}
	for try := 0; ; try++ {
		o, retry, err := j.attempt(hard)
		if err != nil {
			return status.Unknown, err
		}
		if o.Status == status.Succeeded && o.Attempt == 0 || o.Status == status.Pending {
			return j.refusedStart(hard, o.Status) // another process has done or paused it
		}
		wait := time.Duration(0)
		if retry && try < r.plan.Retries {
			if soft.Err() == nil {
				wait = r.backoff(try)
				o.Status = status.Waiting
				o.Reason = fmt.Sprintf("attempt %d of %d failed, the next one follows", try+1, r.plan.Retries+1)
			} else {
				o.Status, o.Reason = status.Stopped, context.Cause(soft).Error()+" before the next attempt"
			}
		}
		if err := j.record(hard, o); err != nil {
			return status.Unknown, err
		}
		if o.Status != status.Waiting {
			return o.Status, nil
		}
		r.event(Event{Kind: Retrying, Node: k.Node, ID: j.id, Attempt: o.Attempt, Error: o.Error, Wait: wait})
		if err := r.deps.Sleep(soft, wait); err != nil {
			o.Status, o.Reason = status.Stopped, context.Cause(soft).Error()+" before the next attempt"
			return o.Status, j.record(hard, o)
		}
	}
}

// record makes an outcome durable, also when the run is being stopped, and
// tells everybody.
func (j *job) record(ctx context.Context, o ledger.Outcome) error {
	if err := j.deps.Ledger.Finish(context.WithoutCancel(ctx), o); err != nil {
		return fmt.Errorf("run: record %s: %w", j.id, err)
	}
	if o.Status == status.Waiting {
		j.move(j.key, j.from, status.Waiting)
	} else {
		j.finished(j.key, j.from, o)
	}
	j.from = o.Status
	return nil
}

// attempt makes one attempt: durable first, then the engine or the command.
// The outcome is not recorded yet. A status of Pending (paused) or Succeeded
// with attempt 0 (done) says that the ledger refused.
func (j *job) attempt(ctx context.Context) (o ledger.Outcome, retry bool, fatal error) {
	a, err := j.deps.Ledger.Start(ctx, j.key)
	switch {
	case errors.Is(err, ledger.ErrDone):
		j.move(j.key, j.from, status.Succeeded)
		return ledger.Outcome{Key: j.key, Status: status.Succeeded}, false, nil
	case errors.Is(err, ledger.ErrPaused):
		j.mu.Lock()
		j.refused = true
		j.mu.Unlock()
		return ledger.Outcome{Key: j.key, Status: status.Pending}, false, nil
	case err != nil && ctx.Err() != nil:
		return ledger.Outcome{Key: j.key, Status: status.Pending}, false, nil // not begun
	case err != nil:
		return o, false, fmt.Errorf("run: start %s: %w", j.id, err)
	}
	j.move(j.key, j.from, status.Running)
	j.from = status.Running
	j.mu.Lock()
	j.ran++
	j.mu.Unlock()
	j.event(Event{Kind: Started, Node: j.key.Node, ID: j.id, Attempt: a.Number})
	m := executors.Marker{Backfill: j.marker, Instance: j.id, Attempt: a.Number, Token: a.Token}
	o = ledger.Outcome{Key: j.key, Attempt: a.Number}
	work := ctx
	if j.step.TimeoutSec > 0 {
		var cancel context.CancelFunc
		work, cancel = context.WithTimeout(ctx, time.Duration(j.step.TimeoutSec)*time.Second)
		defer cancel()
	}
	if j.step.Strategy == plan.Command {
		j.command(work, &o)
		return o, false, nil
	}
	unit, err := j.unit(work, m)
	if err != nil {
		o.Status, o.Reason, o.Error = status.Failed, "the statements cannot be written", err.Error()
		return o, false, nil
	}
	res, err := j.deps.Engine.Execute(work, unit)
	if err == nil {
		j.succeed(&o, res.Facts)
		retry := j.setValues(ctx, &o)
		return o, retry, nil
	}
	return j.failed(ctx, work, o, m, err)
}

// failed judges an engine's error.
func (j *job) failed(ctx, work context.Context, o ledger.Outcome, m executors.Marker, err error) (ledger.Outcome, bool, error) {
	o.Status, o.Error = status.Failed, err.Error()
	var rejected *executors.RejectedError
	var broken *RuleError
	switch {
	case errors.Is(err, executors.ErrFenced):
		return o, false, fmt.Errorf("run: write %s: %w: %w", j.id, ledger.ErrFenced, err)
	case errors.As(err, &broken):
		o.Reason, o.Facts = broken.Code, broken.Facts
		return o, false, nil
	case errors.As(err, &rejected):
		o.Reason = "verification refused the result"
		return o, false, nil
	}
	class := j.deps.Engine.Classify(err)
	if class == executors.Ambiguous {
		done, found, lookup := j.lookup(ctx, m)
		switch {
		case lookup != nil:
			o.Status, o.Reason = status.Unknown, "the engine may or may not have committed: "+lookup.Error()
			return o, false, nil
		case done:
			j.committed(&o, found)
			retry := j.setValues(ctx, &o)
			return o, retry, nil
		}
		class = executors.Transient // nothing of it is there
	}
	switch {
	case ctx.Err() != nil:
		o.Status, o.Reason = status.Stopped, context.Cause(ctx).Error()
		return o, false, nil
	case work.Err() != nil:
		o.Reason = fmt.Sprintf("timed out after %d s", j.step.TimeoutSec)
		return o, false, nil
	case class == executors.Locked:
		// Not the instance's fault: it goes on as soon as the run does.
		o.Status, o.Reason = status.Stopped, executors.ErrLocked.Error()
		if recorded := j.record(ctx, o); recorded != nil {
			return o, false, recorded
		}
		return o, false, fmt.Errorf("run: write %s: %w: %w", j.id, executors.ErrLocked, err)
	}
	o.Reason = class.String() + " error"
	return o, class == executors.Transient, nil
}

// succeed fills in what a committed attempt wrote.
func (j *job) succeed(o *ledger.Outcome, facts executors.Facts) {
	o.Status, o.Facts, o.Marked = status.Succeeded, facts, true
	o.Reason = strings.Join(j.notes, "; ")
	for _, w := range ledger.Written(j.node, j.step) {
		rec := ledger.Record{Node: w.Node, Definition: j.node.Definition, Rows: rowsOf(w, facts)}
		if !w.Whole || w.RowsKept {
			rec.Fields = w.Fields
		}
		o.Rows += max(rec.Rows, 0)
		o.Built = append(o.Built, rec)
	}
}

// rowsOf gives the rows that a write left (rewrite) or changed (column).
func rowsOf(w ledger.Target, facts executors.Facts) int64 {
	if w.Table == "" {
		var sum int64
		for name, n := range facts {
			if len(name) > 9 && name[:9] == "inserted." {
				sum += n
			}
		}
		return sum
	}
	if w.Action == plan.Column {
		return facts["updated."+w.Table]
	}
	return facts["inserted."+w.Table]
}

// committed fills in an attempt whose commit was found in the target: its
// numbers are lost.
func (j *job) committed(o *ledger.Outcome, m executors.Marker) {
	j.succeed(o, nil)
	o.Rows, o.Error = -1, ""
	o.Reason = strings.Join(append([]string{fmt.Sprintf("attempt %d was found committed in the target", m.Attempt)}, j.notes...), "; ")
	for i := range o.Built {
		o.Built[i].Rows = -1
	}
}

// lookup asks the target whether an attempt was committed, also when the run
// is being stopped.
func (j *job) lookup(ctx context.Context, m executors.Marker) (done bool, found executors.Marker, err error) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lookupPatience)
		defer cancel()
	}
	for try := 0; ; try++ {
		var out executors.Outcome
		out, found, err = j.deps.Engine.Lookup(ctx, m)
		if err == nil {
			done = out == executors.Committed && found.Attempt >= m.Attempt
			answer := "it is not there"
			if done {
				answer = fmt.Sprintf("attempt %d is committed", found.Attempt)
			}
			j.event(Event{Kind: Resolved, Node: j.key.Node, ID: j.id, Attempt: m.Attempt, Reason: answer})
			return done, found, nil
		}
		if ctx.Err() != nil || try >= max(2, j.plan.Retries) || j.deps.Engine.Classify(err) == executors.Permanent {
			return false, found, fmt.Errorf("look up %s: %w", m.Instance, err)
		}
		if err := j.deps.Sleep(ctx, j.backoff(try)); err != nil {
			return false, found, fmt.Errorf("look up %s: %w", m.Instance, err)
		}
	}
}

// resolve finds out what became of an attempt of an earlier run. settled says
// that the instance has its status; otherwise it may be run.
func (j *job) resolve(ctx context.Context, attempt int) (s status.Status, settled bool, fatal error) {
	o := ledger.Outcome{Key: j.key, Attempt: attempt}
	if j.step.Strategy == plan.Command {
		if j.opts.RerunUnknown {
			return 0, false, nil
		}
		o.Status, o.Reason = status.Unknown, "retrofill ended while the command ran; whether it did its work cannot be looked up"
		return o.Status, true, j.record(ctx, o)
	}
	m := executors.Marker{Backfill: j.marker, Instance: j.id, Attempt: attempt}
	done, found, err := j.lookup(ctx, m)
	switch {
	case err != nil && ctx.Err() != nil:
		return status.Stopped, true, nil // as it was, for another run
	case err != nil && j.isLocked(err):
		return status.Unknown, true, fmt.Errorf("run: %w: %w", executors.ErrLocked, err)
	case err != nil:
		o.Status, o.Reason, o.Error = status.Unknown, "the target cannot tell whether the last attempt was committed", err.Error()
		return o.Status, true, j.record(ctx, o)
	case done:
		j.committed(&o, found)
		j.setValues(ctx, &o)
		return o.Status, true, j.record(ctx, o)
	}
	return 0, false, nil
}
