package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// ErrChanged is wrapped when an instance is no longer in the state in which
// an operation was checked: check it again.
var ErrChanged = errors.New("the instance has changed meanwhile")

// Change is what an operation does to one instance.
type Change struct {
	Key Key
	// From is the state in which the operation was checked, To the one that it
	// makes.
	From, To status.State
	// Reason says why, for the record ("" keeps what is there).
	Reason string
	// Forced lets it run whatever its upstream, once.
	Forced bool
	// Halt asks the process that runs it to end it; From and To are equal.
	Halt bool
}

// Removal is a dependency that no longer counts for one instance: on the
// instances of a node on a business date.
type Removal struct {
	Key    Key
	UpNode int // index into Plan.Nodes
	UpDate bizdate.Date
}

// Steering is one operation of a user on a backfill (semantics §6.8): all of
// it happens, or nothing.
type Steering struct {
	Backfill string
	Changes  []Change
	Removed  []Removal
	// Pause sets or clears the pause flag of the backfill as a whole.
	Pause *bool
	// Signal asks the process that runs it: "stop" or "kill".
	Signal string
	// Operation goes into the operations log; At and Backfill are set here.
	Operation Operation
}

// Steer carries an operation out, in one transaction with its record. The
// process that runs the backfill sees it with its next heartbeat. Errors:
// ErrNotFound, ErrChanged.
func (l *Ledger) Steer(ctx context.Context, s Steering) error {
	what := s.Operation.Op + " " + s.Backfill
	return l.apply(ctx, what, func(t *tx) error {
		var id int64
		found, err := t.get(&id, "UPDATE backfills SET steered = steered + 1 WHERE name = ? RETURNING id", s.Backfill)
		if err != nil {
			return err
		}
		if !found {
			return notFound(s.Backfill)
		}
		for i := range s.Changes {
			if err := t.change(id, &s.Changes[i]); err != nil {
				return fmt.Errorf("ledger: %s: %w", what, err)
			}
		}
		for _, r := range s.Removed {
			if _, err := t.exec("INSERT INTO removed_dependencies VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
				id, r.Key.Node, int(r.Key.Date), r.Key.Slot, r.UpNode, int(r.UpDate)); err != nil {
				return err
			}
		}
		if s.Pause != nil {
			if _, err := t.exec("UPDATE backfills SET paused = ? WHERE id = ?", *s.Pause, id); err != nil {
				return err
			}
		}
		if s.Signal != "" {
			if _, err := t.exec("UPDATE backfills SET signal = ? WHERE id = ?", s.Signal, id); err != nil {
				return err
			}
		}
		o := s.Operation
		_, err = t.exec("INSERT INTO operations (at, by_whom, op, backfill, target, reason, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
			toMicros(t.now), o.By, o.Op, s.Backfill, o.Target, o.Reason, o.Detail)
		return err
	})
}

// change checks and changes one instance.
func (t *tx) change(id int64, c *Change) error {
	k := c.Key
	var row struct {
		Status string
		Paused bool
	}
	found, err := t.get(&row, "SELECT status, paused FROM instances WHERE backfill = ? AND node = ? AND date = ? AND slot = ?",
		id, k.Node, int(k.Date), k.Slot)
	if err != nil {
		return err
	}
	now := status.State{}
	if found {
		if now.Status, err = status.Parse(row.Status); err != nil {
			return err
		}
		now.Paused = row.Paused
	}
	if now != c.From {
		return fmt.Errorf("%s is %s: %w", k.SlotID(), now.Status, ErrChanged)
	}
	finished := micros(0)
	if c.To.Status == status.Succeeded {
		finished = toMicros(t.now)
	}
	if !found {
		_, err := t.exec(`INSERT INTO instances (backfill, node, date, slot, status, paused, reason, forced, halted, finished_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, k.Node, int(k.Date), k.Slot, c.To.Status.String(), c.To.Paused, c.Reason, c.Forced, c.Halt, finished)
		return err
	}
	if now.Status == c.To.Status && !c.Forced { // a flag, or a wish
		_, err := t.exec(`UPDATE instances SET paused = ?, halted = ?, reason = CASE status WHEN 'pending' THEN ? ELSE reason END
			WHERE backfill = ? AND node = ? AND date = ? AND slot = ?`, c.To.Paused, c.Halt, c.Reason, id, k.Node, int(k.Date), k.Slot)
		return err
	}
	_, err = t.exec(`UPDATE instances SET status = ?, paused = ?, reason = ?, error = '', rows = CASE ? WHEN 'succeeded' THEN -1 ELSE 0 END,
		finished_at = ?, forced = ?, halted = 0 WHERE backfill = ? AND node = ? AND date = ? AND slot = ?`,
		c.To.Status.String(), c.To.Paused, c.Reason, c.To.Status.String(), finished, c.Forced, id, k.Node, int(k.Date), k.Slot)
	return err
}

// Removals gives the dependencies that users removed in a backfill.
// ErrNotFound.
func (l *Ledger) Removals(ctx context.Context, name string) ([]Removal, error) {
	b, err := l.row(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.removals(ctx, b.ID)
}

func (l *Ledger) removals(ctx context.Context, id int64) ([]Removal, error) {
	var rows []struct {
		Node   int
		Date   int
		Slot   string
		UpNode int `db:"up_node"`
		UpDate int `db:"up_date"`
	}
	err := l.list(ctx, "read removed dependencies", &rows,
		"SELECT node, date, slot, up_node, up_date FROM removed_dependencies WHERE backfill = ? ORDER BY node, date, slot, up_node, up_date", id)
	out := make([]Removal, len(rows))
	for i, r := range rows {
		out[i] = Removal{Key: Key{Node: r.Node, Date: bizdate.Date(r.Date), Slot: r.Slot}, UpNode: r.UpNode, UpDate: bizdate.Date(r.UpDate)}
	}
	return out, err
}

// Removals is Ledger.Removals for the claimed backfill.
func (c *Claim) Removals(ctx context.Context) ([]Removal, error) { return c.l.removals(ctx, c.id) }

// Marker gives what commit markers call the claimed backfill: its name with
// the ledger's random identity, so that the markers of a backfill with the
// same name in another ledger (a deleted one, for example) are never taken for
// its own.
func (c *Claim) Marker() string { return c.marker }

// Signals that Heartbeat gives beside "": the wishes of other processes.
const (
	SignalStop  = "stop"  // let running instances finish, begin nothing new
	SignalKill  = "kill"  // end them
	SignalPause = "pause" // like stop; the backfill stays paused
	SignalSteer = "steer" // records have been changed: look at them again
)

// beat is what a heartbeat reads.
type beat struct {
	Signal  string
	Paused  bool
	Steered int64
}

// signal gives the strongest wish that is new.
func (c *Claim) signal(b beat) string {
	fresh := c.steered.Swap(b.Steered) != b.Steered
	switch {
	case b.Signal != "":
		return b.Signal
	case b.Paused:
		return SignalPause
	case fresh:
		return SignalSteer
	}
	return ""
}

// insertHeld gives the instances of a paused node their flag, so that they are
// seen, and released one by one (semantics §6.5).
func insertHeld(t *tx, id int64, node int, p *plan.Plan) error {
	n := &p.Nodes[node]
	if !n.Paused {
		return nil
	}
	x, err := plan.NewExpander(p)
	if err != nil {
		return err
	}
	for _, s := range n.Steps {
		if s.Strategy == plan.DryRun {
			continue
		}
		for _, r := range s.Dates {
			for d := r.From; d <= r.To; d++ {
				for _, slot := range x.Slots(node, d) {
					k := KeyOf(plan.Instance{Node: node, Slot: slot})
					if _, err := t.exec(`INSERT INTO instances (backfill, node, date, slot, status, paused, reason) VALUES (?, ?, ?, ?, 'pending', 1, ?)`,
						id, k.Node, int(k.Date), k.Slot, "the node is paused"); err != nil {
						return fmt.Errorf("store pause of %s: %w", n.Name, err)
					}
				}
			}
		}
	}
	return nil
}

var _ planner.ParamLedger = (*Ledger)(nil)

// ParamValues is Values for planning.
func (l *Ledger) ParamValues(ctx context.Context, environment, node, param string, from, to bizdate.Date) ([]planner.ParamValue, error) {
	list, err := l.Values(ctx, environment, node, param, from, to)
	out := make([]planner.ParamValue, len(list))
	for i, v := range list {
		out[i] = planner.ParamValue{Date: v.Date, Value: v.Value, FinishedAt: v.FinishedAt}
	}
	return out, err
}
