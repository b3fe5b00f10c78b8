package status

import "fmt"

// Summary is what many instances amount to. Beside the statuses that an
// instance can have it knows Paused and Incomplete.
type Summary uint8

// The summaries, in no particular order (semantics §6.7).
const (
	AllPending Summary = iota
	AnyRunning
	AnyUnknown
	AnyFailed
	AllSucceeded
	HeldByPause // good so far, idle, and a pause flag holds a pending instance
	Incomplete  // good so far, idle, and nothing holds the rest
)

// String spells the summary in the words of the statuses, plus `paused` and
// `incomplete`.
func (s Summary) String() string {
	switch s {
	case AllPending:
		return Pending.String()
	case AnyRunning:
		return Running.String()
	case AnyUnknown:
		return Unknown.String()
	case AnyFailed:
		return Failed.String()
	case AllSucceeded:
		return Succeeded.String()
	case HeldByPause:
		return "paused"
	case Incomplete:
		return "incomplete"
	}
	return fmt.Sprintf("summary(%d)", uint8(s))
}

// MarshalText spells the summary as String does.
func (s Summary) MarshalText() ([]byte, error) {
	if s > Incomplete {
		return nil, fmt.Errorf("status: encode: no summary %d", uint8(s))
	}
	return []byte(s.String()), nil
}

// Counts holds how many instances have each status, so that a range of
// millions of pending instances is one addition. The zero value is empty.
type Counts struct {
	byStatus [numStatuses]int
	paused   int // pending instances whose pause flag is set
}

// Add counts n instances of one state. A status outside the set is ignored.
func (c *Counts) Add(s State, n int) {
	if s.Status >= numStatuses {
		return
	}
	c.byStatus[s.Status] += n
	if s.Paused && s.Status == Pending {
		c.paused += n
	}
}

// Of gives the number of instances that have status s.
func (c Counts) Of(s Status) int {
	if s >= numStatuses {
		return 0
	}
	return c.byStatus[s]
}

// Held gives the number of pending instances that carry the pause flag.
func (c Counts) Held() int { return c.paused }

// Total gives the number of instances counted.
func (c Counts) Total() int {
	n := 0
	for _, k := range c.byStatus {
		n += k
	}
	return n
}

// Rollup gives the one summary of many instances (semantics §6.7), in this
// order: all pending; any waiting or running; any unknown; any failed,
// blocked or stopped; all succeeded; else paused if a pending one carries the
// flag, incomplete otherwise. No instance at all is refused with `empty`:
// nothing planned is no success.
func Rollup(c Counts) (Summary, *Refusal) {
	total := c.Total()
	switch {
	case total == 0:
		return 0, &Refusal{Code: CodeEmpty}
	case c.Of(Pending) == total:
		return AllPending, nil
	case c.Of(Waiting)+c.Of(Running) > 0:
		return AnyRunning, nil
	case c.Of(Unknown) > 0:
		return AnyUnknown, nil
	case c.Of(Failed)+c.Of(Blocked)+c.Of(Stopped) > 0:
		return AnyFailed, nil
	case c.Of(Succeeded) == total:
		return AllSucceeded, nil
	case c.paused > 0:
		return HeldByPause, nil
	}
	return Incomplete, nil
}
