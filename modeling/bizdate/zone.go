package bizdate

import (
	"fmt"
	"time"
	_ "time/tzdata" // zones must load on machines without a zone database
)

// maxOffset bounds every UTC offset of the zone database, in seconds: Manila's
// and Metlakatla's local mean times came within 4 minutes of it.
const maxOffset = 16 * 3600

const daySeconds = 86400

// Interval is half-open, [Start, End) (semantics §3.6). It may be empty.
type Interval struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// Minutes gives the elapsed minutes of the interval.
func (i Interval) Minutes() float64 { return i.End.Sub(i.Start).Minutes() }

// Contains tells whether t lies in [Start, End).
func (i Interval) Contains(t time.Time) bool { return !t.Before(i.Start) && t.Before(i.End) }

// LoadZone loads an IANA zone by its name. The machine's own zone ("Local",
// "") is refused: the same project must give the same slots everywhere.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("bizdate: load zone %q: not the name of an IANA zone such as Europe/Berlin or UTC", name)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("bizdate: load zone %q: %w", name, err)
	}
	return z, nil
}

// Instant gives the instant at which the clock of z shows t on date d. A
// reading that a clock change skips moves to the first valid instant after
// the gap; one that comes twice takes the first (semantics §3.4).
func Instant(d Date, t TimeOfDay, z *time.Location) time.Time {
	return time.Unix(instant(d, t, z), 0).In(z)
}

// instant is Instant in seconds since 1970: the earliest instant whose clock
// reading is at or after the wanted one, which covers gaps and repeats alike.
func instant(d Date, t TimeOfDay, z *time.Location) int64 {
	want := int64(d)*daySeconds + int64(t)
	from := want - maxOffset // no clock has reached the reading yet
	for {
		s := segmentAt(from, z)
		if at := max(from, want-s.offset); s.forever || at < s.end {
			return at
		}
		from = s.end
	}
}

// segment is a stretch of time with one UTC offset; end is exclusive. Two
// neighbours may have the same offset.
type segment struct {
	offset, end int64 // seconds
	forever     bool
}

// segmentAt gives the offset in force at an instant, and until when.
func segmentAt(at int64, z *time.Location) segment {
	t := time.Unix(at, 0).In(z)
	_, offset := t.Zone()
	_, until := t.ZoneBounds()
	if until.IsZero() {
		return segment{offset: int64(offset), forever: true}
	}
	end := until.Unix()
	if end <= at {
		// Beyond the zone's table the standard library ends a year after 365
		// days, also a leap year: on its last day the bound is not after t.
		// No zone changes its clocks there; go on at the next midnight UTC.
		end = at - mod(at, daySeconds) + daySeconds
	}
	return segment{offset: int64(offset), end: end}
}

// mod is the non-negative remainder.
func mod(a, b int64) int64 { return ((a % b) + b) % b }

// DayInterval gives the local day d in zone z: from the first instant of d to
// the first instant of d+1. It has 23 or 25 hours on days of clock changes and
// is empty for a date that the zone skips (semantics §3.4).
func DayInterval(d Date, z *time.Location) Interval {
	return Interval{Start: Instant(d, 0, z), End: Instant(d+1, 0, z)}
}

// DayIntervals gives the local days first..last (both included). They tile the
// time line: each ends where the next one starts.
func DayIntervals(first, last Date, z *time.Location) []Interval {
	if last < first {
		return nil
	}
	out := make([]Interval, 0, int(last-first)+1)
	start := Instant(first, 0, z)
	for d := first; d <= last; d++ {
		end := Instant(d+1, 0, z)
		out = append(out, Interval{Start: start, End: end})
		start = end
	}
	return out
}
