package faultengine

import (
	"fmt"
	"sync"
)

// Process stands for the process that runs a backfill. Everything durable
// (the engine, a decorated ledger) asks it before and after each write; once it
// has died all of them refuse, so that the stores keep what a SIGKILL at that
// moment would have left. The zero value lives for ever.
//
// With CrashAt a test walks through every moment: run with 1, 2, 3… until a run
// ends with the process alive.
type Process struct {
	// CrashAt is the step at which it dies, 0 = never.
	CrashAt int

	mu    sync.Mutex
	steps int
	dead  bool
	where string
}

// Step is a moment at which the process may die: before or after something
// durable. what and subject are for Where only.
func (p *Process) Step(what, subject string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrCrash
	}
	p.steps++
	if p.steps == p.CrashAt {
		p.dead = true
		p.where = fmt.Sprintf("step %d: %s %s", p.steps, what, subject)
		return ErrCrash
	}
	return nil
}

// Die ends the process now.
func (p *Process) Die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.dead = true
		p.where = fmt.Sprintf("after step %d", p.steps)
	}
}

// Alive gives ErrCrash once the process has died.
func (p *Process) Alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrCrash
	}
	return nil
}

// Steps is the number of steps taken so far.
func (p *Process) Steps() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps
}

// Where tells where the process died, "" while it lives.
func (p *Process) Where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.where
}
