package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// PausedNode is a node that was paused in a project (semantics §5.4).
type PausedNode struct {
	Node   string    `json:"node"`
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Pause sets or clears a node's pause flag for new backfills of a project.
func (l *Ledger) Pause(ctx context.Context, project, node string, on bool, by, reason string) error {
	return l.apply(ctx, "pause "+node, func(t *tx) error {
		if !on {
			_, err := t.exec("DELETE FROM paused_nodes WHERE project = ? AND node = ?", project, node)
			return err
		}
		_, err := t.exec(`INSERT INTO paused_nodes VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET by_whom = excluded.by_whom, reason = excluded.reason`, project, node, toMicros(t.now), by, reason)
		return err
	})
}

// Paused lists a project's paused nodes by name.
func (l *Ledger) Paused(ctx context.Context, project string) ([]PausedNode, error) {
	var rows []struct {
		Node   string
		Since  micros
		ByWhom string `db:"by_whom"`
		Reason string
	}
	err := l.list(ctx, "list paused nodes", &rows,
		"SELECT node, since, by_whom, reason FROM paused_nodes WHERE project = ? ORDER BY node", project)
	out := make([]PausedNode, len(rows))
	for i, r := range rows {
		out[i] = PausedNode{Node: r.Node, Since: r.Since.time(), By: r.ByWhom, Reason: r.Reason}
	}
	return out, err
}

// Operation is one thing that a person did to a backfill or an instance
// (semantics §6.8).
type Operation struct {
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Op       string    `json:"op"`
	Backfill string    `json:"backfill,omitempty"`
	Target   string    `json:"target,omitempty"` // instance id or node
	Reason   string    `json:"reason,omitempty"`
	Detail   string    `json:"detail,omitempty"`
}

// Record appends to the operations log; At is set by the ledger's clock.
func (l *Ledger) Record(ctx context.Context, o Operation) error {
	return l.apply(ctx, "record operation", func(t *tx) error {
		_, err := t.exec("INSERT INTO operations (at, by_whom, op, backfill, target, reason, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
			toMicros(t.now), o.By, o.Op, o.Backfill, o.Target, o.Reason, o.Detail)
		return err
	})
}

// Operations gives the operations log of a backfill ("" = all), oldest first.
func (l *Ledger) Operations(ctx context.Context, backfill string) ([]Operation, error) {
	var rows []struct {
		At                                   micros
		ByWhom                               string `db:"by_whom"`
		Op, Backfill, Target, Reason, Detail string
	}
	err := l.list(ctx, "list operations", &rows, `SELECT at, by_whom, op, backfill, target, reason, detail FROM operations
		WHERE ?1 = '' OR backfill = ?1 ORDER BY id`, backfill)
	out := make([]Operation, len(rows))
	for i, r := range rows {
		out[i] = Operation{At: r.At.time(), By: r.ByWhom, Op: r.Op, Backfill: r.Backfill, Target: r.Target, Reason: r.Reason, Detail: r.Detail}
	}
	return out, err
}

// SaveCatalog keeps the engine's tables of an environment, as JSON, for
// commands that cannot open the engine while a backfill holds it.
func (l *Ledger) SaveCatalog(ctx context.Context, environment string, tables []byte) error {
	return l.apply(ctx, "save catalog", func(t *tx) error {
		_, err := t.exec(`INSERT INTO catalog_cache VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET at = excluded.at, tables = excluded.tables`, environment, toMicros(t.now), string(tables))
		return err
	})
}

// Catalog gives what SaveCatalog kept and when; ok is false if nothing was.
func (l *Ledger) Catalog(ctx context.Context, environment string) (tables []byte, at time.Time, ok bool, err error) {
	var row struct {
		At     micros
		Tables string
	}
	err = l.get(ctx, "read catalog", &row, "SELECT at, tables FROM catalog_cache WHERE environment = ?", environment)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, time.Time{}, false, nil
	}
	if err != nil {
		return nil, time.Time{}, false, err
	}
	return []byte(row.Tables), row.At.time(), true, nil
}
