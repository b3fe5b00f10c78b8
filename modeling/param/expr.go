package param

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// LateKind says which value becomes known only while running.
type LateKind string

// The late-bound values (semantics §2.5, §2.6).
const (
	LateNodeID     LateKind = "node"
	LateInstanceID LateKind = "instance"
	LateCross      LateKind = "cross"
)

// LateRef is a typed placeholder for a value that only the run knows.
type LateRef struct {
	Kind LateKind
	// Key is the entry of Late that gives the value: "nodeid", "instanceid",
	// or the lower-case name of the cross-node parameter.
	Key string
	// Node and Output name the producer of a cross-node parameter.
	Node, Output string
	// Default is its value of last resort, Lookback the age in days up to which
	// a recorded value counts, nil = DefaultLookback.
	Default  *string
	Lookback *int
}

// Days gives the look-back of a cross-node parameter in days.
func (r LateRef) Days() int { return Frozen{Lookback: r.Lookback}.Days() }

// Late gives late-bound values by LateRef.Key.
type Late map[string]string

// partKind tells the pieces of a value apart.
type partKind uint8

const (
	partText partKind = iota
	partTime
	partSlotUTC
	partLate
)

// part is one piece of a value; off is its byte offset in the source.
type part struct {
	kind partKind
	text string
	time *timeExpr
	late LateRef
	off  int
}

// Expr is one parameter value, parsed once. It is immutable.
type Expr struct {
	dialect Dialect
	src     Source
	ref     string // "$other": the lower-case name; parts is empty then
	parts   []part
}

// Parse reads one parameter value (semantics §2.1–2.4): text with ${…} and
// $[…] time expressions, or exactly $name. Errors have the codes syntax,
// token, offset, range and place line and column in the source; the Expr is
// nil then. The warning is mm_read_as_minute.
func Parse(d Dialect, src Source) (*Expr, diag.List) { return parseValue(d, src, nil) }

// parseValue is Parse, with a resolver for `${name}` where names may stand.
func parseValue(d Dialect, src Source, named func(string) (*Expr, bool)) (*Expr, diag.List) {
	e := &Expr{dialect: d, src: src}
	s := src.Text
	if name, ok := strings.CutPrefix(s, "$"); ok && ValidName(name) {
		e.ref = strings.ToLower(name)
		return e, nil
	}
	var diags diag.List
	text := 0
	for i := 0; i < len(s); {
		b, closer := baseBiz, "}"
		if strings.HasPrefix(s[i:], "$[") {
			b, closer = baseSched, "]"
		} else if !strings.HasPrefix(s[i:], "${") {
			i++
			continue
		}
		if text < i {
			e.parts = append(e.parts, part{text: s[text:i], off: text})
		}
		n := strings.Index(s[i:], closer)
		if n < 0 {
			diags = append(diags, diag.Errorf("syntax", "%q is not closed", s[i:]).At(src.At(i)).
				WithHint("close it with %s", closer))
			text = len(s)
			break
		}
		body := s[i+2 : i+n]
		if inner, ok := resolveNamed(named, b, body); ok {
			for _, p := range inner.parts {
				p.off = i
				e.parts = append(e.parts, p)
			}
		} else {
			t, found := parseTimeAt(d, b, body, src, i)
			diags = append(diags, found...)
			e.parts = append(e.parts, part{kind: partTime, time: t, off: i})
		}
		i += n + 1
		text = i
	}
	if text < len(s) {
		e.parts = append(e.parts, part{text: s[text:], off: text})
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return e, diags
}

func resolveNamed(named func(string) (*Expr, bool), b base, body string) (*Expr, bool) {
	if named == nil || b != baseBiz || !ValidName(body) {
		return nil, false
	}
	return named(strings.ToLower(body))
}

// parseTimeAt parses the body of the time expression that starts at a byte
// offset of src, and turns problems into diagnostics.
func parseTimeAt(d Dialect, b base, body string, src Source, off int) (*timeExpr, diag.List) {
	t, warn, fail := parseTime(d, b, body)
	var diags diag.List
	for _, p := range []*problem{warn, fail} {
		if p == nil {
			continue
		}
		written := "${" + body + "}"
		if b == baseSched {
			written = "$[" + body + "]"
		}
		dg := diag.Errorf(p.code, "%s: %s", written, p.summary)
		if p.warning {
			dg.Severity = diag.Warning
		}
		diags = append(diags, dg.At(src.At(off+2+p.off)).WithHint("%s", p.hint))
	}
	if fail != nil {
		return nil, diags
	}
	return t, diags
}

// Dialect gives the grammar the expression was read with.
func (e *Expr) Dialect() Dialect { return e.dialect }

// Written gives the source text.
func (e *Expr) Written() string { return e.src.Text }

// Ref gives the lower-case name if the value is exactly $name.
func (e *Expr) Ref() (string, bool) { return e.ref, e.ref != "" }

// Const gives the text of a value that holds no expression at all.
func (e *Expr) Const() (string, bool) {
	if e.ref != "" {
		return "", false
	}
	var b strings.Builder
	for _, p := range e.parts {
		if p.kind != partText {
			return "", false
		}
		b.WriteString(p.text)
	}
	return b.String(), true
}

// Late gives the late-bound values that the expression needs, in order.
func (e *Expr) Late() []LateRef {
	var out []LateRef
	for _, p := range e.parts {
		if p.kind == partLate {
			out = append(out, p.late)
		}
	}
	return out
}

// UsesSchedule tells whether the value depends on the scheduled instant and
// not on the business date alone: two slots of one business date may differ.
func (e *Expr) UsesSchedule() bool {
	for _, p := range e.parts {
		switch p.kind {
		case partSlotUTC:
			return true
		case partTime:
			if n := p.time.normal(); n.base == baseSched && (n.finest > tokDay || n.minutes != 0) {
				return true
			}
		}
	}
	return false
}

// Eval gives the value at an instant. Errors: range (the result lies outside
// 0001..9999), unbound (a late-bound value or an unresolved $name).
func (e *Expr) Eval(at Instant) (string, diag.List) { return e.EvalLate(at, nil) }

// EvalLate is Eval with the late-bound values known.
func (e *Expr) EvalLate(at Instant, late Late) (string, diag.List) {
	var buf [64]byte
	b, diags := e.appendTo(buf[:0], at, late)
	if diags != nil {
		return "", diags
	}
	return string(b), nil
}

func (e *Expr) appendTo(b []byte, at Instant, late Late) ([]byte, diag.List) {
	if e.ref != "" {
		return b, diag.List{diag.Errorf("unbound", "$%s is not resolved", e.ref).At(e.src.At(0)).
			WithHint("evaluate it through a parameter configuration")}
	}
	for i := range e.parts {
		switch p := &e.parts[i]; p.kind {
		case partText:
			b = append(b, p.text...)
		case partSlotUTC:
			b = at.Scheduled.UTC().AppendFormat(b, "20060102150405")
		case partLate:
			v, ok := late[p.late.Key]
			if !ok {
				return b, diag.List{diag.Errorf("unbound", "the value of %s is known only while the backfill runs", p.late.Key).At(e.src.At(p.off))}
			}
			b = append(b, v...)
		case partTime:
			var ok bool
			if b, ok = p.time.appendTo(b, at); !ok {
				r := outOfRange(0)
				return b, diag.List{diag.Errorf(r.code, "%s at business date %s: %s", p.time.canonical(e.dialect), at.Bizdate, r.summary).
					At(e.src.At(p.off)).WithHint("%s", r.hint)}
			}
		}
	}
	return b, nil
}

// Canonical gives a text of the same meaning in the same dialect, equal for
// expressions that differ in spelling only: blanks around the sign, n/24/60
// or n/1440, mm or MM, $[yyyymmdd-1] or ${yyyymmdd}. Parsing it again gives
// an equal expression, unless it holds the late-bound ${nodeid},
// ${instanceid}, ${cross:node.output} or ${slotutc}. Fingerprints of value
// expressions hash it.
func (e *Expr) Canonical() string {
	if e.ref != "" {
		return "$" + e.ref
	}
	var b strings.Builder
	for _, p := range e.parts {
		switch p.kind {
		case partText:
			b.WriteString(p.text)
		case partTime:
			b.WriteString(p.time.canonical(e.dialect))
		case partSlotUTC:
			b.WriteString("${slotutc}")
		case partLate:
			if p.late.Kind == LateCross { // by its producer, not by the reader's name for it
				b.WriteString("${cross:" + p.late.Node + "." + p.late.Output + "}")
			} else {
				b.WriteString("${" + p.late.Key + "}")
			}
		}
	}
	return b.String()
}
