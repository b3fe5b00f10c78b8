package sqlast

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is the lexical class of a token.
type tokenKind int

const (
	tokSpace   tokenKind = iota
	tokComment           // -- … and /* … */, which nest
	tokString            // '…', E'…', $$…$$
	tokQuoted            // "…"
	tokWord              // bare run of letters, digits, _ and placeholders
	tokPunct             // one character
)

// token is a slice of the source text; all tokens of a text, joined, are the
// text (lossless).
type token struct {
	kind       tokenKind
	start, end int // bytes
}

// tokenize cuts text into tokens. An unterminated string or comment runs to
// the end of the text: the parser is the one to complain about it.
func tokenize(text string) []token {
	toks := make([]token, 0, len(text)/4+8)
	for i := 0; i < len(text); {
		kind, end := nextToken(text, i)
		toks = append(toks, token{kind, i, end})
		i = end
	}
	return toks
}

func nextToken(text string, i int) (tokenKind, int) {
	c := text[i]
	switch {
	case isSpace(c):
		j := i
		for j < len(text) && isSpace(text[j]) {
			j++
		}
		return tokSpace, j
	case strings.HasPrefix(text[i:], "--"):
		if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
			return tokComment, i + n
		}
		return tokComment, len(text)
	case strings.HasPrefix(text[i:], "/*"):
		return tokComment, endOfComment(text, i)
	case c == '\'':
		return tokString, endOfQuote(text, i, '\'', false)
	case (c == 'E' || c == 'e') && i+1 < len(text) && text[i+1] == '\'':
		return tokString, endOfQuote(text, i+1, '\'', true)
	case c == '"':
		return tokQuoted, endOfQuote(text, i, '"', false)
	case c == '$' && !strings.HasPrefix(text[i:], "${"):
		if end, ok := endOfDollarString(text, i); ok {
			return tokString, end
		}
		return tokPunct, i + 1
	}
	if end := wordEnd(text, i); end > i {
		return tokWord, end
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return tokPunct, i + size
}

// wordEnd gives the end of the run of word characters and placeholders at i.
func wordEnd(text string, i int) int {
	for i < len(text) {
		if strings.HasPrefix(text[i:], "${") {
			n := strings.IndexByte(text[i:], '}')
			if n < 0 {
				return i
			}
			i += n + 1
			continue
		}
		if !isWordByte(text[i]) {
			return i
		}
		i++
	}
	return i
}

func endOfComment(text string, i int) int {
	depth := 0
	for i < len(text) {
		switch {
		case strings.HasPrefix(text[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(text[i:], "*/"):
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

func endOfQuote(text string, i int, q byte, backslash bool) int {
	for j := i + 1; j < len(text); j++ {
		switch {
		case backslash && text[j] == '\\':
			j++
		case text[j] == q && j+1 < len(text) && text[j+1] == q:
			j++
		case text[j] == q:
			return j + 1
		}
	}
	return len(text)
}

// endOfDollarString recognises $$…$$ and $tag$…$tag$.
func endOfDollarString(text string, i int) (int, bool) {
	j := i + 1
	for j < len(text) && isWordByte(text[j]) {
		j++
	}
	if j >= len(text) || text[j] != '$' || j > i+1 && text[i+1] >= '0' && text[i+1] <= '9' {
		return 0, false
	}
	tag := text[i : j+1]
	if n := strings.Index(text[j+1:], tag); n >= 0 {
		return j + 1 + n + len(tag), true
	}
	return len(text), true
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// lexer walks over the meaning-carrying tokens of a text.
type lexer struct {
	text string
	toks []token // without space and comments
}

func newLexer(text string) *lexer {
	l := &lexer{text: text}
	for _, t := range tokenize(text) {
		if t.kind != tokSpace && t.kind != tokComment {
			l.toks = append(l.toks, t)
		}
	}
	return l
}

func (l *lexer) str(i int) string {
	if i < 0 || i >= len(l.toks) {
		return ""
	}
	return l.text[l.toks[i].start:l.toks[i].end]
}

// is tells whether token i is the given keyword or character (upper case).
func (l *lexer) is(i int, s string) bool {
	return i >= 0 && i < len(l.toks) && l.toks[i].kind != tokString && l.toks[i].kind != tokQuoted && strings.EqualFold(l.str(i), s)
}

// at gives the index of the first token that ends after byte offset off.
func (l *lexer) at(off int) int {
	lo, hi := 0, len(l.toks)
	for lo < hi {
		m := (lo + hi) / 2
		if l.toks[m].end > off {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// qualifiedEnd gives the index after the dotted name that starts at token i.
func (l *lexer) qualifiedEnd(i int) int {
	i++
	for l.is(i, ".") && i+1 < len(l.toks) {
		i += 2
	}
	return i
}

// identParts splits a qualified name into its parts, quotes removed.
func identParts(name string) []string {
	l := newLexer(name)
	var parts []string
	for i := range l.toks {
		if l.is(i, ".") {
			continue
		}
		parts = append(parts, unquoteIdent(l.str(i)))
	}
	return parts
}

func unquoteIdent(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		q := s[:1]
		return strings.ReplaceAll(s[1:len(s)-1], q+q, q)
	}
	return s
}

// quoteIdent writes a name canonically: lower case, quoted unless it is plain.
func quoteIdent(s string) string {
	s = strings.ToLower(s)
	plain := s != ""
	for i := range len(s) {
		if !isWordByte(s[i]) || i == 0 && s[i] >= '0' && s[i] <= '9' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
