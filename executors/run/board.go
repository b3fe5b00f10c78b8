package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// board is what the runner knows of every node × date: one byte each, so that
// millions of instances fit. Only the scheduling goroutine writes it, after
// loading.
type board struct {
	nodes int
	dates map[bizdate.Date]int
	// cells holds the status of a daily node's instance, as this run sees it;
	// for sub-daily nodes, that of all slots of the date together.
	cells []status.Status
	// stored holds what the ledger has of daily instances, in the same order.
	stored []status.Status
	held   map[int]bool        // cells that carry a pause flag
	holds  map[int]bool        // succeeded cells that carry one: what is below waits
	forced map[int]bool        // cells that run whatever their upstream
	halted map[int]bool        // cells that a user stopped in this run
	wished map[ledger.Key]bool // instances that a user wants stopped
	// cut holds the dependencies that users removed; cutUps those on the same
	// date, by cell.
	cut    map[cutEdge]bool
	cutUps map[int][]int
	// open are daily instances whose outcome must be looked up.
	open map[ledger.Key]record
	// slots are the records of sub-daily instances.
	slots map[ledger.Key]record
}

// record is what the ledger has of one instance.
type record struct {
	status  status.Status
	attempt int
	paused  bool
	forced  bool
}

// cutEdge is a dependency that does not count: of a node on a date on another
// node on a date.
type cutEdge struct {
	node, up   int
	date, read bizdate.Date
}

func newBoard(p *plan.Plan) *board {
	b := &board{
		nodes: len(p.Nodes), dates: make(map[bizdate.Date]int, len(p.Dates)), held: map[int]bool{},
		holds: map[int]bool{}, forced: map[int]bool{}, halted: map[int]bool{}, wished: map[ledger.Key]bool{}, cut: map[cutEdge]bool{}, cutUps: map[int][]int{},
		cells:  make([]status.Status, len(p.Nodes)*len(p.Dates)),
		stored: make([]status.Status, len(p.Nodes)*len(p.Dates)),
		open:   map[ledger.Key]record{}, slots: map[ledger.Key]record{},
	}
	for i, d := range p.Dates {
		b.dates[d] = i
	}
	return b
}

func (b *board) at(dateIndex, node int) int { return dateIndex*b.nodes + node }

// load reads the backfill's records and counts them; what runs in this process
// is counted in the status that live knows.
func (b *board) load(ctx context.Context, l Ledger, counts *status.Counts, live map[ledger.Key]*live) error {
	if err := b.loadCuts(ctx, l); err != nil {
		return err
	}
	return l.Instances(ctx, func(i ledger.Instance) error {
		di, known := b.dates[i.Key.Date]
		if !known || i.Key.Node < 0 || i.Key.Node >= b.nodes {
			return fmt.Errorf("run: read records: instance %s is not in the plan", i.ID)
		}
		counted := i.Status
		if j := live[i.Key]; j != nil {
			counted = j.status
		}
		counts.Add(status.State{}, -1)
		counts.Add(status.State{Status: counted, Paused: i.Paused}, 1)
		r := record{status: i.Status, attempt: i.Attempt, paused: i.Paused, forced: i.Forced}
		b.flags(di, i)
		if i.Key.Slot != "" {
			b.slots[i.Key] = r
			return nil
		}
		c := b.at(di, i.Key.Node)
		b.stored[c] = i.Status
		switch i.Status {
		case status.Succeeded, status.Failed:
			b.cells[c] = i.Status
		case status.Running, status.Unknown, status.Waiting:
			b.open[i.Key] = r
		}
		if i.Paused && i.Status != status.Succeeded {
			b.held[c] = true
		}
		return nil
	})
}

// flags takes over what users want of an instance. A pause flag on a finished
// instance holds what is below it.
func (b *board) flags(di int, i ledger.Instance) {
	c := b.at(di, i.Key.Node)
	switch {
	case i.Paused && i.Status == status.Succeeded:
		b.holds[c] = true
	case i.Forced:
		b.forced[c] = true
	}
	if i.Halted {
		b.wished[i.Key] = true
		b.halted[c] = i.Status == status.Stopped || b.halted[c]
	}
}

// loadCuts reads the dependencies that users removed.
func (b *board) loadCuts(ctx context.Context, l Ledger) error {
	steered, can := l.(Steered)
	if !can {
		return nil
	}
	list, err := steered.Removals(ctx)
	if err != nil {
		return err
	}
	for _, x := range list {
		b.cut[cutEdge{node: x.Key.Node, up: x.UpNode, date: x.Key.Date, read: x.UpDate}] = true
		if di, known := b.dates[x.Key.Date]; known && x.UpDate == x.Key.Date {
			b.cutUps[b.at(di, x.Key.Node)] = append(b.cutUps[b.at(di, x.Key.Node)], x.UpNode)
		}
	}
	return nil
}

// orphans settles the records that an earlier process left behind: what was
// running is unknown until it has been looked up, what waited for its next
// attempt was stopped.
func (b *board) orphans(ctx context.Context, l Ledger, counts *status.Counts) error {
	var out []ledger.Outcome
	for _, records := range []map[ledger.Key]record{b.open, b.slots} {
		for k, r := range records {
			o := ledger.Outcome{Key: k, Attempt: r.attempt}
			switch r.status {
			case status.Running:
				o.Status, o.Reason = status.Unknown, "retrofill ended while it ran; it is looked up in the target first"
			case status.Waiting:
				o.Status, o.Reason = status.Stopped, "retrofill ended before the next attempt"
			default:
				continue
			}
			out = append(out, o)
			counts.Add(status.State{Status: r.status}, -1)
			counts.Add(status.State{Status: o.Status}, 1)
			r.status = o.Status
			records[k] = r
			if k.Slot == "" {
				b.stored[b.at(b.dates[k.Date], k.Node)] = o.Status
			}
		}
	}
	return l.Finish(ctx, out...)
}

// record gives what the ledger had of an instance when the run began.
func (b *board) record(k ledger.Key) record {
	if k.Slot != "" {
		return b.slots[k]
	}
	if r, open := b.open[k]; open {
		return r
	}
	return record{status: b.stored[b.at(b.dates[k.Date], k.Node)]}
}

// known tells the order what became of an item in earlier runs, when its date
// begins. An item that reads another date without a result counts as failed,
// and is blocked.
func (r *runner) known(it groups.Item) groups.Known {
	di := r.dateIndex(it)
	c := r.board.at(di, it.Node)
	d := r.plan.Dates[di]
	if r.subDaily(it.Node) {
		r.board.cells[c] = r.slotsStatus(it.Node, d, c)
	}
	switch s := r.board.cells[c]; {
	case s == status.Succeeded && r.board.holds[c]:
		return groups.Holds
	case s == status.Succeeded:
		return groups.Succeeded
	case !r.chosen(it):
		r.board.cells[c] = status.Succeeded // as far as the others are concerned
		return groups.Succeeded
	case r.board.halted[c]:
		r.board.cells[c] = status.Stopped
		return groups.Failed
	case s == status.Failed && !r.opts.RerunFailed:
		return groups.Failed
	}
	r.board.cells[c] = status.Pending
	if r.board.held[c] {
		return groups.Held
	}
	if r.board.forced[c] {
		return groups.Forced
	}
	for _, up := range r.ups[it.Node] {
		if slices.Contains(r.board.cutUps[c], up) {
			continue
		}
		if r.board.cells[r.board.at(di, up)].Broken() {
			r.board.cells[c] = status.Blocked // the order says so too, and is recorded then
			return groups.ToRun
		}
	}
	if up, on, missing := r.missing(it.Node, d); missing {
		r.blockItem(di, it.Node, up, on)
		return groups.Failed
	}
	return groups.ToRun
}

// doom marks what is below a broken item on its date. The order blocks the
// same items, but may ask about the next date before it says so.
func (r *runner) doom(dateIndex, node int) {
	for _, c := range r.downs[node] {
		cell := r.board.at(dateIndex, c)
		if slices.Contains(r.board.cutUps[cell], node) || r.board.forced[cell] {
			continue
		}
		if r.board.cells[cell] == status.Pending && !r.board.held[cell] {
			r.board.cells[cell] = status.Blocked
			r.doom(dateIndex, c)
		}
	}
}

// slotsStatus sums up the slots of a sub-daily item: succeeded if all are,
// failed if nothing is left to do and one has failed, else pending.
func (r *runner) slotsStatus(node int, d bizdate.Date, cell int) status.Status {
	sum := status.Succeeded
	for _, s := range r.x.Slots(node, d) {
		rec := r.board.slots[ledger.Key{Node: node, Date: d, Slot: s.ID()}]
		if rec.paused && rec.status != status.Succeeded {
			r.board.held[cell] = true
		}
		switch rec.status {
		case status.Succeeded:
		case status.Failed:
			if sum == status.Succeeded {
				sum = status.Failed
			}
		default:
			sum = status.Pending
		}
	}
	return sum
}

// missing finds another date of the plan that a node's date reads and that has
// no result and will have none in this run.
func (r *runner) missing(node int, d bizdate.Date) (up int, on bizdate.Date, found bool) {
	for _, e := range r.plan.Nodes[node].Needs {
		if e.Map == nil {
			continue
		}
		up := r.index[e.Node]
		lo, hi := r.plan.Reads(e, d)
		for x := lo; x <= hi; x++ {
			di, inPlan := r.board.dates[x]
			if r.board.cut[cutEdge{node: node, up: up, date: d, read: x}] {
				continue
			}
			if x != d && inPlan && r.board.cells[r.board.at(di, up)].Broken() {
				return up, x, true
			}
		}
	}
	return 0, 0, false
}

// edges gives the dependencies inside one date.
func (r *runner) edges() []groups.Edge {
	var out []groups.Edge
	clear(r.ups)
	clear(r.downs)
	for i := range r.plan.Nodes {
		for _, e := range r.plan.Nodes[i].Needs {
			if up := r.index[e.Node]; up != i && r.plan.SameDate(e) && !slices.Contains(r.ups[i], up) {
				r.ups[i] = append(r.ups[i], up)
				r.downs[up] = append(r.downs[up], i)
				out = append(out, groups.Edge{From: up, To: i})
			}
		}
	}
	return out
}

// policy reads the plan's failure policy.
func policy(onFailure string) (groups.Policy, error) {
	switch onFailure {
	case "", "continue":
		return groups.Continue, nil
	case "stop":
		return groups.Stop, nil
	case "fail-fast":
		return groups.FailFast, nil
	}
	return "", fmt.Errorf("run: start: the plan's on_failure is %q: continue, stop and fail-fast are known", onFailure)
}
