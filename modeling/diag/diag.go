// Package diag holds user-facing problems. A load or a plan collects all of
// them instead of stopping at the first one.
//
// Invariants: a Diagnostic's Code is one of the kinds that the rules name
// (`cycle`, `offset`, `end_before_start`, …) and never changes once released;
// Line and Column count from 1, 0 means unknown.
package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Severity tells whether a diagnostic stops the work.
type Severity string

// The severities. An Error refuses the command; a Warning is shown and
// recorded in the plan.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Pos is a place in a project file. Line and Column count from 1; the column
// counts characters (runes). Zero values mean unknown.
type Pos struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String gives `file:line:column`, leaving out what is unknown.
func (p Pos) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Column > 0 {
			s += fmt.Sprintf(":%d", p.Column)
		}
	}
	return strings.TrimPrefix(s, ":")
}

// Diagnostic is one problem: what happened (Summary), the particulars
// (Detail), where (Pos) and what to do next (Hint).
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail"`
	Pos
	Hint string `json:"hint"`
}

// String renders the diagnostic as one or more lines for a person.
func (d Diagnostic) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s[%s]: %s", d.Severity, d.Code, d.Summary)
	if p := d.Pos.String(); p != "" {
		fmt.Fprintf(&b, "\n  at %s", p)
	}
	if d.Detail != "" {
		fmt.Fprintf(&b, "\n  %s", strings.ReplaceAll(d.Detail, "\n", "\n  "))
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "\n  hint: %s", strings.ReplaceAll(d.Hint, "\n", "\n  "))
	}
	return b.String()
}

// Error makes a single Diagnostic usable as an error.
func (d Diagnostic) Error() string { return d.String() }

// Errorf makes an error diagnostic with a formatted summary.
func Errorf(code, format string, args ...any) Diagnostic {
	return Diagnostic{Severity: Error, Code: code, Summary: fmt.Sprintf(format, args...)}
}

// Warnf makes a warning diagnostic with a formatted summary.
func Warnf(code, format string, args ...any) Diagnostic {
	return Diagnostic{Severity: Warning, Code: code, Summary: fmt.Sprintf(format, args...)}
}

// At returns a copy placed at p.
func (d Diagnostic) At(p Pos) Diagnostic { d.Pos = p; return d }

// WithDetail returns a copy with a formatted detail.
func (d Diagnostic) WithDetail(format string, args ...any) Diagnostic {
	d.Detail = fmt.Sprintf(format, args...)
	return d
}

// WithHint returns a copy with a formatted hint.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

// List is all the diagnostics of one load, plan or command.
type List []Diagnostic

// HasErrors tells whether any diagnostic is an Error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors gives only the errors.
func (l List) Errors() List { return l.only(Error) }

// Warnings gives only the warnings.
func (l List) Warnings() List { return l.only(Warning) }

func (l List) only(s Severity) List {
	var out List
	for _, d := range l {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Codes gives the codes, in order.
func (l List) Codes() []string {
	out := make([]string, len(l))
	for i, d := range l {
		out[i] = d.Code
	}
	return out
}

// Sort orders by file, line, column, then code, stably.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		if a.Column != b.Column {
			return a.Column - b.Column
		}
		return strings.Compare(a.Code, b.Code)
	})
}

// Error renders all diagnostics, one after another.
func (l List) Error() string {
	parts := make([]string, len(l))
	for i, d := range l {
		parts[i] = d.String()
	}
	return strings.Join(parts, "\n")
}
