// Package sqlscript cuts SQL texts into statements by the lexical rules that
// DuckDB and PostgreSQL share, and refuses what must never be inside a unit.
//
// Invariant: nothing is parsed beyond tokens; what cannot be cut stays in one
// piece, for the engine to report.
package sqlscript

import (
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/executors"
)

// Single refuses what must never be inside a unit: transaction control (it
// would commit half a unit) and, except in a user's script, more than one
// statement (a value that became syntax). It gives the statements to run.
func Single(text string, role executors.Role) ([]string, error) {
	stmts := Split(text)
	if len(stmts) == 0 {
		return nil, fmt.Errorf("the statement is empty")
	}
	if len(stmts) > 1 && role != executors.RoleScript {
		return nil, fmt.Errorf("%d statements where one is expected", len(stmts))
	}
	for _, s := range stmts {
		if w := FirstWord(s); controlsTransaction(w) {
			return nil, fmt.Errorf("%s is not allowed: the whole unit is one transaction, which retrofill begins and commits", w)
		}
	}
	return stmts, nil
}

func controlsTransaction(word string) bool {
	switch word {
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT":
		return true
	}
	return false
}

// Split cuts a script at its top-level semicolons:
// quotes, E-strings, dollar quotes, nested comments. Parts without any token
// are dropped. What is not closed stays in one piece, for the engine to report.
func Split(text string) []string {
	var out []string
	start, tokens := 0, false
	flush := func(end int) {
		if tokens {
			out = append(out, strings.TrimSpace(text[start:end]))
		}
		start, tokens = end+1, false
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ';':
			flush(i)
			i++
		case isSpace(c):
			i++
		default:
			n := skip(text[i:])
			tokens = tokens || !isComment(text[i:])
			i += n
		}
	}
	if start < len(text) {
		flush(len(text))
	}
	return out
}

// FirstWord gives the first word of a statement, in upper case, behind
// leading comments.
func FirstWord(s string) string {
	for i := 0; i < len(s); {
		switch {
		case isSpace(s[i]):
			i++
		case isComment(s[i:]):
			i += skip(s[i:])
		default:
			return strings.ToUpper(s[i : i+skip(s[i:])])
		}
	}
	return ""
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isComment(s string) bool { return strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*") }

func isWord(c byte) bool {
	return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// skip gives the length of the token or comment at the start of s.
func skip(s string) int {
	switch c := s[0]; {
	case strings.HasPrefix(s, "--"):
		if n := strings.IndexAny(s, "\r\n"); n >= 0 {
			return n
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		return skipComment(s)
	case (c == 'e' || c == 'E') && len(s) > 1 && s[1] == '\'':
		return 1 + skipQuoted(s[1:], true)
	case c == '\'' || c == '"':
		return skipQuoted(s, false)
	case c == '$':
		return skipDollar(s)
	case isWord(c):
		n := 1
		for n < len(s) && (isWord(s[n]) || s[n] == '$') {
			n++
		}
		return n
	}
	return 1
}

func skipComment(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); {
		switch s[i : i+2] {
		case "/*":
			depth++
			i += 2
		case "*/":
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(s)
}

func skipQuoted(s string, backslash bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case backslash && s[i] == '\\':
			i++
		case s[i] == s[0]:
			// A doubled quote is the start of another quoted piece here.
			return i + 1
		}
	}
	return len(s)
}

func skipDollar(s string) int {
	n := 1
	for n < len(s) && isWord(s[n]) {
		n++
	}
	// $1 is a parameter, not a quote.
	if n >= len(s) || s[n] != '$' || (len(s) > 1 && s[1] >= '0' && s[1] <= '9') {
		return n
	}
	tag := s[:n+1]
	if end := strings.Index(s[len(tag):], tag); end >= 0 {
		return len(tag) + end + len(tag)
	}
	return len(s)
}

// StageName gives the name, as it is written, of the temporary table that a
// statement of the form CREATE [OR REPLACE] TEMP[ORARY] TABLE name … makes; ""
// if it has another form.
func StageName(s string) string {
	state := 0
	for i := 0; i < len(s); {
		if isSpace(s[i]) {
			i++
			continue
		}
		token := s[i : i+skip(s[i:])]
		i += len(token)
		if isComment(token) {
			continue
		}
		word := strings.ToUpper(token)
		switch {
		case state == 0 && word == "CREATE":
			state = 1
		case state == 1 && (word == "OR" || word == "REPLACE"):
		case state == 1 && (word == "TEMP" || word == "TEMPORARY"):
			state = 2
		case state == 2 && word == "TABLE":
			state = 3
		case state == 3 && token[0] == '"':
			// A doubled quote comes as a second token.
			for i < len(s) && s[i] == '"' {
				more := s[i : i+skip(s[i:])]
				token += more
				i += len(more)
			}
			return token
		case state == 3 && isWord(token[0]) && word != "IF":
			return token
		default:
			return ""
		}
	}
	return ""
}
