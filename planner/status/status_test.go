package status

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every pair (state, operation) has a decision, and the decision keeps the
// invariants of the machine.
func TestAllPairs(t *testing.T) {
	t.Parallel()
	legalEvents := map[string]int{}
	for _, s := range All() {
		for _, o := range Ops() {
			for _, paused := range []bool{false, true} {
				st := State{s, paused}
				next, r := Transition(st, o)
				if r != nil {
					if next != st {
						t.Errorf("%s %s: refused but changed to %v", s, o, next)
					}
					if d := r.Diagnostic(); d.Summary == "" || d.Hint == "" || d.Code != r.Code {
						t.Errorf("%s %s: poor diagnostic %v", s, o, d)
					}
					continue
				}
				switch {
				case o == Pause || o == Unpause:
					if next.Status != s || next.Paused == paused {
						t.Errorf("%s %s: %v", s, o, next)
					}
				case next.Paused != paused:
					t.Errorf("%s %s changed the flag", s, o)
				}
				if o.Event() && s.Terminal() && s != Unknown && s != Blocked {
					t.Errorf("terminal %s is left by the event %s", s, o)
				}
				if s == Unknown && next.Status != Unknown && o != EventFound && o != EventNotFound {
					t.Errorf("unknown is left by %s without a look-up", o)
				}
				if o.Event() {
					legalEvents[s.String()]++
				}
			}
		}
	}
	for _, s := range []Status{Pending, Waiting, Running, Unknown, Blocked} {
		if legalEvents[s.String()] == 0 {
			t.Errorf("the runner can never leave %s", s)
		}
	}
	for _, bad := range []State{{Status: 200}} {
		if _, r := Transition(bad, Rerun); r == nil {
			t.Error("a status outside the set is accepted")
		}
	}
	if _, r := Transition(State{}, Op(200)); r == nil {
		t.Error("an operation outside the set is accepted")
	}
}

func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		b, err := json.Marshal(State{Status: s})
		if err != nil {
			t.Fatal(err)
		}
		var back State
		if err := json.Unmarshal(b, &back); err != nil || back.Status != s {
			t.Errorf("%s: %v %v", b, back, err)
		}
	}
	if _, err := json.Marshal(State{Status: 99}); err == nil {
		t.Error("a status outside the set is encoded")
	}
	if _, err := Parse("not_run"); err == nil {
		t.Error("a case name is accepted as a status")
	}
	for _, o := range Ops() {
		got, err := ParseOp(o.String())
		if o.Event() != (err != nil) || err == nil && got != o {
			t.Errorf("%s: %v %v", o, got, err)
		}
	}
	if len(Ops()) != numOps || strings.HasPrefix(Ops()[numOps-1].String(), "op(") {
		t.Error("names and operations differ in number")
	}
}

func TestCountsAreRanges(t *testing.T) {
	t.Parallel()
	var c Counts
	c.Add(State{Status: Pending}, 3_660_000)
	c.Add(State{Status: Succeeded}, 1)
	if got, _ := Rollup(c); got != Incomplete {
		t.Errorf("got %s", got)
	}
	c.Add(State{Pending, true}, 1)
	if got, _ := Rollup(c); got != HeldByPause {
		t.Errorf("got %s", got)
	}
}

func TestRemoveDependency(t *testing.T) {
	t.Parallel()
	// a, b → c → d
	g := NewGraph(4, [][2]int{{0, 2}, {1, 2}, {2, 3}})
	st := func(s ...Status) []State {
		out := make([]State, len(s))
		for i := range s {
			out[i].Status = s[i]
		}
		return out
	}
	in := st(Failed, Succeeded, Blocked, Blocked)
	out, r := Effect(g, in, Action{Op: RemoveDependency, Instance: 2, Upstream: 0})
	if r != nil {
		t.Fatal(r)
	}
	if d := cmp.Diff(st(Failed, Succeeded, Pending, Pending), out.States); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{2, 3}, out.WillRun); d != "" {
		t.Error(d)
	}
	if in[2].Status != Blocked {
		t.Error("the argument was changed")
	}
	out, r = Effect(g, st(Failed, Failed, Blocked, Blocked), Action{Op: RemoveDependency, Instance: 2, Upstream: 0})
	if r != nil || out.States[2].Status != Blocked || len(out.WillRun) != 0 {
		t.Errorf("the other upstream still blocks: %v %v", out, r)
	}
	if _, r = Effect(g, in, Action{Op: RemoveDependency, Instance: 2, Upstream: 3}); code(r) != CodeNoDependency {
		t.Errorf("got %v", r)
	}
	if _, r = Effect(g, in, Action{Op: Rerun, Instance: 9}); r == nil {
		t.Error("an instance outside is accepted")
	}
}

func TestBlockedBy(t *testing.T) {
	t.Parallel()
	g := NewGraph(5, [][2]int{{0, 1}, {1, 2}, {3, 2}, {3, 4}})
	got := BlockedBy(g, []State{{Status: Failed}, {}, {}, {Status: Succeeded}, {}})
	if d := cmp.Diff(map[int]int{1: 0, 2: 0}, got); d != "" {
		t.Error(d)
	}
	got = BlockedBy(g, []State{{Status: Failed}, {Status: Blocked}, {}, {Status: Stopped}, {}})
	if d := cmp.Diff(map[int]int{2: 0, 4: 3}, got); d != "" {
		t.Error(d)
	}
}

// On random graphs: what will run is closed (all of a pending one's upstream
// is done or will run), nothing held or blocked by a failure is in it, and an
// operation changes nothing but the instance and what is below it.
func TestEffectProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rnd.IntN(12)
		var edges [][2]int
		for b := range n {
			for a := range b {
				if rnd.IntN(3) == 0 {
					edges = append(edges, [2]int{a, b})
				}
			}
		}
		g := NewGraph(n, edges)
		states := make([]State, n)
		for i := range states {
			states[i] = State{All()[rnd.IntN(numStatuses)], rnd.IntN(5) == 0}
		}
		a := Action{Op: Op(rnd.IntN(int(firstEvent))), Instance: rnd.IntN(n)}
		if a.Op == RemoveDependency && len(g.Up[a.Instance]) > 0 {
			a.Upstream = int(g.Up[a.Instance][0])
		}
		out, r := Effect(g, states, a)
		if r != nil {
			continue
		}
		reach := map[int]bool{a.Instance: true}
		for i := range n {
			for _, u := range g.Up[i] {
				if reach[int(u)] {
					reach[i] = true
				}
			}
		}
		for _, i := range out.Changed {
			if !reach[i] {
				t.Fatalf("seed %d: %v changed %d, which is not below", seed, a, i)
			}
		}
		for _, i := range out.WillRun {
			s := out.States[i]
			if s.Status != Running && s.Status != Waiting && s.Status != Pending {
				t.Fatalf("seed %d: %d will run in status %s", seed, i, s.Status)
			}
			if s.Paused && s.Status != Running {
				t.Fatalf("seed %d: %d will run although paused", seed, i)
			}
			for _, u := range g.Up[i] {
				removed := out.Removed != nil && out.Removed[0] == int(u) && out.Removed[1] == i
				if s.Status == Pending && !removed && out.States[u].Status != Succeeded && !slices.Contains(out.WillRun, int(u)) {
					t.Fatalf("seed %d: %d will run but its upstream %d will not", seed, i, u)
				}
			}
		}
	}
}

func TestRenderings(t *testing.T) {
	t.Parallel()
	md := Markdown()
	if lines := strings.Count(md, "\n"); lines != 2+numOps {
		t.Errorf("%d lines:\n%s", lines, md)
	}
	for _, want := range []string{
		"| operation | pending | waiting |",
		"| rerun | *not_allowed* | *not_allowed* | *not_allowed* | waiting | waiting | *not_allowed* | waiting | *unresolved* |",
		"| lost (runner) |",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in\n%s", want, md)
		}
	}
	if m := Mermaid(); !strings.Contains(m, "    running --> unknown: lost\n") || !strings.HasPrefix(m, "stateDiagram-v2\n") {
		t.Errorf("%s", m)
	}
}
