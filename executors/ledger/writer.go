package ledger

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// maxBatch bounds one transaction of the writer, so that a reader in another
// process that wants to write is not kept waiting.
const maxBatch = 256

// writer is the only one in this process that writes. Callers queue up; all
// that is queued is written in one transaction and flushed once.
type writer struct {
	conn    *sqlx.Conn
	clock   Clock
	stmts   map[string]*sqlx.Stmt
	queue   chan *op
	stopped chan struct{}

	relaxed bool // the connection's synchronous level is NORMAL
	never   bool // nothing is flushed

	mu     sync.RWMutex
	closed bool
}

// op is one caller's work: all of it is written or nothing.
type op struct {
	ctx  context.Context
	fn   func(*tx) error
	done chan error
	// lazy: written when done, but flushed only with the next op that is not.
	lazy bool
}

// tx is what an op sees: the open transaction. now is the same for a batch.
type tx struct {
	w   *writer
	now time.Time
}

func newWriter(conn *sqlx.Conn, clock Clock) *writer {
	w := &writer{
		conn: conn, clock: clock, stmts: map[string]*sqlx.Stmt{},
		queue: make(chan *op, maxBatch), stopped: make(chan struct{}),
	}
	go w.loop()
	return w
}

var errClosed = errors.New("the ledger is closed")

// do queues fn and waits until it is durable. A caller that gives up while
// queued has written nothing; once the batch began, do waits for its end.
func (w *writer) do(ctx context.Context, lazy bool, fn func(*tx) error) error {
	o := &op{ctx: ctx, fn: fn, done: make(chan error, 1), lazy: lazy}
	w.mu.RLock()
	if w.closed {
		w.mu.RUnlock()
		return errClosed
	}
	w.queue <- o
	w.mu.RUnlock()
	return <-o.done
}

func (w *writer) close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	close(w.queue)
	w.mu.Unlock()
	<-w.stopped
	errs := []error{}
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) loop() {
	defer close(w.stopped)
	for first := range w.queue {
		batch := []*op{first}
	drain:
		for len(batch) < maxBatch {
			select {
			case o, open := <-w.queue:
				if !open {
					break drain
				}
				batch = append(batch, o)
			default:
				break drain
			}
		}
		w.write(batch)
	}
}

// write commits a batch. An op that fails must not take the others with it:
// then everything is rolled back and each op gets a transaction of its own.
func (w *writer) write(batch []*op) {
	live := batch[:0]
	for _, o := range batch {
		if err := o.ctx.Err(); err != nil {
			o.done <- err
			continue
		}
		live = append(live, o)
	}
	if len(live) == 0 {
		return
	}
	err := w.transaction(live)
	if err == nil || len(live) == 1 {
		for _, o := range live {
			o.done <- err
		}
		return
	}
	for _, o := range live {
		o.done <- w.transaction([]*op{o})
	}
}

// transaction runs the ops in one transaction. It uses no caller's context:
// a cancelled caller must not tear up the others' work.
func (w *writer) transaction(ops []*op) error {
	ctx := context.Background()
	if err := w.relax(!slices.ContainsFunc(ops, func(o *op) bool { return !o.lazy })); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	t := &tx{w: w, now: w.clock()}
	for _, o := range ops {
		if err := o.fn(t); err != nil {
			return w.rollback(err)
		}
	}
	if _, err := w.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return w.rollback(err)
	}
	return nil
}

// relax sets whether the next commit is flushed. In WAL mode an unflushed
// commit survives the process, and the next flush takes it along.
func (w *writer) relax(on bool) error {
	if w.never || w.relaxed == on {
		return nil
	}
	level := "FULL"
	if on {
		level = "NORMAL"
	}
	if _, err := w.conn.ExecContext(context.Background(), "PRAGMA synchronous="+level); err != nil {
		return err
	}
	w.relaxed = on
	return nil
}

// rollback ends the transaction; SQLite has done so itself after some errors,
// so a failing ROLLBACK says nothing new.
func (w *writer) rollback(cause error) error {
	_, _ = w.conn.ExecContext(context.Background(), "ROLLBACK")
	return cause
}

// stmt prepares a statement once for the connection's life.
func (t *tx) stmt(query string) (*sqlx.Stmt, error) {
	if s, ok := t.w.stmts[query]; ok {
		return s, nil
	}
	s, err := t.w.conn.PreparexContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.w.stmts[query] = s
	return s, nil
}

// exec runs a statement and gives the number of rows it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// get reads one row; found is false when there is none.
func (t *tx) get(dest any, query string, args ...any) (found bool, err error) {
	s, err := t.stmt(query)
	if err != nil {
		return false, err
	}
	err = s.Get(dest, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// list reads rows into a slice.
func (t *tx) list(dest any, query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.Select(dest, args...)
}

// next draws the next value of a counter.
func (t *tx) next(counter string) (int64, error) {
	var v int64
	_, err := t.get(&v, "UPDATE counters SET value = value + 1 WHERE name = ? RETURNING value", counter)
	return v, err
}
