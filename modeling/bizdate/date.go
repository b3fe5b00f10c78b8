// Package bizdate is the arithmetic of business dates, slots and time zones
// (semantics §3).
//
// Invariants:
//   - nothing here reads the wall clock: "now" is an argument (Clock);
//   - a Date is a calendar date, never an instant; a *time.Location is loaded
//     once (LoadZone) and only looked up afterwards;
//   - every interval is half-open, [Start, End) (semantics §3.6); only what a
//     person writes (Window, a range's end) is closed, to the minute or day;
//   - a Set's ranges are ascending, disjoint and not adjacent.
package bizdate

import (
	"fmt"
	"time"
)

// Date is a calendar date without a zone: days since 1970-01-01. It is its
// own type so that "the day before" is calendar arithmetic, never −24 h
// (semantics §3.4).
type Date int32

// Earliest is 1900-01-01, the first business date that a backfill may select
// (semantics §3.1).
const Earliest Date = -25567

// Of gives the date of a year, month and day; out-of-range values are
// normalised as in time.Date.
func Of(year int, month time.Month, day int) Date {
	t := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	return Date(t.Unix() / 86400) // exact: midnight UTC, also before 1970
}

// FromTime gives the calendar date that t shows in its own location.
func FromTime(t time.Time) Date {
	y, m, d := t.Date()
	return Of(y, m, d)
}

// Parse reads YYYY-MM-DD strictly: ten characters, an existing date of the
// years 0001 to 9999.
func Parse(s string) (Date, error) {
	t, err := time.Parse("2006-01-02", s)
	if err != nil || len(s) != 10 || t.Year() == 0 {
		return 0, fmt.Errorf("bizdate: %q is not a date of the form YYYY-MM-DD", s)
	}
	return FromTime(t), nil
}

// UTC gives midnight UTC of the date: a carrier for formatting only.
func (d Date) UTC() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// Civil gives year, month and day.
func (d Date) Civil() (int, time.Month, int) { return d.UTC().Date() }

// String gives YYYY-MM-DD.
func (d Date) String() string { return d.UTC().Format("2006-01-02") }

// Weekday gives the day of the week.
func (d Date) Weekday() time.Weekday { return d.UTC().Weekday() }

// AddMonths moves by n calendar months and clamps to the month's end.
func (d Date) AddMonths(n int) Date {
	y, m, day := d.Civil()
	first := time.Date(y, m+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	return Of(first.Year(), first.Month(), min(day, DaysIn(first.Year(), first.Month())))
}

// DaysIn gives the number of days of a month.
func DaysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// MarshalText and UnmarshalText use YYYY-MM-DD.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads YYYY-MM-DD.
func (d *Date) UnmarshalText(b []byte) error {
	v, err := Parse(string(b))
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// Slot is one scheduled run of a node (semantics §1). A daily (weekly,
// monthly) slot's identity is Date alone; an hourly or minute slot's is At.
type Slot struct {
	// Date is the business date: the local date of the scheduled instant − 1.
	Date Date
	// At is the scheduled instant, in the project's zone.
	At time.Time
	// SubDaily says that the instant, not the date, is the identity.
	SubDaily bool
}

// ID gives the slot's stable text: "2013-01-05" for a daily slot, the
// scheduled instant with its offset ("2013-11-03T01:00:00-04:00") otherwise.
func (s Slot) ID() string {
	if s.SubDaily {
		return s.At.Format("2006-01-02T15:04:05-07:00")
	}
	return s.Date.String()
}
