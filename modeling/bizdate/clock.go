package bizdate

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/diag"
)

// TimeOfDay is a clock reading in seconds after 00:00:00, 0..86399.
type TimeOfDay int32

// LastMinute is 23:59, the last minute of a day.
const LastMinute TimeOfDay = 23*3600 + 59*60

// ParseTimeOfDay reads HH:MM or HH:MM:SS strictly, 00:00 to 23:59:59.
func ParseTimeOfDay(s string) (TimeOfDay, error) {
	bad := fmt.Errorf("bizdate: %q is not a time of day of the form HH:MM or HH:MM:SS (00:00 to 23:59:59)", s)
	if len(s) != 5 && len(s) != 8 {
		return 0, bad
	}
	var part [3]int
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case i%3 == 2 && c == ':':
		case i%3 != 2 && c >= '0' && c <= '9':
			part[i/3] = part[i/3]*10 + int(c-'0')
		default:
			return 0, bad
		}
	}
	if part[0] > 23 || part[1] > 59 || part[2] > 59 {
		return 0, bad
	}
	return TimeOfDay(part[0]*3600 + part[1]*60 + part[2]), nil
}

// Minute gives the reading's minute of the day, 0..1439.
func (t TimeOfDay) Minute() int { return int(t) / 60 }

// String gives HH:MM, or HH:MM:SS where there are seconds.
func (t TimeOfDay) String() string {
	s := fmt.Sprintf("%02d:%02d", t/3600, t/60%60)
	if t%60 != 0 {
		s += fmt.Sprintf(":%02d", t%60)
	}
	return s
}

// MarshalText gives HH:MM or HH:MM:SS.
func (t TimeOfDay) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads HH:MM or HH:MM:SS.
func (t *TimeOfDay) UnmarshalText(b []byte) error {
	v, err := ParseTimeOfDay(string(b))
	if err != nil {
		return err
	}
	*t = v
	return nil
}

// Window is a part of the day on the local clock, closed at both ends to the
// minute (semantics §3.3): 00:00 to 03:00 holds four full hours.
type Window struct {
	From TimeOfDay `json:"from"`
	To   TimeOfDay `json:"to"`
}

// Contains tells whether the minute of t lies in the window.
func (w Window) Contains(t TimeOfDay) bool {
	return w.From.Minute() <= t.Minute() && t.Minute() <= w.To.Minute()
}

// String gives HH:MM-HH:MM.
func (w Window) String() string { return w.From.String() + "-" + w.To.String() }

// ParseWindow reads the two ends, HH:MM from 00:00 to 23:59; an empty text is
// the start or the end of the day. Diagnostics: bad_time, end_before_start.
func ParseWindow(from, to string) (Window, diag.List) {
	w := Window{To: LastMinute}
	var bad []string
	for _, end := range []struct {
		text string
		at   *TimeOfDay
	}{{from, &w.From}, {to, &w.To}} {
		if end.text == "" {
			continue
		}
		t, err := ParseTimeOfDay(end.text)
		if err != nil || len(end.text) != 5 {
			bad = append(bad, fmt.Sprintf("%q", end.text))
			continue
		}
		*end.at = t
	}
	if len(bad) > 0 {
		return Window{}, diag.List{diag.Errorf("bad_time", "%s is not a time of day", strings.Join(bad, ", ")).
			WithHint("write HH:MM, from 00:00 to 23:59; both ends belong to the window")}
	}
	if w.To < w.From {
		return Window{}, diag.List{diag.Errorf("end_before_start", "the time window ends at %s, before it starts at %s", w.To, w.From).
			WithHint("a window lies inside one day; swap the two times, or run two backfills")}
	}
	return w, nil
}

// ParseInstant reads a date and a time, `2024-06-01T09:00[:SS]` (a blank may
// stand for the T), in zone z unless it ends in Z or an offset such as +02:00.
// A local reading in a gap or a repeated hour is taken as in Instant.
// Diagnostics: bad_date, bad_time.
func ParseInstant(s string, z *time.Location) (time.Time, diag.List) {
	if z == nil {
		z = time.UTC
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.In(z), nil
	}
	const hint = "write YYYY-MM-DDTHH:MM, with Z or an offset such as +02:00 if it is not in the project's zone"
	if len(s) < 10 {
		return time.Time{}, diag.List{diag.Errorf("bad_date", "%q does not start with a date", s).WithHint(hint)}
	}
	d, err := Parse(s[:10])
	if err != nil {
		return time.Time{}, diag.List{diag.Errorf("bad_date", "%q is not a date", s[:10]).WithHint(hint)}
	}
	badTime := func() (time.Time, diag.List) {
		return time.Time{}, diag.List{diag.Errorf("bad_time", "%q has no valid time of day after the date", s).WithHint(hint)}
	}
	if len(s) < 16 || s[10] != 'T' && s[10] != ' ' {
		return badTime()
	}
	clock := s[11:]
	offset := time.Duration(0)
	fixed := false
	if rest, ok := strings.CutSuffix(clock, "Z"); ok {
		clock, fixed = rest, true
	} else if n := len(clock) - 6; n > 0 && (clock[n] == '+' || clock[n] == '-') {
		o, err := ParseTimeOfDay(clock[n+1:])
		if err != nil {
			return badTime()
		}
		offset, fixed = time.Duration(o)*time.Second, true
		if clock[n] == '-' {
			offset = -offset
		}
		clock = clock[:n]
	}
	t, err := ParseTimeOfDay(clock)
	if err != nil {
		return badTime()
	}
	if fixed {
		return d.UTC().Add(time.Duration(t)*time.Second - offset).In(z), nil
	}
	return Instant(d, t, z), nil
}
