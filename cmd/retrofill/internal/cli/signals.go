package cli

import (
	"context"
	"sync"
)

// interrupts turns Ctrl-C into the two ways to end a run: the first one asks
// it to stop gently (what runs is finished, nothing new begins), the second
// one cancels what runs. After that, signals have their usual effect: a third
// one ends the process at once.
type interrupts struct {
	soft chan struct{}
	kill context.CancelCauseFunc

	mu     sync.Mutex
	killed bool
}

// errKilled is the cause of a context that the second interrupt cancelled.
var errKilled = &exitError{code: exitKilled, err: killedError{}}

type killedError struct{}

func (killedError) Error() string { return "killed by the second interrupt" }

// watchInterrupts begins to listen. The context that it gives is cancelled by
// the second interrupt; told is called on each (1, 2) and must not block. The
// caller calls stop when the run is over.
func (e *Env) watchInterrupts(ctx context.Context, told func(nth int)) (run context.Context, i *interrupts, stop func()) {
	run, kill := context.WithCancelCause(ctx)
	i = &interrupts{soft: make(chan struct{}), kill: kill}
	if e.Notify == nil {
		return run, i, func() { kill(nil) }
	}
	signals, end := e.Notify()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer end()
		for nth := 1; nth <= 2; nth++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if nth == 1 {
				close(i.soft)
			} else {
				i.mu.Lock()
				i.killed = true
				i.mu.Unlock()
				kill(errKilled)
			}
			told(nth)
		}
	})
	var once sync.Once
	return run, i, func() {
		once.Do(func() {
			close(done)
			wg.Wait()
			kill(nil)
		})
	}
}

// Soft is closed by the first interrupt.
func (i *interrupts) Soft() <-chan struct{} { return i.soft }

// Stopped tells whether the first interrupt has come.
func (i *interrupts) Stopped() bool {
	select {
	case <-i.soft:
		return true
	default:
		return false
	}
}

// Killed tells whether the second interrupt has come.
func (i *interrupts) Killed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.killed
}
