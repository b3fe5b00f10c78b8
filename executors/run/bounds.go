package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/skipif"
	"github.com/retrofill/retrofill/planner/status"
)

// pauseError is the cause of a run that pauses itself: it says why, and how to
// go on.
type pauseError struct{ why string }

// Error gives the note for people.
func (e *pauseError) Error() string { return e.why }

func (r *runner) pausedByUser() error {
	return &pauseError{fmt.Sprintf("paused by the user: `retrofill unpause %s`, then `retrofill resume %s` goes on", r.plan.Backfill, r.plan.Backfill)}
}

// bounds are the plan's budget and conditions, parsed.
type bounds struct {
	part *plan.DayPart
	text string
}

// conditions compiles what the plan keeps as text.
func (r *runner) conditions() error {
	if b := r.plan.Budget; b != nil && b.NotBetween != "" {
		part, err := plan.ParseDayPart(b.NotBetween)
		if err != nil {
			return err
		}
		r.bounds = bounds{part: &part, text: b.NotBetween}
	}
	r.clauses = make([]*skipif.Expr, len(r.plan.Nodes))
	for i := range r.plan.Nodes {
		n := &r.plan.Nodes[i]
		if n.SkipIf == "" {
			continue
		}
		e, diags := skipif.Compile(n.SkipIf, param.Source{}.Pos)
		if e == nil {
			return fmt.Errorf("skip_if of %s: %w", n.Name, diags)
		}
		r.clauses[i] = e
	}
	return nil
}

// exhausted says why the budget lets nothing more begin; nil = it does.
func (r *runner) exhausted() error {
	b := r.plan.Budget
	if b == nil {
		return nil
	}
	now := r.deps.Clock()
	again := "`retrofill resume " + r.plan.Backfill + "` goes on"
	if limit := time.Duration(b.MaxSeconds) * time.Second; limit > 0 && now.Sub(r.began) >= limit {
		return &pauseError{fmt.Sprintf("paused: --max-duration %s is over; %s", limit, again)}
	}
	if r.bounds.part != nil && r.bounds.part.Holds(now.In(r.x.Zone())) {
		return &pauseError{fmt.Sprintf("paused: nothing begins between %s (it is %s); %s after %s",
			strings.Replace(r.bounds.text, "-", " and ", 1), now.In(r.x.Zone()).Format("15:04"), again, r.bounds.part.To)}
	}
	if b.MaxRows > 0 {
		r.mu.Lock()
		rows := r.rows
		r.mu.Unlock()
		if rows >= b.MaxRows {
			return &pauseError{fmt.Sprintf("paused: %d rows are written, --max-rows is %d; %s", rows, b.MaxRows, again)}
		}
	}
	return nil
}

// maxNap bounds one wait, since a clock may jump and a laptop may sleep.
const maxNap = time.Minute

// until waits for an instant on the run's clock. Its error is the context's.
func (r *runner) until(ctx context.Context, t time.Time) error {
	for {
		left := t.Sub(r.deps.Clock())
		if left <= 0 {
			return ctx.Err()
		}
		if err := r.deps.Sleep(ctx, min(left, maxNap)); err != nil {
			return err
		}
	}
}

// untilRunAt waits for the time at which the backfill may begin.
func (r *runner) untilRunAt(soft context.Context) error {
	at, err := r.plan.RunsAt()
	if err != nil || at.IsZero() || !at.After(r.deps.Clock()) {
		return err
	}
	local := at.In(r.x.Zone())
	r.event(Event{Kind: Waiting, Wait: at.Sub(r.deps.Clock()), Reason: "waits until " + local.Format("2006-01-02 15:04 MST") + " (--run-at)"})
	if err := r.until(soft, at); err != nil && soft.Err() == nil {
		return fmt.Errorf("run: wait for %s: %w", r.plan.RunAt, err)
	}
	return nil
}

// ahead is what happens before an instance's first attempt: its own time, and
// its skip_if condition. settled says that it is not attempted.
func (j *job) ahead(hard, soft context.Context) (s status.Status, settled bool, fatal error) {
	if j.plan.WaitSchedule && j.in.Slot.At.After(j.deps.Clock()) {
		j.event(Event{Kind: Waiting, Node: j.key.Node, ID: j.id, Wait: j.in.Slot.At.Sub(j.deps.Clock()),
			Reason: "waits for its own time, " + j.in.Slot.At.In(j.x.Zone()).Format("2006-01-02 15:04")})
		if err := j.until(soft, j.in.Slot.At); err != nil {
			return status.Stopped, true, nil // not begun
		}
	}
	clause := j.clauses[j.key.Node]
	if clause == nil {
		return 0, false, nil
	}
	o := ledger.Outcome{Key: j.key, Status: status.Succeeded, Reason: "skipped: skip_if " + j.node.SkipIf}
	skip, err := j.skips(hard, clause)
	switch {
	case err != nil && hard.Err() != nil:
		return status.Stopped, true, nil
	case err != nil:
		o.Status, o.Reason, o.Error = status.Failed, "skip_if cannot be evaluated", err.Error()
	case !skip:
		return 0, false, nil
	}
	return o.Status, true, j.record(hard, o)
}

// skips evaluates a condition with the values of the job's slot.
func (j *job) skips(ctx context.Context, e *skipif.Expr) (bool, error) {
	values := map[string]string{}
	for _, name := range e.Params() {
		t, diags := param.ThawText(param.Dialect(j.plan.Dialect), param.Text("${"+name+"}"), lowerParams(j.node.Params))
		if t == nil {
			return false, fmt.Errorf("run: read parameter %s of %s: %w", name, j.node.Name, diags)
		}
		late, err := j.late(ctx, t.Late())
		if err != nil {
			return false, err
		}
		text, diags := t.Render(param.At(j.in.Slot), late)
		if diags.HasErrors() {
			return false, fmt.Errorf("run: read parameter %s of %s: %w", name, j.node.Name, diags)
		}
		values[name] = text
	}
	return e.Eval(j.in.Slot, j.x.Zone(), values)
}

func lowerParams(params map[string]plan.Parameter) map[string]param.Frozen {
	out := make(map[string]param.Frozen, len(params))
	for name, f := range params {
		out[strings.ToLower(name)] = f
	}
	return out
}
