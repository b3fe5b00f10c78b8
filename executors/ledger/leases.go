package ledger

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

// A lease is the right to write some fields of a materialization node on some
// business dates. It is held from Create (or Claim) until End; a lease of a
// dead owner does not count and is taken over.

// leaseRow is one lease with its holder.
type leaseRow struct {
	backfillRow
	DateFrom int    `db:"date_from"`
	DateTo   int    `db:"date_to"`
	Fields   int64  `db:"fields"`
	FieldsJS string `db:"fields_js"`
}

// want is one lease that a plan needs.
type want struct {
	node     string
	from, to bizdate.Date
	minutes  [2]int
	fields   []string // nil = every field
}

// wants gives the leases that a plan needs: the dates of the steps that really
// write, for each materialization node.
func wants(p *plan.Plan) ([]want, error) {
	window := [2]int{0, 24*60 - 1}
	if p.Window != nil {
		w, diags := bizdate.ParseWindow(p.Window.From, p.Window.To)
		if diags.HasErrors() {
			return nil, fmt.Errorf("read window: %w", diags)
		}
		window = [2]int{w.From.Minute(), w.To.Minute()}
	}
	var out []want
	for i := range p.Nodes {
		n := &p.Nodes[i]
		minutes := [2]int{0, 24*60 - 1}
		if bizdate.Cycle(n.Schedule.Cycle).SubDaily() {
			minutes = window
		}
		for _, s := range n.Steps {
			if s.Strategy == plan.DryRun {
				continue
			}
			for _, w := range Written(n, &s) {
				for _, r := range s.Dates {
					out = append(out, want{node: w.Node, from: r.From, to: r.To, minutes: minutes, fields: w.fieldSet()})
				}
			}
		}
	}
	return out, nil
}

// Target is one thing that a node's real instances write.
type Target struct {
	Node   string   // materialization node, or the task's name
	Table  string   // physical table, "" for tasks
	Fields []string // refreshed fields
	Whole  bool     // every field
	// RowsKept says that the row set is not refreshed.
	RowsKept bool
	// Action is the strategy of this write.
	Action plan.Strategy
}

func (t Target) fieldSet() []string {
	if t.Whole {
		return nil
	}
	return t.Fields
}

// Written gives what a step of a node writes; a node without declared writes
// (a task) writes itself.
func Written(n *plan.Node, s *plan.Step) []Target {
	writes := n.Writes
	if s.Writes != nil {
		writes = s.Writes
	}
	if len(writes) == 0 {
		return []Target{{Node: n.Name, Whole: true, Action: n.Strategy}}
	}
	out := make([]Target, len(writes))
	for i, w := range writes {
		// A rewrite replaces whole partitions, whatever fields were asked for.
		out[i] = Target{Node: w.Node, Table: w.Table, Fields: w.Fields, Action: w.Action, Whole: w.Whole || w.Action != plan.Column, RowsKept: w.RowsKept}
	}
	return out
}

// lease takes the plan's leases for a backfill, replacing those it has.
func (l *Ledger) lease(t *tx, id int64, p *plan.Plan) (tookOver []string, err error) {
	all, err := wants(p)
	if err != nil {
		return nil, err
	}
	if _, err := t.exec("DELETE FROM leases WHERE backfill = ?", id); err != nil {
		return nil, err
	}
	for _, w := range all {
		target, err := t.target(p.Environment, w.node)
		if err != nil {
			return nil, err
		}
		over, err := l.clear(t, id, target, w)
		if err != nil {
			return nil, err
		}
		tookOver = append(tookOver, over...)
		set, err := t.fieldSet(w.fields)
		if err != nil {
			return nil, err
		}
		if _, err := t.exec("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)",
			target, int(w.from), int(w.to), w.minutes[0], w.minutes[1], set, id); err != nil {
			return nil, err
		}
	}
	slices.Sort(tookOver)
	return slices.Compact(tookOver), nil
}

// clear removes leases of dead owners that stand in the way of w, and refuses
// if a living one does.
func (l *Ledger) clear(t *tx, id, target int64, w want) (tookOver []string, err error) {
	var held []leaseRow
	if err := t.list(&held, `SELECT b.id, b.name, b.status, b.owner_host, b.owner_pid, b.heartbeat_at,
			l.date_from, l.date_to, l.fields, coalesce(f.fields, '') AS fields_js
		FROM leases l JOIN backfills b ON b.id = l.backfill LEFT JOIN field_sets f ON f.id = l.fields
		WHERE l.target = ? AND l.date_from <= ? AND l.date_to >= ? AND l.minute_from <= ? AND l.minute_to >= ? AND l.backfill <> ?
		ORDER BY b.id, l.date_from`,
		target, int(w.to), int(w.from), w.minutes[1], w.minutes[0], id); err != nil {
		return nil, err
	}
	for _, h := range held {
		common, meets, err := commonFields(h, w.fields)
		if err != nil {
			return nil, err
		}
		if !meets {
			continue
		}
		queued := h.owner() == Owner{}
		if queued || l.alive(h.backfillRow, t.now) {
			return nil, &ConflictError{
				Backfill: h.Name, Node: w.node, Fields: common, Owner: h.owner(), Beat: h.HeartbeatAt.time(),
				From: max(w.from, bizdate.Date(h.DateFrom)).String(), To: min(w.to, bizdate.Date(h.DateTo)).String(),
			}
		}
		if _, err := t.exec("DELETE FROM leases WHERE backfill = ?", h.ID); err != nil {
			return nil, err
		}
		// The dead owner may only be asleep: a newer token fences it.
		token, err := t.next("token")
		if err != nil {
			return nil, err
		}
		if _, err := t.exec("UPDATE backfills SET token = ? WHERE id = ?", token, h.ID); err != nil {
			return nil, err
		}
		tookOver = append(tookOver, h.Name)
	}
	return tookOver, nil
}

// commonFields tells which fields both would write; nil with true = all.
func commonFields(h leaseRow, fields []string) ([]string, bool, error) {
	if h.Fields == 0 {
		return fields, true, nil
	}
	var theirs []string
	if err := json.Unmarshal([]byte(h.FieldsJS), &theirs); err != nil {
		return nil, false, fmt.Errorf("read fields of a lease: %w", err)
	}
	if fields == nil {
		return theirs, true, nil
	}
	var common []string
	for _, f := range fields {
		if slices.Contains(theirs, f) {
			common = append(common, f)
		}
	}
	return common, len(common) > 0, nil
}

// target gives the number of an environment's materialization node.
func (t *tx) target(environment, node string) (int64, error) {
	var id int64
	found, err := t.get(&id, "SELECT id FROM targets WHERE environment = ? AND node = ?", environment, node)
	if found || err != nil {
		return id, err
	}
	_, err = t.get(&id, "INSERT INTO targets (environment, node) VALUES (?, ?) RETURNING id", environment, node)
	return id, err
}

// fieldSet gives the number of a set of fields: 0 for nil (every field).
func (t *tx) fieldSet(fields []string) (int64, error) {
	if fields == nil {
		return 0, nil
	}
	sorted := slices.Clone(fields)
	slices.Sort(sorted)
	text, err := json.Marshal(slices.Compact(sorted))
	if err != nil {
		return 0, fmt.Errorf("store field set: %w", err)
	}
	var id int64
	found, err := t.get(&id, "SELECT id FROM field_sets WHERE fields = ?", string(text))
	if found || err != nil {
		return id, err
	}
	_, err = t.get(&id, "INSERT INTO field_sets (fields) VALUES (?) RETURNING id", string(text))
	return id, err
}
