package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// Steering is one operation of a user on instances of a stored backfill
// (semantics §6.8).
type Steering struct {
	Op status.Op
	// Targets are the instances; Pause and Unpause take several, the other
	// operations one.
	Targets []plan.Instance
	// Upstream is the dependency that RemoveDependency forgets.
	Upstream plan.Instance
	By       string
	Reason   string
	// Word is what the operations log calls it, Target what it names there.
	Word, Target string
}

// Outcome is what an operation did.
type Outcome struct {
	// Changed are the instances whose record was changed.
	Changed int
	// Run are the targets, and what is below them, that will run if all goes
	// well.
	Run map[ledger.Key]bool
}

// maxTries bounds how often an operation is judged again because records
// changed meanwhile.
const maxTries = 10

// Operate judges an operation by the state machine (package status) and
// records it, all of it or nothing. Errors: *status.Refusal, ledger.ErrNotFound.
func Operate(ctx context.Context, l *ledger.Ledger, p *plan.Plan, s Steering) (Outcome, error) {
	for try := 0; ; try++ {
		out, err := operate(ctx, l, p, s)
		if !errors.Is(err, ledger.ErrChanged) || try == maxTries {
			return out, err
		}
	}
}

func operate(ctx context.Context, l *ledger.Ledger, p *plan.Plan, s Steering) (Outcome, error) {
	x, err := plan.NewExpander(p)
	if err != nil {
		return Outcome{}, fmt.Errorf("run: %s: %w", s.Word, err)
	}
	o := ledger.Steering{Backfill: p.Backfill, Operation: ledger.Operation{By: s.By, Op: s.Word, Target: s.Target, Reason: s.Reason}}
	flag := s.Op == status.Pause || s.Op == status.Unpause
	v := newVicinity(p, x)
	for _, t := range s.Targets {
		v.add(item{t.Node, t.Slot.Date})
	}
	if !flag {
		v.grow()
	}
	if err := v.states(ctx, l); err != nil {
		return Outcome{}, err
	}
	if flag {
		return v.flag(ctx, l, o, s)
	}
	return v.apply(ctx, l, o, s)
}

// item is a node on a business date.
type item struct {
	node int
	date bizdate.Date
}

// vicinity is the part of a backfill that an operation can touch: its
// targets, all that is below them, and what those read.
type vicinity struct {
	p       *plan.Plan
	x       *plan.Expander
	planned map[bizdate.Date]bool
	index   map[string]int
	readers [][]reader
	items   map[item]bool
	order   []item // of items, as found
	keys    []ledger.Key
	at      map[ledger.Key]int
	state   []status.State
	cut     map[cutEdge]bool
}

// reader is a node that reads another one, by an edge.
type reader struct {
	node int
	edge plan.Edge
}

func newVicinity(p *plan.Plan, x *plan.Expander) *vicinity {
	v := &vicinity{p: p, x: x, planned: map[bizdate.Date]bool{}, index: map[string]int{}, readers: make([][]reader, len(p.Nodes)),
		items: map[item]bool{}, at: map[ledger.Key]int{}, cut: map[cutEdge]bool{}}
	for _, d := range p.Dates {
		v.planned[d] = true
	}
	for i := range p.Nodes {
		v.index[p.Nodes[i].Name] = i
	}
	for i := range p.Nodes {
		for _, e := range p.Nodes[i].Needs {
			up := v.index[e.Node]
			v.readers[up] = append(v.readers[up], reader{i, e})
		}
	}
	return v
}

func (v *vicinity) add(it item) {
	if !v.items[it] {
		v.items[it] = true
		v.order = append(v.order, it)
	}
}

// reads gives the items of the plan that an item reads, without itself.
func (v *vicinity) reads(it item) []item {
	var out []item
	for _, e := range v.p.Nodes[it.node].Needs {
		up := v.index[e.Node]
		lo, hi := v.p.Reads(e, it.date)
		for d := lo; d <= hi; d++ {
			if u := (item{up, d}); v.planned[d] && u != it && !slices.Contains(out, u) {
				out = append(out, u)
			}
		}
	}
	return out
}

// grow takes in what is below the targets, and what all of them read.
func (v *vicinity) grow() {
	for i := 0; i < len(v.order); i++ {
		it := v.order[i]
		for _, r := range v.readers[it.node] {
			if r.edge.Map == nil {
				v.add(item{r.node, it.date})
				continue
			}
			for _, d := range v.p.Dates {
				if lo, hi := v.p.Reads(r.edge, d); lo <= it.date && it.date <= hi {
					v.add(item{r.node, d})
				}
			}
		}
	}
	for _, it := range slices.Clone(v.order) {
		for _, u := range v.reads(it) {
			v.add(u)
		}
	}
}

// states numbers the instances and reads how they stand.
func (v *vicinity) states(ctx context.Context, l *ledger.Ledger) error {
	if len(v.order) == 0 {
		return nil
	}
	f := ledger.Filter{HasDates: true, From: v.order[0].date, To: v.order[0].date}
	for _, it := range v.order {
		f.From, f.To = min(f.From, it.date), max(f.To, it.date)
		for _, s := range v.x.Slots(it.node, it.date) {
			k := ledger.KeyOf(plan.Instance{Node: it.node, Slot: s})
			v.at[k] = len(v.keys)
			v.keys = append(v.keys, k)
		}
	}
	v.state = make([]status.State, len(v.keys))
	list, err := l.Instances(ctx, v.p.Backfill, f)
	if err != nil {
		return err
	}
	for _, i := range list {
		if at, known := v.at[i.Key]; known {
			v.state[at] = status.State{Status: i.Status, Paused: i.Paused}
		}
	}
	cuts, err := l.Removals(ctx, v.p.Backfill)
	if err != nil {
		return err
	}
	for _, c := range cuts {
		v.cut[cutEdge{node: c.Key.Node, up: c.UpNode, date: c.Key.Date, read: c.UpDate}] = true
	}
	return nil
}

// graph gives the dependencies between the instances.
func (v *vicinity) graph() status.Graph {
	var edges [][2]int
	for _, it := range v.order {
		mine := v.numbers(it)
		for _, u := range v.reads(it) {
			if !v.items[u] || v.cut[cutEdge{node: it.node, up: u.node, date: it.date, read: u.date}] {
				continue
			}
			for _, a := range v.numbers(u) {
				for _, b := range mine {
					edges = append(edges, [2]int{a, b})
				}
			}
		}
		if v.selfDependent(it.node) { // slots of one date, one after the other
			for i := 1; i < len(mine); i++ {
				edges = append(edges, [2]int{mine[i-1], mine[i]})
			}
		}
	}
	return status.NewGraph(len(v.keys), edges)
}

func (v *vicinity) selfDependent(node int) bool {
	return slices.ContainsFunc(v.p.Nodes[node].Needs, func(e plan.Edge) bool { return v.index[e.Node] == node })
}

// numbers gives the instances of an item.
func (v *vicinity) numbers(it item) []int {
	var out []int
	for _, s := range v.x.Slots(it.node, it.date) {
		if at, known := v.at[ledger.KeyOf(plan.Instance{Node: it.node, Slot: s})]; known {
			out = append(out, at)
		}
	}
	return out
}

func (v *vicinity) name(at int) string {
	return plan.InstanceID(v.p.Nodes[v.keys[at].Node].Name, v.keys[at].SlotID())
}

// flag sets or clears the pause flag of the targets. Of several, those that
// have it already are left alone.
func (v *vicinity) flag(ctx context.Context, l *ledger.Ledger, o ledger.Steering, s Steering) (Outcome, error) {
	var refused *status.Refusal
	for _, t := range s.Targets {
		at := v.at[ledger.KeyOf(t)]
		next, r := status.Transition(v.state[at], s.Op)
		if r != nil {
			refused = r
			if len(s.Targets) == 1 {
				refused.Item = v.name(at)
			}
			continue
		}
		c := ledger.Change{Key: v.keys[at], From: v.state[at], To: next}
		if s.Op == status.Pause {
			c.Reason = because("paused", s)
		}
		o.Changes = append(o.Changes, c)
	}
	if len(o.Changes) == 0 && refused != nil {
		return Outcome{}, refused
	}
	return Outcome{Changed: len(o.Changes)}, l.Steer(ctx, o)
}

// apply carries out what the state machine says of one target.
func (v *vicinity) apply(ctx context.Context, l *ledger.Ledger, o ledger.Steering, s Steering) (Outcome, error) {
	if len(s.Targets) != 1 {
		return Outcome{}, fmt.Errorf("run: %s: it takes one instance, not %d", s.Word, len(s.Targets))
	}
	target := v.at[ledger.KeyOf(s.Targets[0])]
	a := status.Action{Op: s.Op, Instance: target, Upstream: -1}
	if s.Op == status.RemoveDependency {
		up, known := v.at[ledger.KeyOf(s.Upstream)]
		if !known {
			return Outcome{}, &status.Refusal{Code: status.CodeNoDependency, Op: s.Op, State: v.state[target], Item: v.name(target)}
		}
		a.Upstream = up
		o.Removed = []ledger.Removal{{Key: v.keys[target], UpNode: s.Upstream.Node, UpDate: s.Upstream.Slot.Date}}
	}
	g := v.graph()
	effect, refused := status.Effect(g, v.state, a)
	if refused != nil {
		if refused.Item == "" {
			refused.Item = v.name(target)
		}
		return Outcome{}, refused
	}
	changed := effect.Changed
	if !slices.Contains(changed, target) && (s.Op == status.ForceRerun || s.Op == status.SetSuccess) {
		changed = append(changed, target)
	}
	for _, i := range changed {
		o.Changes = append(o.Changes, v.change(i, target, effect.States[i], s))
	}
	out := Outcome{Changed: len(o.Changes), Run: map[ledger.Key]bool{}}
	below := v.below(g, target)
	for _, i := range effect.WillRun {
		if i == target || below[i] && s.Op != status.ForceRerun {
			out.Run[v.keys[i]] = true
		}
	}
	return out, l.Steer(ctx, o)
}

// change gives the record of one changed instance. What is to run again is
// pending until a worker has it; what runs is ended by the process that runs
// it.
func (v *vicinity) change(i, target int, to status.State, s Steering) ledger.Change {
	c := ledger.Change{Key: v.keys[i], From: v.state[i], To: to}
	if to.Status == status.Waiting {
		c.To.Status = status.Pending
	}
	switch {
	case i != target:
	case s.Op == status.Stop:
		c.To, c.Halt = c.From, true
	case s.Op == status.SetSuccess:
		c.Reason = because("set to success", s)
	case s.Op == status.ForceRerun:
		c.Forced, c.Reason = true, because("forced to run again", s)
	case s.Op == status.Rerun, s.Op == status.RerunDescendants:
		c.Reason = because("to run again", s)
	}
	return c
}

func (v *vicinity) below(g status.Graph, i int) map[int]bool {
	out := map[int]bool{}
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for _, d := range g.Down[queue[0]] {
			if !out[int(d)] {
				out[int(d)] = true
				queue = append(queue, int(d))
			}
		}
	}
	return out
}

// because says who did what, and why.
func because(what string, s Steering) string {
	text := what
	if s.By != "" {
		text += " by " + s.By
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Restart makes instances of a whole backfill pending again, so that the next
// run takes them (semantics §6.8, --rerun failed|all): failed ones with what
// they blocked, or all. Errors: *status.Refusal, ledger.ErrNotFound.
func Restart(ctx context.Context, l *ledger.Ledger, p *plan.Plan, all bool, s Steering) (Outcome, error) {
	for try := 0; ; try++ {
		out, err := restart(ctx, l, p, all, s)
		if !errors.Is(err, ledger.ErrChanged) || try == maxTries {
			return out, err
		}
	}
}

func restart(ctx context.Context, l *ledger.Ledger, p *plan.Plan, all bool, s Steering) (Outcome, error) {
	o := ledger.Steering{Backfill: p.Backfill, Operation: ledger.Operation{By: s.By, Op: s.Word, Target: s.Target, Reason: s.Reason}}
	list, err := l.Instances(ctx, p.Backfill, ledger.Filter{})
	if err != nil {
		return Outcome{}, err
	}
	refused := &status.Refusal{Code: status.CodeNotAll, Op: status.Rerun}
	for _, i := range list {
		again := false
		switch i.Status {
		case status.Failed, status.Stopped, status.Blocked:
			again = true
		case status.Succeeded:
			again = all
		case status.Running, status.Waiting, status.Unknown:
			if all {
				refused.Items = append(refused.Items, i.ID)
			}
		}
		if again {
			from := status.State{Status: i.Status, Paused: i.Paused}
			o.Changes = append(o.Changes, ledger.Change{Key: i.Key, From: from, To: status.State{Paused: i.Paused}, Reason: because("to run again", s)})
		}
	}
	switch {
	case len(refused.Items) > 0:
		return Outcome{}, refused
	case len(o.Changes) == 0:
		return Outcome{}, &status.Refusal{Code: status.CodeEmpty, Op: status.Rerun}
	}
	return Outcome{Changed: len(o.Changes)}, l.Steer(ctx, o)
}
