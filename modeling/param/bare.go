package param

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// bareValue tells whether a value may stand outside a literal: a number, a
// date or an identifier (semantics §2.5).
func bareValue(v string) bool { return isNumber(v) || isDateText(v) || isIdentifier(v) }

// isNumber accepts [+-]digits[.digits][e[+-]digits].
func isNumber(v string) bool {
	if v != "" && (v[0] == '+' || v[0] == '-') {
		v = v[1:]
	}
	n := leadingDigits(v)
	v = v[n:]
	if strings.HasPrefix(v, ".") {
		frac := leadingDigits(v[1:])
		v = v[1+frac:]
		n += frac
	}
	if n == 0 {
		return false
	}
	if v != "" && (v[0] == 'e' || v[0] == 'E') {
		v = v[1:]
		if v != "" && (v[0] == '+' || v[0] == '-') {
			v = v[1:]
		}
		exp := leadingDigits(v)
		return exp > 0 && exp == len(v)
	}
	return v == ""
}

func leadingDigits(v string) int {
	n := 0
	for n < len(v) && isDigit(v[n]) {
		n++
	}
	return n
}

// isDateText accepts a year, a month and perhaps a day, with - / or . between.
func isDateText(v string) bool {
	if len(v) != 7 && len(v) != 10 || leadingDigits(v) != 4 || strings.IndexByte("-/.", v[4]) < 0 || leadingDigits(v[5:]) != 2 {
		return false
	}
	return len(v) == 7 || v[7] == v[4] && leadingDigits(v[8:]) == 2
}

// isIdentifier accepts unquoted names, also qualified ones (schema.table).
func isIdentifier(v string) bool {
	for name := range strings.SplitSeq(v, ".") {
		if name == "" {
			return false
		}
		for i, r := range name {
			if r == '_' || unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r) {
				continue
			}
			return false
		}
	}
	return true
}

// unsafe tells why value v cannot stand in hole h of text s, or "". out is
// what was rendered before it. Raw values outside literals are not asked.
func unsafe(s string, h *Placeholder, v string, out []byte) string {
	switch {
	case !utf8.ValidString(v):
		return "it is not valid UTF-8"
	case strings.IndexByte(v, 0) >= 0:
		return "it holds a NUL character"
	}
	switch h.Context {
	case EString:
		if h.escaped {
			return "a backslash before the placeholder would change its first character"
		}
	case Dollar:
		edge := min(len(h.tag)-1, len(v))
		if strings.Contains(v, h.tag) || strings.Contains(v[:edge], "$") || strings.Contains(v[len(v)-edge:], "$") {
			return "its $ could end the dollar-quoted literal"
		}
	case Bare:
		if h.Binding.Raw {
			return ""
		}
		return unsafeBare(s, h, v, out)
	}
	return ""
}

func unsafeBare(s string, h *Placeholder, v string, out []byte) string {
	var prev, next byte
	if len(out) > 0 {
		prev = out[len(out)-1]
	}
	if h.End < len(s) {
		next = s[h.End]
	}
	switch {
	case !bareValue(v):
		return "outside a literal a value must be a number, a date or an identifier"
	case v[0] == '-' && prev == '-':
		return "two minus signs would start a comment"
	case (v[0] == '-' || v[0] == '+') && joinsOperator(out):
		return "its sign would join the operator before it"
	case next == '$' && !strings.HasPrefix(s[h.End:], "${"), prev == '$':
		return "it touches a $"
	case next == '\'' && strings.IndexByte("eEnNxXbB", v[len(v)-1]) >= 0 && (len(v) == 1 || v[len(v)-2] == '.'):
		return "it would become the prefix of the literal after it"
	case quotePrefix(s[h.End:]):
		return "it would swallow the prefix of the literal after it"
	}
	return ""
}

// joinsOperator tells whether a sign after the text would become part of an
// operator: only one that holds one of ~!@#%^&|`? may end in a sign.
func joinsOperator(out []byte) bool {
	for i := len(out) - 1; i >= 0 && strings.IndexByte("+-*/<>=~!@#%^&|`?", out[i]) >= 0; i-- {
		if strings.IndexByte("~!@#%^&|`?", out[i]) >= 0 {
			return true
		}
	}
	return false
}

// quotePrefix tells whether text begins with a literal's prefix and quote.
func quotePrefix(s string) bool {
	if len(s) > 3 {
		s = s[:3]
	}
	i := strings.IndexByte(s, '\'')
	return i == 1 && strings.IndexByte("eEnNxXbB", s[0]) >= 0 || i == 2 && strings.EqualFold(s[:2], "u&")
}

// appendEscaped appends a value as its context needs it.
func appendEscaped(b []byte, ctx Context, v string) []byte {
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '\'' && (ctx == String || ctx == EString),
			c == '\\' && ctx == EString,
			c == '"' && ctx == Ident:
			b = append(b, c)
		}
		b = append(b, v[i])
	}
	return b
}
