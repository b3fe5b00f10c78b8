// Package run carries a frozen plan out: groups side by side, the dates of a
// group one after the other, the nodes of a date in dependency order, the
// slots of a node in time order. It knows no concrete engine.
//
// Invariants:
//   - it looks at the plan and at the ledger's records of the backfill, and at
//     nothing else: neither request nor project;
//   - an attempt is durable in the ledger before the engine or a command is
//     asked; an instance whose outcome is open is looked up in the target
//     before anything is done with it;
//   - running a backfill that already has records continues it: what succeeded
//     is not touched, what failed is left alone unless asked for;
//   - an instance that does not run carries its reason;
//   - records that other processes change (Operate) are read again while it
//     runs, within a heartbeat, and then count as for a run that begins; what
//     runs at that moment goes on;
//   - events are for display: a slow consumer never delays the run.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// Ledger is what the runner asks of the durable records of its backfill;
// *ledger.Claim is the one that is used.
type Ledger interface {
	// Instances yields every instance that has a record.
	Instances(ctx context.Context, yield func(ledger.Instance) error) error
	Start(ctx context.Context, k ledger.Key) (ledger.Attempt, error)
	Finish(ctx context.Context, outcomes ...ledger.Outcome) error
	Heartbeat(ctx context.Context) (signal string, err error)
	End(ctx context.Context, s ledger.State, note string) error
}

var (
	_ Ledger = (*ledger.Claim)(nil)
	_ Logger = (*ledger.Claim)(nil)
	_ Valuer = (*ledger.Claim)(nil)

	_ Steered = (*ledger.Claim)(nil)
)

// Logger is a Ledger that keeps the output of commands.
type Logger interface {
	Log(ctx context.Context, k ledger.Key, attempt, seq int, text string) error
}

// Valuer is a Ledger that knows recorded values of cross-node parameters, the
// last one of each business date in [from, to].
type Valuer interface {
	Values(ctx context.Context, node, param string, from, to bizdate.Date) ([]ledger.Value, error)
}

// Steered is a Ledger whose records other processes may change: dependencies
// that users removed, and the name by which commit markers call the backfill.
type Steered interface {
	Removals(ctx context.Context) ([]ledger.Removal, error)
	Marker() string
}

// Deps is what the runner works with. Engine and Ledger must be given; Clock
// too. The rest has defaults.
type Deps struct {
	Engine executors.Engine
	Ledger Ledger
	Clock  func() time.Time
	// Sleep waits for d or until ctx ends; nil = a real timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Rand gives a number in [0, 1) for the jitter; nil = math/rand.
	Rand func() float64
	// Events is called from one goroutine, in order; nil = nobody looks.
	Events func(Event)
	// Dir is the working directory of external commands: the project folder.
	Dir string
	// Output gets the output of external commands as well; nil = only the log.
	Output io.Writer
}

// Options steer one run.
type Options struct {
	// Parallel is how many nodes run at once, over all groups; 0 = as many as
	// there are groups, at least 1.
	Parallel int
	// RerunFailed runs failed instances again; else they are left alone.
	RerunFailed bool
	// RerunUnknown runs external commands again whose outcome is not known.
	RerunUnknown bool
	// Only runs these instances and leaves all others as they are; nil = all.
	Only map[ledger.Key]bool
	// Stop, when closed, lets nothing new begin; running instances finish. The
	// context ends the run at once: queries are cancelled, commands killed.
	Stop <-chan struct{}
	// Heartbeat is the time between two heartbeats; 0 = 1 s.
	Heartbeat time.Duration
}

// Summary says how the run ended.
type Summary struct {
	State ledger.State `json:"state"`
	// Note says why, if not everything succeeded.
	Note   string        `json:"note,omitempty"`
	Counts status.Counts `json:"-"` // of the whole backfill, earlier runs included
	// Ran counts the instances that this run gave to the engine, Rows what
	// they wrote.
	Ran  int   `json:"ran"`
	Rows int64 `json:"rows"`
	// Failures are the first failed or unknown instances of this run.
	Failures []Failure `json:"failures,omitempty"`
	// Elapsed is from the first heartbeat to the end.
	Elapsed time.Duration `json:"elapsed"`
}

// Failure is one instance that did not succeed.
type Failure struct {
	ID     string        `json:"id"`
	Status status.Status `json:"status"`
	Error  string        `json:"error"`
}

// maxFailures bounds Summary.Failures.
const maxFailures = 20

// Run carries the plan out and gives the backfill its final state in the
// ledger. Instances that fail are not an error of Run: see Summary. Errors: a
// plan that does not hold together, a failing preparation, executors.ErrLocked,
// ledger.ErrFenced, and a ledger that cannot be written; the backfill can be
// run again after each of them, nothing is repeated and nothing lost.
func Run(ctx context.Context, deps Deps, p plan.Plan, opts Options) (Summary, error) {
	if deps.Engine == nil || deps.Ledger == nil || deps.Clock == nil {
		return Summary{}, errors.New("run: start: engine, ledger and clock must be given")
	}
	if deps.Sleep == nil {
		deps.Sleep = sleep
	}
	if deps.Rand == nil {
		deps.Rand = rand.Float64
	}
	if opts.Parallel <= 0 {
		opts.Parallel = max(1, len(p.Groups))
	}
	if opts.Heartbeat <= 0 {
		opts.Heartbeat = time.Second
	}
	if err := plan.Validate(&p); err != nil {
		return Summary{}, fmt.Errorf("run: start %s: %w", p.Backfill, err)
	}
	r, err := newRunner(ctx, deps, &p, opts)
	if err != nil {
		return Summary{}, err
	}
	return r.run(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// prepare runs the plan's schema statements: additive and idempotent, so that
// repeating them after a crash is harmless.
func (r *runner) prepare(ctx context.Context) error {
	ddl := append(append([]string{}, r.plan.Prepare...), r.plan.Publish...)
	if len(ddl) == 0 {
		return nil
	}
	preparer, can := r.deps.Engine.(executors.Preparer)
	if !can {
		return fmt.Errorf("run: prepare %s: the engine cannot run schema statements", r.plan.Backfill)
	}
	for try := 0; ; try++ {
		err := preparer.Prepare(ctx, ddl)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || try >= r.plan.Retries || r.deps.Engine.Classify(err) != executors.Transient {
			return fmt.Errorf("run: prepare %s: %w", r.plan.Backfill, err)
		}
		if err := r.deps.Sleep(ctx, r.backoff(try)); err != nil {
			return fmt.Errorf("run: prepare %s: %w", r.plan.Backfill, err)
		}
	}
}

// backoff gives the pause before retry n (from 0): 1 s, doubled each time, at
// most a minute, of which a random half is left out.
func (r *runner) backoff(n int) time.Duration {
	d := min(time.Minute, time.Second<<min(n, 6))
	return d/2 + time.Duration(r.deps.Rand()*float64(d/2))
}
