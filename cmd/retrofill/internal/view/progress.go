package view

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/planner/status"
)

// Progress shows a running backfill: on a terminal a block that is redrawn at
// most ten times a second, elsewhere plain lines. Handle only notes what
// happened and never waits for the output, so a slow or stopped terminal
// cannot delay the run.
type Progress struct {
	o    ProgressOptions
	live *Live

	mu      sync.Mutex
	counts  status.Counts
	running map[string]time.Time // instance → start of its attempt
	order   []string             // of running, oldest first; may hold ended ones
	notes   []string             // lines that stay, not written yet
	dropped int                  // notes that found no room
	rows    int64
	began   time.Time
	samples []sample
	asked   bool // Note was called

	wake chan struct{}
	quit chan struct{}
	done chan struct{}
}

// ProgressOptions say what is shown and where.
type ProgressOptions struct {
	Out      io.Writer // standard error
	Terminal bool
	Width    func() int // of the terminal, columns
	Now      func() time.Time
	Name     string // backfill
	Total    int    // instances
	// EachLine is the most instances for which plain output has a line each.
	EachLine int
}

// sample is how many instances were done at a moment.
type sample struct {
	at   time.Time
	done int
}

const (
	redrawEvery = 100 * time.Millisecond
	plainEvery  = 10 * time.Second
	// rateWindow is how far back the rate looks.
	rateWindow = 20 * time.Second
	// maxNotes bounds the lines that wait for a slow output.
	maxNotes = 1000
	// maxRunning is how many running instances are named.
	maxRunning = 4
	// maxColumns is the widest that a line gets.
	maxColumns = 80
)

// NewProgress begins to show. Close must be called.
func NewProgress(o ProgressOptions) *Progress {
	if o.EachLine == 0 {
		o.EachLine = 100
	}
	if o.Width == nil {
		o.Width = func() int { return DefaultWidth }
	}
	p := &Progress{
		o: o, live: NewLive(o.Out, o.Terminal, o.Width),
		running: map[string]time.Time{}, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		began: o.Now(),
	}
	go p.show()
	return p
}

// Handle takes an event of the run. It is the function for run.Deps.Events.
func (p *Progress) Handle(e run.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = e.Counts
	switch e.Kind {
	case run.Begun:
		p.began = e.At
		p.samples = append(p.samples[:0], sample{e.At, finished(e.Counts)})
	case run.Started:
		if _, known := p.running[e.ID]; !known {
			p.order = append(p.order, e.ID)
		}
		p.running[e.ID] = e.At
	case run.Retrying:
		delete(p.running, e.ID)
		p.noteLocked("%s  attempt %d failed, next one in %s: %s", e.ID, e.Attempt, Duration(e.Wait), headLine(e.Error))
	case run.Waiting:
		if e.ID == "" {
			p.noteLocked("%s", e.Reason)
		} else {
			p.noteLocked("%s  %s", e.ID, e.Reason)
		}
	case run.Reloaded:
		p.noteLocked("%s", orText(e.Reason, "another process changed it"))
	case run.Resolved:
		p.noteLocked("%s  %s", e.ID, orText(e.Reason, "its outcome was looked up"))
	case run.Finished:
		p.finishLocked(e)
	case run.Stopping:
		if p.asked {
			return // the person who asked has been told already
		}
		p.noteLocked("stopping: %s", orText(e.Reason, "nothing new begins, running instances finish; Ctrl-C again cancels them"))
	}
}

func (p *Progress) finishLocked(e run.Event) {
	start, wasRunning := p.running[e.ID]
	delete(p.running, e.ID)
	if len(p.order) > 64 && len(p.order) > 4*len(p.running) {
		p.compactLocked()
	}
	p.rows += max(e.Rows, 0)
	switch {
	case e.Status == status.Failed || e.Status == status.Unknown:
		p.noteLocked("%s  %s: %s", e.ID, e.Status, headLine(orText(e.Error, e.Reason)))
	case e.Status == status.Succeeded && wasRunning && !p.o.Terminal && p.o.Total <= p.o.EachLine:
		p.noteLocked("%s  succeeded in %s%s", e.ID, Duration(e.At.Sub(start)), rowsText(e.Rows))
	}
}

// compactLocked drops ended instances from the order.
func (p *Progress) compactLocked() {
	kept := p.order[:0]
	seen := map[string]bool{}
	for _, id := range p.order {
		if _, on := p.running[id]; on && !seen[id] {
			kept, seen[id] = append(kept, id), true
		}
	}
	p.order = kept
}

// Note shows a line that stays: what the person at the terminal has just
// asked for, such as a stop.
func (p *Progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = true
	p.noteLocked(format, args...)
}

func (p *Progress) noteLocked(format string, args ...any) {
	if len(p.notes) >= maxNotes {
		p.dropped++
		return
	}
	p.notes = append(p.notes, Clean(fmt.Sprintf(format, args...)))
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close shows what is left, removes the block and waits for the output, but
// at most so long.
func (p *Progress) Close(patience time.Duration) {
	close(p.quit)
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	}
}

// show is the only writer of the output.
func (p *Progress) show() {
	defer close(p.done)
	every := plainEvery
	if p.o.Terminal {
		every = redrawEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			p.flush()
			p.live.Clear()
			return
		case <-tick.C:
			p.flush()
			if p.o.Terminal {
				p.live.Draw(p.lines())
			} else {
				p.plain()
			}
		case <-p.wake:
			if !p.o.Terminal { // a terminal waits for its next redraw
				p.flush()
			}
		}
	}
}

// flush writes the notes that wait.
func (p *Progress) flush() {
	p.mu.Lock()
	notes, dropped := p.notes, p.dropped
	p.notes, p.dropped = nil, 0
	p.mu.Unlock()
	if dropped > 0 {
		notes = append(notes, fmt.Sprintf("… and %s more lines", Number(int64(dropped))))
	}
	if len(notes) > 0 {
		p.live.Above(strings.Join(notes, "\n") + "\n")
	}
}

// plain writes one line about the whole.
func (p *Progress) plain() {
	p.mu.Lock()
	p.sampleLocked()
	line := p.headLocked()
	p.mu.Unlock()
	p.live.Above(line + "\n")
}

// lines gives the block of a terminal.
func (p *Progress) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sampleLocked()
	width := min(p.o.Width(), maxColumns) - 1
	out := []string{Fit(p.headLocked(), width)}
	p.compactLocked()
	now := p.o.Now()
	for i, id := range p.order {
		if i == maxRunning-1 && len(p.order) > maxRunning {
			out = append(out, fmt.Sprintf("  … and %d more running", len(p.order)-i))
			break
		}
		after := "  " + Duration(now.Sub(p.running[id]).Truncate(time.Second))
		out = append(out, "  "+Fit(Clean(id), width-2-Width(after))+after)
	}
	return out
}

// headLocked is the line that counts: done/total, what failed, rate and time left.
func (p *Progress) headLocked() string {
	done := finished(p.counts)
	parts := []string{}
	if p.o.Total > 0 {
		parts = append(parts, fmt.Sprintf("%s/%s  %d %%", Number(int64(done)), Number(int64(p.o.Total)), 100*done/p.o.Total))
	}
	for _, s := range []status.Status{status.Failed, status.Blocked, status.Unknown} {
		if n := p.counts.Of(s); n > 0 {
			parts = append(parts, Number(int64(n))+" "+s.String())
		}
	}
	if n := len(p.running); n > 0 && !p.o.Terminal {
		parts = append(parts, fmt.Sprintf("%d running", n))
	}
	rate := p.rateLocked()
	if rate > 0 {
		parts = append(parts, rateText(rate))
		if left := p.o.Total - done; left > 0 {
			parts = append(parts, Duration(time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))+" left")
		}
	}
	return Clean(p.o.Name) + "  " + strings.Join(parts, "  ")
}

// rateLocked gives instances per second over the last rateWindow, 0 while it
// cannot be told.
func (p *Progress) rateLocked() float64 {
	if len(p.samples) < 2 {
		return 0
	}
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	span := last.at.Sub(first.at)
	if span < time.Second || last.done <= first.done {
		return 0
	}
	return float64(last.done-first.done) / span.Seconds()
}

func (p *Progress) sampleLocked() {
	now := p.o.Now()
	p.samples = append(p.samples, sample{now, finished(p.counts)})
	// At least one sample that is old enough stays.
	for len(p.samples) > 2 && now.Sub(p.samples[1].at) >= rateWindow {
		p.samples = p.samples[1:]
	}
}

func rateText(r float64) string {
	switch {
	case r >= 100:
		return Number(int64(r)) + "/s"
	case r >= 1:
		return fmt.Sprintf("%.1f/s", r)
	}
	return fmt.Sprintf("%.1f/min", r*60)
}

// finished counts the instances that have their status.
func finished(c status.Counts) int {
	n := 0
	for _, s := range status.All() {
		if s.Terminal() {
			n += c.Of(s)
		}
	}
	return n
}

func headLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return first
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
