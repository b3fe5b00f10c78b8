package sqlast

import (
	"context"
	"sort"
	"strings"
)

// Prune writes the definition with only some of its fields, and without the
// row-neutral joins that none of them needs, so that a column refresh
// (semantics §4.8) computes no more than it writes. The pruned text is analysed
// again: ok only if its row set and every kept field are the same by
// fingerprint; otherwise why says what stands in the way and the caller uses
// the whole definition.
func Prune(ctx context.Context, p Parser, an *Analysis, fields []string) (sql string, ok bool, why string) {
	if an.Unsplittable != nil {
		return "", false, an.Unsplittable.Reason
	}
	keep := map[string]bool{}
	for _, f := range fields {
		if _, known := an.Field(f); !known {
			return "", false, "there is no field " + f
		}
		keep[strings.ToLower(f)] = true
	}
	text := an.Definition.SQL
	lay, ok := SelectItems(text)
	if !ok {
		return "", false, "the definition is not one plain SELECT"
	}
	kept, why := keptItems(text, lay.Items, an.Fields, keep)
	if why != "" {
		return "", false, why
	}
	// With the joins left out if that changes nothing, else with all joins.
	for _, drop := range [][]JoinSpan{droppable(lay, an, keep), nil} {
		out := rewrite(text, lay, kept, drop)
		if why = sameParts(ctx, p, an, out, keep); why == "" {
			return out, true, ""
		}
		if drop == nil {
			break
		}
	}
	return "", false, why
}

// keptItems chooses the items of the select list. One star may stand for
// several fields: it is kept or dropped as a whole.
func keptItems(text string, items []Span, fields []Field, keep map[string]bool) ([]Span, string) {
	star := -1
	for i, it := range items {
		if hasStar(text[it.Start:it.End]) {
			if star >= 0 {
				return nil, "several stars in the SELECT list"
			}
			star = i
		}
	}
	width := 1
	if star >= 0 {
		width = len(fields) - len(items) + 1
	}
	if star < 0 && len(items) != len(fields) || width < 0 {
		return nil, "the SELECT list does not match the fields"
	}
	var out []Span
	n := 0
	for i, it := range items {
		w := 1
		if i == star {
			w = width
		}
		wanted := 0
		for _, f := range fields[n : n+w] {
			if keep[strings.ToLower(f.Name)] {
				wanted++
			}
		}
		n += w
		switch {
		case wanted == w && w > 0:
			out = append(out, it)
		case wanted > 0:
			return nil, "a star gives some of the fields and others"
		}
	}
	if len(out) == 0 {
		return nil, "no field is left"
	}
	return out, ""
}

// hasStar tells whether an item is a star: `*`, `t.*`, `* EXCLUDE …`.
func hasStar(item string) bool {
	lx := newLexer(item)
	for i := range lx.toks {
		if lx.is(i, "*") && (i == 0 || lx.is(i-1, ".")) {
			return true
		}
	}
	return false
}

// droppable gives the top-level joins that no kept field needs.
func droppable(lay Layout, an *Analysis, keep map[string]bool) []JoinSpan {
	free := map[string]bool{}
	for _, j := range an.Joins {
		free[strings.ToLower(j.Alias)] = true
		for _, f := range j.Fields {
			if keep[strings.ToLower(f)] {
				free[strings.ToLower(j.Alias)] = false
			}
		}
	}
	var out []JoinSpan
	for _, j := range lay.Joins {
		if free[j.Alias] {
			out = append(out, j)
		}
	}
	return out
}

// rewrite puts the kept items and joins together; everything else of the text
// stays as it is.
func rewrite(text string, lay Layout, kept []Span, drop []JoinSpan) string {
	parts := make([]string, len(kept))
	for i, k := range kept {
		parts[i] = text[k.Start:k.End]
	}
	type cut struct {
		Span
		put string
	}
	cuts := []cut{{Span{lay.Items[0].Start, lay.Items[len(lay.Items)-1].End}, strings.Join(parts, ",\n  ")}}
	for _, j := range drop {
		cuts = append(cuts, cut{j.Span, ""})
	}
	sort.Slice(cuts, func(i, j int) bool { return cuts[i].Start < cuts[j].Start })
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		b.WriteString(text[at:c.Start])
		b.WriteString(c.put)
		at = c.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// sameParts analyses a pruned text and compares what must not differ.
func sameParts(ctx context.Context, p Parser, an *Analysis, text string, keep map[string]bool) string {
	d := an.Definition
	d.SQL = text
	d.Key = nil
	got, diags := Split(ctx, p, d, an.Schema.Schema())
	switch {
	case diags.HasErrors():
		return "another part of the SELECT uses what would be left out: " + diags[0].Summary
	case got.Unsplittable != nil:
		return got.Unsplittable.Reason
	case got.RowSet.Fingerprint != an.RowSet.Fingerprint:
		return "leaving out fields would change which rows exist"
	case len(got.Fields) != len(keep):
		return "the SELECT list does not match the fields"
	}
	for _, f := range got.Fields {
		o, ok := an.Field(f.Name)
		if !ok || !keep[strings.ToLower(f.Name)] || o.Fingerprint != f.Fingerprint {
			return "the field " + f.Name + " would change"
		}
	}
	return ""
}
