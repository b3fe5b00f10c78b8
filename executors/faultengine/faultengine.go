// Package faultengine makes an engine fail on purpose: a decorator with
// scripted faults, a process that can die, and a cheap in-memory engine for
// thousands of simulated runs.
//
// Invariants: a fault before the commit leaves nothing behind, one after it
// leaves the unit and its marker; after a Process has died nothing that hangs
// on it writes any more, so that what is stored is what a killed process would
// leave; a Store outlives engines and processes.
package faultengine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/retrofill/retrofill/executors"
)

// ErrCrash is what every call gives from the moment the Process has died.
// Production code must not know it: the caller sees an error like any other,
// and whatever it tries to store is refused too.
var ErrCrash = errors.New("the process died")

// Error is a scripted failure; Class is what Classify says of it.
type Error struct {
	Class executors.Class
	Where string
}

// Error gives class and place.
func (e *Error) Error() string { return "scripted " + e.Class.String() + " error " + e.Where }

// Options of a decorated engine. The zero value adds nothing.
type Options struct {
	// Faults are tried in order; the first that matches acts.
	Faults []Fault
	// Process dies by crash faults or by its own count; nil = one that never
	// dies unless a fault kills it.
	Process *Process
	// Sleep serves delays; nil waits on a timer, which synctest controls.
	Sleep func(ctx context.Context, d time.Duration) error
	// Trace collects events, nil = none.
	Trace *Trace
}

// Engine decorates an engine with faults.
type Engine struct {
	inner   executors.Engine
	process *Process
	sleep   func(ctx context.Context, d time.Duration) error
	trace   *Trace

	mu     sync.Mutex
	faults []armed
}

// armed is a fault with the number of times that it has matched.
type armed struct {
	Fault
	seen int
}

var (
	_ executors.Engine    = (*Engine)(nil)
	_ executors.Preparer  = (*Engine)(nil)
	_ executors.Describer = (*Engine)(nil)
	_ executors.Versioner = (*Engine)(nil)
)

// Wrap decorates an engine.
func Wrap(inner executors.Engine, opt Options) *Engine {
	e := &Engine{inner: inner, process: opt.Process, sleep: opt.Sleep, trace: opt.Trace}
	if e.process == nil {
		e.process = &Process{}
	}
	if e.sleep == nil {
		e.sleep = sleep
	}
	for _, f := range opt.Faults {
		e.faults = append(e.faults, armed{Fault: f})
	}
	return e
}

// New gives a decorated in-memory engine over the store.
func New(store *Store, opt Options) *Engine { return Wrap(&Fake{Store: store}, opt) }

// sleep waits on a timer.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Execute runs the unit in the inner engine with this unit's faults. A fault
// at statement n runs the n statements before it and rolls them back.
func (e *Engine) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	at := place{marker: u.Marker}
	if err := e.process.Step("begin", u.Marker.Instance); err != nil {
		return executors.Result{}, err
	}
	e.note("begin", u.Marker, "")
	// Where the first fault that acts inside the transaction is.
	var fault error
	for i := range u.Statements {
		if len(e.faults) == 0 {
			break
		}
		for _, when := range [2]When{Before, After} {
			at.point, at.when, at.statement = PointStatement, when, i+1
			if fault = e.strike(ctx, at); fault != nil {
				n := i
				if when == After {
					n = i + 1
				}
				if !errors.Is(fault, ErrCrash) {
					fault = &executors.StatementError{Index: i, Role: u.Statements[i].Role, SQL: u.Statements[i].SQL, Err: fault}
				}
				return e.rollBack(ctx, u, n, fault)
			}
		}
	}
	accept := u.Accept
	u.Accept = func(facts executors.Facts) error {
		if accept != nil {
			if err := accept(facts); err != nil {
				return err
			}
		}
		at.point, at.when, at.statement = PointCommit, Before, 0
		if fault = e.strike(ctx, at); fault != nil {
			return fault
		}
		fault = e.process.Step("before commit", u.Marker.Instance)
		return fault
	}
	res, err := e.inner.Execute(ctx, u)
	if fault != nil {
		e.note("rollback", u.Marker, fault.Error())
		return executors.Result{}, fault
	}
	if err != nil {
		e.note("rollback", u.Marker, err.Error())
		return res, err
	}
	e.note("commit", u.Marker, "")
	at.point, at.when, at.statement = PointCommit, After, 0
	if err := e.strike(ctx, at); err != nil {
		return executors.Result{}, err
	}
	if err := e.process.Step("after commit", u.Marker.Instance); err != nil {
		return executors.Result{}, err
	}
	return res, nil
}

// rollBack runs the first n statements and refuses them, so that a real
// engine goes through the same motions as with an error at that place.
func (e *Engine) rollBack(ctx context.Context, u executors.Unit, n int, fault error) (executors.Result, error) {
	u.Statements = u.Statements[:n]
	u.Accept = func(executors.Facts) error { return fault }
	_, err := e.inner.Execute(ctx, u)
	if err != nil && !errors.Is(err, fault) {
		// An error of the engine itself came before the scripted one.
		fault = err
	}
	e.note("rollback", u.Marker, fault.Error())
	return executors.Result{}, fault
}

// Lookup asks the inner engine.
func (e *Engine) Lookup(ctx context.Context, m executors.Marker) (executors.Outcome, executors.Marker, error) {
	if err := e.around(ctx, PointLookup, m); err != nil {
		return executors.NotCommitted, executors.Marker{}, err
	}
	out, found, err := e.inner.Lookup(ctx, m)
	if e.trace != nil {
		switch {
		case err != nil:
			e.note("lookup", m, err.Error())
		case out == executors.Committed:
			e.note("lookup", m, "committed by attempt "+strconv.Itoa(found.Attempt))
		default:
			e.note("lookup", m, "not committed")
		}
	}
	return out, found, err
}

// Query asks the inner engine.
func (e *Engine) Query(ctx context.Context, sql string, limit int) (executors.Rows, error) {
	if err := e.around(ctx, PointQuery, executors.Marker{}); err != nil {
		return executors.Rows{}, err
	}
	return e.inner.Query(ctx, sql, limit)
}

// Catalog asks the inner engine.
func (e *Engine) Catalog(ctx context.Context, schemas []string) ([]executors.TableInfo, error) {
	if err := e.around(ctx, PointCatalog, executors.Marker{}); err != nil {
		return nil, err
	}
	return e.inner.Catalog(ctx, schemas)
}

// Prepare runs the statements in the inner engine, if it is a Preparer.
func (e *Engine) Prepare(ctx context.Context, ddl []string) error {
	if err := e.around(ctx, PointPrepare, executors.Marker{}); err != nil {
		return err
	}
	if e.trace != nil {
		e.trace.add(Event{What: "prepare", Detail: strconv.Itoa(len(ddl)) + " statements"})
	}
	p, ok := e.inner.(executors.Preparer)
	if !ok {
		return nil
	}
	return p.Prepare(ctx, ddl)
}

// Describe asks the inner engine; one that is no Describer is an error.
func (e *Engine) Describe(ctx context.Context, sql string) ([]executors.Column, error) {
	d, ok := e.inner.(executors.Describer)
	if !ok {
		return nil, fmt.Errorf("faultengine: describe: %T cannot", e.inner)
	}
	return d.Describe(ctx, sql)
}

// Version asks the inner engine.
func (e *Engine) Version(ctx context.Context) (string, error) {
	v, ok := e.inner.(executors.Versioner)
	if !ok {
		return fmt.Sprintf("%T with faults", e.inner), nil
	}
	return v.Version(ctx)
}

// Classify knows scripted errors and asks the inner engine about the others.
func (e *Engine) Classify(err error) executors.Class {
	var s *Error
	if errors.As(err, &s) {
		return s.Class
	}
	if errors.Is(err, ErrCrash) {
		return executors.Permanent
	}
	return e.inner.Classify(err)
}

// Close closes the inner engine.
func (e *Engine) Close() error { return e.inner.Close() }

// around strikes before a call that has no inner points.
func (e *Engine) around(ctx context.Context, p Point, m executors.Marker) error {
	if err := e.process.Alive(); err != nil {
		return err
	}
	return e.strike(ctx, place{point: p, when: Before, marker: m})
}

// strike acts out the first fault that matches the place; nil = go on.
func (e *Engine) strike(ctx context.Context, at place) error {
	if len(e.faults) == 0 {
		return nil
	}
	e.mu.Lock()
	var hit *Fault
	for i := range e.faults {
		f := &e.faults[i]
		if !f.matches(at) {
			continue
		}
		f.seen++
		if f.acts(f.seen) {
			hit = &f.Fault
			break
		}
	}
	e.mu.Unlock()
	if hit == nil {
		return nil
	}
	e.note("fault", at.marker, hit.String())
	switch hit.Action {
	case Crash:
		e.process.Die()
		return ErrCrash
	case Delay:
		return e.sleep(ctx, hit.Delay)
	case Fail:
		return &Error{Class: executors.Permanent, Where: at.String()}
	case Transient:
		return &Error{Class: executors.Transient, Where: at.String()}
	case Ambiguous:
		return &Error{Class: executors.Ambiguous, Where: at.String()}
	case Lock:
		return &Error{Class: executors.Locked, Where: at.String()}
	}
	return fmt.Errorf("faultengine: act out %v: unknown action %d", hit, hit.Action)
}

func (e *Engine) note(what string, m executors.Marker, detail string) {
	if e.trace != nil {
		e.trace.add(Event{What: what, Instance: m.Instance, Attempt: m.Attempt, Detail: detail})
	}
}
