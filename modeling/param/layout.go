package param

import (
	"strings"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// base is the moment that a time expression starts from.
type base uint8

const (
	baseBiz   base = iota // ${…}: business date, 00:00
	baseSched             // $[…]: business date + 1 at the scheduled time
)

// token is one piece of a format. Tokens are ordered from coarse to fine.
type token uint8

const (
	tokText token = iota
	tokYear
	tokYear2
	tokMonth
	tokDay
	tokHour
	tokHour12
	tokMinute
	tokSecond
	tokMM // dataphin mm before it is known to be month or minute
)

// elem is a token, or the text between tokens.
type elem struct {
	tok  token
	text string
}

// spelling is how a dialect writes a token.
type spelling struct {
	text  string
	tok   token
	sched bool // only in $[…]
}

// spellings lists a dialect's tokens, the longer of two with a common start first.
func spellings(d Dialect) []spelling {
	if d == DataWorks {
		return []spelling{
			{"yyyy", tokYear, false}, {"yy", tokYear2, false}, {"mm", tokMonth, false}, {"dd", tokDay, false},
			{"hh24", tokHour, true}, {"hh12", tokHour12, true}, {"hh", tokHour12, true},
			{"mi", tokMinute, true}, {"ss", tokSecond, true},
		}
	}
	return []spelling{
		{"yyyy", tokYear, false}, {"MM", tokMonth, false}, {"mm", tokMM, false}, {"dd", tokDay, false},
		{"HH", tokHour, false}, {"mi", tokMinute, false}, {"ss", tokSecond, false},
	}
}

// problem is an error or warning inside a time expression; off counts bytes
// from the start of its body.
type problem struct {
	code, summary, hint string
	off                 int
	warning             bool
}

// parseLayout reads a format. It gives the elements, or the first error; a
// warning does not stop it (semantics §2.3).
func parseLayout(d Dialect, b base, format string) (out []elem, warn, fail *problem) {
	i, tokens, known := 0, 0, spellings(d)
	text := func(c string) {
		if n := len(out); n > 0 && out[n-1].tok == tokText {
			out[n-1].text += c
			return
		}
		out = append(out, elem{text: c})
	}
next:
	for i < len(format) {
		for _, sp := range known {
			if strings.HasPrefix(format[i:], sp.text) && (!sp.sched || b == baseSched) {
				out = append(out, elem{tok: sp.tok})
				i += len(sp.text)
				tokens++
				continue next
			}
		}
		switch c := format[i]; {
		case strings.IndexByte("-/:._,", c) >= 0, c == ' ' && d != DataWorks:
			text(string(c))
			i++
		case isLetter(c):
			return nil, nil, unknownToken(d, b, format, i)
		default:
			r, _ := utf8.DecodeRuneInString(format[i:])
			what := "is not allowed in a format"
			if c == ' ' {
				what = "is not allowed inside a dataworks expression"
			}
			return nil, nil, &problem{code: "syntax", off: i, summary: quoteRune(r) + " " + what,
				hint: "a format holds time tokens and - / : . _ , between them; other text goes outside the brackets"}
		}
	}
	if tokens == 0 {
		return nil, nil, &problem{code: "syntax", summary: "the expression holds no time token", hint: tokenHint(d, b)}
	}
	return out, resolveMM(out), nil
}

// resolveMM decides for each dataphin mm between month and minute, and warns
// where the minute was surely not meant.
func resolveMM(layout []elem) *problem {
	var has [tokMM + 1]bool
	for _, e := range layout {
		has[e.tok] = true
	}
	if !has[tokMM] {
		return nil
	}
	as := tokMonth
	if has[tokHour] || has[tokMinute] || has[tokSecond] {
		as = tokMinute
	}
	for i := range layout {
		if layout[i].tok == tokMM {
			layout[i].tok = as
		}
	}
	if as == tokMinute && !has[tokMonth] && (has[tokYear] || has[tokDay]) {
		return &problem{code: "mm_read_as_minute", warning: true,
			summary: "mm beside hours, minutes or seconds is the minute, so this format has no month",
			hint:    "write MM for the month and mi for the minute"}
	}
	return nil
}

func unknownToken(d Dialect, b base, format string, i int) *problem {
	start, end := i, i
	for start > 0 && isWord(format[start-1]) {
		start--
	}
	for end < len(format) && isWord(format[end]) {
		end++
	}
	p := &problem{code: "token", off: i, summary: `"` + format[start:end] + `" holds letters that are no time token`, hint: tokenHint(d, b)}
	if strings.HasPrefix(format[i:], "add_months") {
		p.hint = "add_months(fmt,n) exists in $[…] of the dataworks dialect only"
	} else if lower := strings.ToLower(format[i:end]); d == DataWorks && b == baseBiz &&
		(strings.HasPrefix(lower, "hh") || strings.HasPrefix(lower, "mi") || strings.HasPrefix(lower, "ss")) {
		p.hint = "the business date has no time of day here; write hours, minutes and seconds in $[…]"
	}
	return p
}

func tokenHint(d Dialect, b base) string {
	switch {
	case d != DataWorks:
		return "tokens are yyyy MM mm dd HH mi ss, as written here"
	case b == baseBiz:
		return "tokens are yyyy yy mm dd, as written here"
	}
	return "tokens are yyyy yy mm dd hh24 hh12 hh mi ss, as written here"
}

func quoteRune(r rune) string {
	if r == ' ' {
		return "a blank"
	}
	return `"` + string(r) + `"`
}

// finest gives the finest token of a layout.
func finest(layout []elem) token {
	f := tokText
	for _, e := range layout {
		f = max(f, e.tok)
	}
	return f
}

// canonicalToken gives the unambiguous spelling of a token in a dialect.
func canonicalToken(d Dialect, t token) string {
	switch t {
	case tokYear:
		return "yyyy"
	case tokYear2:
		return "yy"
	case tokMonth:
		if d == DataWorks {
			return "mm"
		}
		return "MM"
	case tokDay:
		return "dd"
	case tokHour:
		if d == DataWorks {
			return "hh24"
		}
		return "HH"
	case tokHour12:
		return "hh12"
	case tokMinute:
		return "mi"
	default:
		return "ss"
	}
}

// appendLayout formats a date and the seconds since its midnight.
func appendLayout(b []byte, layout []elem, day bizdate.Date, sec int) []byte {
	y, m, d := day.Civil()
	for _, e := range layout {
		switch e.tok {
		case tokText:
			b = append(b, e.text...)
		case tokYear:
			b = append2(append2(b, y/100), y%100)
		case tokYear2:
			b = append2(b, y%100)
		case tokMonth:
			b = append2(b, int(m))
		case tokDay:
			b = append2(b, d)
		case tokHour:
			b = append2(b, sec/3600)
		case tokHour12:
			b = append2(b, (sec/3600+11)%12+1)
		case tokMinute:
			b = append2(b, sec/60%60)
		case tokSecond:
			b = append2(b, sec%60)
		}
	}
	return b
}

func append2(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }
