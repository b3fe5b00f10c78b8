package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/sqlscript"
)

const (
	// commitTimeout bounds COMMIT, which the caller's context does not.
	commitTimeout = 5 * time.Minute
	// rollbackTimeout bounds ROLLBACK; without it the server notices the
	// closed connection.
	rollbackTimeout = 10 * time.Second
	// pause lies between two look-ups while the server does not answer.
	pause = 200 * time.Millisecond
)

// markerUpsert writes nothing if a higher token has committed the instance:
// the fence is checked inside the target's transaction. An instance has one
// row, its newest attempt's. Where another transaction holds that row, this
// one waits for it and then fails to serialize.
func markerUpsert(table string) string {
	return "INSERT INTO " + table + ` AS m (backfill, instance, attempt, token, committed_at, digest)
VALUES ($1, $2, $3, $4, now() AT TIME ZONE 'UTC', $5)
ON CONFLICT (backfill, instance) DO UPDATE
SET attempt = excluded.attempt, token = excluded.token, committed_at = excluded.committed_at, digest = excluded.digest
WHERE m.token <= excluded.token`
}

// Execute runs the unit in one transaction, with the marker row in the same
// transaction. Cancelling ctx before the commit rolls back; the commit itself
// is not cancelled. A transaction that another one was in the way of is begun
// again a few times, Accept included.
func (e *Engine) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	fail := func(err error) (executors.Result, error) {
		var rejected *executors.RejectedError
		if errors.As(err, &rejected) {
			return executors.Result{}, err
		}
		return executors.Result{}, fmt.Errorf("postgres: write %s: %w", u.Marker.Instance, cancelled(ctx, explain(err)))
	}
	work, err := parse(u.Statements)
	if err != nil {
		return fail(err)
	}
	if err := e.ensureMarkers(ctx); err != nil {
		return executors.Result{}, err
	}
	free, err := e.acquire(ctx)
	if err != nil {
		return fail(err)
	}
	defer free()
	for try := 1; ; try++ {
		facts, err := e.once(ctx, u, work)
		if err == nil {
			return executors.Result{Facts: facts}, nil
		}
		if try == conflictTries || !conflict(err) || !sleep(ctx, conflictPause(try)) {
			return fail(err)
		}
	}
}

// conflictTries bounds how often a unit is begun that another transaction was
// in the way of: two groups' scripts may write the same rows or make the same
// schema. The server has rolled the transaction back, so that nothing of it is
// there. Each try waits a little longer, at most 0.3 s in all.
const conflictTries = 6

// conflictPause is the wait before the next try, with a random half, so that
// those who met do not meet again.
func conflictPause(try int) time.Duration {
	base := 10 * time.Millisecond << (try - 1)
	return base/2 + rand.N(base/2)
}

// once runs the unit's transaction.
func (e *Engine) once(ctx context.Context, u executors.Unit, work parsed) (executors.Facts, error) {
	facts := executors.Facts{}
	err := guard("write "+u.Marker.Instance, func() error {
		return e.on(ctx, func(pg *pgconn.PgConn) error { return e.attempt(ctx, pg, u, work, facts) },
			func(err error) bool { return err == nil && !work.dirty })
	})
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
	drop   []string   // for each statement: the stage table to drop before it, "" none
	stages []string   // temporary tables to drop in the end, quoted
	dirty  bool       // may leave something on the connection
	digest string     // of all texts
}

func parse(stmts []executors.Statement) (parsed, error) {
	p := parsed{parts: make([][]string, len(stmts)), drop: make([]string, len(stmts))}
	seen := map[string]bool{}
	h := sha256.New()
	for i, s := range stmts {
		parts, err := single(s.SQL, s.Role)
		if err != nil {
			return p, &executors.StatementError{Index: i, Role: s.Role, SQL: s.SQL, Err: err}
		}
		p.parts[i] = parts
		switch s.Role {
		case executors.RoleScript, executors.RoleDDL:
			p.dirty = true
		case executors.RoleStage:
			name := sqlscript.StageName(parts[0])
			switch {
			case name == "":
				p.dirty = true
			case seen[name]:
				p.drop[i] = name // PostgreSQL cannot replace a table
			default:
				seen[name] = true
				p.stages = append(p.stages, name)
			}
		}
		// A hash's Write never fails.
		_, _ = h.Write([]byte(s.SQL))
		_, _ = h.Write([]byte{0})
	}
	p.digest = hex.EncodeToString(h.Sum(nil)[:8])
	return p, nil
}

// attempt is the transaction. On any error it has been rolled back, or its
// connection is broken, which rolls back too.
func (e *Engine) attempt(ctx context.Context, pg *pgconn.PgConn, u executors.Unit, work parsed, facts executors.Facts) (err error) {
	whole := context.WithoutCancel(ctx)
	done := false
	defer func() {
		if done || pg.IsClosed() {
			return
		}
		// The first error is the one to report; if ROLLBACK fails too, the
		// connection, which is thrown away, takes the transaction with it.
		ctx, cancel := context.WithTimeout(whole, rollbackTimeout)
		defer cancel()
		_, _ = exec(ctx, pg, "ROLLBACK")
	}()
	if _, err := exec(ctx, pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for i, s := range u.Statements {
		if err := statement(ctx, pg, s, work.parts[i], work.drop[i], facts); err != nil {
			return &executors.StatementError{Index: i, Role: s.Role, SQL: s.SQL, Err: cancelled(ctx, explain(err))}
		}
	}
	if u.Accept != nil {
		if err := u.Accept(facts); err != nil {
			return &executors.RejectedError{Err: err}
		}
	}
	for _, name := range work.stages {
		if _, err := exec(ctx, pg, "DROP TABLE IF EXISTS pg_temp."+name); err != nil {
			return fmt.Errorf("drop stage table %s: %w", name, err)
		}
	}
	m := u.Marker
	tag, err := exec(ctx, pg, markerUpsert(e.markers), m.Backfill, m.Instance, strconv.Itoa(m.Attempt), strconv.FormatInt(m.Token, 10), work.digest)
	if err != nil {
		return fmt.Errorf("write the commit marker: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return fmt.Errorf("token %d: %w", m.Token, executors.ErrFenced)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	commit, cancel := context.WithTimeout(whole, commitTimeout)
	defer cancel()
	tag, err = exec(commit, pg, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		// COMMIT of a failed transaction reports no error.
		err = fmt.Errorf("the server answered %s", tag)
	}
	if err != nil {
		return &commitError{err: err}
	}
	done = true
	return nil
}

// statement executes one statement and collects its numbers.
func statement(ctx context.Context, pg *pgconn.PgConn, s executors.Statement, parts []string, drop string, facts executors.Facts) error {
	if s.Role == executors.RoleFacts {
		return collect(ctx, pg, s, parts[0], facts)
	}
	if drop != "" {
		if _, err := exec(ctx, pg, "DROP TABLE IF EXISTS pg_temp."+drop); err != nil {
			return err
		}
	}
	for _, part := range parts {
		tag, err := exec(ctx, pg, part)
		if err != nil {
			return err
		}
		if pg.TxStatus() != 'T' {
			return errors.New("the script ended retrofill's transaction: what it wrote until then stays written")
		}
		if kind := affected(s.Role); kind != "" {
			facts[kind+s.Target] += tag.RowsAffected()
			facts["rows_affected."+s.Target] += tag.RowsAffected()
		}
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

// collect runs a statement that gives exactly one row of numbers.
func collect(ctx context.Context, pg *pgconn.PgConn, s executors.Statement, text string, into executors.Facts) error {
	rr := pg.ExecParams(ctx, text, nil, nil, nil, nil)
	prefix := ""
	if s.Name != "" {
		prefix = s.Name + "."
	}
	count := 0
	var bad error
	for rr.NextRow() {
		if count++; count > 1 || bad != nil {
			continue // the answer is read to its end
		}
		for i, f := range rr.FieldDescriptions() {
			n, err := number(f.DataTypeOID, rr.Values()[i])
			if err != nil {
				bad = fmt.Errorf("facts: column %q: %w", f.Name, err)
				break
			}
			into[prefix+f.Name] = n
		}
	}
	if _, err := rr.Close(); err != nil {
		return err
	}
	switch {
	case bad != nil:
		return bad
	case count == 0:
		return errors.New("facts: no row where exactly one is expected")
	case count > 1:
		return errors.New("facts: more than the one row that is expected")
	}
	return nil
}

// number makes a fact of a value's text. NULL is 0.
func number(oid uint32, v []byte) (int64, error) {
	if v == nil {
		return 0, nil
	}
	switch oid {
	case pgtype.BoolOID:
		if string(v) == "t" {
			return 1, nil
		}
		return 0, nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return strconv.ParseInt(string(v), 10, 64)
	case pgtype.NumericOID: // sums of bigint are numeric
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is not a whole number of 64 bits", v)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%q is not a whole number", v)
}

// settle finds out what became of a unit whose COMMIT failed: nil if its
// marker is there, the commit's error if it is not and cannot come any more,
// *executors.AmbiguousError if the server does not answer in time.
func (e *Engine) settle(ctx context.Context, m executors.Marker, commit error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.opt.LookupTimeout)
	defer cancel()
	for {
		found, ok, err := e.final(ctx, m)
		switch {
		case err == nil && ok && found.Attempt == m.Attempt && found.Token == m.Token:
			return nil
		case err == nil:
			return fmt.Errorf("commit: %w", commit)
		case classify(err) != executors.Transient || !sleep(ctx, pause):
			return &executors.AmbiguousError{Commit: commit, Lookup: err}
		}
	}
}

// sleep waits; false means that ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Lookup tells whether any attempt of the marker's backfill and instance is in
// the database, and gives the newest one. A transaction that has written the
// marker and not ended yet (its client is gone, its COMMIT on the way) is
// waited for: "not committed" stays true.
func (e *Engine) Lookup(ctx context.Context, m executors.Marker) (executors.Outcome, executors.Marker, error) {
	fail := func(err error) (executors.Outcome, executors.Marker, error) {
		return executors.NotCommitted, executors.Marker{}, fmt.Errorf("postgres: look up %s: %w", m.Instance, cancelled(ctx, explain(err)))
	}
	there, err := e.markersExist(ctx)
	if err != nil {
		return fail(err)
	}
	if !there {
		return executors.NotCommitted, executors.Marker{}, nil
	}
	found, ok, err := e.final(ctx, m)
	switch {
	case err != nil:
		return fail(err)
	case !ok:
		return executors.NotCommitted, executors.Marker{}, nil
	}
	return executors.Committed, found, nil
}

// final reads an instance's marker when no transaction holds it any more: an
// insert of the same key waits for one that inserts it, a lock of the row for
// one that changes it. Both are rolled back.
func (e *Engine) final(ctx context.Context, m executors.Marker) (found executors.Marker, ok bool, err error) {
	found = executors.Marker{Backfill: m.Backfill, Instance: m.Instance}
	wait := strconv.FormatInt(e.opt.LookupTimeout.Milliseconds(), 10)
	err = guard("look up "+m.Instance, func() error {
		return e.on(ctx, func(pg *pgconn.PgConn) error {
			for _, s := range []string{"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "SET LOCAL lock_timeout = " + wait} {
				if _, err := exec(ctx, pg, s); err != nil {
					return err
				}
			}
			if _, err := exec(ctx, pg, "INSERT INTO "+e.markers+` (backfill, instance, attempt, token, committed_at, digest)
VALUES ($1, $2, -1, 0, now() AT TIME ZONE 'UTC', '') ON CONFLICT DO NOTHING`, m.Backfill, m.Instance); err != nil {
				return err
			}
			rr := pg.ExecParams(ctx, "SELECT attempt, token FROM "+e.markers+
				" WHERE backfill = $1 AND instance = $2 AND attempt <> -1 FOR UPDATE", [][]byte{[]byte(m.Backfill), []byte(m.Instance)}, nil, nil, nil).Read()
			if rr.Err != nil {
				return rr.Err
			}
			for _, row := range rr.Rows {
				var errAttempt, errToken error
				found.Attempt, errAttempt = strconv.Atoi(string(row[0]))
				found.Token, errToken = strconv.ParseInt(string(row[1]), 10, 64)
				if err := errors.Join(errAttempt, errToken); err != nil {
					return err
				}
				ok = true
			}
			_, err := exec(ctx, pg, "ROLLBACK")
			return err
		}, func(err error) bool { return err == nil })
	})
	return found, ok, err
}

// reads tells whether a statement is one that gives rows.
func reads(text string) bool {
	switch sqlscript.FirstWord(text) {
	case "SELECT", "WITH", "VALUES", "TABLE", "(":
		return true
	}
	return false
}

// shows tells whether a statement gives rows about the server or a plan.
func shows(text string) bool {
	switch sqlscript.FirstWord(text) {
	case "SHOW", "EXPLAIN":
		return true
	}
	return false
}

// one gives the text's only statement.
func one(text string) (string, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return "", errors.New("the statement holds a NUL character")
	}
	stmts := sqlscript.Split(text)
	if len(stmts) != 1 {
		return "", fmt.Errorf("%d statements where one is expected", len(stmts))
	}
	return stmts[0], nil
}
