package duckdb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/sqlscript"
)

// lookupTimeout bounds the look-up after a failed commit.
const lookupTimeout = 30 * time.Second

// markerInsert writes nothing if a higher token has committed the instance:
// the fence is checked inside the target's transaction. The filter on token
// comes first so that zone maps skip the whole table in the usual case.
func markerInsert(table string) string {
	return "INSERT INTO " + table + ` (backfill, instance, attempt, token, committed_at, digest)
SELECT $1::VARCHAR, $2::VARCHAR, $3::INTEGER, $4::BIGINT, (now() AT TIME ZONE 'UTC')::TIMESTAMP, $5::VARCHAR
WHERE NOT EXISTS (SELECT 1 FROM ` + table + ` WHERE token > $4::BIGINT AND backfill = $1::VARCHAR AND instance = $2::VARCHAR)`
}

// Execute runs the unit in one transaction on a connection of its own, with
// the marker row in the same transaction. Cancelling ctx before the commit
// rolls back; the commit itself is not cancelled.
func (e *Engine) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	if err := e.writable(); err != nil {
		return executors.Result{}, err
	}
	fail := func(err error) (executors.Result, error) {
		var rejected *executors.RejectedError
		if errors.As(err, &rejected) {
			return executors.Result{}, err
		}
		return executors.Result{}, fmt.Errorf("duckdb: write %s: %w", u.Marker.Instance, cancelled(ctx, err))
	}
	work, err := parse(u.Statements)
	if err != nil {
		return fail(err)
	}
	if err := e.ensureMarkers(ctx); err != nil {
		return executors.Result{}, err
	}
	for try := 1; ; try++ {
		facts, err := e.once(ctx, u, work)
		if err == nil {
			return executors.Result{Facts: facts}, nil
		}
		if try == conflictTries || work.transacts || classify(err) != executors.Transient || !pause(ctx, try) {
			return fail(err)
		}
	}
}

// conflictTries bounds how often a unit is begun that another transaction of
// this process was in the way of: groups run side by side in one database, and
// two of their scripts may create the same schema. The transaction has been
// rolled back, so that nothing of it is there, and the other one is over soon.
// Each try waits a little longer, at most 0.3 s in all.
const conflictTries = 6

// pause waits before the next try, with a random half, so that those who met
// do not meet again; false if ctx ends.
func pause(ctx context.Context, try int) bool {
	base := 10 * time.Millisecond << (try - 1)
	t := time.NewTimer(base/2 + rand.N(base/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// once runs the unit's transaction on a connection of its own.
func (e *Engine) once(ctx context.Context, u executors.Unit, work parsed) (executors.Facts, error) {
	w, err := e.acquire(ctx)
	if err != nil {
		return nil, explain(err)
	}
	facts := executors.Facts{}
	err = guard("write "+u.Marker.Instance, func() error { return e.attempt(ctx, w, u, work, facts) })
	// A failed unit's connection is thrown away: whatever is the matter with
	// it cannot reach the next unit, and a new one costs 0.2 ms.
	e.release(w, err == nil && !work.dirty)
	var failed *commitError
	if errors.As(err, &failed) {
		err = e.settle(ctx, u.Marker, failed.err)
	}
	return facts, err
}

// commitError marks an error of COMMIT itself.
type commitError struct{ err error }

func (e *commitError) Error() string { return e.err.Error() }

// parsed is a unit's statements, cut and checked.
type parsed struct {
	parts  [][]string // for each of the unit's statements
	script bool       // holds a user's script
	dirty  bool       // may leave something on the connection
	// transacts says that a script has transaction statements of its own: what
	// it committed is not undone by a rollback.
	transacts bool
	stages    []string // temporary tables to drop, quoted
	digest    string   // of all texts
}

func transacts(sql string) bool {
	switch sqlscript.FirstWord(sql) {
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "EXECUTE": // EXECUTE may hide one
		return true
	}
	return false
}

func parse(stmts []executors.Statement) (parsed, error) {
	p := parsed{parts: make([][]string, len(stmts))}
	h := sha256.New()
	for i, s := range stmts {
		parts, err := sqlscript.Single(s.SQL, s.Role)
		if err != nil {
			return p, &executors.StatementError{Index: i, Role: s.Role, SQL: s.SQL, Err: err}
		}
		p.parts[i] = parts
		switch s.Role {
		case executors.RoleScript:
			p.script, p.dirty = true, true
			p.transacts = p.transacts || slices.ContainsFunc(parts, transacts)
		case executors.RoleStage:
			if name := sqlscript.StageName(parts[0]); name != "" {
				p.stages = append(p.stages, name)
			} else {
				p.dirty = true
			}
		case executors.RoleDDL:
			p.dirty = true
		}
		// A hash's Write never fails.
		_, _ = h.Write([]byte(s.SQL))
		_, _ = h.Write([]byte{0})
	}
	p.digest = hex.EncodeToString(h.Sum(nil)[:8])
	return p, nil
}

// attempt is the transaction. On any error it has been rolled back.
func (e *Engine) attempt(ctx context.Context, w *worker, u executors.Unit, work parsed, facts executors.Facts) (err error) {
	// Begin and end must not be cut off by a cancelled context.
	whole := context.WithoutCancel(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(whole, "BEGIN TRANSACTION"); err != nil {
		return fmt.Errorf("begin: %w", explain(err))
	}
	done := false
	defer func() {
		if done {
			return
		}
		// Also on a panic, which guard reports. The first error is the one
		// to report; if ROLLBACK fails too, the connection, which is thrown
		// away, takes the transaction with it.
		_, _ = w.conn.ExecContext(whole, "ROLLBACK")
	}()
	before, err := w.transaction(ctx, work.script)
	if err != nil {
		return err
	}
	for i, s := range u.Statements {
		if err := w.run(ctx, s, work.parts[i], facts); err != nil {
			return &executors.StatementError{Index: i, Role: s.Role, SQL: s.SQL, Err: explain(err)}
		}
	}
	if u.Accept != nil {
		if err := u.Accept(facts); err != nil {
			return &executors.RejectedError{Err: err}
		}
	}
	after, err := w.transaction(ctx, work.script)
	if err != nil {
		return err
	}
	if before != after {
		return errors.New("the script ended retrofill's transaction: what it wrote until then stays written")
	}
	for _, name := range work.stages {
		if _, err := w.conn.ExecContext(ctx, "DROP TABLE IF EXISTS temp.main."+name); err != nil {
			return fmt.Errorf("drop stage table %s: %w", name, explain(err))
		}
	}
	m := u.Marker
	res, err := w.marker.ExecContext(ctx, m.Backfill, m.Instance, m.Attempt, m.Token, work.digest)
	if err != nil {
		return fmt.Errorf("write the commit marker: %w", explain(err))
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("token %d: %w", m.Token, executors.ErrFenced), err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done = true
	if _, err := w.conn.ExecContext(whole, "COMMIT"); err != nil {
		return &commitError{err: explain(err)}
	}
	return nil
}

// transaction gives the id of the open transaction, 0 if nobody asks.
func (w *worker) transaction(ctx context.Context, ask bool) (id int64, err error) {
	if !ask {
		return 0, nil
	}
	if err := w.conn.QueryRowContext(ctx, "SELECT txid_current()::BIGINT").Scan(&id); err != nil {
		return 0, fmt.Errorf("read the transaction's id: %w", explain(err))
	}
	return id, nil
}

// run executes one statement and collects its numbers.
func (w *worker) run(ctx context.Context, s executors.Statement, parts []string, facts executors.Facts) error {
	if s.Role == executors.RoleFacts {
		return w.facts(ctx, s, facts)
	}
	for _, part := range parts {
		res, err := w.conn.ExecContext(ctx, part)
		if err != nil {
			return err
		}
		kind := affected(s.Role)
		if kind == "" {
			continue
		}
		n, err := res.RowsAffected()
		if err != nil {
			return fmt.Errorf("count affected rows: %w", err)
		}
		facts[kind+s.Target] += n
		facts["rows_affected."+s.Target] += n
	}
	return nil
}

// affected gives the prefix of the fact that counts a role's rows.
func affected(r executors.Role) string {
	switch r {
	case executors.RoleInsert:
		return "inserted."
	case executors.RoleUpdate:
		return "updated."
	case executors.RoleDelete:
		return "deleted."
	}
	return ""
}

// facts runs a statement that gives exactly one row of numbers.
func (w *worker) facts(ctx context.Context, s executors.Statement, into executors.Facts) (err error) {
	rows, err := w.conn.QueryContext(ctx, s.SQL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	if !rows.Next() {
		return errors.Join(rows.Err(), errors.New("facts: no row where exactly one is expected"))
	}
	values, targets := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return err
	}
	prefix := ""
	if s.Name != "" {
		prefix = s.Name + "."
	}
	for i, name := range names {
		n, err := number(values[i])
		if err != nil {
			return fmt.Errorf("facts: column %q: %w", name, err)
		}
		into[prefix+name] = n
	}
	if rows.Next() {
		return errors.New("facts: more than the one row that is expected")
	}
	return rows.Err()
}

// number makes a fact of a value. NULL is 0. An unsigned 64-bit value (a
// hash) keeps its bits, so that equal hashes stay equal.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		return int64(v), nil
	case *big.Int:
		if v.IsInt64() {
			return v.Int64(), nil
		}
		return 0, fmt.Errorf("%s does not fit into 64 bits", v)
	case duck.Decimal:
		if v.Scale == 0 && v.Value.IsInt64() {
			return v.Value.Int64(), nil
		}
		return 0, fmt.Errorf("%s is not a whole number of 64 bits", v)
	}
	return 0, fmt.Errorf("a %T is not a whole number", v)
}

// settle finds out what became of a unit whose COMMIT failed: nil if its
// marker is there, the commit's error if it is not, *executors.AmbiguousError if the
// database does not answer.
func (e *Engine) settle(ctx context.Context, m executors.Marker, commit error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	var n int
	err := guard("look up "+m.Instance, func() error {
		return e.db.GetContext(ctx, &n, "SELECT count(*) FROM "+e.markers+
			" WHERE backfill = ? AND instance = ? AND attempt = ? AND token = ?", m.Backfill, m.Instance, m.Attempt, m.Token)
	})
	switch {
	case err != nil:
		return &executors.AmbiguousError{Commit: commit, Lookup: err}
	case n > 0:
		return nil
	}
	return fmt.Errorf("commit: %w", commit)
}

// Lookup tells whether any attempt of the marker's backfill and instance is in
// the database, and gives the newest one.
func (e *Engine) Lookup(ctx context.Context, m executors.Marker) (executors.Outcome, executors.Marker, error) {
	fail := func(err error) (executors.Outcome, executors.Marker, error) {
		return executors.NotCommitted, executors.Marker{}, fmt.Errorf("duckdb: look up %s: %w", m.Instance, cancelled(ctx, explain(err)))
	}
	exists, err := e.markersExist(ctx)
	if err != nil {
		return fail(err)
	}
	if !exists {
		return executors.NotCommitted, executors.Marker{}, nil
	}
	found := executors.Marker{Backfill: m.Backfill, Instance: m.Instance}
	err = guard("look up "+m.Instance, func() error {
		return e.db.QueryRowContext(ctx, "SELECT attempt, token FROM "+e.markers+
			" WHERE backfill = ? AND instance = ? ORDER BY attempt DESC, token DESC LIMIT 1", m.Backfill, m.Instance).
			Scan(&found.Attempt, &found.Token)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return executors.NotCommitted, executors.Marker{}, nil
	case err != nil:
		return fail(err)
	}
	return executors.Committed, found, nil
}

// markersExist tells whether the marker table is there: a database that was
// only read has none.
func (e *Engine) markersExist(ctx context.Context) (bool, error) {
	e.mu.Lock()
	known := e.prepared
	e.mu.Unlock()
	if known {
		return true, nil
	}
	var n int
	err := guard("look up markers", func() error {
		return e.db.GetContext(ctx, &n, `SELECT count(*) FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = ? AND table_name = ?`, e.opt.MarkerSchema, markerTable)
	})
	if n > 0 {
		e.mu.Lock()
		e.prepared = true
		e.mu.Unlock()
	}
	return n > 0, err
}
