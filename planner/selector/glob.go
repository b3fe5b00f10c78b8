package selector

import (
	"fmt"
	"regexp"
	"strings"
)

// globMode says what a pattern's wildcards may cross.
type globMode struct {
	path bool // `*` and `?` stay in one level, `**` does not; a directory matches what is below
	fold bool // letter case does not count
}

// hasWildcard tells whether a value has one that no backslash precedes.
func hasWildcard(s string) bool {
	return index(s, '*') >= 0 || index(s, '?') >= 0 || index(s, '[') >= 0
}

// compile makes a matcher of a value with `*`, `?`, `[..]`, `[!..]`, as
// fnmatch reads them: an unclosed bracket is a literal one. Matching takes
// time linear in the text.
func compile(pattern string, mode globMode) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?s`)
	if mode.fold {
		b.WriteByte('i')
	}
	b.WriteString(`)\A(?:`)
	any := `.`
	if mode.path {
		any = `[^/]`
	}
	rs := []rune(pattern)
	for i := 0; i < len(rs); i++ {
		switch r := rs[i]; {
		case r == '\\' && i+1 < len(rs):
			i++
			b.WriteString(regexp.QuoteMeta(string(rs[i])))
		case r == '*' && mode.path && i+1 < len(rs) && rs[i+1] == '*':
			for i+1 < len(rs) && rs[i+1] == '*' {
				i++
			}
			if i+1 < len(rs) && rs[i+1] == '/' {
				i++
				b.WriteString(`(?:.*/)?`) // also no directory at all
			} else {
				b.WriteString(`.*`)
			}
		case r == '*':
			b.WriteString(any + `*`)
		case r == '?':
			b.WriteString(any)
		case r == '[':
			class, end := bracket(rs, i, mode)
			b.WriteString(class)
			i = end
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteByte(')')
	if mode.path {
		b.WriteString(`(?:/.*)?`)
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("selector: read pattern %q: %w", pattern, err)
	}
	return re, nil
}

// bracket translates the class that begins at rs[at] and gives the index of
// its end.
func bracket(rs []rune, at int, mode globMode) (string, int) {
	i := at + 1
	negated := i < len(rs) && rs[i] == '!'
	if negated {
		i++
	}
	end := i
	if end < len(rs) && rs[end] == ']' {
		end++ // a first ] is a member
	}
	for end < len(rs) && rs[end] != ']' {
		end++
	}
	if end >= len(rs) {
		return regexp.QuoteMeta("["), at
	}
	var b strings.Builder
	lit := func(r rune) {
		if strings.ContainsRune(`\[]^-&~|`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	body := rs[i:end]
	members := false
	for k := 0; k < len(body); k++ {
		if k+2 < len(body) && body[k+1] == '-' {
			if body[k] <= body[k+2] { // a range upside down has no member
				lit(body[k])
				b.WriteByte('-')
				lit(body[k+2])
				members = true
			}
			k += 2
			continue
		}
		lit(body[k])
		members = true
	}
	switch {
	case !members && negated:
		if mode.path {
			return `[^/]`, end
		}
		return `.`, end
	case !members:
		return `[^\x00-\x{10FFFF}]`, end
	case negated && mode.path:
		return `[^/` + b.String() + `]`, end
	case negated:
		return `[^` + b.String() + `]`, end
	}
	return `[` + b.String() + `]`, end
}
