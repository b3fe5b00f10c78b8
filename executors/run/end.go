package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/planner/status"
)

// end gives the backfill its final state, unless it is no longer ours.
func (r *runner) end(ctx, soft context.Context, began time.Time, err error) (Summary, error) {
	ctx = context.WithoutCancel(ctx)
	cause := context.Cause(soft)
	var paused *pauseError
	switch {
	case errors.As(cause, &paused):
		if errors.Is(err, context.Canceled) {
			err = nil
		}
	case cause != nil && !isStop(cause):
		err = cause // the ledger or the engine failed, or another process took over
	case cause != nil && errors.Is(err, context.Canceled):
		err = nil // the user's wish is no error
	}
	if steered := err == nil && r.steered(ctx); steered || err == nil && r.plan.Instances <= maxRecount {
		// Perhaps changed since the last look: the summary says how it stands now.
		if again := newBoard(r.plan); r.recount(ctx, again) == nil {
			r.board = again
		}
	}
	s := r.summary(cause, err)
	s.Elapsed = r.deps.Clock().Sub(began)
	if !errors.Is(err, ledger.ErrFenced) {
		if ended := r.deps.Ledger.End(ctx, s.State, s.Note); ended != nil {
			err = errors.Join(err, fmt.Errorf("run: end %s: %w", r.plan.Backfill, ended))
		}
	}
	r.event(Event{Kind: Ended, Reason: s.Note})
	return s, err
}

// maxRecount is the size of a backfill up to which its records are read once
// more at the end (some milliseconds), also when nothing tells of a change.
const maxRecount = 50_000

func isStop(cause error) bool {
	return errors.Is(cause, errStopped) || errors.Is(cause, errFailFast) || errors.Is(cause, context.Canceled)
}

func (r *runner) summary(cause, err error) Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Summary{Counts: r.counts, Ran: r.ran, Rows: r.rows, Failures: r.failures}
	bad := r.counts.Of(status.Failed) + r.counts.Of(status.Blocked)
	switch {
	case err != nil:
		s.State, s.Note = ledger.Failed, err.Error()
	case r.counts.Of(status.Unknown) > 0:
		s.State, s.Note = ledger.Unknown, fmt.Sprintf("%d instances have an unknown outcome", r.counts.Of(status.Unknown))
	case r.counts.Of(status.Succeeded) == r.counts.Total():
		s.State = ledger.Succeeded
	case errors.As(cause, new(*pauseError)):
		s.State, s.Note = ledger.Paused, cause.Error()
	case cause != nil && !errors.Is(cause, errFailFast):
		s.State, s.Note = ledger.Stopped, errStopped.Error()
	case bad+r.counts.Of(status.Stopped) > 0:
		s.State, s.Note = ledger.Failed, fmt.Sprintf("%d instances failed, %d are blocked", r.counts.Of(status.Failed), r.counts.Of(status.Blocked))
	case r.counts.Held() > 0 || r.refused || len(r.board.holds) > 0:
		s.State, s.Note = ledger.Paused, r.heldNote()
	default:
		s.State, s.Note = ledger.Stopped, fmt.Sprintf("%d instances were not asked for and have not run: `retrofill resume %s` runs them",
			r.counts.Of(status.Pending), r.plan.Backfill)
	}
	return s
}
