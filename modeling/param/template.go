package param

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Placeholder is one `${…}` of code that a rendering replaces.
type Placeholder struct {
	Span          // of `${…}` in the code
	Pos  diag.Pos // of its $
	// Name is the lower-case parameter name, or the time expression's body.
	Name string
	// Timed says that it is a time expression, not a name.
	Timed   bool
	Context Context
	// Around is the enclosing literal or quoted identifier, prefix and quotes
	// included; zero for Bare and Plain.
	Around  Span
	Binding Binding

	tag     string
	escaped bool
	ended   bool
}

// Binding is what a placeholder is bound to.
type Binding struct {
	Expr   *Expr // references resolved
	Raw    bool
	Origin Origin
}

// Template is code parsed once: text and placeholders, lossless. Text outside
// placeholders is never changed (semantics §2.5).
type Template struct {
	dialect  Dialect
	src      Source
	plain    bool // not SQL: values are put in as they are
	holes    []Placeholder
	verbatim []string // names left as written, lower-case, without repeats
}

// ParseCode reads SQL text in the context of a set (semantics §2.1). In code
// `${…}` is a declared or built-in name, else a time expression of the
// business date; `$[…]`, `$x`, comments and verbatim parameters stay. Codes:
// undefined; syntax, offset, range for what is clearly a time expression; the
// warning mm_read_as_minute. The Template is nil if there are errors.
func ParseCode(src Source, set *Set) (*Template, diag.List) {
	return parseTemplate(src, false, set.binder())
}

// ParseText reads text that is not SQL, such as a command's argument: values
// are put in as they are.
func ParseText(src Source, set *Set) (*Template, diag.List) {
	return parseTemplate(src, true, set.binder())
}

// EvalText renders text that is not SQL at one instant.
func EvalText(src Source, set *Set, at Instant, late Late) (string, diag.List) {
	t, diags := ParseText(src, set)
	if t == nil {
		return "", diags
	}
	v, more := t.Render(at, late)
	return v, append(diags, more...)
}

// binder tells what a name of code means.
type binder struct {
	dialect Dialect
	// lookup gives the binding of a lower-case name; verbatim names have none.
	lookup func(key string) (b Binding, verbatim, ok bool)
	// quiet names were reported before.
	quiet func(key string) bool
	known func() []string
}

func (s *Set) binder() binder {
	return binder{
		dialect: s.dialect,
		lookup: func(key string) (Binding, bool, bool) {
			p, ok := s.params[key]
			if !ok {
				return Binding{}, false, false
			}
			return Binding{Expr: p.Expr, Raw: p.Raw, Origin: p.Origin}, p.Verbatim, true
		},
		quiet: func(key string) bool { return s.broken[key] },
		known: s.known,
	}
}

func parseTemplate(src Source, plain bool, b binder) (*Template, diag.List) {
	t := &Template{dialect: b.dialect, src: src, plain: plain}
	scan := lexSQL
	if plain {
		scan = lexPlain
	}
	var diags diag.List
	ok := true
	places := src.walk()
	for _, h := range scan(src.Text) {
		if h.open {
			diags = append(diags, diag.Errorf("syntax", "${ is not closed").At(src.At(h.Start)).WithHint("close it with } on the same line"))
			continue
		}
		body := src.Text[h.Start+2 : h.End-1]
		key := strings.ToLower(body)
		p := Placeholder{Span: h.Span, Pos: places.at(h.Start), Name: key, Context: h.ctx, Around: h.around, tag: h.tag, escaped: h.escaped, ended: h.ended}
		binding, verbatim, found := b.lookup(key)
		switch {
		case verbatim:
			t.keep(key)
			continue
		case found:
			p.Binding = binding
		case b.quiet(key):
			ok = false
			continue
		default:
			e, problems := b.timed(src, h.Start, p.Pos, body)
			diags = append(diags, problems...)
			if e == nil {
				continue
			}
			p.Name, p.Timed, p.Binding = body, true, Binding{Expr: e}
		}
		t.holes = append(t.holes, p)
	}
	if !ok || diags.HasErrors() {
		return nil, diags
	}
	return t, diags
}

// timed reads a placeholder that is no known name. What is no time expression
// either is undefined, unless its format shows that one was meant.
func (b binder) timed(src Source, off int, pos diag.Pos, body string) (*Expr, diag.List) {
	t, diags := parseTimeAt(b.dialect, baseBiz, body, src, off)
	if t != nil {
		return &Expr{dialect: b.dialect, src: Source{Text: "${" + body + "}", Pos: pos}, parts: []part{{kind: partTime, time: t}}}, diags
	}
	if code := diags.Errors()[0].Code; ValidName(body) || code == "token" || code == "syntax" && body != "" && !hasToken(b.dialect, body) {
		return nil, diag.List{diag.Errorf("undefined", "${%s} is neither a parameter nor a time expression", body).At(pos).
			WithHint("%s", diag.DidYouMean(body, b.known(), "declare it under params, or mark it `verbatim: true` to keep it as written"))}
	}
	return nil, diags
}

// hasToken tells whether text begins with a time token.
func hasToken(d Dialect, body string) bool {
	for _, sp := range spellings(d) {
		if strings.HasPrefix(body, sp.text) {
			return true
		}
	}
	return false
}

func (t *Template) keep(name string) {
	for _, v := range t.verbatim {
		if v == name {
			return
		}
	}
	t.verbatim = append(t.verbatim, name)
}

// Text gives the code as written.
func (t *Template) Text() string { return t.src.Text }

// Source gives the code with its place.
func (t *Template) Source() Source { return t.src }

// Dialect gives the parameter grammar of the code.
func (t *Template) Dialect() Dialect { return t.dialect }

// Placeholders gives the placeholders in order. The slice is a copy.
func (t *Template) Placeholders() []Placeholder { return append([]Placeholder(nil), t.holes...) }

// Names gives the names of the parameters that the code uses, lower-case, in
// order of first use, time expressions left out.
func (t *Template) Names() []string {
	var out []string
	seen := map[string]bool{}
	for _, h := range t.holes {
		if !h.Timed && !seen[h.Name] {
			seen[h.Name] = true
			out = append(out, h.Name)
		}
	}
	return out
}

// Late gives the late-bound values that the code needs, without repeats.
func (t *Template) Late() []LateRef {
	var out []LateRef
	seen := map[string]bool{}
	for _, h := range t.holes {
		for _, l := range h.Binding.Expr.Late() {
			if !seen[l.Key] {
				seen[l.Key] = true
				out = append(out, l)
			}
		}
	}
	return out
}

// Render gives the code of one instant (semantics §2.5). Errors: range,
// unbound, and unsafe_value for a value that would become SQL syntax; all of
// them name file, line and column of the placeholder.
func (t *Template) Render(at Instant, late Late) (string, diag.List) {
	return t.render(at, late, false)
}

// Preview is Render for people: late-bound placeholders without a value stay
// as written.
func (t *Template) Preview(at Instant, late Late) (string, diag.List) {
	return t.render(at, late, true)
}

func (t *Template) render(at Instant, late Late, preview bool) (string, diag.List) {
	if len(t.holes) == 0 {
		return t.src.Text, nil
	}
	var diags diag.List
	s := t.src.Text
	out := make([]byte, 0, len(s)+16*len(t.holes))
	var buf [64]byte
	last := 0
	for i := range t.holes {
		h := &t.holes[i]
		out = append(out, s[last:h.Start]...)
		last = h.End
		if preview && unbound(h.Binding.Expr, late) {
			out = append(out, s[h.Start:h.End]...)
			continue
		}
		b, problems := h.Binding.Expr.appendTo(buf[:0], at, late)
		if problems != nil {
			for _, d := range problems {
				diags = append(diags, t.about(h, d))
			}
			continue
		}
		if t.plain {
			out = append(out, b...)
			continue
		}
		v := string(b)
		if why := unsafe(s, h, v, out); why != "" {
			diags = append(diags, t.refuse(h, v, why))
			continue
		}
		if h.Context == Bare || h.Context == Dollar {
			out = append(out, v...)
		} else {
			out = appendEscaped(out, h.Context, v)
		}
	}
	if diags.HasErrors() {
		return "", diags
	}
	return string(append(out, s[last:]...)), diags
}

func unbound(e *Expr, late Late) bool {
	for _, l := range e.Late() {
		if _, ok := late[l.Key]; !ok {
			return true
		}
	}
	return false
}

// about places a problem of a value at the placeholder that uses it.
func (t *Template) about(h *Placeholder, d diag.Diagnostic) diag.Diagnostic {
	if p := d.Pos.String(); p != "" && d.Pos != h.Pos {
		d.Detail = "the value is given at " + p
	}
	d.Summary = t.src.Text[h.Start:h.End] + ": " + d.Summary
	return d.At(h.Pos)
}

func (t *Template) refuse(h *Placeholder, v, why string) diag.Diagnostic {
	d := diag.Errorf("unsafe_value", "%s has the value %q, which cannot stand here: %s", t.src.Text[h.Start:h.End], clip(v), why).At(h.Pos)
	switch {
	case h.Context == Bare && !h.Timed:
		return d.WithHint("put the placeholder inside '…', or declare the parameter with `raw: true` if it is meant to be SQL")
	case h.Context == Bare:
		return d.WithHint("put the placeholder inside '…'")
	}
	return d.WithHint("use a plain literal '…' around the placeholder, or another value")
}

// clip shortens a value for a message.
func clip(v string) string {
	const most = 60
	if r := []rune(v); len(r) > most {
		return string(r[:most]) + "…"
	}
	return v
}
