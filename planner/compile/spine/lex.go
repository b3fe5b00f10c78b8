package spine

import (
	"strings"

	"github.com/retrofill/retrofill/modeling/param"
)

type tokenKind int

const (
	tokString tokenKind = iota // '…' with its prefix, $$…$$
	tokQuoted                  // "…"
	tokWord                    // letters, digits, _
	tokNumber                  // digits, placeholders, one dot, an exponent
	tokPunct                   // one character
)

// token is a meaning-carrying piece of the code; blanks and comments are not
// kept.
type token struct {
	kind       tokenKind
	start, end int
	// holes are the placeholders inside, by index.
	first, last int
}

func (t token) hasHole() bool { return t.last > t.first }

// scan cuts code into tokens. A placeholder outside literals counts as digits:
// a word that holds one starts with a letter.
func scan(text string, holes []param.Placeholder) []token {
	s := scanner{text: text, holes: holes}
	for s.i < len(text) {
		s.next()
	}
	return s.toks
}

type scanner struct {
	text  string
	holes []param.Placeholder
	i, h  int
	toks  []token
}

func (s *scanner) add(kind tokenKind, start, end int) {
	t := token{kind: kind, start: start, end: end}
	for s.h < len(s.holes) && s.holes[s.h].Start < start {
		s.h++
	}
	t.first = s.h
	for s.h < len(s.holes) && s.holes[s.h].Start < end {
		s.h++
	}
	t.last = s.h
	s.toks = append(s.toks, t)
	s.i = end
}

// hole gives the end of the placeholder that starts at byte i, or -1.
func (s *scanner) hole(i int) int {
	for k := s.h; k < len(s.holes) && s.holes[k].Start <= i; k++ {
		if s.holes[k].Start == i && s.holes[k].Context == param.Bare {
			return s.holes[k].End
		}
	}
	// Several placeholders in a row: later ones.
	for k := s.h; k < len(s.holes); k++ {
		if s.holes[k].Start == i && s.holes[k].Context == param.Bare {
			return s.holes[k].End
		}
		if s.holes[k].Start > i {
			return -1
		}
	}
	return -1
}

func (s *scanner) next() {
	t, i := s.text, s.i
	c := t[i]
	switch {
	case isSpace(c):
		s.i++
	case strings.HasPrefix(t[i:], "--"):
		if n := strings.IndexAny(t[i:], "\n\r"); n >= 0 {
			s.i += n
		} else {
			s.i = len(t)
		}
	case strings.HasPrefix(t[i:], "/*"):
		s.i = commentEnd(t, i)
	case c == '"':
		s.add(tokQuoted, i, quoteEnd(t, i, '"', false))
	case c == '\'':
		s.literal(i, i, false)
	case s.hole(i) >= 0 || isDigit(c) || c == '.' && i+1 < len(t) && (isDigit(t[i+1]) || s.hole(i+1) >= 0) && !s.afterName():
		s.add(tokNumber, i, s.numberEnd(i))
	case c == '$':
		if end := dollarEnd(t, i); end > 0 {
			s.add(tokString, i, end)
		} else {
			s.add(tokPunct, i, i+1)
		}
	case isWord(c):
		if n := prefixLen(t, i); n > 0 {
			s.literal(i, i+n, t[i] == 'e' || t[i] == 'E')
			return
		}
		end := i
		for end < len(t) {
			if e := s.hole(end); e > 0 {
				end = e
			} else if isWord(t[end]) {
				end++
			} else {
				break
			}
		}
		s.add(tokWord, i, end)
	default:
		s.add(tokPunct, i, i+1)
	}
}

// afterName tells whether the byte before belongs to a name, so that a dot
// qualifies.
func (s *scanner) afterName() bool {
	if len(s.toks) == 0 {
		return false
	}
	p := s.toks[len(s.toks)-1]
	return p.end == s.i && (p.kind == tokWord || p.kind == tokQuoted || s.text[p.start] == ')' || s.text[p.start] == ']')
}

func (s *scanner) numberEnd(i int) int {
	t := s.text
	run := func(i int) int {
		for i < len(t) {
			if e := s.hole(i); e > 0 {
				i = e
			} else if isDigit(t[i]) {
				i++
			} else {
				break
			}
		}
		return i
	}
	i = run(i)
	if i < len(t) && t[i] == '.' && !strings.HasPrefix(t[i:], "..") {
		i = run(i + 1)
	}
	if i < len(t) && (t[i] == 'e' || t[i] == 'E') {
		j := i + 1
		if j < len(t) && (t[j] == '+' || t[j] == '-') {
			j++
		}
		if e := run(j); e > j {
			i = e
		}
	}
	return i
}

// literal adds a string literal with its prefix, and the pieces that continue
// it after a line break.
func (s *scanner) literal(start, quote int, escapes bool) {
	end := quoteEnd(s.text, quote, '\'', escapes)
	for {
		j, line := end, false
		for j < len(s.text) && isSpace(s.text[j]) {
			line = line || s.text[j] == '\n' || s.text[j] == '\r'
			j++
		}
		if !line || j >= len(s.text) || s.text[j] != '\'' {
			break
		}
		end = quoteEnd(s.text, j, '\'', escapes)
	}
	s.add(tokString, start, end)
}

// prefixLen gives the length of a literal's prefix at i, if a quote follows.
func prefixLen(t string, i int) int {
	if i+1 < len(t) && t[i+1] == '\'' && strings.IndexByte("eEnNxXbB", t[i]) >= 0 {
		return 1
	}
	if i+2 < len(t) && t[i+2] == '\'' && strings.EqualFold(t[i:i+2], "u&") {
		return 2
	}
	return 0
}

func quoteEnd(t string, i int, q byte, escapes bool) int {
	for j := i + 1; j < len(t); j++ {
		switch {
		case escapes && t[j] == '\\':
			j++
		case t[j] == q && j+1 < len(t) && t[j+1] == q:
			j++
		case t[j] == q:
			return j + 1
		}
	}
	return len(t)
}

func commentEnd(t string, i int) int {
	for depth := 0; i < len(t); {
		switch {
		case strings.HasPrefix(t[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(t[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

// dollarEnd gives the end of the dollar-quoted literal at i, or 0.
func dollarEnd(t string, i int) int {
	j := i + 1
	for j < len(t) && isWord(t[j]) {
		j++
	}
	if j >= len(t) || t[j] != '$' || j > i+1 && isDigit(t[i+1]) {
		return 0
	}
	tag := t[i : j+1]
	n := strings.Index(t[j+1:], tag)
	if n < 0 {
		return 0
	}
	return j + 1 + n + len(tag)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
