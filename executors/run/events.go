package run

import (
	"sync"
	"time"

	"github.com/retrofill/retrofill/planner/status"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	Begun    EventKind = "begun"    // the run began
	Prepared EventKind = "prepared" // schema statements are done
	Started  EventKind = "started"  // an attempt began
	Retrying EventKind = "retrying" // an attempt failed and is repeated after Wait
	Resolved EventKind = "resolved" // an open outcome was looked up
	Finished EventKind = "finished" // an instance has its status
	Stopping EventKind = "stopping" // nothing new begins
	Waiting  EventKind = "waiting"  // the run, or an instance, waits for its time
	Reloaded EventKind = "reloaded" // another process changed records; they were read again
	Ended    EventKind = "ended"    // the run is over
)

// Event is something that happened, for display. Counts are cumulative, so a
// consumer that misses events still shows the right numbers.
type Event struct {
	Kind    EventKind
	At      time.Time
	Node    int    // index into Plan.Nodes; −1 for events of the run
	ID      string // instance
	Attempt int
	Status  status.Status // of Finished
	Reason  string
	Error   string
	Rows    int64
	Wait    time.Duration // before the next attempt
	Counts  status.Counts // of all instances, after this event
}

// maxMailbox is how many events may wait for a slow consumer; then the oldest
// of them are dropped.
const maxMailbox = 100_000

// mailbox hands events to a consumer in order, from one goroutine, without
// ever making the sender wait.
type mailbox struct {
	mu     sync.Mutex
	queue  []Event
	wake   chan struct{}
	closed bool
	done   chan struct{}
}

func newMailbox(consume func(Event)) *mailbox {
	m := &mailbox{wake: make(chan struct{}, 1), done: make(chan struct{})}
	if consume == nil {
		m.closed = true
		close(m.done)
		return m
	}
	go m.deliver(consume)
	return m
}

func (m *mailbox) send(e Event) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	if len(m.queue) >= maxMailbox {
		m.queue = append(m.queue[:0], m.queue[maxMailbox/2:]...)
	}
	m.queue = append(m.queue, e)
	m.mu.Unlock()
	m.poke()
}

func (m *mailbox) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) deliver(consume func(Event)) {
	defer close(m.done)
	for {
		m.mu.Lock()
		batch, closed := m.queue, m.closed
		m.queue = nil
		m.mu.Unlock()
		for _, e := range batch {
			consume(e)
		}
		if len(batch) > 0 {
			continue
		}
		if closed {
			return
		}
		<-m.wake
	}
}

// close lets the consumer see what waits, but waits at most so long for it.
func (m *mailbox) close(patience time.Duration) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.poke()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-m.done:
	case <-t.C:
	}
}
