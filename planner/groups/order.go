package groups

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// Policy says what a failed instance stops (semantics §6.6). Its descendants
// on the same date are blocked under every policy.
type Policy string

// The policies. The zero value counts as Continue.
const (
	// Continue runs everything that does not depend on the failed instance.
	Continue Policy = "continue"
	// StopGroup lets the date end, but starts no later date of its group.
	StopGroup Policy = "stop_group"
	// Stop starts nothing new in any group; what runs may finish.
	Stop Policy = "stop"
	// FailFast is Stop, and the runner is to cancel what runs (Order.Cancel).
	FailFast Policy = "fail_fast"
)

// Item is one instance: positions in Config.Groups, in that group's dates, and
// in the nodes.
type Item struct {
	Group, Date, Node int
}

// Blocked is an instance that will not run, and why.
type Blocked struct {
	Item
	// By is the node whose instance on date On has no result. It is read by
	// the blocked one directly.
	By int
	On bizdate.Date
	// Held says that nothing failed: a held (paused) instance is above it.
	Held bool
}

// Edge says that node To waits for node From on the same date.
type Edge struct {
	From, To int
}

// Lag says that node To on date d needs node From on the dates d−Max … d−Min
// (in days, 1 ≤ Min ≤ Max), as far as they are in the backfill: a self- or
// cross-cycle dependency. From may be To.
type Lag struct {
	From, To, Min, Max int
}

// Known is what is known of an instance before the run.
type Known uint8

const (
	// ToRun is an instance that has to run.
	ToRun Known = iota
	// Succeeded counts as finished well and is not offered again.
	Succeeded
	// Failed counts as failed: descendants are blocked. It does not trigger
	// the policy, since it is not a failure of this run.
	Failed
	// Held does not run now (paused): what is below it waits with it.
	Held
	// Forced runs whatever is above it, and nothing below follows from it.
	Forced
	// Holds has finished well, but what is below it waits (a pause flag on a
	// finished instance).
	Holds
)

// Config is what an Order orders.
type Config struct {
	// Groups are the dates of each group in run order, as from Split.
	Groups [][]bizdate.Date
	// Nodes is the number of nodes of every date. Lower nodes are offered
	// first, so a topological numbering reads best.
	Nodes  int
	Edges  []Edge // repeated edges count once
	Lags   []Lag
	Policy Policy
	// Known tells the state of an instance when its date begins; nil = all are
	// ToRun. It is asked once for each instance.
	Known func(Item) Known
	// Ignores gives the upstream nodes that do not count for an instance (a
	// removed dependency); nil = none.
	Ignores func(Item) []int
}

type state uint8

const (
	waiting state = iota
	ready
	running
	done
	failed
	held          // Known said so
	blocked       // by an instance of the same or an earlier date
	blockedByHeld // a held instance is above it
)

// Order answers which instances may start, as a pure state machine that the
// runner drives: Next (or Ready and Start), then Finish. It is not safe for
// concurrent use. Each event costs O(log nodes + edges of the node), each date
// O(nodes).
type Order struct {
	cfg      Config
	children [][]int32        // same-date readers
	waits    []int32          // number of same-date upstream nodes
	topo     []int32          // every node after its upstream ones
	lagsTo   [][]Lag          // by reader; nil without lags
	lagFrom  []bool           // node has readers on later dates
	missing  [][]bizdate.Date // of such nodes: dates without a result, ascending
	groups   []group
	running  int
	stopped  bool
	cancel   bool
	early    []Blocked // when their date began; not yet told
}

// group is the current date of one group.
type group struct {
	date    int // == number of dates: the group has ended
	state   []state
	waits   []int32
	by      []int32 // 1 + an upstream node without a result, 0 = none
	open    int     // instances of the date that have not ended
	running int
	ready   heap
	readyN  int
	halted  bool // no later date starts
	// holds marks nodes that hold what is below them although they did not
	// fail; cut holds the edges that do not count on this date. Both are nil
	// unless needed.
	holds map[int]bool
	cut   map[Edge]bool
}

// NewOrder checks the configuration and begins the first date of each group.
// A cycle among the edges, a node that does not exist, and lags with more than
// one group or out of ascending order are errors (Check refuses the latter
// before).
func NewOrder(cfg Config) (*Order, error) {
	o := &Order{cfg: cfg, children: make([][]int32, cfg.Nodes), waits: make([]int32, cfg.Nodes)}
	if err := o.link(); err != nil {
		return nil, err
	}
	if err := o.linkLags(); err != nil {
		return nil, err
	}
	o.groups = make([]group, len(cfg.Groups))
	for i := range o.groups {
		o.groups[i] = group{date: -1, state: make([]state, cfg.Nodes), waits: make([]int32, cfg.Nodes), by: make([]int32, cfg.Nodes)}
	}
	for i := range o.groups {
		o.advance(i)
	}
	return o, nil
}

// advance begins the next date of group g, and the ones after it as long as
// nothing of them is left to do.
func (o *Order) advance(g int) {
	gr := &o.groups[g]
	for gr.open == 0 && !gr.halted && !o.stopped && gr.date < len(o.cfg.Groups[g]) {
		gr.date++
		if gr.date == len(o.cfg.Groups[g]) {
			return
		}
		o.begin(g)
	}
}

// begin sets up the group's current date, in topological order, so that what
// is known of an instance is settled before its readers are looked at.
func (o *Order) begin(g int) {
	gr := &o.groups[g]
	clear(gr.state)
	clear(gr.by)
	copy(gr.waits, o.waits)
	gr.open, gr.readyN, gr.ready = o.cfg.Nodes, 0, gr.ready[:0]
	gr.holds = nil
	o.cutEdges(g)
	date := o.cfg.Groups[g][gr.date]
	for _, n32 := range o.topo {
		n := int(n32)
		it := Item{Group: g, Date: gr.date, Node: n}
		known := ToRun
		if o.cfg.Known != nil {
			known = o.cfg.Known(it)
		}
		switch {
		case known == Succeeded: // its result exists, whatever became of its upstream
			o.end(it, done)
		case known == Failed:
			o.end(it, failed)
			o.doom(gr, n)
		case known == Held:
			o.end(it, held)
			o.doom(gr, n)
		case known == Holds:
			gr.hold(n)
			o.end(it, done)
			o.doom(gr, n)
		case known == Forced:
			gr.hold(n)
			if gr.state[n] == waiting { // its upstream may have offered it already
				o.offer(gr, n)
			}
			o.doom(gr, n)
		case gr.by[n] != 0:
			by := int(gr.by[n]) - 1
			o.early = append(o.early, Blocked{Item: it, By: by, On: date, Held: gr.holding(by)})
			s := blocked
			if o.early[len(o.early)-1].Held {
				s = blockedByHeld
			}
			o.end(it, s)
			o.doom(gr, n)
		default:
			if by, on, lacks := o.lacks(n, date); lacks {
				o.early = append(o.early, Blocked{Item: it, By: by, On: on})
				o.end(it, blocked)
				o.doom(gr, n)
			} else if gr.waits[n] == 0 && gr.state[n] == waiting {
				o.offer(gr, n)
			}
		}
	}
	sortBlocked(o.early)
}

// doom marks the readers of node n, which has no result, while a date begins.
func (o *Order) doom(gr *group, n int) {
	for _, c := range o.children[n] {
		if gr.by[c] == 0 && !gr.cut[Edge{n, int(c)}] {
			gr.by[c] = int32(n) + 1
		}
	}
}

// lacks tells whether node n on date d reads an earlier date that has no
// result, and which.
func (o *Order) lacks(n int, d bizdate.Date) (by int, on bizdate.Date, lacks bool) {
	if o.lagsTo == nil {
		return 0, 0, false
	}
	for _, l := range o.lagsTo[n] {
		dates := o.missing[l.From]
		i, _ := slices.BinarySearch(dates, d-bizdate.Date(l.Max))
		if i < len(dates) && dates[i] <= d-bizdate.Date(l.Min) {
			return l.From, dates[i], true
		}
	}
	return 0, 0, false
}

// offer makes a waiting node ready.
func (o *Order) offer(gr *group, n int) {
	gr.state[n] = ready
	gr.readyN++
	gr.ready.push(int32(n))
}

// end puts an instance into a final state; a success frees its readers.
func (o *Order) end(it Item, s state) {
	gr := &o.groups[it.Group]
	if gr.state[it.Node] == ready {
		gr.readyN-- // its heap entry is skipped later
	}
	gr.state[it.Node] = s
	gr.open--
	if s != done {
		if o.lagFrom != nil && o.lagFrom[it.Node] {
			o.missing[it.Node] = append(o.missing[it.Node], o.cfg.Groups[it.Group][it.Date])
		}
		return
	}
	for _, c := range o.children[it.Node] {
		if gr.cut[Edge{it.Node, int(c)}] {
			continue
		}
		gr.waits[c]--
		if gr.waits[c] == 0 && gr.state[c] == waiting {
			o.offer(gr, int(c))
		}
	}
}

// block blocks what is below a failed instance on its date and gives it, by
// node.
func (o *Order) block(it Item) []Blocked {
	gr := &o.groups[it.Group]
	date := o.cfg.Groups[it.Group][it.Date]
	var out []Blocked
	stack := []int{it.Node}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, c := range o.children[n] {
			if gr.state[c] == waiting && !gr.cut[Edge{n, int(c)}] {
				b := Item{Group: it.Group, Date: it.Date, Node: int(c)}
				s := blocked
				if gr.holding(n) {
					s = blockedByHeld
				}
				o.end(b, s)
				out = append(out, Blocked{Item: b, By: n, On: date, Held: s == blockedByHeld})
				stack = append(stack, int(c))
			}
		}
	}
	sortBlocked(out)
	return out
}

// sortBlocked orders by group, date and node.
func sortBlocked(items []Blocked) {
	slices.SortFunc(items, func(a, b Blocked) int {
		return cmp.Or(a.Group-b.Group, a.Date-b.Date, a.Node-b.Node)
	})
}

// Ready gives every instance that may start now, by group and node. It costs
// O(nodes × groups); a runner with few workers is better served by Next.
func (o *Order) Ready() []Item {
	var out []Item
	if o.stopped {
		return nil
	}
	for g := range o.groups {
		gr := &o.groups[g]
		if gr.readyN == 0 {
			continue
		}
		for n, s := range gr.state {
			if s == ready {
				out = append(out, Item{Group: g, Date: gr.date, Node: n})
			}
		}
	}
	return out
}

// Next starts the next instance and gives it; ok is false if none may start
// now. It takes the group with the fewest running instances, so that groups go
// on side by side even with few workers, and in it the lowest node.
func (o *Order) Next() (it Item, ok bool) {
	if o.stopped {
		return Item{}, false
	}
	best := -1
	for g := range o.groups {
		if o.groups[g].readyN > 0 && (best < 0 || o.groups[g].running < o.groups[best].running) {
			best = g
		}
	}
	if best < 0 {
		return Item{}, false
	}
	gr := &o.groups[best]
	for {
		n := int(gr.ready.pop())
		if gr.state[n] == ready {
			it = Item{Group: best, Date: gr.date, Node: n}
			o.start(it)
			return it, true
		}
	}
}

// current tells whether the item belongs to its group's current date.
func (o *Order) current(it Item) bool {
	return it.Group >= 0 && it.Group < len(o.groups) && it.Node >= 0 && it.Node < o.cfg.Nodes &&
		it.Date >= 0 && o.groups[it.Group].date == it.Date && it.Date < len(o.cfg.Groups[it.Group])
}

// Start marks a ready instance as running. Starting anything else is an error.
func (o *Order) Start(it Item) error {
	if o.stopped || !o.current(it) || o.groups[it.Group].state[it.Node] != ready {
		return fmt.Errorf("groups: start %+v: it is not ready", it)
	}
	o.start(it)
	return nil
}

func (o *Order) start(it Item) {
	gr := &o.groups[it.Group]
	gr.state[it.Node] = running
	gr.readyN--
	gr.running++
	o.running++
}

// Finish ends a running instance and gives the instances that are blocked by
// it: those below it on its date and, if the date is over, those of the dates
// that begin which read a date without a result. Instances that a policy keeps
// from starting are not listed: see Remaining. Finishing what does not run is
// an error.
func (o *Order) Finish(it Item, ok bool) ([]Blocked, error) {
	if !o.current(it) || o.groups[it.Group].state[it.Node] != running {
		return nil, fmt.Errorf("groups: finish %+v: it is not running", it)
	}
	gr := &o.groups[it.Group]
	gr.running--
	o.running--
	var out []Blocked
	if ok {
		o.end(it, done)
	} else {
		o.end(it, failed)
		out = o.block(it)
		switch o.cfg.Policy {
		case StopGroup:
			gr.halted = true
		case FailFast:
			o.stopped, o.cancel = true, true
		case Stop:
			o.stopped = true
		}
	}
	o.advance(it.Group)
	return append(out, o.takeEarly()...), nil
}

// Blocked gives the instances that were blocked (or wait below a held one)
// when the first dates began, once; later ones come from Finish.
func (o *Order) Blocked() []Blocked { return o.takeEarly() }

func (o *Order) takeEarly() []Blocked {
	out := o.early
	o.early = nil
	return out
}

// Stop starts nothing new from now on, as on a gentle interrupt; what runs may
// finish.
func (o *Order) Stop() { o.stopped = true }

// Cancel tells whether the runner is to cancel what still runs (FailFast).
func (o *Order) Cancel() bool { return o.cancel }

// Running gives the number of running instances.
func (o *Order) Running() int { return o.running }

// Done tells whether nothing runs and nothing will start.
func (o *Order) Done() bool {
	if o.running > 0 {
		return false
	}
	return o.stopped || !slices.ContainsFunc(o.groups, func(g group) bool { return g.readyN > 0 })
}

// Remaining yields the instances that have neither started nor been blocked,
// by group, date and node: when Done, those that a stop kept from running.
// Nothing is stored for them.
func (o *Order) Remaining() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for g := range o.groups {
			gr := &o.groups[g]
			for d := max(gr.date, 0); d < len(o.cfg.Groups[g]); d++ {
				for n := range o.cfg.Nodes {
					if d == gr.date && gr.state[n] != waiting && gr.state[n] != ready {
						continue
					}
					if !yield(Item{Group: g, Date: d, Node: n}) {
						return
					}
				}
			}
		}
	}
}
