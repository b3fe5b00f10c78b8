package sqlast

import "strings"

// Layout is where the parts of a definition's top-level SELECT stand in its
// text. Spans hold no leading or trailing white space or comments.
type Layout struct {
	Items []Span     // of the select list, in order
	From  Span       // after the keyword FROM; zero without FROM
	Joins []JoinSpan // top-level joins of the FROM clause
}

// JoinSpan is one join of the FROM clause, from its first keyword to the end of
// its condition.
type JoinSpan struct {
	Span
	Alias string // lower case; the table's last name part without alias, "" unknown
}

// SelectItems finds the parts of the one top-level SELECT of a text. It is not
// ok for set operations, FROM-first and VALUES.
func SelectItems(sql string) (Layout, bool) {
	lx := newLexer(sql)
	depths := lx.depths()
	at := -1
	for i := range lx.toks {
		if depths[i] != 0 {
			continue
		}
		switch {
		case lx.is(i, "UNION"), lx.is(i, "INTERSECT"), lx.is(i, "EXCEPT") && !lx.is(i-1, "*"):
			return Layout{}, false
		case at < 0 && lx.is(i, "FROM"):
			return Layout{}, false
		case at < 0 && lx.is(i, "SELECT"):
			at = i
		}
	}
	if at < 0 {
		return Layout{}, false
	}
	var out Layout
	i := at + 1
	if lx.is(i, "ALL") {
		i++
	}
	if lx.is(i, "DISTINCT") {
		i++
		if lx.is(i, "ON") && lx.is(i+1, "(") {
			for i++; i < len(lx.toks) && !(lx.is(i, ")") && depths[i] == 0); i++ {
			}
			i++
		}
	}
	start := i
	end := func(i int) bool { return i >= len(lx.toks) || depths[i] == 0 && lx.endsSelectList(i) }
	for ; ; i++ {
		if end(i) || depths[i] == 0 && lx.is(i, ",") {
			if i > start {
				out.Items = append(out.Items, Span{lx.toks[start].start, lx.toks[i-1].end})
			}
			start = i + 1
		}
		if end(i) {
			break
		}
	}
	if lx.is(i, "FROM") {
		first := i + 1
		for i = first; i < len(lx.toks) && !(depths[i] == 0 && lx.endsFrom(i)); i++ {
		}
		if i > first {
			out.From = Span{lx.toks[first].start, lx.toks[i-1].end}
			out.Joins = lx.joins(depths, first, i)
		}
	}
	return out, len(out.Items) > 0
}

// depths gives each token's bracket depth; a bracket has the depth outside it.
func (l *lexer) depths() []int {
	out := make([]int, len(l.toks))
	d := 0
	for i := range l.toks {
		if l.is(i, ")") || l.is(i, "]") || l.is(i, "}") {
			d--
		}
		out[i] = d
		if l.is(i, "(") || l.is(i, "[") || l.is(i, "{") {
			d++
		}
	}
	return out
}

func (l *lexer) endsSelectList(i int) bool {
	if l.is(i, "FROM") {
		return !l.is(i-1, "DISTINCT") || !l.is(i-2, "IS") && !l.is(i-2, "NOT")
	}
	return l.endsFrom(i)
}

func (l *lexer) endsFrom(i int) bool {
	for _, k := range []string{"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", ";"} {
		if l.is(i, k) {
			return true
		}
	}
	return l.is(i, "USING") && l.is(i+1, "SAMPLE")
}

// joins finds the joins between tokens first and last.
func (l *lexer) joins(depths []int, first, last int) []JoinSpan {
	var out []JoinSpan
	begin := -1
	finish := func(i int) {
		if begin >= 0 && i > begin {
			out[len(out)-1].Span = Span{l.toks[begin].start, l.toks[i-1].end}
		}
		begin = -1
	}
	for i := first; i < last; i++ {
		if depths[i] != 0 {
			continue
		}
		switch {
		case l.is(i, ","):
			finish(i)
		case l.is(i, "JOIN"):
			s := i
			for s > first && l.isJoinWord(s-1) {
				s--
			}
			finish(s)
			begin = s
			out = append(out, JoinSpan{Alias: l.joinAlias(depths, i+1, last)})
		}
	}
	finish(last)
	return out
}

func (l *lexer) isJoinWord(i int) bool {
	for _, k := range []string{"LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS", "NATURAL", "ASOF", "SEMI", "ANTI", "POSITIONAL"} {
		if l.is(i, k) {
			return true
		}
	}
	return false
}

// joinAlias reads the alias of the table or subquery that starts at token i.
func (l *lexer) joinAlias(depths []int, i, last int) string {
	if l.is(i, "LATERAL") {
		i++
	}
	name := ""
	switch {
	case l.is(i, "("):
		for i++; i < last && !(l.is(i, ")") && depths[i] == 0); i++ {
		}
		i++
	case i < last:
		end := l.qualifiedEnd(i)
		name = unquoteIdent(l.str(end - 1))
		i = end
	}
	if l.is(i, "AS") {
		i++
	}
	if i < last && (l.toks[i].kind == tokQuoted || l.toks[i].kind == tokWord && !l.is(i, "ON") && !l.is(i, "USING") && !l.isJoinWord(i) && !l.is(i, "JOIN")) {
		name = unquoteIdent(l.str(i))
	}
	return strings.ToLower(name)
}
