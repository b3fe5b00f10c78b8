package bizdate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Weekday is a day of the week whose text form is mon, tue, … sun. The zero
// value is sunday, as in package time.
type Weekday time.Weekday

// ParseWeekday reads a weekday in any letter case, short (mon) or in full.
func ParseWeekday(s string) (Weekday, error) {
	l := strings.ToLower(s)
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToLower(d.String()); l == full || l == full[:3] {
			return Weekday(d), nil
		}
	}
	return 0, fmt.Errorf("bizdate: %q is not a weekday (mon, tue, wed, thu, fri, sat, sun)", s)
}

// String gives the short form, mon to sun.
func (w Weekday) String() string { return strings.ToLower(time.Weekday(w).String()[:3]) }

// MarshalText gives the short form.
func (w Weekday) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what ParseWeekday reads.
func (w *Weekday) UnmarshalText(b []byte) error {
	v, err := ParseWeekday(string(b))
	if err != nil {
		return err
	}
	*w = v
	return nil
}

// MonthDay is a day of the month, 1..31, or MonthEnd. A month that is too
// short has no such day: it is skipped, never moved.
type MonthDay int8

// MonthEnd is the last day of each month; its text form is "last".
const MonthEnd MonthDay = -1

// ParseMonthDay reads 1..31 or "last".
func ParseMonthDay(s string) (MonthDay, error) {
	if strings.EqualFold(s, "last") {
		return MonthEnd, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n < 1 || n > 31 || len(s) > 2 {
		return 0, fmt.Errorf("bizdate: %q is not a day of the month (1 to 31, or last)", s)
	}
	return MonthDay(n), nil
}

// String gives the number, or "last".
func (m MonthDay) String() string {
	if m == MonthEnd {
		return "last"
	}
	return strconv.Itoa(int(m))
}

// MarshalText gives the number, or "last".
func (m MonthDay) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what ParseMonthDay reads.
func (m *MonthDay) UnmarshalText(b []byte) error {
	v, err := ParseMonthDay(string(b))
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// onWeekday tells whether d falls on one of the weekdays.
func onWeekday(d Date, days []Weekday) bool {
	return len(days) > 0 && slices.Contains(days, Weekday(d.Weekday()))
}

// onMonthDay tells whether d is one of the days of its month.
func onMonthDay(d Date, days []MonthDay) bool {
	if len(days) == 0 {
		return false
	}
	y, m, day := d.Civil()
	return slices.Contains(days, MonthDay(day)) ||
		slices.Contains(days, MonthEnd) && day == DaysIn(y, m)
}
