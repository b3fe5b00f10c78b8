// Package param is the grammar of scheduling parameters (semantics §2): value
// expressions, parameter configurations and code templates. Everything is
// parsed once and evaluated at many slots.
//
// Invariants:
//   - Nothing reads the wall clock: a value depends on the expression and the
//     Instant alone, so the same slot gives the same text in a normal run, a
//     backfill and a rerun (semantics §2.2).
//   - An *Expr, *Set and *Template is immutable after parsing and safe for
//     concurrent use.
//   - Rendered values are never scanned again, and a value never becomes SQL
//     syntax: inside a literal it is escaped, outside one it is a number, a
//     date or an identifier, unless the parameter is declared raw (§2.5).
//   - A Template rebuilt from its frozen form renders the same text without
//     the project.
//
// Diagnostics of values: syntax, token, offset, range, and the warning
// mm_read_as_minute. Of configurations also: name, duplicate, unassigned,
// undefined, cycle. Of code: undefined, unsafe_value (a value would become SQL
// syntax), unbound (a late-bound value is not known yet). Of partitions:
// late_bound. Of cross-node values: not_direct, undeclared, upstream_failed,
// no_value, and the warning stale.
package param

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Dialect is one of the two published grammars (semantics §2.3).
type Dialect string

// The dialects. Dataphin is the default.
const (
	Dataphin  Dialect = "dataphin"
	DataWorks Dialect = "dataworks"
)

// ParseDialect reads a project's `parameters: {dialect: …}`; "" is Dataphin.
func ParseDialect(s string) (Dialect, diag.List) {
	switch Dialect(s) {
	case "":
		return Dataphin, nil
	case Dataphin, DataWorks:
		return Dialect(s), nil
	}
	return Dataphin, diag.List{diag.Errorf("dialect", "unknown parameter dialect %q", s).
		WithHint("%s", diag.DidYouMean(s, []string{string(Dataphin), string(DataWorks)}, "use dataphin or dataworks"))}
}

// Instant is the slot at which parameters are evaluated. Scheduled is the
// scheduled instant in the project's zone; its date is Bizdate + 1 unless the
// zone skips that date. A zero Scheduled reads as 00:00 UTC.
type Instant struct {
	Bizdate   bizdate.Date
	Scheduled time.Time
}

// At gives the Instant of a slot.
func At(s bizdate.Slot) Instant { return Instant{Bizdate: s.Date, Scheduled: s.At} }

// Source is a piece of text with the place of its first character.
type Source struct {
	Text string
	Pos  diag.Pos
}

// Text gives a Source whose place is known only as line 1, column 1 of itself.
func Text(s string) Source { return Source{Text: s} }

// At gives the place of a byte offset. An unknown start counts as 1:1.
func (s Source) At(offset int) diag.Pos {
	w := s.walk()
	return w.at(offset)
}

// walker gives the places of rising byte offsets, reading the text once.
type walker struct {
	text string
	off  int
	pos  diag.Pos
}

func (s Source) walk() walker {
	p := s.Pos
	p.Line, p.Column = max(p.Line, 1), max(p.Column, 1)
	return walker{text: s.Text, pos: p}
}

func (w *walker) at(offset int) diag.Pos {
	piece := w.text[w.off:max(w.off, min(offset, len(w.text)))]
	w.off += len(piece)
	if n := strings.Count(piece, "\n"); n > 0 {
		w.pos.Line += n
		w.pos.Column = 1
		piece = piece[strings.LastIndexByte(piece, '\n')+1:]
	}
	w.pos.Column += utf8.RuneCountInString(piece)
	return w.pos
}

// maxName is the longest parameter name, in characters.
const maxName = 32

// ValidName tells whether s is a parameter name: [A-Za-z0-9_]{1,32}.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > maxName {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
