package param

import (
	"strings"
	"unicode/utf8"
)

// Context is where a placeholder stands in code.
type Context string

// The contexts. In a Comment placeholders are left alone, so no Placeholder
// has it; Plain is text that is not SQL.
const (
	Bare    Context = "bare"
	String  Context = "string"     // '…', also N'…', X'…', B'…'
	EString Context = "e_string"   // E'…' and U&'…': backslash escapes
	Dollar  Context = "dollar"     // $$…$$, $tag$…$tag$
	Ident   Context = "identifier" // "…"
	Comment Context = "comment"    // -- … and nested /* … */
	Plain   Context = "plain"
)

// Span is a byte range [Start, End) of code.
type Span struct{ Start, End int }

// hole is a `${…}` found in code.
type hole struct {
	Span
	ctx     Context
	around  Span   // the enclosing literal or identifier, prefix and quotes included
	tag     string // of a dollar-quoted literal: "$tag$"
	escaped bool   // an unescaped backslash of an E literal stands before it
	open    bool   // no } closes it
	ended   bool   // the code does not end inside the enclosing literal
}

// region is a stretch of code that is not bare.
type region struct {
	ctx Context
	Span
}

// lexer splits SQL only as far as literals, quoted identifiers and comments
// go; it accepts every text.
type lexer struct {
	s       string
	i       int
	holes   []hole
	regions []region
	// plain leaves `${` alone: rendered text is not scanned again.
	plain bool
}

// lexSQL finds the placeholders of SQL text and what they stand in.
func lexSQL(s string) []hole {
	l := lexer{s: s}
	l.run()
	return l.holes
}

// lexPlain finds the placeholders of text that is not SQL.
func lexPlain(s string) []hole {
	l := lexer{s: s}
	for l.i < len(s) {
		if !l.hole(hole{ctx: Plain}) {
			l.i++
		}
	}
	return l.holes
}

func (l *lexer) run() {
	s := l.s
	for l.i < len(s) {
		start := l.i
		switch c := s[l.i]; {
		case c == '\'':
			l.str(start)
		case c == '"':
			l.i++
			l.quoted('"', hole{ctx: Ident, around: Span{Start: start}}, false)
			l.region(Ident, start)
		case c == '-' && strings.HasPrefix(s[l.i:], "--"):
			for l.i < len(s) && s[l.i] != '\n' && s[l.i] != '\r' {
				l.i++
			}
			l.region(Comment, start)
		case c == '/' && strings.HasPrefix(s[l.i:], "/*"):
			l.block()
			l.region(Comment, start)
		case c == '$' && l.hole(hole{ctx: Bare}):
		case c == '$' && (l.i == 0 || !isIdentByte(s[l.i-1])):
			l.dollar()
		default:
			l.i++
		}
	}
}

func (l *lexer) region(ctx Context, start int) {
	l.regions = append(l.regions, region{ctx, Span{start, l.i}})
}

// hole reads a placeholder at the current byte, if one starts there. It ends
// at the first }, and never crosses a line or a quote.
func (l *lexer) hole(h hole) bool {
	if l.plain || !strings.HasPrefix(l.s[l.i:], "${") {
		return false
	}
	h.Start = l.i
	end := strings.IndexAny(l.s[l.i+2:], "}\n\r'\"")
	if end < 0 || l.s[l.i+2+end] != '}' {
		h.open = true
		l.i += 2
	} else {
		l.i += 2 + end + 1
	}
	h.End = l.i
	l.holes = append(l.holes, h)
	return true
}

// str reads a literal whose quote is the current byte.
func (l *lexer) str(quote int) {
	start, ctx, escapes := quote, String, false
	switch {
	case l.prefix(quote, "e"):
		start, ctx, escapes = quote-1, EString, true
	case l.prefix(quote, "u&"):
		// There a backslash starts a code point but does not escape a quote.
		start, ctx = quote-2, EString
	case l.prefix(quote, "n"), l.prefix(quote, "x"), l.prefix(quote, "b"):
		start = quote - 1
	}
	l.i = quote + 1
	for {
		l.quoted('\'', hole{ctx: ctx, around: Span{Start: start}}, escapes)
		next := l.continued()
		if !escapes || next < 0 {
			break
		}
		l.i = next + 1 // the next line's piece of an E literal has its escapes
	}
	l.region(ctx, start)
}

// prefix tells whether the quote at i carries the literal prefix p.
func (l *lexer) prefix(i int, p string) bool {
	from := i - len(p)
	return from >= 0 && strings.EqualFold(l.s[from:i], p) && (from == 0 || !isIdentByte(l.s[from-1]))
}

// continued gives the place of a quote that continues the literal just ended
// after a line break, or -1 (the SQL standard's string continuation).
func (l *lexer) continued() int {
	line := false
	for j := l.i; j < len(l.s); j++ {
		switch l.s[j] {
		case '\n', '\r':
			line = true
		case ' ', '\t', '\f', '\v':
		case '\'':
			if line {
				return j
			}
			return -1
		default:
			return -1
		}
	}
	return -1
}

// quoted reads up to and with the closing quote; the holes inside get h.
func (l *lexer) quoted(q byte, h hole, escapes bool) {
	first := len(l.holes)
	for l.i < len(l.s) {
		c := l.s[l.i]
		switch {
		case c == q && l.i+1 < len(l.s) && l.s[l.i+1] == q:
			l.i += 2
			continue
		case c == q:
			l.i++
			l.close(first, true)
			return
		case c == '\\' && escapes:
			l.i++
			if esc := h; l.i < len(l.s) {
				esc.escaped = true
				if !l.hole(esc) {
					l.i++
				}
			}
			continue
		case l.hole(h):
			continue
		}
		l.i++
	}
	l.close(first, false)
}

// close ends the literal around the holes from first on.
func (l *lexer) close(first int, ended bool) {
	for k := first; k < len(l.holes); k++ {
		l.holes[k].around.End, l.holes[k].ended = l.i, ended
	}
}

// block reads a nested /* … */ comment.
func (l *lexer) block() {
	depth := 0
	for l.i < len(l.s) {
		switch {
		case strings.HasPrefix(l.s[l.i:], "/*"):
			depth++
			l.i += 2
		case strings.HasPrefix(l.s[l.i:], "*/"):
			depth--
			l.i += 2
			if depth == 0 {
				return
			}
		default:
			l.i++
		}
	}
}

// dollar reads a dollar-quoted literal, or steps over a lone $.
func (l *lexer) dollar() {
	start := l.i
	end := start + 1
	for end < len(l.s) && isIdentByte(l.s[end]) && l.s[end] != '$' {
		end++
	}
	if end == len(l.s) || l.s[end] != '$' || isDigit(l.s[start+1]) {
		l.i++
		return
	}
	tag := l.s[start : end+1]
	if !strings.Contains(l.s[end+1:], tag) {
		l.i++ // nothing closes it: no literal
		return
	}
	l.i = end + 1
	first := len(l.holes)
	h := hole{ctx: Dollar, tag: tag, around: Span{Start: start}}
	for l.i < len(l.s) {
		if strings.HasPrefix(l.s[l.i:], tag) {
			l.i += len(tag)
			break
		}
		if !l.hole(h) {
			l.i++
		}
	}
	l.close(first, true)
	l.region(Dollar, start)
}

// isIdentByte tells whether a byte continues an identifier.
func isIdentByte(c byte) bool { return isWord(c) || c == '$' || c >= utf8.RuneSelf }
