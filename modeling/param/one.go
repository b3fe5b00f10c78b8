package param

import (
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Moment is an Instant in a user's words: either Bizdate with At, or
// Scheduled, in Zone.
type Moment struct {
	Bizdate   string // YYYY-MM-DD
	At        string // HH:MM or HH:MM:SS on business date + 1; "" = 00:00
	Scheduled string // YYYY-MM-DDTHH:MM[:SS] on the zone's clock, or RFC 3339; its date − 1 is the business date
	Zone      string // IANA name; "" = UTC
}

// Instant reads a Moment. A time in a gap moves to the first valid instant
// after it (semantics §3.4). Codes: bad_zone, bad_date, bad_time, usage.
func (m Moment) Instant() (Instant, diag.List) {
	fail := func(code, format, value, hint string) (Instant, diag.List) {
		return Instant{}, diag.List{diag.Errorf(code, format, value).WithHint("%s", hint)}
	}
	zone := m.Zone
	if zone == "" {
		zone = "UTC"
	}
	loc, err := bizdate.LoadZone(zone)
	if err != nil {
		return fail("bad_zone", "%q is not a known time zone", zone, "use an IANA name such as Europe/Paris")
	}
	if m.Scheduled != "" {
		if m.Bizdate != "" || m.At != "" {
			return fail("usage", "%s is given together with a business date or time", m.Scheduled, "give either the scheduled time, or the business date and the time of day")
		}
		if t, err := time.Parse(time.RFC3339, m.Scheduled); err == nil {
			t = t.In(loc)
			return Instant{Bizdate: bizdate.FromTime(t) - 1, Scheduled: t}, nil
		}
		day, clock, _ := strings.Cut(strings.Replace(m.Scheduled, " ", "T", 1), "T")
		m.Bizdate, m.At = day, clock
	}
	d, err := bizdate.Parse(m.Bizdate)
	if err != nil {
		return fail("bad_date", "%q is not a date", m.Bizdate, "write YYYY-MM-DD")
	}
	if m.Scheduled != "" {
		d--
	}
	var clock bizdate.TimeOfDay
	if m.At != "" {
		if clock, err = bizdate.ParseTimeOfDay(m.At); err != nil {
			return fail("bad_time", "%q is not a time of day", m.At, "write HH:MM or HH:MM:SS")
		}
	}
	return Instant{Bizdate: d, Scheduled: bizdate.Instant(d+1, clock, loc)}, nil
}

// EvalOne evaluates one parameter value on its own, as `params --expr` does:
// everything that Parse takes, and $name of a built-in name. Codes: those of
// Parse, undefined, range, and unbound for $nodeid and $instanceid.
func EvalOne(d Dialect, expr string, at Instant) (string, diag.List) {
	e, diags := Parse(d, Text(expr))
	if e == nil {
		return "", diags
	}
	if name, ok := e.Ref(); ok {
		set, _ := NewSet(Config{Dialect: d}) // built-ins alone hold no mistake
		v, more := set.Eval(name, at, nil)
		return v, append(diags, more...)
	}
	v, more := e.Eval(at)
	return v, append(diags, more...)
}
