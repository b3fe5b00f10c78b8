package status

import (
	"slices"
)

// Graph is the dependencies between the instances of one backfill; index =
// instance. Up[i] are the instances that i waits for, Down[i] those that wait
// for i; the two mirror each other and are acyclic.
type Graph struct {
	Up, Down [][]int32
}

// NewGraph makes a Graph of n instances from pairs {upstream, downstream}.
// Pairs outside 0..n-1 are ignored.
func NewGraph(n int, edges [][2]int) Graph {
	g := Graph{Up: make([][]int32, n), Down: make([][]int32, n)}
	for _, e := range edges {
		if a, b := e[0], e[1]; a >= 0 && b >= 0 && a < n && b < n {
			g.Down[a] = append(g.Down[a], int32(b))
			g.Up[b] = append(g.Up[b], int32(a))
		}
	}
	return g
}

// Action is one operation on one instance.
type Action struct {
	Op       Op
	Instance int
	// Upstream is the instance that RemoveDependency forgets.
	Upstream int
}

// Outcome is what an action does at once, and what follows if all goes well.
type Outcome struct {
	// States are the states right after the action, index = instance.
	States []State
	// Changed are the instances whose state the action changed, ascending.
	Changed []int
	// WillRun are the instances that will run or go on to run if all goes
	// well, ascending.
	WillRun []int
	// Removed is the dependency {upstream, downstream} that the action
	// removed, if any.
	Removed *[2]int
}

// Effect applies an action to the instances of a backfill without changing
// its arguments (semantics §6.8):
//   - Rerun makes the instance wait again, or pending where its upstream is
//     not done; descendants that it or an earlier failure had blocked become
//     pending and so come along; finished descendants stay.
//   - RerunDescendants makes finished descendants pending as well; an active
//     one refuses it.
//   - ForceRerun runs this one only, whatever its upstream: nothing below
//     follows from it.
//   - SetSuccess and RemoveDependency unblock what is below.
//   - Pause holds the instance and everything below, also when it sits on a
//     finished instance; one that runs goes on to its end.
//
// Time and memory are linear in the size of the graph.
func Effect(g Graph, states []State, a Action) (Outcome, *Refusal) {
	if a.Instance < 0 || a.Instance >= len(states) || len(g.Up) < len(states) || len(g.Down) < len(states) {
		return Outcome{}, &Refusal{Code: CodeEmpty, Op: a.Op}
	}
	st := states[a.Instance]
	next, refusal := Transition(st, a.Op)
	if refusal != nil {
		return Outcome{}, refusal
	}
	w := walk{g: g, states: slices.Clone(states), skip: [2]int{-1, -1}, forced: -1}
	var out Outcome
	if a.Op == RemoveDependency {
		if !slices.Contains(g.Up[a.Instance], int32(a.Upstream)) {
			return Outcome{}, &Refusal{Code: CodeNoDependency, Op: a.Op, State: st}
		}
		w.skip = [2]int{a.Upstream, a.Instance}
		out.Removed = &[2]int{a.Upstream, a.Instance}
	}
	w.states[a.Instance] = next
	switch a.Op {
	case Rerun, RerunDescendants:
		if !w.upstreamDone(a.Instance) {
			w.states[a.Instance].Status = Pending
		}
		if a.Op == RerunDescendants {
			if r := w.restartBelow(a.Instance); r != nil {
				return Outcome{}, r
			}
		}
		w.unblock(a.Instance)
	case SetSuccess, RemoveDependency:
		w.unblock(a.Instance)
	case ForceRerun:
		w.forced = a.Instance
	}
	out.States = w.states
	for i, s := range w.states {
		if s != states[i] {
			out.Changed = append(out.Changed, i)
		}
	}
	out.WillRun = w.willRun()
	return out, nil
}

// BlockedBy gives, for every pending instance that cannot run because an
// upstream is failed, blocked or stopped, the failed or stopped instance that
// holds it (the lowest-numbered one). The runner marks these blocked, and the
// record says by whom.
func BlockedBy(g Graph, states []State) map[int]int {
	by := map[int]int{}
	for _, i := range order(g, len(states)) {
		if s := states[i].Status; s != Pending && s != Blocked {
			continue
		}
		best := -1
		for _, u := range g.Up[i] {
			c := -1
			if s := states[u].Status; s == Failed || s == Stopped {
				c = int(u)
			} else if o, ok := by[int(u)]; ok {
				c = o
			}
			if c >= 0 && (best < 0 || c < best) {
				best = c
			}
		}
		if best >= 0 {
			by[i] = best
		}
	}
	for i, s := range states {
		if s.Status == Blocked {
			delete(by, i)
		}
	}
	return by
}

type walk struct {
	g      Graph
	states []State
	skip   [2]int // the dependency removed
	forced int    // the instance that a force rerun isolates, -1 = none
}

// ups calls f for each upstream that still counts.
func (w *walk) ups(i int, f func(u int) bool) bool {
	for _, u := range w.g.Up[i] {
		if int(u) == w.skip[0] && i == w.skip[1] {
			continue
		}
		if !f(int(u)) {
			return false
		}
	}
	return true
}

func (w *walk) upstreamDone(i int) bool {
	return w.ups(i, func(u int) bool { return w.states[u].Status == Succeeded })
}

// below gives the descendants of i in breadth-first order, without i.
func (w *walk) below(i int) []int {
	seen := map[int]bool{i: true}
	queue := []int{i}
	for n := 0; n < len(queue); n++ {
		for _, d := range w.g.Down[queue[n]] {
			if queue[n] == w.skip[0] && int(d) == w.skip[1] {
				continue
			}
			if !seen[int(d)] {
				seen[int(d)] = true
				queue = append(queue, int(d))
			}
		}
	}
	return queue[1:]
}

// restartBelow makes all finished descendants pending, and refuses if one is
// active or unresolved.
func (w *walk) restartBelow(i int) *Refusal {
	below := w.below(i)
	for _, d := range below {
		switch s := w.states[d]; {
		case s.Status.Active():
			return &Refusal{Code: CodeStillActive, Op: RerunDescendants, State: s}
		case s.Status == Unknown:
			return &Refusal{Code: CodeUnresolved, Op: RerunDescendants, State: s}
		}
	}
	for _, d := range below {
		// A blocked one is left to unblock: something else may hold it too.
		if w.states[d].Status != Blocked {
			w.states[d].Status = Pending
		}
	}
	return nil
}

// unblock makes the blocked ones among i and its descendants pending where
// nothing broken is above them any more.
func (w *walk) unblock(i int) {
	reach := map[int]bool{i: true}
	for _, d := range w.below(i) {
		reach[d] = true
	}
	for _, d := range order(w.g, len(w.states)) {
		// RemoveDependency made its instance pending already; it falls back
		// to blocked below if another upstream is still broken.
		if !reach[d] || d != i && w.states[d].Status != Blocked {
			continue
		}
		if d == i && (w.skip[1] != i || w.states[d].Status != Pending) {
			continue
		}
		if w.ups(d, func(u int) bool { return !w.states[u].Status.Broken() }) {
			w.states[d].Status = Pending
		} else if d == i {
			w.states[d].Status = Blocked
		}
	}
}

// willRun gives the instances that run, or will if all goes well.
func (w *walk) willRun() []int {
	n := len(w.states)
	held := make([]bool, n) // a pause flag here or above
	done := make([]bool, n) // finished well, or will be: what is below may go on
	runs := make([]bool, n)
	below := make([]bool, n) // below a forced one
	for _, i := range order(w.g, n) {
		s := w.states[i]
		held[i] = s.Paused
		ready := w.ups(i, func(u int) bool { return done[u] })
		// Below a forced one, only what something else sets going goes on.
		moved := false
		w.ups(i, func(u int) bool {
			below[i] = below[i] || below[u] || u == w.forced
			moved = moved || runs[u] && u != w.forced
			return true
		})
		if i != w.forced { // a forced one asks nobody above
			w.ups(i, func(u int) bool { held[i] = held[i] || held[u]; return true })
		}
		switch {
		case s.Status == Succeeded:
			done[i] = true
		case s.Status == Running:
			runs[i] = true
		case s.Status == Waiting, s.Status == Pending && ready && (moved || !below[i]):
			runs[i] = !held[i]
		}
		// What a force rerun makes is not followed by anything.
		done[i] = done[i] || runs[i] && i != w.forced
	}
	out := []int{}
	for i, r := range runs {
		if r {
			out = append(out, i)
		}
	}
	return out
}

// order gives 0..n-1 with every instance after its upstream. Instances on a
// cycle, which a plan never has, are left out.
func order(g Graph, n int) []int {
	missing := make([]int, n)
	queue := make([]int, 0, n)
	for i := range n {
		if missing[i] = len(g.Up[i]); missing[i] == 0 {
			queue = append(queue, i)
		}
	}
	for k := 0; k < len(queue); k++ {
		for _, d := range g.Down[queue[k]] {
			if missing[d]--; missing[d] == 0 {
				queue = append(queue, int(d))
			}
		}
	}
	return queue
}
