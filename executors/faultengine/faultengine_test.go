package faultengine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors"
)

func unit(instance string, attempt int) executors.Unit {
	return executors.Unit{
		Marker: executors.Marker{Backfill: "b", Instance: instance, Attempt: attempt, Token: 1},
		Statements: []executors.Statement{
			{Role: executors.RoleDelete, Target: "t", SQL: "delete"},
			{Role: executors.RoleInsert, Target: "t", SQL: "insert"},
			{Role: executors.RoleFacts, SQL: "facts"},
		},
	}
}

// run is the least that a runner does: three attempts for transient errors, a
// look-up for ambiguous ones.
func run(ctx context.Context, e *Engine, instances []string) error {
	for _, instance := range instances {
		for attempt := 1; ; attempt++ {
			u := unit(instance, attempt)
			out, _, err := e.Lookup(ctx, u.Marker)
			if err != nil {
				return err
			}
			if out == executors.Committed {
				break
			}
			_, err = e.Execute(ctx, u)
			if err == nil {
				break
			}
			if c := e.Classify(err); attempt == 3 || c != executors.Transient && c != executors.Ambiguous {
				return err
			}
		}
	}
	return nil
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, trace, store, err string
	}{
		{"nothing", "", `
lookup a #1: not committed
begin a #1
commit a #1
lookup b #1: not committed
begin b #1
commit b #1
`, "a #1\nb #1\n", ""},
		{"transient twice", "transient before statement 2 of b times 2", `
lookup a #1: not committed
begin a #1
commit a #1
lookup b #1: not committed
begin b #1
fault b #1: transient before statement 2 of b times 2
rollback b #1: statement 2 (insert): scripted transient error before statement 2 of b
lookup b #2: not committed
begin b #2
fault b #2: transient before statement 2 of b times 2
rollback b #2: statement 2 (insert): scripted transient error before statement 2 of b
lookup b #3: not committed
begin b #3
commit b #3
`, "a #1\nb #3\n", ""},
		{"ambiguous, there", "ambiguous after commit of a", `
lookup a #1: not committed
begin a #1
commit a #1
fault a #1: ambiguous after commit of a
lookup a #2: committed by attempt 1
lookup b #1: not committed
begin b #1
commit b #1
`, "a #1\nb #1\n", ""},
		{"ambiguous, not there", "ambiguous before commit of *", `
lookup a #1: not committed
begin a #1
fault a #1: ambiguous before commit of *
rollback a #1: scripted ambiguous error before commit of a
lookup a #2: not committed
begin a #2
commit a #2
lookup b #1: not committed
begin b #1
commit b #1
`, "a #2\nb #1\n", ""},
		{"fail after a statement", "fail after statement 1 of b attempt 1 # comment", `
lookup a #1: not committed
begin a #1
commit a #1
lookup b #1: not committed
begin b #1
fault b #1: fail after statement 1 of b attempt 1
rollback b #1: statement 1 (delete): scripted permanent error after statement 1 of b
`, "a #1\n", "statement 1 (delete): scripted permanent error after statement 1 of b"},
		{"crash", "crash after commit of a", `
lookup a #1: not committed
begin a #1
commit a #1
fault a #1: crash after commit of a
`, "a #1\n", "the process died"},
		{"look-up fails", "lock before lookup skip 1", `
lookup a #1: not committed
begin a #1
commit a #1
fault b #1: lock before lookup skip 1
`, "a #1\n", "scripted locked error before lookup of b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			faults, err := ParseFaults(c.script)
			if err != nil {
				t.Fatal(err)
			}
			var trace Trace
			var store Store
			err = run(t.Context(), New(&store, Options{Faults: faults, Trace: &trace}), []string{"a", "b"})
			if d := cmp.Diff(strings.TrimPrefix(c.trace, "\n"), trace.String()); d != "" {
				t.Errorf("trace (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.store, store.String()); d != "" {
				t.Errorf("store (-want +got):\n%s", d)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.err {
				t.Errorf("error %q, want %q", got, c.err)
			}
		})
	}
}

func TestParseRoundTrip(t *testing.T) {
	t.Parallel()
	script := `crash before commit of fct@2013-01-02
crash after statement 2 of fct@* attempt 1
transient before statement 1 of dim@* times 3
ambiguous after commit skip 4
delay 3s before statement of fct@* always
fail before lookup
lock before prepare
fail before query
fail before catalog`
	faults, err := ParseFaults(script)
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	for _, f := range faults {
		back = append(back, f.String())
	}
	if d := cmp.Diff(strings.Split(script, "\n"), back); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{
		"explode before commit", "crash around commit", "crash before dinner", "crash after lookup", "crash before commit of",
		"crash before commit times 0", "crash before commit skip x", "delay before commit", "crash before commit at noon", "crash",
	} {
		if _, err := ParseFaults("# one\n" + bad); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a@1", "a@1", true}, {"a@1", "a@11", false}, {"*", "", true}, {"a@*", "a@2013", true}, {"*@1", "a@1", true},
		{"a*c*e", "abcde", true}, {"a*c*e", "ace", true}, {"a*a", "a", false}, {"a**b", "ab", true}, {"a*b", "ba", false},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

// TestEveryCrash dies at every step and resumes: whatever the moment, each
// instance is committed exactly once in the end.
func TestEveryCrash(t *testing.T) {
	t.Parallel()
	instances := []string{"a", "b", "c"}
	for at := 1; ; at++ {
		var store Store
		first := &Process{CrashAt: at}
		err := run(t.Context(), New(&store, Options{Process: first}), instances)
		if err == nil {
			if want := 3*len(instances) + 1; at != want {
				t.Errorf("%d moments, want %d", at, want)
			}
			return
		}
		if !errors.Is(err, ErrCrash) {
			t.Fatalf("step %d: %v", at, err)
		}
		if first.Where() == "" || first.Steps() != at {
			t.Errorf("where %q after %d steps", first.Where(), first.Steps())
		}
		if err := run(t.Context(), New(&store, Options{}), instances); err != nil {
			t.Fatalf("resume after step %d: %v", at, err)
		}
		if d := cmp.Diff("a #1\nb #1\nc #1\n", store.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", first.Where(), d)
		}
	}
}

// TestDeadProcessWritesNothing: other units that are under way when the
// process dies leave nothing.
func TestDeadProcessWritesNothing(t *testing.T) {
	t.Parallel()
	var store Store
	e := New(&store, Options{Faults: []Fault{{Action: Crash, Point: PointCommit, Instance: "a"}}})
	other := unit("b", 1)
	other.Accept = func(executors.Facts) error {
		_, err := e.Execute(t.Context(), unit("a", 1))
		if !errors.Is(err, ErrCrash) {
			t.Errorf("a: %v", err)
		}
		return nil
	}
	if _, err := e.Execute(t.Context(), other); !errors.Is(err, ErrCrash) {
		t.Errorf("b: %v", err)
	}
	if _, _, err := e.Lookup(t.Context(), other.Marker); !errors.Is(err, ErrCrash) {
		t.Errorf("look-up: %v", err)
	}
	if err := e.Prepare(t.Context(), []string{"x"}); !errors.Is(err, ErrCrash) {
		t.Errorf("prepare: %v", err)
	}
	if s := store.String(); s != "" || len(store.DDL()) > 0 {
		t.Errorf("store: %q", s)
	}
}

func TestAcceptAndFence(t *testing.T) {
	t.Parallel()
	var store Store
	e := New(&store, Options{})
	u := unit("a", 1)
	refusal := errors.New("no")
	u.Accept = func(executors.Facts) error { return refusal }
	_, err := e.Execute(t.Context(), u)
	var rejected *executors.RejectedError
	if !errors.As(err, &rejected) || !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	u = unit("a", 2)
	u.Marker.Token = 5
	if _, err := e.Execute(t.Context(), u); err != nil {
		t.Error(err)
	}
	if _, err := e.Execute(t.Context(), unit("a", 3)); !errors.Is(err, executors.ErrFenced) {
		t.Errorf("error %v, want ErrFenced", err)
	}
	if d := cmp.Diff("a #2\n", store.String()); d != "" {
		t.Error(d)
	}
	if _, err := e.Execute(t.Context(), u); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"a"}, store.Repeated()); d != "" {
		t.Error(d)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var store Store
		e := New(&store, Options{Faults: []Fault{{Action: Delay, Point: PointStatement, Statement: 1, Delay: time.Hour, Times: -1}}})
		start := time.Now()
		if err := run(t.Context(), e, []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 2*time.Hour {
			t.Errorf("took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := e.Execute(ctx, unit("c", 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func BenchmarkFake(b *testing.B) {
	for name, opt := range map[string]Options{"bare": {}, "trace": {Trace: &Trace{}}, "fault": {Faults: []Fault{{Action: Crash, Instance: "none@*"}}}} {
		b.Run(name, func(b *testing.B) {
			var store Store
			e := New(&store, opt)
			names := make([]string, 1024)
			for i := range names {
				names[i] = fmt.Sprint("fct@", i)
			}
			i := 0
			for b.Loop() {
				if _, err := e.Execute(b.Context(), unit(names[i%len(names)], 1+i)); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
		})
	}
}
