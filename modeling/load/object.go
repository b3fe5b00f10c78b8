package load

import (
	"cmp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/retrofill/retrofill/modeling/diag"
)

// object is a mapping with known keys, read into a T. A T that embeds place
// learns where it and its keys were written. Unknown keys are errors. What can
// be read is kept in spite of other problems, so that a reference to a broken
// engine or table is not reported as unknown as well.
func object[T any](name, doc string, fields ...field[T]) value[T] {
	index := make(map[string]*field[T], len(fields))
	var names []string
	own := part{name: name, doc: doc}
	var parts []part
	for i := range fields {
		f := &fields[i]
		index[f.name] = f
		if f.later {
			continue
		}
		names = append(names, f.name)
		own.keys = append(own.keys, f.partKey)
		parts = append(parts, f.parts...)
	}
	return value[T]{
		words:   "a mapping",
		parts:   append([]part{own}, parts...),
		accepts: isMapping,
		schema: func() map[string]any {
			props, must := map[string]any{}, []string{}
			for _, f := range fields {
				if f.later {
					continue
				}
				props[f.name] = f.schema()
				if f.required {
					must = append(must, f.name)
				}
			}
			s := map[string]any{"type": "object", "description": doc, "properties": props, "additionalProperties": false}
			if len(must) > 0 {
				s["required"] = must
			}
			return s
		},
		read: func(d *decoder, n ast.Node) (T, bool) {
			var out T
			entries, _ := pairs(n)
			at := place{Pos: d.pos(n), keys: make([]word, 0, len(entries))}
			d.each(n, func(k word, v ast.Node) {
				at.keys = append(at.keys, k)
				f := index[k.Text]
				switch {
				case f == nil:
					d.report(diag.Errorf("unknown_key", "unknown key %q in %s", clip(k.Text), name).At(k.Pos).
						WithHint("%s", diag.DidYouMean(k.Text, names, "known keys: "+strings.Join(names, ", "))))
				case f.later:
					d.report(diag.Errorf("not_supported", "%q is not supported in this version", k.Text).At(k.Pos).
						WithDetail("%s", f.doc).WithHint("remove the key for now"))
				default:
					f.read(d, v, &out)
				}
			})
			for _, f := range fields {
				if f.required && !at.has(f.name) {
					d.report(diag.Errorf(cmp.Or(f.code, "missing_key"), "key %q is missing in %s", f.name, name).At(at.Pos).
						WithDetail("%s: %s", f.name, f.doc).WithHint("%s", cmp.Or(f.hint, "add `"+f.name+":`")))
				}
			}
			if p, ok := any(&out).(interface{ placed() *place }); ok {
				*p.placed() = at
			}
			return out, true
		},
	}
}
