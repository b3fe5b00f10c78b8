package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
)

var _ planner.Ledger = (*Ledger)(nil)

// build records what built one slot: a full rewrite replaces all older rows
// of the slot, a partial one those whose fields it covers.
func (c *Claim) build(t *tx, k Key, r Record, began int64) error {
	target, err := t.target(c.environment, r.Node)
	if err != nil {
		return err
	}
	var definition int64
	if r.Definition != "" {
		found, err := t.get(&definition, "SELECT id FROM definitions WHERE digest = ?", r.Definition)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("definition %s is not stored", r.Definition)
		}
	}
	set, err := t.fieldSet(r.Fields)
	if err != nil {
		return err
	}
	if err := t.replaceBuilt(target, k, r.Fields, set); err != nil {
		return err
	}
	seq, err := t.next("seq")
	if err != nil {
		return err
	}
	_, err = t.exec("INSERT INTO built VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		target, int(k.Date), k.Slot, seq, began, definition, set, c.id, r.Rows, toMicros(t.now))
	return err
}

func (t *tx) replaceBuilt(target int64, k Key, fields []string, set int64) error {
	if fields == nil {
		_, err := t.exec("DELETE FROM built WHERE target = ? AND date = ? AND slot = ?", target, int(k.Date), k.Slot)
		return err
	}
	var older []struct {
		Build  int64
		Set    int64  `db:"fields_id"`
		Fields string `db:"fields_js"`
	}
	if err := t.list(&older, `SELECT b.build, b.fields AS fields_id, f.fields AS fields_js FROM built b JOIN field_sets f ON f.id = b.fields
		WHERE b.target = ? AND b.date = ? AND b.slot = ?`, target, int(k.Date), k.Slot); err != nil {
		return err
	}
	for _, o := range older {
		if o.Set != set {
			var theirs []string
			if err := json.Unmarshal([]byte(o.Fields), &theirs); err != nil {
				return err
			}
			if slices.ContainsFunc(theirs, func(f string) bool { return !slices.Contains(fields, f) }) {
				continue // it still says who built the other fields
			}
		}
		if _, err := t.exec("DELETE FROM built WHERE target = ? AND date = ? AND slot = ? AND build = ?", target, int(k.Date), k.Slot, o.Build); err != nil {
			return err
		}
	}
	return nil
}

// builtRow is one row of built, with names.
type builtRow struct {
	Node       string
	Date       int
	Slot       string
	Build      int64
	Began      int64
	Definition string
	Set        int64  `db:"fields_id"`
	Fields     string `db:"fields_js"`
	Backfill   string
	Rows       int64
	BuiltAt    micros `db:"built_at"`
}

// Built gives what built the nodes on business dates in [from, to], ordered
// by node, slot and build. Consecutive daily slots with the same build number
// are joined; every other slot is a record of its own.
func (l *Ledger) Built(ctx context.Context, environment string, nodes []string, from, to bizdate.Date) ([]planner.Built, error) {
	sets := map[int64][]string{}
	var out []planner.Built
	for part := range slices.Chunk(nodes, 500) {
		q, args, err := inList(`SELECT g.node, b.date, b.slot, b.build, b.began, coalesce(d.digest, '') AS definition,
				b.fields AS fields_id, coalesce(f.fields, '') AS fields_js, coalesce(k.name, '') AS backfill, b.rows, b.built_at
			FROM targets g JOIN built b ON b.target = g.id
			LEFT JOIN definitions d ON d.id = b.definition
			LEFT JOIN field_sets f ON f.id = b.fields
			LEFT JOIN backfills k ON k.id = b.backfill
			WHERE g.environment = ? AND g.node IN (?) AND b.date BETWEEN ? AND ?`, environment, part, int(from), int(to))
		if err != nil {
			return nil, l.problem("read built records", err)
		}
		var rows []builtRow
		if err := l.list(ctx, "read built records", &rows, q, args...); err != nil {
			return nil, err
		}
		for _, r := range rows {
			b, err := r.record(sets)
			if err != nil {
				return nil, l.problem("read built records", err)
			}
			out = append(out, b)
		}
	}
	slices.SortFunc(out, compareBuilt)
	return joinBuilt(out), nil
}

func (r builtRow) record(sets map[int64][]string) (planner.Built, error) {
	d := bizdate.Date(r.Date)
	slot := r.Slot
	if slot == "" {
		slot = d.String()
	}
	fields, known := sets[r.Set]
	if !known && r.Set != 0 {
		if err := json.Unmarshal([]byte(r.Fields), &fields); err != nil {
			return planner.Built{}, fmt.Errorf("read field set %d: %w", r.Set, err)
		}
		sets[r.Set] = fields
	}
	return planner.Built{
		Node: r.Node, SlotFrom: slot, SlotTo: slot, Date: d, DateTo: d, Fields: fields, Definition: r.Definition,
		Build: r.Build, Began: r.Began, Backfill: r.Backfill, BuiltAt: r.BuiltAt.time(), Rows: r.Rows,
	}, nil
}

func compareBuilt(a, b planner.Built) int {
	switch {
	case a.Node != b.Node:
		return compare(a.Node, b.Node)
	case a.Date != b.Date:
		return int(a.Date) - int(b.Date)
	case a.SlotFrom != b.SlotFrom:
		return compare(a.SlotFrom, b.SlotFrom)
	}
	return compare(a.Build, b.Build)
}

func compare[T int64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// joinBuilt joins neighbours that one statement built: same node, same build,
// the next day.
func joinBuilt(in []planner.Built) []planner.Built {
	out := in[:0]
	for _, b := range in {
		if n := len(out); n > 0 {
			p := &out[n-1]
			daily := p.SlotTo == p.DateTo.String() && b.SlotFrom == b.Date.String()
			if daily && p.Node == b.Node && p.Build == b.Build && p.DateTo+1 == b.Date {
				p.SlotTo, p.DateTo = b.SlotTo, b.DateTo
				if p.Rows >= 0 && b.Rows >= 0 {
					p.Rows += b.Rows
				} else {
					p.Rows = -1
				}
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// Definitions gives definitions by id; unknown ids are absent.
func (l *Ledger) Definitions(ctx context.Context, ids []string) (map[string]plan.Definition, error) {
	out := make(map[string]plan.Definition, len(ids))
	for part := range slices.Chunk(ids, 500) {
		q, args, err := inList("SELECT digest, tbl, text, fingerprints FROM definitions WHERE digest IN (?)", part)
		if err != nil {
			return nil, l.problem("read definitions", err)
		}
		var rows []struct{ Digest, Tbl, Text, Fingerprints string }
		if err := l.list(ctx, "read definitions", &rows, q, args...); err != nil {
			return nil, err
		}
		for _, r := range rows {
			var fp fingerprints
			if err := json.Unmarshal([]byte(r.Fingerprints), &fp); err != nil {
				return nil, l.problem("read definition "+r.Digest, err)
			}
			out[r.Digest] = plan.Definition{Table: r.Tbl, Text: r.Text, RowSet: fp.RowSet, Key: fp.Key, Fields: fp.Fields, Nodes: fp.Nodes}
		}
	}
	return out, nil
}

// Digest identifies the records that planning looks at: the built records and
// parameter values of the nodes on business dates in [from, to], in any order
// of the nodes. A different digest at apply time means a stale plan.
func (l *Ledger) Digest(ctx context.Context, environment string, nodes []string, from, to bizdate.Date) (string, error) {
	sorted := slices.Clone(nodes)
	slices.Sort(sorted)
	h := sha256.New()
	h.Write([]byte{1}) // version of this encoding
	for part := range slices.Chunk(slices.Compact(sorted), 500) {
		// Build numbers rise and are never reused, so count, sum and maximum
		// of them tell any two states of a node apart.
		q, args, err := inList(`SELECT g.node AS node, 'built' AS kind, count(*) AS n, sum(b.build) AS total, max(b.build) AS newest
			FROM targets g JOIN built b ON b.target = g.id
			WHERE g.environment = ? AND g.node IN (?) AND b.date BETWEEN ? AND ? GROUP BY g.node
			UNION ALL SELECT node, 'param', count(*), sum(seq), max(seq) FROM param_values
			WHERE environment = ? AND node IN (?) AND date BETWEEN ? AND ? GROUP BY node ORDER BY node, kind`,
			environment, part, int(from), int(to), environment, part, int(from), int(to))
		if err != nil {
			return "", l.problem("digest records", err)
		}
		var rows []struct {
			Node, Kind       string
			N, Total, Newest int64
		}
		if err := l.list(ctx, "digest records", &rows, q, args...); err != nil {
			return "", err
		}
		for _, r := range rows {
			if _, err := fmt.Fprintf(h, "%q %s %d %d %d\n", r.Node, r.Kind, r.N, r.Total, r.Newest); err != nil {
				return "", l.problem("digest records", err)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Value is one recorded value of a cross-node parameter.
type Value struct {
	Date       bizdate.Date
	Value      string
	Backfill   string
	FinishedAt time.Time
}

// Values gives the values that a node set for a parameter on business dates
// in [from, to], the last one of each date, ascending.
func (l *Ledger) Values(ctx context.Context, environment, node, param string, from, to bizdate.Date) ([]Value, error) {
	var rows []struct {
		Date       int
		Seq        int64
		Value      string
		Backfill   string
		FinishedAt micros `db:"finished_at"`
	}
	err := l.list(ctx, "read parameter "+param, &rows, `SELECT v.date, max(v.seq) AS seq, v.value, coalesce(b.name, '') AS backfill, v.finished_at
		FROM param_values v LEFT JOIN backfills b ON b.id = v.backfill
		WHERE v.environment = ? AND v.node = ? AND v.param = ? AND v.date BETWEEN ? AND ? GROUP BY v.date ORDER BY v.date`,
		environment, node, param, int(from), int(to))
	out := make([]Value, len(rows))
	for i, r := range rows {
		out[i] = Value{Date: bizdate.Date(r.Date), Value: r.Value, Backfill: r.Backfill, FinishedAt: r.FinishedAt.time()}
	}
	return out, err
}

// Values is Ledger.Values for the claim's environment.
func (c *Claim) Values(ctx context.Context, node, param string, from, to bizdate.Date) ([]Value, error) {
	return c.l.Values(ctx, c.environment, node, param, from, to)
}
