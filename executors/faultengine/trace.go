package faultengine

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Event is one thing that an engine was asked or did.
type Event struct {
	// What is begin, commit, rollback, fault, lookup or prepare.
	What     string
	Instance string
	Attempt  int
	Detail   string
}

// String gives one line: "commit fct@2013-01-01 #1", "rollback … #1: <why>".
func (e Event) String() string {
	s := e.What
	if e.Instance != "" {
		s += " " + e.Instance + " #" + strconv.Itoa(e.Attempt)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Trace collects events. It is safe for concurrent use; one Trace may serve
// several engines, a run and its resumption. The zero value is empty.
type Trace struct {
	mu     sync.Mutex
	events []Event
}

func (t *Trace) add(e Event) {
	t.mu.Lock()
	t.events = append(t.events, e)
	t.mu.Unlock()
}

// Note adds a line of a test's own, such as "resume".
func (t *Trace) Note(text string) { t.add(Event{What: text}) }

// Events gives a copy of all events, in the order in which they came.
func (t *Trace) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.events)
}

// String gives the events as lines, for goldens of runs without concurrency.
func (t *Trace) String() string { return lines(t.Events()) }

// Sorted gives the events as lines, by instance and, within one, as they came:
// the same for every interleaving of instances.
func (t *Trace) Sorted() string {
	events := t.Events()
	slices.SortStableFunc(events, func(a, b Event) int { return strings.Compare(a.Instance, b.Instance) })
	return lines(events)
}

func lines(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}
