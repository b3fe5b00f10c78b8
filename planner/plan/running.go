package plan

import (
	"fmt"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// Budget pauses a run at the end of a step (semantics of the zero values: no
// bound). It counts anew when the backfill is resumed.
type Budget struct {
	// MaxSeconds is how long a run may begin new instances.
	MaxSeconds int64 `json:"max_seconds,omitempty"`
	// MaxRows is how many rows a run may have written before it begins
	// another instance.
	MaxRows int64 `json:"max_rows,omitempty"`
	// NotBetween is a part of the day, HH:MM-HH:MM in the plan's zone, in which
	// nothing new begins; it may pass midnight. The end does not belong to it.
	NotBetween string `json:"not_between,omitempty"`
}

// Set is a cross-node parameter that a step sets (semantics §2.6).
type Set struct {
	Param string `json:"param"`
	// Query gives the value: one row with one column, NULL or no row = not
	// set. Empty for commands, which write it into a file.
	Query string `json:"query,omitempty"`
}

// RunsAt gives the instant before which nothing may run; zero = at once.
func (p *Plan) RunsAt() (time.Time, error) {
	if p.RunAt == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, p.RunAt)
	if err != nil {
		return time.Time{}, fmt.Errorf("plan: read run_at: %w", err)
	}
	return t, nil
}

// DayPart is a part of the day on the local clock, From included and To not;
// To before From passes midnight.
type DayPart struct{ From, To bizdate.TimeOfDay }

// ParseDayPart reads HH:MM-HH:MM.
func ParseDayPart(text string) (DayPart, error) {
	if len(text) != 11 || text[5] != '-' {
		return DayPart{}, fmt.Errorf("plan: %q is not a part of the day of the form HH:MM-HH:MM", text)
	}
	from, err := bizdate.ParseTimeOfDay(text[:5])
	if err != nil {
		return DayPart{}, fmt.Errorf("plan: read part of the day %q: %w", text, err)
	}
	to, err := bizdate.ParseTimeOfDay(text[6:])
	if err != nil {
		return DayPart{}, fmt.Errorf("plan: read part of the day %q: %w", text, err)
	}
	if from == to {
		return DayPart{}, fmt.Errorf("plan: the part of the day %q is empty", text)
	}
	return DayPart{From: from, To: to}, nil
}

// Holds tells whether an instant lies in it, on the clock of the instant's
// own location.
func (w DayPart) Holds(t time.Time) bool {
	at := bizdate.TimeOfDay(t.Hour()*3600 + t.Minute()*60 + t.Second())
	if w.From < w.To {
		return w.From <= at && at < w.To
	}
	return at >= w.From || at < w.To
}
