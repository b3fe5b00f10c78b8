package spine

import (
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

type markerKind int

const (
	literal markerKind = iota // '…${p}…' whose type the context gives
	typed                     // DATE '…${p}…'
	bare                      // a number
)

// piece is a part of a marker's value: SQL of a constant, or a placeholder.
type piece struct {
	sql  string // a string literal; "" = the placeholder
	hole int
}

// marker is a stretch of the code that holds placeholders and is one value.
type marker struct {
	kind       markerKind
	start, end int // what it replaces, in the code
	first      int // its first placeholder
	typ        string
	pieces     []piece
	interval   bool // stands after INTERVAL: parentheses
	pos        diag.Pos
	types      []string // bare: the literal's type on each of the representative dates
	partner    node     // literal: whose type it takes
	column     string   // the typed spine column of its value, "" = texts are joined
	compared   bool     // an operand of a comparison
	asText     bool     // column is a DATE, the value its text
}

// code is a body cut into text and markers.
type code struct {
	text    string
	src     param.Source
	holes   []param.Placeholder
	toks    []token
	markers []marker
}

// mark finds the markers of a template.
func mark(t *param.Template) (*code, *Refusal) {
	c := &code{text: t.Text(), src: t.Source(), holes: t.Placeholders()}
	c.toks = scan(c.text, c.holes)
	for i, tok := range c.toks {
		if !tok.hasHole() {
			continue
		}
		h := c.holes[tok.first]
		m := marker{start: tok.start, end: tok.end, first: tok.first, pos: h.Pos}
		switch tok.kind {
		case tokQuoted, tokWord:
			return nil, refuse(InIdentifier, h.Pos, "${%s} is part of a name", h.Name)
		case tokString:
			if r := c.literalMarker(i, &m); r != nil {
				return nil, r
			}
		case tokNumber:
			c.bareMarker(i, &m)
		default:
			return nil, refuse(ChangesSyntax, h.Pos, "${%s} is no value where it stands", h.Name)
		}
		c.markers = append(c.markers, m)
	}
	n := 0
	for _, tok := range c.toks {
		n += tok.last - tok.first
	}
	if n != len(c.holes) {
		return nil, refuse(ChangesSyntax, c.holes[0].Pos, "the placeholders cannot be told from the text around them")
	}
	return c, nil
}

func (c *code) literalMarker(i int, m *marker) *Refusal {
	tok := c.toks[i]
	h := c.holes[tok.first]
	s := c.text[tok.start:tok.end]
	switch s[0] {
	case 'x', 'X', 'b', 'B', 'n', 'N':
		return refuse(Unsupported, h.Pos, "${%s} stands in a literal %s'…', which takes no column", h.Name, s[:1])
	case 'u', 'U':
		return refuse(Unsupported, h.Pos, "${%s} stands in a literal with Unicode escapes, which takes no column", h.Name)
	}
	escapes := s[0] == 'e' || s[0] == 'E'
	from, to := tok.start+strings.IndexByte(s, '\'')+1, tok.end-1
	dollar := s[0] == '$'
	if dollar {
		tag := strings.IndexByte(s[1:], '$') + 2
		from, to = tok.start+tag, tok.end-tag
	}
	text := func(a, b int) {
		if a >= b {
			return
		}
		raw := c.text[a:b]
		switch {
		case dollar:
			raw = quote(raw)
		case escapes:
			raw = "E'" + raw + "'"
		default:
			raw = "'" + raw + "'"
		}
		m.pieces = append(m.pieces, piece{sql: raw})
	}
	last := from
	for k := tok.first; k < tok.last; k++ {
		p := c.holes[k]
		if escapes && oddBackslashes(c.text[last:p.Start]) {
			return refuse(ChangesSyntax, p.Pos, "a backslash before ${%s} would change its first character", p.Name)
		}
		text(last, p.Start)
		m.pieces = append(m.pieces, piece{hole: k})
		last = p.End
	}
	text(last, to)
	if start, typ := c.typeBefore(i); typ != "" {
		if strings.EqualFold(typ, "INTERVAL") && i+1 < len(c.toks) && isUnit(c.str(i+1)) {
			m.interval = true // INTERVAL '…' DAY reads the text as a number
			return nil
		}
		m.kind, m.start, m.typ = typed, start, typ
	}
	return nil
}

func oddBackslashes(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func (c *code) bareMarker(i int, m *marker) {
	tok := c.toks[i]
	m.kind = bare
	last := tok.start
	text := func(b int) {
		if last < b {
			m.pieces = append(m.pieces, piece{sql: quote(c.text[last:b])})
		}
	}
	for k := tok.first; k < tok.last; k++ {
		text(c.holes[k].Start)
		m.pieces = append(m.pieces, piece{hole: k})
		last = c.holes[k].End
	}
	text(tok.end)
	m.interval = i > 0 && strings.EqualFold(c.str(i-1), "INTERVAL")
}

func (c *code) str(i int) string {
	if i < 0 || i >= len(c.toks) {
		return ""
	}
	return c.text[c.toks[i].start:c.toks[i].end]
}

// typeBefore gives the type name before the literal at token i, if it is a
// typed literal: a word that is no keyword, perhaps with modifiers.
func (c *code) typeBefore(i int) (start int, typ string) {
	j := i - 1
	if c.str(j) == "]" { // INTEGER[] '…'
		for j >= 0 && c.str(j) != "[" {
			j--
		}
		j--
	}
	if c.str(j) == ")" { // DECIMAL(4,2) '…'
		for j >= 0 && c.str(j) != "(" {
			j--
		}
		j--
	}
	if j < 0 || c.toks[j].hasHole() {
		return 0, ""
	}
	end := c.toks[i-1].end
	switch c.toks[j].kind {
	case tokQuoted:
		// A quoted name before a literal can only be a type.
	case tokWord:
		w := strings.ToUpper(c.str(j))
		if w == "ZONE" && strings.EqualFold(c.str(j-1), "TIME") && !strings.EqualFold(c.str(j-2), "AT") && j >= 3 {
			return c.toks[j-3].start, c.text[c.toks[j-3].start:end] // TIMESTAMP WITH TIME ZONE '…'
		}
		if w == "PRECISION" && strings.EqualFold(c.str(j-1), "DOUBLE") {
			return c.toks[j-1].start, "DOUBLE PRECISION"
		}
		if keyword(w) {
			return 0, ""
		}
	default:
		return 0, ""
	}
	for j >= 2 && c.str(j-1) == "." { // a qualified type
		j -= 2
	}
	return c.toks[j].start, c.text[c.toks[j].start:end]
}

// keyword tells the words after which a plain literal may follow. The names of
// types are none of them.
func keyword(w string) bool {
	switch w {
	case "SELECT", "WHERE", "AND", "OR", "NOT", "LIKE", "ILIKE", "GLOB", "TO", "IN", "THEN", "ELSE", "WHEN", "CASE", "BETWEEN",
		"SYMMETRIC", "ASYMMETRIC", "ESCAPE", "AS", "FROM", "JOIN", "BY", "ON", "HAVING", "QUALIFY", "DISTINCT", "ALL", "ANY", "SOME",
		"LIMIT", "OFFSET", "VALUES", "ZONE", "USING", "REPLACE", "COLLATE", "IS", "RETURN", "FILTER", "FOR", "SEPARATOR", "LATERAL",
		"UNION", "EXCEPT", "INTERSECT", "END", "NULL", "TRUE", "FALSE", "PRECEDING", "FOLLOWING", "ROWS", "RANGE", "GROUPS", "IF",
		"ORDER", "GROUP", "WITH", "PARTITION", "SIMILAR", "ISNULL", "NOTNULL", "ASC", "DESC", "DEFAULT", "COLUMNS", "LAMBDA", "SET",
		"POSITIONAL", "CROSS", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "NATURAL", "ASOF", "ANTI", "SEMI", "FIRST", "LAST", "NULLS",
		"PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE", "TABLE", "FETCH", "NEXT", "EXISTS", "DIV", "MOD", "OVER", "WINDOW", "EXTRACT", "LEADING",
		"TRAILING", "BOTH", "PLACING", "EXCLUDE", "RENAME", "ROW", "UNIQUE", "WITHIN":
		return true
	}
	return false
}

func isUnit(w string) bool {
	switch strings.ToLower(strings.TrimSuffix(strings.ToLower(w), "s")) {
	case "year", "month", "day", "hour", "minute", "second", "week", "quarter", "decade", "century", "millennium",
		"millisecond", "microsecond", "centurie", "millennia":
		return true
	}
	return false
}

// place maps a byte of a built text to the code.
type place struct{ to, from int }

// build writes the code with each marker replaced by expr(i); places map the
// text back.
func (c *code) build(expr func(i int) string) (string, []place) {
	var b strings.Builder
	places := []place{{0, 0}}
	last := 0
	for i, m := range c.markers {
		b.WriteString(c.text[last:m.start])
		if n := b.Len(); n > 0 && (isWord(b.String()[n-1])) {
			b.WriteByte(' ')
		}
		places = append(places, place{b.Len(), m.start})
		b.WriteString(expr(i))
		if m.end < len(c.text) && (isWord(c.text[m.end])) {
			b.WriteByte(' ')
		}
		places = append(places, place{b.Len(), m.end})
		last = m.end
	}
	b.WriteString(c.text[last:])
	return b.String(), places
}

// at gives the place in the author's file of a byte of a built text.
func (c *code) at(places []place, off int) diag.Pos {
	if off < 0 {
		return c.src.At(0)
	}
	p := place{}
	for _, x := range places {
		if x.to <= off {
			p = x
		}
	}
	return c.src.At(min(p.from+off-p.to, len(c.text)))
}

// marked gives the text to parse: every marker that is active is a column of
// the marker table, the others are constants of slot values.
func (c *code) marked(active func(i int) bool, value func(hole int) string) (string, []place) {
	return c.build(func(i int) string {
		m := c.markers[i]
		s := markerTable + ".m" + strconv.Itoa(i)
		if !active(i) {
			s = m.constant(value)
		}
		return m.wrap(s)
	})
}

// wrap puts an expression where the marker stands.
func (m *marker) wrap(s string) string {
	switch {
	case m.kind == typed:
		return "CAST(" + s + " AS " + m.typ + ")"
	case m.interval:
		return "(" + s + ")"
	}
	return s
}

// constant gives the marker's value as SQL text.
func (m *marker) constant(value func(hole int) string) string {
	var b strings.Builder
	if m.kind == bare {
		return m.number(value)
	}
	for i, p := range m.pieces {
		if i > 0 {
			b.WriteString(" || ")
		}
		if p.sql != "" {
			b.WriteString(p.sql)
		} else {
			b.WriteString(quote(value(p.hole)))
		}
	}
	if len(m.pieces) > 1 {
		return "(" + b.String() + ")"
	}
	return b.String()
}

// number gives the text of a bare marker with its values.
func (m *marker) number(value func(hole int) string) string {
	var b strings.Builder
	for _, p := range m.pieces {
		if p.sql != "" {
			b.WriteString(strings.Trim(p.sql, "'"))
		} else {
			b.WriteString(value(p.hole))
		}
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
