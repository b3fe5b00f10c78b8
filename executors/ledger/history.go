package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// NodeCounts says how the instances of one node of a backfill stand.
type NodeCounts struct {
	Index      int           `json:"index"` // in the plan
	Node       string        `json:"node"`
	Kind       string        `json:"kind"`
	Level      int           `json:"level"`
	Instances  int           `json:"instances"`
	Counts     status.Counts `json:"-"`
	Rows       int64         `json:"rows"` // known ones, summed
	StartedAt  time.Time     `json:"started_at,omitzero"`
	FinishedAt time.Time     `json:"finished_at,omitzero"`
}

// Counts gives the instances of a backfill by node and status, counted by the
// database: no instance is loaded. ErrNotFound.
func (l *Ledger) Counts(ctx context.Context, name string) ([]NodeCounts, error) {
	b, err := l.row(ctx, name)
	if err != nil {
		return nil, err
	}
	var nodes []struct {
		Node      int
		Name      string
		Kind      string
		Level     int
		Instances int
	}
	if err := l.list(ctx, "count instances of "+name, &nodes,
		"SELECT node, name, kind, level, instances FROM backfill_nodes WHERE backfill = ? ORDER BY node", b.ID); err != nil {
		return nil, err
	}
	var groups []struct {
		Node     int
		Status   string
		Paused   bool
		N        int
		Rows     int64
		Started  micros
		Finished micros
	}
	if err := l.list(ctx, "count instances of "+name, &groups, `SELECT node, status, paused, count(*) AS n,
			sum(max(rows, 0)) AS rows, coalesce(min(nullif(started_at, 0)), 0) AS started, max(finished_at) AS finished
		FROM instances WHERE backfill = ? GROUP BY node, status, paused ORDER BY node`, b.ID); err != nil {
		return nil, err
	}
	out := make([]NodeCounts, len(nodes))
	for i, n := range nodes {
		out[i] = NodeCounts{Index: n.Node, Node: n.Name, Kind: n.Kind, Level: n.Level, Instances: n.Instances}
	}
	for _, g := range groups {
		s, err := status.Parse(g.Status)
		if err != nil {
			return nil, l.problem("count instances of "+name, err)
		}
		if g.Node >= len(out) {
			continue // a row without its node: of no plan
		}
		c := &out[g.Node]
		c.Counts.Add(status.State{Status: s, Paused: g.Paused}, g.N)
		c.Rows += g.Rows
		if t := g.Started.time(); !t.IsZero() && (c.StartedAt.IsZero() || t.Before(c.StartedAt)) {
			c.StartedAt = t
		}
		if t := g.Finished.time(); t.After(c.FinishedAt) {
			c.FinishedAt = t
		}
	}
	for i := range out {
		out[i].Counts.Add(status.State{}, out[i].Instances-out[i].Counts.Total())
	}
	return out, nil
}

// Instance is an instance that has left pending, or that carries a flag.
type Instance struct {
	Key        Key           `json:"-"`
	ID         string        `json:"id"` // "<node>@<slot>"
	Node       string        `json:"node"`
	Slot       string        `json:"slot"`
	Status     status.Status `json:"status"`
	Paused     bool          `json:"paused,omitempty"`
	Attempt    int           `json:"attempt"`
	Rows       int64         `json:"rows"`
	StartedAt  time.Time     `json:"started_at,omitzero"`
	FinishedAt time.Time     `json:"finished_at,omitzero"`
	Reason     string        `json:"reason,omitempty"`
	Error      string        `json:"error,omitempty"`
	// Forced says that it runs whatever its upstream, Halted that a user wants
	// it stopped.
	Forced bool `json:"forced,omitempty"`
	Halted bool `json:"-"`
}

// Filter chooses instances; zero values choose all.
type Filter struct {
	Node     string // by name
	Slot     string // slot id
	Status   []status.Status
	From, To bizdate.Date // business dates, used if HasDates
	HasDates bool
	// Noted keeps instances with a reason that the engine or a command was
	// given; Paused those with a pause flag.
	Noted, Paused bool
	Limit         int
}

type instanceRow struct {
	Node       int
	Name       string
	Date       int
	Slot       string
	Status     string
	Paused     bool
	Attempt    int
	Rows       int64
	StartedAt  micros `db:"started_at"`
	FinishedAt micros `db:"finished_at"`
	Reason     string
	Error      string
	Forced     bool
	Halted     bool
}

const instanceColumns = `i.node, n.name, i.date, i.slot, i.status, i.paused, i.attempt, i.rows,
	i.started_at, i.finished_at, i.reason, i.error, i.forced, i.halted
	FROM instances i JOIN backfill_nodes n ON n.backfill = i.backfill AND n.node = i.node`

func (r instanceRow) instance() (Instance, error) {
	s, err := status.Parse(r.Status)
	k := Key{Node: r.Node, Date: bizdate.Date(r.Date), Slot: r.Slot}
	return Instance{
		Key: k, ID: plan.InstanceID(r.Name, k.SlotID()), Node: r.Name, Slot: k.SlotID(), Status: s, Paused: r.Paused,
		Attempt: r.Attempt, Rows: r.Rows, StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time(),
		Reason: r.Reason, Error: r.Error, Forced: r.Forced, Halted: r.Halted,
	}, err
}

// Instances gives instances of a backfill that have left pending, by node,
// date and slot. ErrNotFound.
func (l *Ledger) Instances(ctx context.Context, name string, f Filter) ([]Instance, error) {
	b, err := l.row(ctx, name)
	if err != nil {
		return nil, err
	}
	q, args := "SELECT "+instanceColumns+" WHERE i.backfill = ?", []any{b.ID}
	if f.Node != "" {
		q, args = q+" AND n.name = ?", append(args, f.Node)
	}
	if f.Slot != "" {
		if d, err := bizdate.Parse(f.Slot); err == nil {
			q, args = q+" AND i.date = ? AND i.slot = ''", append(args, int(d))
		} else {
			q, args = q+" AND i.slot = ?", append(args, f.Slot)
		}
	}
	if f.HasDates {
		q, args = q+" AND i.date BETWEEN ? AND ?", append(args, int(f.From), int(f.To))
	}
	if len(f.Status) > 0 {
		texts := make([]string, len(f.Status))
		for i, s := range f.Status {
			texts[i] = s.String()
		}
		q, args = q+" AND i.status IN (?)", append(args, texts)
	}
	if f.Noted {
		q += " AND i.attempt > 0 AND i.reason <> ''"
	}
	if f.Paused {
		q += " AND i.paused = 1"
	}
	q += " ORDER BY i.node, i.date, i.slot"
	if f.Limit > 0 {
		q, args = q+" LIMIT ?", append(args, f.Limit)
	}
	if q, args, err = inList(q, args...); err != nil {
		return nil, l.problem("list instances of "+name, err)
	}
	var rows []instanceRow
	if err := l.list(ctx, "list instances of "+name, &rows, q, args...); err != nil {
		return nil, err
	}
	return l.instances(name, rows)
}

func (l *Ledger) instances(name string, rows []instanceRow) ([]Instance, error) {
	out := make([]Instance, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = r.instance(); err != nil {
			return nil, l.problem("list instances of "+name, err)
		}
	}
	return out, nil
}

// Instances calls yield for every instance of the claimed backfill that has a
// record. The whole list of a large backfill is never in memory.
func (c *Claim) Instances(ctx context.Context, yield func(Instance) error) error {
	what := "read instances of " + c.name
	rows, err := c.l.read.QueryxContext(ctx, "SELECT "+instanceColumns+" WHERE i.backfill = ? ORDER BY i.node, i.date, i.slot", c.id)
	if err != nil {
		return c.l.problem(what, err)
	}
	defer func() { _ = rows.Close() }() // Err says what went wrong
	for rows.Next() {
		var r instanceRow
		if err := rows.StructScan(&r); err != nil {
			return c.l.problem(what, err)
		}
		i, err := r.instance()
		if err != nil {
			return c.l.problem(what, err)
		}
		if err := yield(i); err != nil {
			return err
		}
	}
	return c.l.problem(what, rows.Err())
}

// Tried is one attempt of an instance.
type Tried struct {
	Attempt    int              `json:"attempt"`
	Token      int64            `json:"token"`
	Status     status.Status    `json:"status"`
	StartedAt  time.Time        `json:"started_at"`
	FinishedAt time.Time        `json:"finished_at,omitzero"`
	Error      string           `json:"error,omitempty"`
	Facts      map[string]int64 `json:"facts,omitempty"`
}

// Attempts gives the attempts of one instance, first to last. ErrNotFound if
// the backfill does not exist.
func (l *Ledger) Attempts(ctx context.Context, name string, k Key) ([]Tried, error) {
	b, err := l.row(ctx, name)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Attempt    int
		Token      int64
		Status     string
		StartedAt  micros `db:"started_at"`
		FinishedAt micros `db:"finished_at"`
		Error      string
		Facts      string
	}
	if err := l.list(ctx, "list attempts", &rows, `SELECT attempt, token, status, started_at, finished_at, error, facts FROM attempts
		WHERE backfill = ? AND node = ? AND date = ? AND slot = ? ORDER BY attempt`, b.ID, k.Node, int(k.Date), k.Slot); err != nil {
		return nil, err
	}
	out := make([]Tried, len(rows))
	for i, r := range rows {
		s, err := status.Parse(r.Status)
		if err != nil {
			return nil, l.problem("list attempts", err)
		}
		out[i] = Tried{Attempt: r.Attempt, Token: r.Token, Status: s, StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time(), Error: r.Error}
		if r.Facts != "" {
			if err := json.Unmarshal([]byte(r.Facts), &out[i].Facts); err != nil {
				return nil, l.problem("list attempts", err)
			}
		}
	}
	return out, nil
}

// Chunk is a piece of an attempt's log.
type Chunk struct {
	Attempt int       `json:"attempt"`
	Seq     int       `json:"seq"`
	At      time.Time `json:"at"`
	Text    string    `json:"text"`
}

// Logs gives the log of one instance after the given attempt and chunk (0, -1
// = from the start), in order. ErrNotFound if the backfill does not exist.
func (l *Ledger) Logs(ctx context.Context, name string, k Key, afterAttempt, afterSeq int) ([]Chunk, error) {
	b, err := l.row(ctx, name)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Attempt int
		Seq     int
		At      micros
		Text    string
	}
	err = l.list(ctx, "read log", &rows, `SELECT attempt, seq, at, text FROM log_chunks
		WHERE backfill = ? AND node = ? AND date = ? AND slot = ? AND (attempt, seq) > (?, ?) ORDER BY attempt, seq`,
		b.ID, k.Node, int(k.Date), k.Slot, afterAttempt, afterSeq)
	out := make([]Chunk, len(rows))
	for i, r := range rows {
		out[i] = Chunk{Attempt: r.Attempt, Seq: r.Seq, At: r.At.time(), Text: r.Text}
	}
	return out, err
}
