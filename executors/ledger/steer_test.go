package ledger

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// small is a plan of one node on two dates.
func small(name string) plan.Plan {
	d := bizdate.Of(2024, 1, 1)
	dates := []bizdate.Date{d, d + 1}
	return plan.Plan{
		Backfill: name, Project: "p", Environment: "dev", Zone: "UTC", Dialect: "dataphin", Order: "asc", Dates: dates, Groups: [][]bizdate.Date{dates}, Instances: 2,
		Nodes: []plan.Node{{Name: "a", Kind: "fact", Strategy: plan.Rewrite, Steps: []plan.Step{{ID: "real", Strategy: plan.Rewrite, Dates: plan.Ranges(dates), Instances: 2}}}},
	}
}

func openAt(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path, Options{Clock: fixed, Unflushed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestMigrateSteering brings a backfill of version 2 to the newest one: its
// markers in the target keep their name, those of new backfills carry the
// ledger's identity.
func TestMigrateSteering(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "v2.db")
	migrateTo(t, path, migrations()[:2])
	db, err := sqlx.Open("sqlite", dsn(path, false))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := plan.Encode(small("old"))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := pack(doc)
	if err != nil {
		t.Fatal(err)
	}
	db.MustExecContext(t.Context(), `INSERT INTO backfills (name, project, environment, status, created_at, instances, request, plan, plan_digest)
		VALUES ('old', 'p', 'dev', 'stopped', 1, 2, '{}', ?, 'x')`, packed)
	db.MustExecContext(t.Context(), `INSERT INTO backfill_nodes VALUES (1, 0, 'a', 'fact', 0, 2)`)
	db.MustExecContext(t.Context(), `INSERT INTO instances (backfill, node, date, slot, status, attempt) VALUES (1, 0, ?, '', 'failed', 1)`, int(bizdate.Of(2024, 1, 1)))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	l := openAt(t, path)
	b, err := l.Backfill(t.Context(), "old")
	if err != nil || b.Marker != "old" || b.Paused || !b.RunAt.IsZero() {
		t.Fatalf("%+v, %v", b, err)
	}
	c, err := l.Claim(t.Context(), "old", Owner{Host: "h", PID: 1})
	if err != nil || c.Marker() != "old" {
		t.Fatal(c, err)
	}
	k := Key{Date: bizdate.Of(2024, 1, 1)}
	if err := l.Steer(t.Context(), Steering{Backfill: "old", Changes: []Change{{Key: k, From: status.State{Status: status.Failed}, To: status.State{}, Reason: "again"}}}); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Start(t.Context(), k); err != nil || a.Number != 2 {
		t.Fatal(a, err)
	}
	if err := c.End(t.Context(), Stopped, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), small("new"), Owner{}); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Backfill(t.Context(), "new"); err != nil || !strings.HasPrefix(b.Marker, "new@") || len(b.Marker) != len("new@")+12 {
		t.Fatalf("%+v, %v", b, err)
	}
}

// TestIdentity: a recreated ledger gives the same name another marker.
func TestIdentity(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		l := openAt(t, filepath.Join(t.TempDir(), "l.db"))
		if _, err := l.Create(t.Context(), small("b"), Owner{}); err != nil {
			t.Fatal(err)
		}
		b, err := l.Backfill(t.Context(), "b")
		if err != nil || seen[b.Marker] {
			t.Fatalf("%+v, %v", b, err)
		}
		seen[b.Marker] = true
	}
}

func TestSteer(t *testing.T) {
	t.Parallel()
	l := openAt(t, filepath.Join(t.TempDir(), "l.db"))
	if _, err := l.Create(t.Context(), small("b"), Owner{Host: "h", PID: 1}); err != nil {
		t.Fatal(err)
	}
	c, err := l.Claim(t.Context(), "b", Owner{Host: "h", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	beat := func(want string) {
		t.Helper()
		if got, err := c.Heartbeat(t.Context()); got != want || err != nil {
			t.Errorf("heartbeat %q, %v; want %q", got, err, want)
		}
	}
	one, two := Key{Date: bizdate.Of(2024, 1, 1)}, Key{Date: bizdate.Of(2024, 1, 2)}
	pending, paused := status.State{}, status.State{Paused: true}
	beat("")
	// All or nothing: the second change does not fit.
	err = l.Steer(t.Context(), Steering{Backfill: "b", Operation: Operation{Op: "pause", By: "eve"}, Changes: []Change{
		{Key: one, From: pending, To: paused}, {Key: two, From: status.State{Status: status.Failed}, To: pending}}})
	if !errors.Is(err, ErrChanged) {
		t.Fatal(err)
	}
	if list, err := l.Instances(t.Context(), "b", Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	beat("")
	if ops, err := l.Operations(t.Context(), "b"); err != nil || len(ops) != 0 {
		t.Errorf("%+v, %v", ops, err)
	}
	if err := l.Steer(t.Context(), Steering{Backfill: "b", Operation: Operation{Op: "pause", By: "eve", Reason: "why", Target: "a@2024-01-01"}, Changes: []Change{
		{Key: one, From: pending, To: paused, Reason: "paused by eve"}}, Removed: []Removal{{Key: two, UpNode: 3, UpDate: two.Date - 1}}}); err != nil {
		t.Fatal(err)
	}
	beat(SignalSteer)
	beat("")
	if _, err := c.Start(t.Context(), one); !errors.Is(err, ErrPaused) {
		t.Errorf("started: %v", err)
	}
	if r, err := c.Removals(t.Context()); err != nil || len(r) != 1 || r[0] != (Removal{Key: two, UpNode: 3, UpDate: two.Date - 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	if list, err := l.Instances(t.Context(), "b", Filter{Paused: true}); err != nil || len(list) != 1 || list[0].Reason != "paused by eve" {
		t.Errorf("%+v, %v", list, err)
	}
	on := true
	if err := l.Steer(t.Context(), Steering{Backfill: "b", Pause: &on, Operation: Operation{Op: "pause"}}); err != nil {
		t.Fatal(err)
	}
	beat(SignalPause)
	beat(SignalPause) // as long as it is paused
	if err := l.Steer(t.Context(), Steering{Backfill: "b", Signal: SignalKill, Operation: Operation{Op: "stop"}}); err != nil {
		t.Fatal(err)
	}
	beat(SignalKill)
	if err := l.Steer(t.Context(), Steering{Backfill: "none"}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	ops, err := l.Operations(t.Context(), "b")
	if err != nil || len(ops) != 3 || ops[0].By != "eve" || ops[0].Reason != "why" || ops[0].Target != "a@2024-01-01" || !ops[0].At.Equal(fixed()) {
		t.Errorf("%+v, %v", ops, err)
	}
}
