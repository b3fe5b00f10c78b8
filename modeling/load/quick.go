package load

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// quick parses the plain part of YAML that most project files are written in,
// about eight times as fast as the full parser: block and one-line flow
// mappings and lists, words, short numbers, quoted texts without escapes,
// comments. It gives up (nil) on everything else and on everything that looks
// odd, and the full parser then decides. Where it gives a document, that is
// the one of the full parser, place by place; FuzzQuick compares them.
func quick(text string) ast.Node {
	q := &quickParser{lines: make([]quickLine, 0, strings.Count(text, "\n")+1)}
	no := 0
	for line := range strings.SplitSeq(text, "\n") {
		no++
		rest := strings.TrimLeft(line, " ")
		if rest == "" || rest[0] == '#' {
			continue
		}
		for i := range len(rest) {
			if rest[i] < ' ' || rest[i] == 0x7f {
				return nil
			}
		}
		q.lines = append(q.lines, quickLine{no: no, indent: len(line) - len(rest), text: rest})
	}
	if len(q.lines) == 0 || q.lines[0].indent > 0 || strings.HasPrefix(q.lines[0].text, "- ") {
		return nil
	}
	n := q.mapping(0)
	if n == nil || q.i < len(q.lines) {
		return nil
	}
	return n
}

type quickLine struct {
	no, indent int
	text       string // without indentation
}

// column is the place of a byte of the line, in characters from 1.
func (l quickLine) column(off int) int { return l.indent + 1 + utf8.RuneCountInString(l.text[:off]) }

type quickParser struct {
	lines []quickLine
	i     int // line
	off   int // byte of the line, for flow values
}

func (q *quickParser) at(indent int, item bool) bool {
	return q.i < len(q.lines) && q.lines[q.i].indent == indent && strings.HasPrefix(q.lines[q.i].text, "- ") == item
}

// deeper tells whether the next line stands deeper than it may.
func (q *quickParser) deeper(indent int) bool {
	return q.i < len(q.lines) && q.lines[q.i].indent > indent
}

// mapping reads the block mapping at an indentation. Like all readers it
// gives a nil interface where it gives up.
func (q *quickParser) mapping(indent int) ast.Node {
	m := &ast.MappingNode{}
	for q.at(indent, false) {
		l := q.lines[q.i]
		k := ident(l.text)
		if k == 0 || k == len(l.text) || l.text[k] != ':' || reserved(l.text[:k]) {
			return nil
		}
		entry := &ast.MappingValueNode{Key: q.text(l, 0, l.text[:k])}
		rest := strings.TrimLeft(l.text[k+1:], " ")
		if rest == "" || rest[0] == '#' && len(rest) < len(l.text)-k-1 {
			q.i++
			switch {
			case q.at(indent, true):
				entry.Value = q.list(indent)
			case !q.deeper(indent):
				return nil // nothing: leave that to the full parser
			case q.at(q.lines[q.i].indent, true):
				entry.Value = q.list(q.lines[q.i].indent)
			default:
				entry.Value = q.mapping(q.lines[q.i].indent)
			}
		} else if entry.Value = q.inline(l, len(l.text)-len(rest), k+1); entry.Value != nil {
			q.i++
		}
		if entry.Value == nil {
			return nil
		}
		m.Values = append(m.Values, entry)
	}
	if len(m.Values) == 0 || q.deeper(indent) {
		return nil
	}
	return m
}

func (q *quickParser) list(indent int) ast.Node {
	s := &ast.SequenceNode{Start: mark(q.lines[q.i], 0)}
	for q.at(indent, true) {
		l := q.lines[q.i]
		var item ast.Node
		if k := ident(l.text[2:]); k > 0 && strings.HasPrefix(l.text[2+k:]+" ", ": ") {
			// `- key: value` is a mapping two columns further in.
			q.lines[q.i] = quickLine{no: l.no, indent: indent + 2, text: l.text[2:]}
			item = q.mapping(indent + 2)
		} else if item = q.inline(l, 2, 1); item != nil {
			q.i++
		}
		if item == nil {
			return nil
		}
		s.Values = append(s.Values, item)
	}
	if q.deeper(indent) {
		return nil
	}
	return s
}

// inline reads the value that fills the rest of a line; before is where the
// mark before it ends, at least one blank must follow.
func (q *quickParser) inline(l quickLine, off, before int) ast.Node {
	if off == before || off >= len(l.text) {
		return nil
	}
	q.off = off
	var n ast.Node
	switch l.text[off] {
	case '[', '{', '"', '\'':
		n = q.flow(l)
	default:
		plain := l.text[off:]
		if i := strings.Index(plain, " #"); i >= 0 {
			plain = plain[:i]
		}
		plain = strings.TrimRight(plain, " ")
		q.off = off + len(plain)
		n = q.plain(l, off, plain, ",()/;=+<>'")
	}
	if n == nil {
		return nil
	}
	rest := strings.TrimLeft(l.text[q.off:], " ")
	if rest != "" && (rest[0] != '#' || len(rest) == len(l.text)-q.off) {
		return nil
	}
	return n
}

// flow reads one value inside brackets, or in quotes.
func (q *quickParser) flow(l quickLine) ast.Node {
	start := q.off
	switch c := l.text[start]; c {
	case '"', '\'':
		n := strings.IndexByte(l.text[start+1:], c)
		if n < 0 {
			return nil
		}
		s := l.text[start+1 : start+1+n]
		q.off = start + n + 2
		if c == '"' && strings.IndexByte(s, '\\') >= 0 || q.off < len(l.text) && l.text[q.off] == c {
			return nil
		}
		return q.text(l, start, s)
	case '[':
		s := &ast.SequenceNode{Start: mark(l, start), IsFlowStyle: true}
		if !q.items(l, ']', func() bool {
			n := q.flow(l)
			s.Values = append(s.Values, n)
			return n != nil
		}) {
			return nil
		}
		return s
	case '{':
		m := &ast.MappingNode{Start: mark(l, start), IsFlowStyle: true}
		if !q.items(l, '}', func() bool {
			k := ident(l.text[q.off:])
			if k == 0 || reserved(l.text[q.off:q.off+k]) || !strings.HasPrefix(l.text[q.off+k:], ": ") {
				return false
			}
			entry := &ast.MappingValueNode{Key: q.text(l, q.off, l.text[q.off:q.off+k])}
			q.off += k + 1
			if !q.blanks(l) {
				return false
			}
			entry.Value = q.flow(l)
			m.Values = append(m.Values, entry)
			return entry.Value != nil
		}) {
			return nil
		}
		return m
	default:
		n := strings.IndexAny(l.text[start:], ",]}")
		if n < 0 {
			return nil
		}
		q.off = start + n
		return q.plain(l, start, strings.TrimRight(l.text[start:q.off], " "), "/")
	}
}

// items reads what stands between brackets, separated by commas.
func (q *quickParser) items(l quickLine, end byte, item func() bool) bool {
	for {
		q.off++ // the bracket or comma
		if !q.blanks(l) || !item() || !q.blanks(l) {
			return false
		}
		switch l.text[q.off] {
		case end:
			q.off++
			return true
		case ',':
		default:
			return false
		}
	}
}

// blanks skips blanks; something must follow.
func (q *quickParser) blanks(l quickLine) bool {
	for q.off < len(l.text) && l.text[q.off] == ' ' {
		q.off++
	}
	return q.off < len(l.text)
}

// plain reads a word, several words, or a number; also lists the characters
// allowed beside letters, digits, blanks and `_.-`.
func (q *quickParser) plain(l quickLine, off int, s, also string) ast.Node {
	if s == "" {
		return nil
	}
	if spans(s) {
		return q.text(l, off, s)
	}
	if s[0] >= '0' && s[0] <= '9' {
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' {
				return nil
			}
		}
		if len(s) > 9 || s[0] == '0' && len(s) > 1 {
			return nil
		}
		return &ast.IntegerNode{Token: tokenAt(l, off, s)}
	}
	word := s // or an option such as --date
	for range 2 {
		word = strings.TrimPrefix(word, "-")
	}
	if word == "" || !letter(word[0]) || len(word) < len(s) && reserved(word) {
		return nil
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && (c < '0' || c > '9') && c != ' ' && c != '.' && c != '-' && strings.IndexByte(also, c) < 0 {
			return nil
		}
	}
	if s == "true" || s == "false" {
		return &ast.BoolNode{Token: tokenAt(l, off, s), Value: s == "true"}
	}
	if reserved(s) {
		return nil
	}
	return q.text(l, off, s)
}

// spans tells texts such as 400d, -1h and -7d..-1d.
func spans(s string) bool {
	for part := range strings.SplitSeq(s, "..") {
		part = strings.TrimPrefix(part, "-")
		n := 0
		for n < len(part) && part[n] >= '0' && part[n] <= '9' {
			n++
		}
		if n == 0 || n > 6 || n != len(part)-1 || strings.IndexByte("dhms", part[n]) < 0 {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// ident is the length of the name that a text starts with.
func ident(s string) int {
	i := 0
	for i < len(s) && (letter(s[i]) || i > 0 && s[i] >= '0' && s[i] <= '9') {
		i++
	}
	return i
}

// reserved tells words that some version of YAML reads as something else.
func reserved(s string) bool {
	if len(s) > 5 {
		return false
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return true
	}
	return false
}

func (q *quickParser) text(l quickLine, off int, s string) *ast.StringNode {
	n := &struct {
		node ast.StringNode
		tok  token.Token
		pos  token.Position
	}{}
	n.pos.Line, n.pos.Column = l.no, l.column(off)
	n.tok.Value, n.tok.Position = s, &n.pos
	n.node.Token, n.node.Value = &n.tok, s
	return &n.node
}

func mark(l quickLine, off int) *token.Token { return tokenAt(l, off, l.text[off:off+1]) }

func tokenAt(l quickLine, off int, s string) *token.Token {
	return &token.Token{Value: s, Position: &token.Position{Line: l.no, Column: l.column(off)}}
}
