package groups

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// dates gives n groups of the given sizes, consecutive from date 0.
func dates(sizes ...int) [][]bizdate.Date {
	var out [][]bizdate.Date
	next := bizdate.Date(0)
	for _, n := range sizes {
		var g []bizdate.Date
		for range n {
			g = append(g, next)
			next++
		}
		out = append(out, g)
	}
	return out
}

// run drives an order with a number of workers that always finish the oldest
// instance first, and gives a trace: "+g/d/n" started, "-" finished well, "!"
// failed, "x" blocked (by node@date), "·" never started.
func run(t *testing.T, cfg Config, workers int, fails ...Item) string {
	t.Helper()
	o, err := NewOrder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var trace []string
	say := func(what string, it Item) {
		trace = append(trace, fmt.Sprintf("%s%d/%d/%d", what, it.Group, it.Date, it.Node))
	}
	note := func(bs []Blocked) {
		for _, b := range bs {
			by := fmt.Sprintf("(%d@%d)", b.By, b.On)
			if b.Held {
				by = fmt.Sprintf("(held %d)", b.By)
			}
			trace = append(trace, fmt.Sprintf("x%d/%d/%d%s", b.Group, b.Date, b.Node, by))
		}
	}
	note(o.Blocked())
	var busy []Item
	for {
		for len(busy) < workers {
			it, ok := o.Next()
			if !ok {
				break
			}
			say("+", it)
			busy = append(busy, it)
		}
		if o.Running() != len(busy) {
			t.Fatalf("%d running, want %d", o.Running(), len(busy))
		}
		if len(busy) == 0 {
			break
		}
		it := busy[0]
		busy = busy[1:]
		bad := slices.Contains(fails, it)
		say(map[bool]string{true: "!", false: "-"}[bad], it)
		blocked, err := o.Finish(it, !bad)
		if err != nil {
			t.Fatal(err)
		}
		note(blocked)
	}
	if !o.Done() {
		t.Fatal("stuck: " + strings.Join(trace, " "))
	}
	for it := range o.Remaining() {
		say("·", it)
	}
	return strings.Join(trace, " ")
}

func TestOrderTraces(t *testing.T) {
	t.Parallel()
	chain := []Edge{{0, 1}, {1, 2}, {0, 1}} // and a repeated edge
	for name, c := range map[string]struct {
		cfg     Config
		workers int
		fails   []Item
		want    string
	}{
		"a date ends before the next": {Config{Groups: dates(2), Nodes: 2}, 3, nil,
			"+0/0/0 +0/0/1 -0/0/0 -0/0/1 +0/1/0 +0/1/1 -0/1/0 -0/1/1"},
		"groups share few workers": {Config{Groups: dates(1, 1), Nodes: 2}, 2, nil,
			"+0/0/0 +1/0/0 -0/0/0 +0/0/1 -1/0/0 +1/0/1 -0/0/1 -1/0/1"},
		"continue": {Config{Groups: dates(2), Nodes: 3, Edges: chain}, 1, []Item{{0, 0, 0}},
			"+0/0/0 !0/0/0 x0/0/1(0@0) x0/0/2(1@0) +0/1/0 -0/1/0 +0/1/1 -0/1/1 +0/1/2 -0/1/2"},
		"independent nodes of a failed date run on": {Config{Groups: dates(2), Nodes: 3, Edges: []Edge{{0, 1}}, Policy: StopGroup}, 1, []Item{{0, 0, 0}},
			"+0/0/0 !0/0/0 x0/0/1(0@0) +0/0/2 -0/0/2 ·0/1/0 ·0/1/1 ·0/1/2"},
		"stop group leaves the other group": {Config{Groups: dates(2, 2), Nodes: 1, Policy: StopGroup}, 2, []Item{{0, 0, 0}},
			"+0/0/0 +1/0/0 !0/0/0 -1/0/0 +1/1/0 -1/1/0 ·0/1/0"},
		"stop lets what runs finish": {Config{Groups: dates(1, 2), Nodes: 2, Edges: []Edge{{0, 1}}, Policy: Stop}, 2, []Item{{0, 0, 0}},
			"+0/0/0 +1/0/0 !0/0/0 x0/0/1(0@0) -1/0/0 ·1/0/1 ·1/1/0 ·1/1/1"},
		"fail fast": {Config{Groups: dates(2), Nodes: 2, Policy: FailFast}, 1, []Item{{0, 0, 0}},
			"+0/0/0 !0/0/0 ·0/0/1 ·0/1/0 ·0/1/1"},
		"a self dependency blocks the next dates": {Config{Groups: dates(3), Nodes: 2, Edges: []Edge{{0, 1}}, Lags: []Lag{{0, 0, 1, 1}}}, 1, []Item{{0, 0, 0}},
			"+0/0/0 !0/0/0 x0/0/1(0@0) x0/1/0(0@0) x0/1/1(0@1) x0/2/0(0@1) x0/2/1(0@2)"},
		"a look-back blocks as far as it reaches": {Config{Groups: dates(4), Nodes: 2, Lags: []Lag{{0, 1, 1, 2}}}, 2, []Item{{0, 0, 0}},
			"+0/0/0 +0/0/1 !0/0/0 -0/0/1 x0/1/1(0@0) +0/1/0 -0/1/0 x0/2/1(0@0) +0/2/0 -0/2/0 +0/3/0 +0/3/1 -0/3/0 -0/3/1"},
		"a resumed run": {Config{Groups: dates(3), Nodes: 3, Edges: chain, Known: func(it Item) Known {
			return []Known{Succeeded, Succeeded, Succeeded, Failed, ToRun, Succeeded, Succeeded, ToRun, ToRun}[it.Date*3+it.Node]
		}}, 2, nil,
			"x0/1/1(0@1) +0/2/1 -0/2/1 +0/2/2 -0/2/2"},
		"a held node": {Config{Groups: dates(2), Nodes: 4, Edges: chain, Known: func(it Item) Known {
			if it == (Item{0, 0, 0}) {
				return Held
			}
			return ToRun
		}}, 2, nil,
			"x0/0/1(held 0) x0/0/2(held 1) +0/0/3 -0/0/3 +0/1/0 +0/1/3 -0/1/0 +0/1/1 -0/1/3 -0/1/1 +0/1/2 -0/1/2"},
		"no nodes": {Config{Groups: dates(2, 1)}, 1, nil, ""},
		"no dates": {Config{Nodes: 2, Edges: []Edge{{0, 1}}}, 1, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, c.cfg, c.workers, c.fails...)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if again := run(t, c.cfg, c.workers, c.fails...); again != got {
				t.Errorf("a second run differs: %s", again)
			}
		})
	}
}

func TestOrderMisuse(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"cycle":             {Groups: dates(1), Nodes: 3, Edges: []Edge{{0, 1}, {1, 2}, {2, 1}}},
		"self edge":         {Groups: dates(1), Nodes: 1, Edges: []Edge{{0, 0}}},
		"unknown node":      {Groups: dates(1), Nodes: 1, Edges: []Edge{{0, 1}}},
		"lag and groups":    {Groups: dates(1, 1), Nodes: 1, Lags: []Lag{{0, 0, 1, 1}}},
		"lag and desc":      {Groups: [][]bizdate.Date{{2, 1}}, Nodes: 1, Lags: []Lag{{0, 0, 1, 1}}},
		"lag into the same": {Groups: dates(1), Nodes: 1, Lags: []Lag{{0, 0, 0, 1}}},
	} {
		if _, err := NewOrder(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	o, err := NewOrder(Config{Groups: dates(2), Nodes: 2, Edges: []Edge{{0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range []Item{{0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {0, 0, 2}, {-1, 0, 0}, {0, -1, 0}} {
		if o.Start(it) == nil {
			t.Errorf("%+v starts", it)
		}
		if _, err := o.Finish(it, true); err == nil {
			t.Errorf("%+v finishes", it)
		}
	}
	first := Item{}
	if err := o.Start(first); err != nil || o.Start(first) == nil {
		t.Error("an instance must start exactly once")
	}
	o.Stop()
	if _, err := o.Finish(first, true); err != nil || !o.Done() || len(o.Ready()) != 0 {
		t.Error("after Stop nothing is ready and running instances still finish")
	}
	if got := slices.Collect(o.Remaining()); len(got) != 3 {
		t.Errorf("remaining %v", got)
	}
}

// TestOrderProperties runs random graphs and checks each start against the
// definition: upstream done, earlier dates of the group over, nothing twice.
func TestOrderProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		cfg := Config{Nodes: 1 + r.IntN(12), Policy: []Policy{"", Continue, StopGroup, Stop, FailFast}[r.IntN(5)]}
		var sizes []int
		for range 1 + r.IntN(4) {
			sizes = append(sizes, 1+r.IntN(4))
		}
		cfg.Groups = dates(sizes...)
		perm := r.Perm(cfg.Nodes)
		for range r.IntN(2 * cfg.Nodes) {
			if a, b := r.IntN(cfg.Nodes), r.IntN(cfg.Nodes); a < b {
				cfg.Edges = append(cfg.Edges, Edge{perm[a], perm[b]})
			}
		}
		o, err := NewOrder(cfg)
		if err != nil {
			t.Fatal(err)
		}
		end := map[Item]string{}
		var busy []Item
		anyFailed := false
		for {
			ready := o.Ready()
			if len(ready) > 0 && (len(busy) == 0 || r.IntN(2) == 0) {
				it := ready[r.IntN(len(ready))]
				if r.IntN(2) == 0 {
					it, _ = o.Next()
				} else if err := o.Start(it); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if !slices.Contains(ready, it) || end[it] != "" {
					t.Fatalf("seed %d: %+v started, ready %v, state %q", seed, it, ready, end[it])
				}
				for _, e := range cfg.Edges {
					if e.To == it.Node && end[Item{it.Group, it.Date, e.From}] != "ok" {
						t.Fatalf("seed %d: %+v started before node %d", seed, it, e.From)
					}
				}
				for d := range it.Date {
					for n := range cfg.Nodes {
						if s := end[Item{it.Group, d, n}]; s == "" || s == "running" {
							t.Fatalf("seed %d: %+v started before date %d was over", seed, it, d)
						}
					}
				}
				if anyFailed && (cfg.Policy == Stop || cfg.Policy == FailFast) {
					t.Fatalf("seed %d: %+v started after a failure", seed, it)
				}
				end[it] = "running"
				busy = append(busy, it)
				continue
			}
			if len(busy) == 0 {
				break
			}
			i := r.IntN(len(busy))
			it := busy[i]
			busy = slices.Delete(busy, i, i+1)
			ok := r.IntN(5) > 0
			blocked, err := o.Finish(it, ok)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			end[it] = map[bool]string{true: "ok", false: "failed"}[ok]
			anyFailed = anyFailed || !ok
			for _, b := range blocked {
				if up := end[Item{b.Group, b.Date, b.By}]; end[b.Item] != "" || up != "failed" && !slices.ContainsFunc(blocked, func(o Blocked) bool { return o.Item == Item{b.Group, b.Date, b.By} }) {
					t.Fatalf("seed %d: %+v is blocked without a reason", seed, b)
				}
			}
			for _, b := range blocked {
				end[b.Item] = "blocked"
			}
		}
		if !o.Done() || o.Cancel() != (anyFailed && cfg.Policy == FailFast) {
			t.Fatalf("seed %d: done %v, cancel %v", seed, o.Done(), o.Cancel())
		}
		for it := range o.Remaining() {
			if end[it] != "" {
				t.Fatalf("seed %d: %+v remains but is %s", seed, it, end[it])
			}
			end[it] = "remains"
		}
		total := 0
		for _, n := range sizes {
			total += n * cfg.Nodes
		}
		if len(end) != total {
			t.Fatalf("seed %d: %d of %d instances accounted for", seed, len(end), total)
		}
		if !anyFailed && slices.Contains(slices.Collect(maps.Values(end)), "remains") {
			t.Fatalf("seed %d: instances remain without a failure", seed)
		}
	}
}

// BenchmarkOrder walks 10,000 nodes × 400 dates in 12 groups: 4 million
// instances, with two upstream nodes each.
func BenchmarkOrder(b *testing.B) {
	cfg := Config{Nodes: 10_000, Groups: dates(34, 34, 34, 34, 33, 33, 33, 33, 33, 33, 33, 33)}
	for n := 1; n < cfg.Nodes; n++ {
		cfg.Edges = append(cfg.Edges, Edge{n / 2, n}, Edge{n * 2 / 3, n})
	}
	cfg.Edges = slices.DeleteFunc(cfg.Edges, func(e Edge) bool { return e.From == e.To })
	b.ReportAllocs()
	for b.Loop() {
		o, err := NewOrder(cfg)
		if err != nil {
			b.Fatal(err)
		}
		count := 0
		busy := make([]Item, 0, 64)
		for {
			for len(busy) < 64 {
				it, ok := o.Next()
				if !ok {
					break
				}
				busy = append(busy, it)
			}
			if len(busy) == 0 {
				break
			}
			it := busy[len(busy)-1]
			busy = busy[:len(busy)-1]
			if _, err := o.Finish(it, true); err != nil {
				b.Fatal(err)
			}
			count++
		}
		if count != 4_000_000 {
			b.Fatal(count)
		}
	}
}
