package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// Claim is the right to run one backfill: it holds the newest fencing token.
// It is safe for concurrent use. Every write checks the token in its own
// transaction and fails with ErrFenced when another process has a newer one.
type Claim struct {
	l           *Ledger
	id          int64
	name        string
	environment string
	token       int64
	tookOver    []string
	marker      string
	steered     atomic.Int64 // the last operation that was seen
}

// Claim makes by the owner of a backfill, with a new fencing token and with
// the plan's leases. Errors: ErrNotFound, *OwnedError when a living process
// owns it, *PausedError when it is paused as a whole, *ConflictError when
// another backfill holds a lease.
func (l *Ledger) Claim(ctx context.Context, name string, by Owner) (*Claim, error) {
	p, err := l.Plan(ctx, name)
	if err != nil {
		return nil, err
	}
	c := &Claim{l: l, name: name, environment: p.Environment}
	err = l.apply(ctx, "claim backfill "+name, func(t *tx) error {
		var r backfillRow
		found, err := t.get(&r, "SELECT "+backfillColumns+" FROM backfills WHERE name = ?", name)
		if err != nil {
			return err
		}
		if !found {
			return notFound(name)
		}
		open := State(r.Status) == Running || State(r.Status) == Queued
		if open && r.owner() != by && l.alive(r, t.now) {
			return &OwnedError{Backfill: name, Owner: r.owner(), Beat: r.HeartbeatAt.time()}
		}
		if r.Paused {
			return &PausedError{Backfill: name}
		}
		c.marker = r.Marker
		c.steered.Store(r.Steered)
		// A user's wish to stop an instance ends with the run that it was for.
		if _, err := t.exec("UPDATE instances SET halted = 0 WHERE backfill = ? AND halted = 1", r.ID); err != nil {
			return err
		}
		c.id = r.ID
		if c.token, err = t.next("token"); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE backfills SET status = ?, note = '', signal = '', owner_host = ?, owner_pid = ?, heartbeat_at = ?,
			token = ?, finished_at = 0, started_at = CASE started_at WHEN 0 THEN ? ELSE started_at END WHERE id = ?`,
			string(Running), by.Host, by.PID, toMicros(t.now), c.token, toMicros(t.now), r.ID); err != nil {
			return err
		}
		c.tookOver, err = l.lease(t, r.ID, &p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Token gives the fencing token.
func (c *Claim) Token() int64 { return c.token }

// TookOver names the dead backfills whose leases the claim took.
func (c *Claim) TookOver() []string { return c.tookOver }

// apply runs fn in a transaction that fails if the claim is no longer the
// newest.
func (c *Claim) apply(ctx context.Context, what string, fn func(*tx) error) error {
	return c.l.apply(ctx, what, c.fenced(what, fn))
}

// fenced is fn, refused when the claim is not the newest.
func (c *Claim) fenced(what string, fn func(*tx) error) func(*tx) error {
	return func(t *tx) error {
		var token int64
		if _, err := t.get(&token, "SELECT token FROM backfills WHERE id = ?", c.id); err != nil {
			return err
		}
		if token != c.token {
			return fmt.Errorf("ledger: %s: %w", what, ErrFenced)
		}
		return fn(t)
	}
}

// Key names an instance inside its backfill.
type Key struct {
	Node int // index into Plan.Nodes
	Date bizdate.Date
	Slot string // slot id of a sub-daily slot, "" for a daily one
}

// KeyOf gives the key of a plan's instance.
func KeyOf(i plan.Instance) Key {
	k := Key{Node: i.Node, Date: i.Slot.Date}
	if i.Slot.SubDaily {
		k.Slot = i.Slot.ID()
	}
	return k
}

// SlotID gives the slot's id as people see it.
func (k Key) SlotID() string {
	if k.Slot != "" {
		return k.Slot
	}
	return k.Date.String()
}

// Attempt is one durable promise to ask the engine.
type Attempt struct {
	Number int   // from 1
	Token  int64 // fencing token
	Began  int64 // number drawn before any input is read
}

// Start makes the next attempt of an instance durable, before the engine is
// asked. Errors: ErrDone, ErrPaused, ErrFenced.
func (c *Claim) Start(ctx context.Context, k Key) (Attempt, error) {
	a := Attempt{Token: c.token}
	err := c.apply(ctx, "start "+k.SlotID(), func(t *tx) error {
		var err error
		if a.Began, err = t.next("seq"); err != nil {
			return err
		}
		now := toMicros(t.now)
		found, err := t.get(&a.Number, `INSERT INTO instances (backfill, node, date, slot, status, attempt, started_at)
			VALUES (?, ?, ?, ?, 'running', 1, ?)
			ON CONFLICT DO UPDATE SET status = 'running', attempt = attempt + 1, started_at = excluded.started_at,
				finished_at = 0, rows = 0, reason = '', error = '', halted = 0
			WHERE status <> 'succeeded' AND paused = 0
			RETURNING attempt`, c.id, k.Node, int(k.Date), k.Slot, now)
		if err != nil {
			return err
		}
		if !found {
			return c.refusal(t, k)
		}
		_, err = t.exec(`INSERT INTO attempts (backfill, node, date, slot, attempt, token, began, status, started_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, 'running', ?)`, c.id, k.Node, int(k.Date), k.Slot, a.Number, c.token, a.Began, now)
		return err
	})
	return a, err
}

// refusal says why an instance cannot start.
func (c *Claim) refusal(t *tx, k Key) error {
	var paused bool
	if _, err := t.get(&paused, `SELECT paused = 1 AND status <> 'succeeded' FROM instances
		WHERE backfill = ? AND node = ? AND date = ? AND slot = ?`, c.id, k.Node, int(k.Date), k.Slot); err != nil {
		return err
	}
	cause := ErrDone
	if paused {
		cause = ErrPaused
	}
	return fmt.Errorf("ledger: start %s: %w", k.SlotID(), cause)
}

// Outcome is how an instance ended, or why it did not begin.
type Outcome struct {
	Key Key
	// Attempt is the attempt's number, 0 for an instance that was never given
	// to the engine (a dry run, a blocked one).
	Attempt int
	Status  status.Status
	Reason  string // why, in words: always set unless a real run succeeded
	Error   string
	Rows    int64 // -1 = not known
	Facts   map[string]int64
	Built   []Record
	// Values are the cross-node parameters that the instance set.
	Values map[string]string
	// Marked says that the target's commit marker tells the same outcome: a
	// power failure may then lose the record, since resuming finds it again.
	Marked bool
}

// Record says which slot of a materialization node an instance built.
type Record struct {
	Node       string   // materialization node, or the task's name
	Fields     []string // nil = every field
	Definition string   // id in the plan, "" = none
	Rows       int64    // -1 = not known
}

// Finish makes outcomes durable, all of them in one transaction: statuses,
// attempts, facts, built records and parameter values. Many cheap instances
// (dry runs, blocked ones) belong into one call. Error: ErrFenced.
func (c *Claim) Finish(ctx context.Context, outcomes ...Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	what := "finish " + outcomes[0].Key.SlotID()
	lazy := !slices.ContainsFunc(outcomes, func(o Outcome) bool { return !o.Marked })
	return c.l.problem(what, c.l.writer.do(ctx, lazy, c.fenced(what, func(t *tx) error {
		for i := range outcomes {
			if err := c.finish(t, &outcomes[i]); err != nil {
				return err
			}
		}
		return nil
	})))
}

func (c *Claim) finish(t *tx, o *Outcome) error {
	k, now := o.Key, toMicros(t.now)
	if o.Attempt == 0 {
		_, err := t.exec(`INSERT INTO instances (backfill, node, date, slot, status, rows, started_at, finished_at, reason, error)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET status = excluded.status, rows = excluded.rows, finished_at = excluded.finished_at,
				reason = excluded.reason, error = excluded.error WHERE status <> 'succeeded'`,
			c.id, k.Node, int(k.Date), k.Slot, o.Status.String(), o.Rows, now, now, o.Reason, o.Error)
		return err
	}
	n, err := t.exec(`UPDATE instances SET status = ?, rows = ?, finished_at = ?, reason = ?, error = ?, forced = 0
		WHERE backfill = ? AND node = ? AND date = ? AND slot = ? AND attempt = ?`,
		o.Status.String(), o.Rows, now, o.Reason, o.Error, c.id, k.Node, int(k.Date), k.Slot, o.Attempt)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("ledger: finish %s: attempt %d is not its last one: %w", k.SlotID(), o.Attempt, ErrFenced)
	}
	facts := ""
	if len(o.Facts) > 0 {
		doc, err := json.Marshal(o.Facts)
		if err != nil {
			return fmt.Errorf("store facts: %w", err)
		}
		facts = string(doc)
	}
	attempt := o.Status
	if attempt == status.Waiting { // the instance waits for its next attempt, this one failed
		attempt = status.Failed
	}
	var began int64
	if _, err := t.get(&began, `UPDATE attempts SET status = CASE status WHEN 'failed' THEN status ELSE ? END, finished_at = ?, error = ?, facts = ?
		WHERE backfill = ? AND node = ? AND date = ? AND slot = ? AND attempt = ? RETURNING began`,
		attempt.String(), now, o.Error, facts, c.id, k.Node, int(k.Date), k.Slot, o.Attempt); err != nil {
		return err
	}
	if o.Status != status.Succeeded {
		return nil
	}
	for _, r := range o.Built {
		if err := c.build(t, k, r, began); err != nil {
			return fmt.Errorf("record what built %s: %w", r.Node, err)
		}
	}
	return c.values(t, k, o.Values)
}

// values stores the parameters that an instance set.
func (c *Claim) values(t *tx, k Key, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	var node string
	if _, err := t.get(&node, "SELECT name FROM backfill_nodes WHERE backfill = ? AND node = ?", c.id, k.Node); err != nil {
		return err
	}
	for _, param := range slices.Sorted(maps.Keys(values)) {
		seq, err := t.next("seq")
		if err != nil {
			return err
		}
		if _, err := t.exec("INSERT INTO param_values VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			c.environment, node, param, int(k.Date), seq, values[param], c.id, toMicros(t.now)); err != nil {
			return err
		}
	}
	return nil
}

// Heartbeat shows that the owner lives and gives what other processes want of
// it: "" or one of the signals. Error: ErrFenced.
func (c *Claim) Heartbeat(ctx context.Context) (signal string, err error) {
	var b beat
	err = c.apply(ctx, "heartbeat", func(t *tx) error {
		_, err := t.get(&b, "UPDATE backfills SET heartbeat_at = ? WHERE id = ? RETURNING signal, paused, steered", toMicros(t.now), c.id)
		return err
	})
	if err != nil {
		return "", err
	}
	return c.signal(b), nil
}

// End gives the backfill its final state and releases its leases. Error:
// ErrFenced.
func (c *Claim) End(ctx context.Context, s State, note string) error {
	return c.apply(ctx, "end backfill "+c.name, func(t *tx) error {
		if _, err := t.exec(`UPDATE backfills SET status = ?, note = ?, signal = '', finished_at = ?, owner_host = '', owner_pid = 0
			WHERE id = ?`, string(s), note, toMicros(t.now), c.id); err != nil {
			return err
		}
		_, err := t.exec("DELETE FROM leases WHERE backfill = ?", c.id)
		return err
	})
}

// Log appends lines to an attempt's log. seq orders the chunks of an attempt
// and rises from 0.
func (c *Claim) Log(ctx context.Context, k Key, attempt, seq int, text string) error {
	return c.apply(ctx, "log "+k.SlotID(), func(t *tx) error {
		_, err := t.exec("INSERT INTO log_chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			c.id, k.Node, int(k.Date), k.Slot, attempt, seq, toMicros(t.now), text)
		return err
	})
}
