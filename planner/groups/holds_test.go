package groups

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// orderOf is an order of one date with a chain 0 → 1 → 2 and a free node 3.
func orderOf(t *testing.T, known map[int]Known, ignores map[int][]int) *Order {
	t.Helper()
	o, err := NewOrder(Config{
		Groups: [][]bizdate.Date{{bizdate.Of(2024, 1, 1)}}, Nodes: 4, Edges: []Edge{{0, 1}, {1, 2}},
		Known:   func(it Item) Known { return known[it.Node] },
		Ignores: func(it Item) []int { return ignores[it.Node] },
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// drain runs everything that may start; nodes in fail fail, those in hold turn
// out to be paused.
func drain(t *testing.T, o *Order, fail, hold int) (ran string, blocked string) {
	t.Helper()
	tell := func(list []Blocked) {
		for _, b := range list {
			blocked += fmt.Sprintf("%d by %d held %v; ", b.Node, b.By, b.Held)
		}
	}
	tell(o.Blocked())
	for {
		it, ok := o.Next()
		if !ok {
			break
		}
		ran += fmt.Sprint(it.Node)
		var list []Blocked
		var err error
		if it.Node == hold {
			list, err = o.Hold(it)
		} else {
			list, err = o.Finish(it, it.Node != fail)
		}
		if err != nil {
			t.Fatal(err)
		}
		tell(list)
	}
	if !o.Done() {
		t.Error("not done")
	}
	return ran, blocked
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		known      map[int]Known
		ignores    map[int][]int
		fail, hold int
		ran, why   string
	}{
		{"plain", nil, nil, -1, -1, "0123", ""},
		{"forced below a failed one", map[int]Known{0: Failed, 1: Forced}, nil, -1, -1, "13", "2 by 1 held true; "},
		{"forced below a held one", map[int]Known{0: Held, 1: Forced}, nil, -1, -1, "13", "2 by 1 held true; "},
		{"forced below a finished one", map[int]Known{0: Succeeded, 1: Forced}, nil, -1, -1, "13", "2 by 1 held true; "},
		{"forced beside its upstream", map[int]Known{1: Forced}, nil, -1, -1, "013", "2 by 1 held true; "},
		{"forced and failing", map[int]Known{0: Failed, 1: Forced}, nil, 1, -1, "13", "2 by 1 held true; "},
		{"both forced", map[int]Known{1: Forced, 2: Forced}, nil, -1, -1, "0123", ""},
		{"finished, but paused", map[int]Known{0: Holds}, nil, -1, -1, "3", "1 by 0 held true; 2 by 1 held true; "},
		{"finished below a paused one", map[int]Known{0: Holds, 1: Succeeded}, nil, -1, -1, "23", ""},
		{"a dependency removed", map[int]Known{0: Failed}, map[int][]int{1: {0}}, -1, -1, "123", ""},
		{"removed, and it fails later", nil, map[int][]int{1: {0}}, 0, -1, "0123", ""},
		{"no such dependency", map[int]Known{0: Failed}, map[int][]int{1: {3, 0, 0, 9}}, -1, -1, "123", ""},
		{"found paused", nil, nil, -1, 0, "03", "1 by 0 held true; 2 by 1 held true; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ran, why := drain(t, orderOf(t, c.known, c.ignores), c.fail, c.hold)
			if ran != c.ran || why != c.why {
				t.Errorf("ran %s, blocked %q; want %s, %q", ran, why, c.ran, c.why)
			}
		})
	}
}

// TestRandomHolds: whatever is known and removed, nothing starts twice, every
// instance ends once, and no order is stuck.
func TestRandomHolds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		nodes, dates := 1+rnd.IntN(6), 1+rnd.IntN(3)
		cfg := Config{Nodes: nodes, Groups: [][]bizdate.Date{nil}}
		for d := range dates {
			cfg.Groups[0] = append(cfg.Groups[0], bizdate.Date(d))
		}
		for a := range nodes {
			for b := a + 1; b < nodes; b++ {
				if rnd.IntN(2) == 0 {
					cfg.Edges = append(cfg.Edges, Edge{a, b})
				}
			}
		}
		cfg.Known = func(Item) Known {
			return []Known{ToRun, ToRun, ToRun, Succeeded, Failed, Held, Forced, Holds}[rnd.IntN(8)]
		}
		cfg.Ignores = func(it Item) []int {
			if it.Node == 0 || rnd.IntN(3) > 0 {
				return nil
			}
			return []int{rnd.IntN(it.Node)}
		}
		o, err := NewOrder(cfg)
		if err != nil {
			t.Fatal(seed, err)
		}
		started := map[Item]bool{}
		var open []Item
		for {
			it, ok := o.Next()
			if ok {
				if started[it] {
					t.Fatalf("seed %d: %+v starts twice", seed, it)
				}
				started[it] = true
				open = append(open, it)
				continue
			}
			if len(open) == 0 {
				break
			}
			i := rnd.IntN(len(open))
			it = open[i]
			open = append(open[:i], open[i+1:]...)
			if rnd.IntN(5) == 0 {
				_, err = o.Hold(it)
			} else {
				_, err = o.Finish(it, rnd.IntN(4) > 0)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if !o.Done() || o.Running() != 0 {
			t.Fatalf("seed %d: stuck", seed)
		}
		for it := range o.Remaining() {
			t.Fatalf("seed %d: %+v was forgotten", seed, it)
		}
	}
}
