package sqlast

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Bounds of one definition's analysis: beyond them the table counts as
// unsplittable (too_complex) instead of costing minutes.
const (
	maxNodes  = 400_000
	maxLevels = 5_000
	maxText   = 8 << 20
)

// analyzer is the state of one definition's analysis.
type analyzer struct {
	def          Definition
	prep         prepared
	params       params
	schema       *Schema
	interned     map[string]*expr
	instances    []*instance
	joins        int
	levels       int
	size         int
	aggregates   map[*level]int
	pending      []pendingOrder
	diags        diag.List
	unsplittable *Unsplittable
}

func newAnalyzer(d Definition, prep prepared, s *Schema) *analyzer {
	return &analyzer{def: d, prep: prep, params: newParams(d), schema: s, interned: map[string]*expr{}, aggregates: map[*level]int{}}
}

// loc maps a place of the engine's tree to the author's text, -1 = none.
func (a *analyzer) loc(l uint64) int {
	if l == noLocation {
		return -1
	}
	return a.prep.original(int(l))
}

func (a *analyzer) failed() bool { return a.unsplittable != nil || len(a.diags) > 0 }

// unsplit notes the first reason why the definition cannot be split.
func (a *analyzer) unsplit(kind string, loc uint64, format string, args ...any) {
	if a.unsplittable == nil {
		a.unsplittable = &Unsplittable{Kind: kind, Reason: fmt.Sprintf(format, args...), Offset: a.loc(loc)}
	}
}

// reported lets the caller of problem add a hint.
type reported struct {
	a *analyzer
	i int
}

func (r reported) hint(format string, args ...any) {
	if r.i >= 0 {
		r.a.diags[r.i] = r.a.diags[r.i].WithHint(format, args...)
	}
}

// problem reports an error at a place of the engine's tree. After the query
// turned out unsplittable, names are no longer resolvable: nothing is reported.
func (a *analyzer) problem(code string, loc uint64, format string, args ...any) reported {
	return a.problemAt(code, a.loc(loc), format, args...)
}

func (a *analyzer) problemAt(code string, off int, format string, args ...any) reported {
	if a.unsplittable != nil {
		return reported{a, -1}
	}
	d := diag.Errorf(code, format, args...).At(placeOf(a.def, off))
	for _, x := range a.diags {
		if x.Code == d.Code && x.Pos == d.Pos && x.Summary == d.Summary {
			return reported{a, -1}
		}
	}
	a.diags = append(a.diags, d)
	return reported{a, len(a.diags) - 1}
}

// placeOf gives file, line and column (in characters) of a byte offset.
func placeOf(d Definition, off int) diag.Pos {
	p := diag.Pos{File: d.File}
	if off < 0 {
		return p
	}
	off = min(off, len(d.SQL))
	before := d.SQL[:off]
	p.Line = strings.Count(before, "\n") + 1
	p.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return p
}

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }
func itoa(n int) string          { return strconv.Itoa(n) }

func atoi(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return -1
	}
	return n
}
