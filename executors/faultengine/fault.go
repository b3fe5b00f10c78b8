package faultengine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retrofill/retrofill/executors"
)

// Action is what a fault does.
type Action int

// The actions. Crash kills the Process. Fail, Transient, Ambiguous and Lock
// return an *Error of that class. Delay waits and goes on.
const (
	Fail Action = iota
	Transient
	Ambiguous
	Lock
	Crash
	Delay
)

// When says on which side of its point a fault acts.
type When int

// The sides. An ambiguous error before the commit is one whose unit is not
// there, after the commit one whose unit is.
const (
	Before When = iota
	After
)

// Point is a place in an engine's work.
type Point int

// The points. All but statement and commit have only a side Before.
const (
	PointStatement Point = iota
	PointCommit
	PointLookup
	PointQuery
	PointCatalog
	PointPrepare
)

// Fault is one scripted failure.
type Fault struct {
	Action Action
	When   When
	Point  Point
	// Statement is the 1-based statement of a PointStatement, 0 = any.
	Statement int
	// Instance is a pattern in which * stands for any text; "" = any.
	Instance string
	// Attempt is the only attempt that it strikes, 0 = any.
	Attempt int
	// Skip lets that many matches pass first.
	Skip int
	// Times is how often it acts, 0 = once, negative = always.
	Times int
	// Delay of a Delay.
	Delay time.Duration
}

// place is where the engine is now.
type place struct {
	point     Point
	when      When
	statement int
	marker    executors.Marker
}

// String tells the place in the words of a script.
func (p place) String() string {
	s := p.when.String() + " " + p.point.String()
	if p.statement > 0 {
		s += " " + strconv.Itoa(p.statement)
	}
	if p.marker.Instance != "" {
		s += " of " + p.marker.Instance
	}
	return s
}

func (f *Fault) matches(at place) bool {
	return f.Point == at.point && f.When == at.when &&
		(f.Statement == 0 || f.Statement == at.statement) &&
		(f.Attempt == 0 || f.Attempt == at.marker.Attempt) &&
		(f.Instance == "" || glob(f.Instance, at.marker.Instance))
}

// acts tells whether the n-th match (from 1) is one to act on.
func (f *Fault) acts(n int) bool {
	times := f.Times
	if times == 0 {
		times = 1
	}
	return n > f.Skip && (times < 0 || n <= f.Skip+times)
}

// glob matches a pattern in which * stands for any text.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, last)
}

func actionNames() []string {
	return []string{"fail", "transient", "ambiguous", "lock", "crash", "delay"}
}
func whenNames() []string { return []string{"before", "after"} }
func pointNames() []string {
	return []string{"statement", "commit", "lookup", "query", "catalog", "prepare"}
}

func named(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("#%d", i)
	}
	return names[i]
}

// String gives the action's word in a script.
func (a Action) String() string { return named(actionNames(), int(a)) }

// String gives the side's word in a script.
func (w When) String() string { return named(whenNames(), int(w)) }

// String gives the point's word in a script.
func (p Point) String() string { return named(pointNames(), int(p)) }

// String gives the line that ParseFaults reads.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.Action.String())
	if f.Action == Delay {
		b.WriteString(" " + f.Delay.String())
	}
	b.WriteString(" " + f.When.String() + " " + f.Point.String())
	if f.Statement > 0 {
		b.WriteString(" " + strconv.Itoa(f.Statement))
	}
	if f.Instance != "" {
		b.WriteString(" of " + f.Instance)
	}
	if f.Attempt > 0 {
		b.WriteString(" attempt " + strconv.Itoa(f.Attempt))
	}
	if f.Skip > 0 {
		b.WriteString(" skip " + strconv.Itoa(f.Skip))
	}
	switch {
	case f.Times < 0:
		b.WriteString(" always")
	case f.Times > 0:
		b.WriteString(" times " + strconv.Itoa(f.Times))
	}
	return b.String()
}

// ParseFaults reads a script, one fault a line, # starts a comment:
//
//	crash before commit of fct@2013-01-02
//	crash after statement 2 of fct@* attempt 1
//	transient before statement 1 of dim@* times 3
//	ambiguous after commit skip 4
//	delay 3s before statement of fct@* always
//	fail before lookup
//
// Instances hold no white space here; a Fault value can have any.
func ParseFaults(script string) ([]Fault, error) {
	var out []Fault
	for n, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		f, err := parseFault(words)
		if err != nil {
			return nil, fmt.Errorf("faultengine: parse line %d %q: %w", n+1, strings.TrimSpace(line), err)
		}
		out = append(out, f)
	}
	return out, nil
}

func parseFault(words []string) (f Fault, err error) {
	next := func() string {
		if len(words) == 0 {
			return ""
		}
		w := words[0]
		words = words[1:]
		return w
	}
	pick := func(what string, names []string) int {
		w := next()
		for i, n := range names {
			if n == w {
				return i
			}
		}
		if err == nil {
			err = fmt.Errorf("%q is no %s: one of %s", w, what, strings.Join(names, ", "))
		}
		return 0
	}
	count := func() int {
		w := next()
		n, e := strconv.Atoi(w)
		if (e != nil || n < 1) && err == nil {
			err = fmt.Errorf("%q is no count from 1", w)
		}
		return n
	}
	f.Action = Action(pick("action", actionNames()))
	if f.Action == Delay && err == nil {
		if f.Delay, err = time.ParseDuration(next()); err != nil {
			return f, err
		}
	}
	f.When = When(pick("side", whenNames()))
	f.Point = Point(pick("point", pointNames()))
	if f.Point == PointStatement && len(words) > 0 {
		if n, e := strconv.Atoi(words[0]); e == nil {
			f.Statement = n
			next()
		}
	}
	for err == nil && len(words) > 0 {
		switch w := next(); w {
		case "of":
			if f.Instance = next(); f.Instance == "" {
				err = fmt.Errorf("an instance is missing behind of")
			}
		case "attempt":
			f.Attempt = count()
		case "skip":
			f.Skip = count()
		case "times":
			f.Times = count()
		case "always":
			f.Times = -1
		default:
			err = fmt.Errorf("unexpected %q", w)
		}
	}
	if err == nil && f.When == After && f.Point != PointStatement && f.Point != PointCommit {
		err = fmt.Errorf("%s has no side after", f.Point)
	}
	return f, err
}
