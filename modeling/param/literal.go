package param

import "strings"

// LiteralAt gives the value of the string literal around a byte offset of the
// code as an expression, with its span: '${yyyymm}01' is one value, whose
// DateForm the planner can match with a partition. It is for Eval and
// DateForm. Literals with escapes (E'…', U&'…') or another type (X'…', B'…'),
// those without a placeholder, and one in which the code ends, give false.
func (t *Template) LiteralAt(offset int) (*Expr, Span, bool) {
	var span Span
	for _, h := range t.holes {
		if h.ended && (h.Context == String || h.Context == Dollar) && h.Around.Start <= offset && offset < h.Around.End {
			span = h.Around
			break
		}
	}
	s := t.src.Text[span.Start:span.End]
	content, doubled := span, false
	switch {
	case s == "":
		return nil, Span{}, false
	case s[0] == '$':
		tag := strings.IndexByte(s[1:], '$') + 2
		content.Start, content.End = span.Start+tag, span.End-tag
	case s[0] == '\'' || s[0] == 'n' || s[0] == 'N':
		content.Start, content.End = span.Start+strings.IndexByte(s, '\'')+1, span.End-1
		doubled = true
	default:
		return nil, Span{}, false
	}
	e := &Expr{dialect: t.dialect, src: Source{Text: t.src.Text[content.Start:content.End], Pos: t.src.At(content.Start)}}
	last := content.Start
	text := func(end int) {
		piece := t.src.Text[last:end]
		if doubled {
			piece = strings.ReplaceAll(piece, "''", "'")
		}
		if piece != "" {
			e.parts = append(e.parts, part{text: piece, off: last - content.Start})
		}
	}
	for _, h := range t.holes {
		if h.Start < content.Start || h.End > content.End {
			continue
		}
		text(h.Start)
		last = h.End
		for _, p := range h.Binding.Expr.parts {
			p.off = h.Start - content.Start
			e.parts = append(e.parts, p)
		}
	}
	text(content.End)
	return e, span, true
}
