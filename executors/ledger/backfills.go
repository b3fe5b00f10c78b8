package ledger

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

// State is where a backfill as a whole stands. It is what its owner did last;
// the roll-up of its instances is Counts.
type State string

// The states. Interrupted is never stored: it is a running backfill whose
// owner no longer lives.
const (
	Queued      State = "pending" // created, not begun
	Running     State = "running"
	Succeeded   State = "succeeded"
	Failed      State = "failed"
	Stopped     State = "stopped"
	Paused      State = "paused"  // a pause flag or a budget holds the rest
	Unknown     State = "unknown" // an instance's outcome could not be found out
	Interrupted State = "interrupted"
)

// Owner is the process that runs a backfill. The zero value is none.
type Owner struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

// Backfill is one backfill as the ledger knows it.
type Backfill struct {
	Name        string    `json:"name"`
	Project     string    `json:"project"`
	Environment string    `json:"environment"`
	State       State     `json:"state"`
	Note        string    `json:"note,omitempty"` // why it ended so
	CreatedAt   time.Time `json:"created_at"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"`
	Instances   int       `json:"instances"`
	Request     string    `json:"request"` // JSON of plan.Request, for display
	PlanDigest  string    `json:"plan_digest"`
	Owner       Owner     `json:"owner,omitzero"`
	HeartbeatAt time.Time `json:"heartbeat_at,omitzero"`
	Token       int64     `json:"token"`
	// Paused says that a user paused it as a whole.
	Paused bool `json:"paused,omitempty"`
	// Marker is what commit markers in the target call it.
	Marker string `json:"marker,omitempty"`
	// RunAt is when its instances may begin, zero = at once.
	RunAt time.Time `json:"run_at,omitzero"`
}

// Create stores a planned backfill with its leases, atomically. by is the
// process that is about to run it, so that its leases end with it; the zero
// value queues it: its leases stay until it is run or removed. It gives the
// names of dead backfills whose leases were taken over. Errors:
// *NameTakenError, *ConflictError (semantics §6.9).
func (l *Ledger) Create(ctx context.Context, p plan.Plan, by Owner) (tookOver []string, err error) {
	doc, err := plan.Encode(p)
	if err != nil {
		return nil, fmt.Errorf("ledger: create backfill: %w", err)
	}
	packed, err := pack(doc)
	if err != nil {
		return nil, fmt.Errorf("ledger: create backfill: %w", err)
	}
	request, err := json.Marshal(p.Request)
	if err != nil {
		return nil, fmt.Errorf("ledger: create backfill: %w", err)
	}
	err = l.apply(ctx, "create backfill "+p.Backfill, func(t *tx) error {
		tookOver = nil
		id, err := insertBackfill(t, &p, packed, plan.DigestOf(doc), string(request), by)
		if err != nil {
			return err
		}
		if err := insertNodes(t, id, &p); err != nil {
			return err
		}
		if err := insertDefinitions(t, p.Definitions); err != nil {
			return err
		}
		tookOver, err = l.lease(t, id, &p)
		return err
	})
	return tookOver, err
}

func insertBackfill(t *tx, p *plan.Plan, doc []byte, digest, request string, by Owner) (int64, error) {
	var taken int64
	if found, err := t.get(&taken, "SELECT id FROM backfills WHERE name = ?", p.Backfill); err != nil {
		return 0, err
	} else if found {
		return 0, &NameTakenError{Name: p.Backfill}
	}
	runAt, err := p.RunsAt()
	if err != nil {
		return 0, err
	}
	beat := micros(0)
	if by != (Owner{}) {
		beat = toMicros(t.now)
	}
	var id int64
	_, err = t.get(&id, `INSERT INTO backfills
		(name, project, environment, status, created_at, instances, request, plan, plan_digest, owner_host, owner_pid, heartbeat_at, run_at, marker)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?1 || '@' || id FROM identity RETURNING id`,
		p.Backfill, p.Project, p.Environment, string(Queued), toMicros(t.now), p.Instances, request, doc, digest, by.Host, by.PID, beat, toMicros(runAt))
	return id, err
}

func insertNodes(t *tx, id int64, p *plan.Plan) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		total := 0
		for _, s := range n.Steps {
			total += s.Instances
			for _, r := range s.Dates {
				if _, err := t.exec("INSERT INTO instance_ranges VALUES (?, ?, ?, ?, ?)", id, i, int(r.From), int(r.To), s.ID); err != nil {
					return fmt.Errorf("store ranges of %s: %w", n.Name, err)
				}
			}
		}
		if err := insertHeld(t, id, i, p); err != nil {
			return err
		}
		if _, err := t.exec("INSERT INTO backfill_nodes VALUES (?, ?, ?, ?, ?, ?)", id, i, n.Name, string(n.Kind), n.Level, total); err != nil {
			return fmt.Errorf("store node %s: %w", n.Name, err)
		}
	}
	return nil
}

// fingerprints is the part of a definition that is compared.
type fingerprints struct {
	RowSet string              `json:"row_set"`
	Key    string              `json:"key"`
	Fields map[string]string   `json:"fields"`
	Nodes  map[string][]string `json:"nodes,omitempty"`
}

func insertDefinitions(t *tx, defs map[string]plan.Definition) error {
	for _, id := range slices.Sorted(maps.Keys(defs)) {
		d := defs[id]
		fp, err := json.Marshal(fingerprints{d.RowSet, d.Key, d.Fields, d.Nodes})
		if err != nil {
			return fmt.Errorf("store definition of %s: %w", d.Table, err)
		}
		if _, err := t.exec(`INSERT INTO definitions (digest, tbl, text, fingerprints) VALUES (?, ?, ?, ?)
			ON CONFLICT (digest) DO NOTHING`, id, d.Table, d.Text, string(fp)); err != nil {
			return fmt.Errorf("store definition of %s: %w", d.Table, err)
		}
	}
	return nil
}

// backfillRow is the row without its plan.
type backfillRow struct {
	ID          int64
	Name        string
	Project     string
	Environment string
	Status      string
	Note        string
	CreatedAt   micros `db:"created_at"`
	StartedAt   micros `db:"started_at"`
	FinishedAt  micros `db:"finished_at"`
	Instances   int
	Request     string
	PlanDigest  string `db:"plan_digest"`
	OwnerHost   string `db:"owner_host"`
	OwnerPID    int    `db:"owner_pid"`
	HeartbeatAt micros `db:"heartbeat_at"`
	Token       int64
	Paused      bool
	Steered     int64
	RunAt       micros `db:"run_at"`
	Marker      string
}

const backfillColumns = `id, name, project, environment, status, note, created_at, started_at, finished_at,
	instances, request, plan_digest, owner_host, owner_pid, heartbeat_at, token, paused, steered, run_at, marker`

func (r backfillRow) owner() Owner { return Owner{Host: r.OwnerHost, PID: r.OwnerPID} }

// alive tells whether the owner of a row still lives at now: it beats, and
// nobody knows better.
func (l *Ledger) alive(r backfillRow, now time.Time) bool {
	if r.owner() == (Owner{}) {
		return false
	}
	if l.opts.Alive != nil && !l.opts.Alive(r.owner()) {
		return false
	}
	return now.Sub(r.HeartbeatAt.time()) <= l.opts.LeaseTTL
}

func (l *Ledger) backfill(r backfillRow) Backfill {
	b := Backfill{
		Name: r.Name, Project: r.Project, Environment: r.Environment, State: State(r.Status), Note: r.Note,
		CreatedAt: r.CreatedAt.time(), StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time(),
		Instances: r.Instances, Request: r.Request, PlanDigest: r.PlanDigest,
		Owner: r.owner(), HeartbeatAt: r.HeartbeatAt.time(), Token: r.Token,
		Paused: r.Paused, RunAt: r.RunAt.time(), Marker: r.Marker,
	}
	abandoned := b.State == Running || b.State == Queued && b.Owner != Owner{}
	if abandoned && !l.alive(r, l.opts.Clock()) {
		b.State = Interrupted
	}
	return b
}

// Backfill gives one backfill by name; ErrNotFound.
func (l *Ledger) Backfill(ctx context.Context, name string) (Backfill, error) {
	r, err := l.row(ctx, name)
	if err != nil {
		return Backfill{}, err
	}
	return l.backfill(r), nil
}

func (l *Ledger) row(ctx context.Context, name string) (backfillRow, error) {
	var r backfillRow
	err := l.get(ctx, "read backfill "+name, &r, "SELECT "+backfillColumns+" FROM backfills WHERE name = ?", name)
	if errors.Is(err, sql.ErrNoRows) {
		return r, notFound(name)
	}
	return r, err
}

func notFound(name string) error {
	return fmt.Errorf("ledger: find backfill %q: %w", name, ErrNotFound)
}

// Backfills lists the newest backfills first, at most limit (0 = all), of one
// environment ("" = any).
func (l *Ledger) Backfills(ctx context.Context, environment string, limit int) ([]Backfill, error) {
	if limit <= 0 {
		limit = -1
	}
	var rows []backfillRow
	err := l.list(ctx, "list backfills", &rows, "SELECT "+backfillColumns+` FROM backfills
		WHERE ?1 = '' OR environment = ?1 ORDER BY id DESC LIMIT ?2`, environment, limit)
	out := make([]Backfill, len(rows))
	for i, r := range rows {
		out[i] = l.backfill(r)
	}
	return out, err
}

// Plan gives the frozen plan of a backfill; ErrNotFound.
func (l *Ledger) Plan(ctx context.Context, name string) (plan.Plan, error) {
	var packed []byte
	err := l.get(ctx, "read plan of "+name, &packed, "SELECT plan FROM backfills WHERE name = ?", name)
	if errors.Is(err, sql.ErrNoRows) {
		return plan.Plan{}, notFound(name)
	}
	if err != nil {
		return plan.Plan{}, err
	}
	doc, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return plan.Plan{}, l.problem("read plan of "+name, &Error{Code: CodeCorrupt, Err: err})
	}
	p, err := plan.Decode(doc)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("ledger: read plan of %s: %w", name, err)
	}
	return p, nil
}

func pack(doc []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(doc); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// NameTaken tells whether a backfill of that name exists.
func (l *Ledger) NameTaken(ctx context.Context, name string) (bool, error) {
	var n int
	err := l.get(ctx, "look up name "+name, &n, "SELECT count(*) FROM backfills WHERE name = ?", name)
	return n > 0, err
}

// NextNumber gives the next n of the default name <node>_<yyyyMMdd>_<n>, from
// 1 for each node and day (semantics §1).
func (l *Ledger) NextNumber(ctx context.Context, node string, day bizdate.Date) (int, error) {
	prefix := node + "_" + strings.ReplaceAll(day.String(), "-", "") + "_"
	var names []string
	if err := l.list(ctx, "number a backfill of "+node, &names,
		"SELECT name FROM backfills WHERE substr(name, 1, length(?1)) = ?1 AND name > ?1", prefix); err != nil {
		return 0, err
	}
	highest := 0
	for _, name := range names {
		if n, err := strconv.Atoi(name[len(prefix):]); err == nil {
			highest = max(highest, n)
		}
	}
	return highest + 1, nil
}

// Signal asks the owner of a running backfill, in whatever process, to stop:
// "stop" lets running instances finish, "kill" cancels them. The owner sees it
// with its next heartbeat. ErrNotFound.
func (l *Ledger) Signal(ctx context.Context, name, signal string) error {
	return l.apply(ctx, "signal "+name, func(t *tx) error {
		n, err := t.exec("UPDATE backfills SET signal = ? WHERE name = ?", signal, name)
		if err == nil && n == 0 {
			return notFound(name)
		}
		return err
	})
}
