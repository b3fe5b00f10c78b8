package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/planner/plan"
)

// lateEngine is an engine that is opened when it is first used: a backfill
// that waits for its --run-at does not keep the database from others.
type lateEngine struct {
	open func(context.Context) (executors.Engine, error)
	mu   sync.Mutex
	e    executors.Engine
}

var (
	_ executors.Engine   = (*lateEngine)(nil)
	_ executors.Preparer = (*lateEngine)(nil)
)

// letGo closes the engine of a plan that is to run later, until then.
func (s *session) letGo(p *plan.Plan, now time.Time) error {
	at, err := p.RunsAt()
	if err != nil || !at.After(now) || s.engine == nil {
		return err
	}
	if err := s.engine.Close(); err != nil {
		return fmt.Errorf("cli: close the engine until %s: %w", p.RunAt, err)
	}
	s.engine = &lateEngine{open: func(ctx context.Context) (executors.Engine, error) {
		return s.openEngine(ctx, EngineOptions{Create: true, Connections: p.Parallel(), Settings: p.EngineSettings()})
	}}
	return nil
}

func (l *lateEngine) engine(ctx context.Context) (executors.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.e == nil {
		e, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.e = e
	}
	return l.e, nil
}

// unused tells whether it was never opened.
func (l *lateEngine) unused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.e == nil
}

// Execute implements executors.Engine.
func (l *lateEngine) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	e, err := l.engine(ctx)
	if err != nil {
		return executors.Result{}, err
	}
	return e.Execute(ctx, u)
}

// Lookup implements executors.Engine.
func (l *lateEngine) Lookup(ctx context.Context, m executors.Marker) (executors.Outcome, executors.Marker, error) {
	e, err := l.engine(ctx)
	if err != nil {
		return executors.NotCommitted, executors.Marker{}, err
	}
	return e.Lookup(ctx, m)
}

// Query implements executors.Engine.
func (l *lateEngine) Query(ctx context.Context, sql string, limit int) (executors.Rows, error) {
	e, err := l.engine(ctx)
	if err != nil {
		return executors.Rows{}, err
	}
	return e.Query(ctx, sql, limit)
}

// Catalog implements executors.Engine.
func (l *lateEngine) Catalog(ctx context.Context, schemas []string) ([]executors.TableInfo, error) {
	e, err := l.engine(ctx)
	if err != nil {
		return nil, err
	}
	return e.Catalog(ctx, schemas)
}

// Prepare implements executors.Preparer.
func (l *lateEngine) Prepare(ctx context.Context, ddl []string) error {
	e, err := l.engine(ctx)
	if err != nil {
		return err
	}
	p, can := e.(executors.Preparer)
	if !can {
		return errors.New("cli: prepare: the engine cannot run schema statements")
	}
	return p.Prepare(ctx, ddl)
}

// Classify implements executors.Engine; before it is open, only being locked
// out can happen.
func (l *lateEngine) Classify(err error) executors.Class {
	l.mu.Lock()
	e := l.e
	l.mu.Unlock()
	switch {
	case e != nil:
		return e.Classify(err)
	case errors.Is(err, executors.ErrLocked):
		return executors.Locked
	}
	return executors.Permanent
}

// Close implements executors.Engine.
func (l *lateEngine) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.e == nil {
		return nil
	}
	return l.e.Close()
}
