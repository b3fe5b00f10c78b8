// Package status is the state machine of backfill instances (semantics §6.7,
// §6.8): which statuses there are, which operation is legal in which of them,
// what an operation does to the instances around it, and how the statuses of
// many instances roll up into one.
//
// Invariants:
//   - every (status, operation) pair has exactly one cell in the table of
//     table.go: a next status or a refusal, nothing is decided elsewhere;
//   - paused is a flag beside the status, never a status;
//   - a terminal status is left only by an operation of a user, except
//     unknown, which the runner resolves by looking into the target.
package status

import "fmt"

// Status is where one instance stands. The zero value is Pending.
type Status uint8

// The statuses (semantics §6.7).
const (
	Pending   Status = iota // not begun
	Waiting                 // due: its upstream is done, it waits for a worker
	Running                 // a worker has it
	Succeeded               // done, dry-run successes included
	Failed                  // its last attempt failed
	Blocked                 // not begun, and something above it failed or was stopped
	Stopped                 // a user stopped it; rolls up as failed
	Unknown                 // the engine may or may not have committed

	numStatuses = iota
)

// All gives every status, in declaration order.
func All() []Status {
	out := make([]Status, numStatuses)
	for i := range out {
		out[i] = Status(i)
	}
	return out
}

// String gives the status as the CLI, the ledger and JSON spell it.
func (s Status) String() string {
	switch s {
	case Pending:
		return "pending"
	case Waiting:
		return "waiting"
	case Running:
		return "running"
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	case Blocked:
		return "blocked"
	case Stopped:
		return "stopped"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Parse reads a status as String spells it.
func Parse(text string) (Status, error) {
	for _, s := range All() {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, fmt.Errorf("status: %q is not a status", text)
}

// MarshalText spells the status; a value outside the set is an error.
func (s Status) MarshalText() ([]byte, error) {
	if s >= numStatuses {
		return nil, fmt.Errorf("status: encode: no status %d", uint8(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads a status as MarshalText writes it.
func (s *Status) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// Active tells whether the instance has or will at once have a worker.
func (s Status) Active() bool { return s == Waiting || s == Running }

// Terminal tells whether the status stays as it is without an operation.
func (s Status) Terminal() bool {
	return s == Succeeded || s == Failed || s == Blocked || s == Stopped || s == Unknown
}

// Broken tells whether the status keeps what is below from running: failed,
// blocked, stopped or unknown.
func (s Status) Broken() bool {
	return s == Failed || s == Blocked || s == Stopped || s == Unknown
}

// State is one instance's status with its pause flag.
type State struct {
	Status Status `json:"status"`
	Paused bool   `json:"paused,omitempty"`
}
