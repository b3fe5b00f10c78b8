package load

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/retrofill/retrofill/modeling/diag"
)

// value describes one kind of YAML value once, for all who need to know it:
// the decoder (accepts, read), the JSON Schema (schema) and the manual
// (words, parts). A value that one of them does not know cannot be written.
type value[V any] struct {
	words   string // "a text", for messages and the manual
	schema  func() map[string]any
	accepts func(n ast.Node) bool // by type alone, after resolve
	read    func(d *decoder, n ast.Node) (V, bool)
	parts   []part // the mappings inside, for the manual
}

// part is one mapping of the manual: its keys in the order of the key table.
type part struct {
	name, doc string
	keys      []partKey
}

type partKey struct {
	name, words, def, doc string
	required              bool
}

// word is a text with its place.
type word struct {
	Text string
	Pos  diag.Pos
	Null bool
}

// place is embedded in what a mapping is read into: where it starts and where
// each of its keys was written. Mappings are small: a list beats a map.
type place struct {
	Pos  diag.Pos
	keys []word
}

func (p *place) placed() *place { return p }

// at is where a key was written, else where the mapping starts.
func (p *place) at(key string) diag.Pos {
	for _, k := range p.keys {
		if k.Text == key {
			return k.Pos
		}
	}
	return p.Pos
}

func (p *place) has(key string) bool {
	return slices.ContainsFunc(p.keys, func(k word) bool { return k.Text == key })
}

// field is one key of a mapping that is read into a T.
type field[T any] struct {
	partKey
	later  bool   // announced, refused for now
	code   string // of the diagnostic when it is missing, "" = missing_key
	hint   string // of the same
	schema func() map[string]any
	read   func(d *decoder, n ast.Node, to *T)
	parts  []part
}

// key describes one key of a mapping. def is its default in words, "" = none;
// "required" makes it so.
func key[T, V any](name string, v value[V], def, doc string, at func(*T) *V) field[T] {
	f := field[T]{partKey: partKey{name: name, words: v.words, def: def, doc: doc, required: def == required}, parts: v.parts}
	f.schema = func() map[string]any {
		s := maps.Clone(v.schema())
		s["description"] = doc
		if def != "" && !f.required {
			s["description"] = doc + " Default: " + def + "."
		}
		return s
	}
	f.read = func(d *decoder, n ast.Node, to *T) {
		if got, ok := readAs(d, v, n); ok {
			*at(to) = got
		}
	}
	return f
}

// missing gives code and hint of the diagnostic for a required key left out.
func (f field[T]) missing(code, hint string) field[T] {
	f.code, f.hint = code, hint
	return f
}

// later describes a key that this version refuses, saying so.
func later[T any](name, doc string) field[T] {
	return field[T]{partKey: partKey{name: name, doc: doc}, later: true}
}

const required = "required"

// readAs resolves a node and reads it, or reports its wrong type.
func readAs[V any](d *decoder, v value[V], n ast.Node) (V, bool) {
	var zero V
	d.depth++
	defer func() { d.depth-- }()
	r, text, ok := d.resolve(n)
	if !ok {
		return zero, false
	}
	if d.depth > maxYAMLDepth {
		d.report(diag.Errorf("yaml_too_complex", "the file nests deeper than %d", maxYAMLDepth).At(d.pos(n)).WithHint("flatten it"))
		return zero, false
	}
	if text && !v.accepts(r) {
		if s, ok := scalarText(r); ok {
			r = &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: r.GetToken(), Value: s}
		}
	}
	if !v.accepts(r) {
		d.report(diag.Errorf("bad_type", "%s is expected here, not %s", v.words, describe(r)).At(d.pos(n)).WithHint("%s", typeHint(v.words, r)))
		return zero, false
	}
	return v.read(d, r)
}

func typeHint(words string, n ast.Node) string {
	s, scalar := scalarText(n)
	switch {
	case n.Type() == ast.NullType:
		return "give the key a value or remove it"
	case scalar && strings.HasPrefix(words, "a text ("):
		return "write " + strings.TrimSuffix(strings.TrimPrefix(words, "a text ("), ")")
	case scalar && strings.HasPrefix(words, "a list"):
		return fmt.Sprintf("write it as a list: [%s]", s)
	case scalar && strings.HasPrefix(words, "a text") && n.Type() != ast.StringType:
		return fmt.Sprintf("put it in quotes: %q", s)
	case words == "true or false":
		return "write true or false, without quotes"
	case scalar && strings.HasPrefix(words, "a whole number"):
		return "write digits only, without quotes"
	}
	return "docs/project-files.md shows the form of this key"
}

func isText(n ast.Node) bool {
	return n.Type() == ast.StringType || n.Type() == ast.LiteralType
}

func isScalar(n ast.Node) bool {
	_, ok := scalarText(n)
	return ok && n.Type() != ast.NullType
}

// text is a YAML string. Numbers and true/false are refused, since it cannot
// be known whether 1.10 or 1.1 was meant.
func text() value[word] {
	return value[word]{
		words:   "a text",
		schema:  func() map[string]any { return map[string]any{"type": "string"} },
		accepts: isText,
		read: func(d *decoder, n ast.Node) (word, bool) {
			s, _ := scalarText(n)
			return word{Text: s, Pos: d.pos(n)}, true
		},
	}
}

// matching is a text of a pattern; what says in words what it must be.
func matching(code, pattern, what string) value[word] {
	re := regexp.MustCompile(pattern)
	v := text()
	v.words = "a text (" + what + ")"
	v.schema = func() map[string]any { return map[string]any{"type": "string", "pattern": pattern} }
	v.read = func(d *decoder, n ast.Node) (word, bool) {
		s, _ := scalarText(n)
		w := word{Text: s, Pos: d.pos(n)}
		if !re.MatchString(s) {
			d.report(diag.Errorf(code, "%q is not %s", clip(s), what).At(w.Pos).WithHint("write %s", what))
			return w, false
		}
		return w, true
	}
	return v
}

// oneOf is a text out of a list.
func oneOf(choices ...string) value[word] {
	v := text()
	v.words = "a text: " + strings.Join(choices, ", ")
	v.schema = func() map[string]any { return map[string]any{"type": "string", "enum": choices} }
	v.read = func(d *decoder, n ast.Node) (word, bool) {
		s, _ := scalarText(n)
		w := word{Text: s, Pos: d.pos(n)}
		if !slices.Contains(choices, s) {
			all := "one of " + strings.Join(choices, ", ")
			d.report(diag.Errorf("bad_value", "%q is not allowed here", clip(s)).At(w.Pos).
				WithDetail("allowed: %s", strings.Join(choices, ", ")).WithHint("%s", diag.DidYouMean(s, choices, "write "+all)))
			return w, false
		}
		return w, true
	}
	return v
}

// scalar is a text, number or true/false, kept as written (007, 1.10). With
// null it may also be nothing.
func scalar(null bool) value[word] {
	types := []string{"string", "number", "boolean"}
	if null {
		types = append(types, "null")
	}
	return value[word]{
		words:   "a text or number",
		schema:  func() map[string]any { return map[string]any{"type": types} },
		accepts: func(n ast.Node) bool { return isScalar(n) || null && n.Type() == ast.NullType },
		read: func(d *decoder, n ast.Node) (word, bool) {
			w := word{Pos: d.pos(n), Null: n.Type() == ast.NullType}
			if !w.Null {
				w.Text, _ = scalarText(n)
			}
			return w, true
		},
	}
}

// boolean is true or false (YAML 1.2: yes and on are texts).
func boolean() value[bool] {
	return value[bool]{
		words:   "true or false",
		schema:  func() map[string]any { return map[string]any{"type": "boolean"} },
		accepts: func(n ast.Node) bool { return n.Type() == ast.BoolType },
		read: func(_ *decoder, n ast.Node) (bool, bool) {
			return n.(*ast.BoolNode).Value, true
		},
	}
}

// integer is a decimal whole number from lo to hi, kept as text beside.
func integer(lo, hi int64) value[int64] {
	words := "a whole number"
	if hi < 1<<53 {
		words += fmt.Sprintf(" from %d to %d", lo, hi)
	}
	return value[int64]{
		words: words,
		schema: func() map[string]any {
			return map[string]any{"type": "integer", "minimum": lo, "maximum": hi}
		},
		accepts: func(n ast.Node) bool { return n.Type() == ast.IntegerType },
		read: func(d *decoder, n ast.Node) (int64, bool) {
			s, _ := scalarText(n)
			i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
			if err != nil || i < lo || i > hi {
				d.report(diag.Errorf("bad_value", "%s is not %s", clip(s), words).At(d.pos(n)).WithHint("write %s", words))
				return 0, false
			}
			return i, true
		},
	}
}

// list is a sequence; items that cannot be read are left out.
func list[V any](v value[V], atLeast int) value[[]V] {
	return value[[]V]{
		words: "a list of " + plural(v.words),
		schema: func() map[string]any {
			s := map[string]any{"type": "array", "items": v.schema()}
			if atLeast > 0 {
				s["minItems"] = atLeast
			}
			return s
		},
		accepts: func(n ast.Node) bool { return n.Type() == ast.SequenceType },
		parts:   v.parts,
		read: func(d *decoder, n ast.Node) ([]V, bool) {
			items := n.(*ast.SequenceNode).Values
			if len(items) < atLeast {
				d.report(diag.Errorf("bad_value", "the list is too short: %d of at least %d entries", len(items), atLeast).At(d.pos(n)).
					WithHint("write its entries or remove the key"))
			}
			out := make([]V, 0, len(items))
			for _, item := range items {
				if got, ok := readAs(d, v, item); ok {
					out = append(out, got)
				}
			}
			return out, true
		},
	}
}

func plural(words string) string {
	for _, p := range [][2]string{{"a text", "texts"}, {"a list", "lists"}, {"a mapping", "mappings"}, {"a whole number", "whole numbers"}} {
		if rest, ok := strings.CutPrefix(words, p[0]); ok {
			return p[1] + rest
		}
	}
	return words
}

// entry is one pair of a mapping with free keys.
type entry[V any] struct {
	Key   word
	Value V
}

// dict is a mapping with free keys, in the order written.
func dict[V any](v value[V], atLeast int) value[[]entry[V]] {
	return value[[]entry[V]]{
		words: "a mapping",
		schema: func() map[string]any {
			s := map[string]any{"type": "object", "additionalProperties": v.schema()}
			if atLeast > 0 {
				s["minProperties"] = atLeast
			}
			return s
		},
		accepts: isMapping,
		parts:   v.parts,
		read: func(d *decoder, n ast.Node) ([]entry[V], bool) {
			entries, _ := pairs(n)
			out := make([]entry[V], 0, len(entries))
			if len(entries) < atLeast {
				d.report(diag.Errorf("bad_value", "the mapping is empty").At(d.pos(n)).WithHint("write its entries or remove the key"))
			}
			d.each(n, func(k word, item ast.Node) {
				if got, ok := readAs(d, v, item); ok {
					out = append(out, entry[V]{Key: k, Value: got})
				}
			})
			return out, true
		},
	}
}

func isMapping(n ast.Node) bool { _, ok := pairs(n); return ok }

// each visits the entries of a mapping and reports keys written twice.
func (d *decoder) each(n ast.Node, visit func(k word, v ast.Node)) {
	entries, _ := pairs(n)
	// Most mappings are small: then the keys before are looked through.
	const small = 16
	var seen map[string]int // line by key
	if len(entries) > small {
		seen = make(map[string]int, len(entries))
	}
	before := make([]word, 0, min(len(entries), small))
	for _, e := range entries {
		name, ok := d.keyText(e.Key)
		if !ok {
			continue
		}
		pos := d.pos(e.Key)
		line, dup := seen[name]
		for _, w := range before {
			if w.Text == name {
				line, dup = w.Pos.Line, true
			}
		}
		if dup {
			d.report(diag.Errorf("duplicate_key", "key %q is written twice", clip(name)).At(pos).
				WithDetail("first written at line %d", line).WithHint("keep one of the two"))
			continue
		}
		if seen != nil {
			seen[name] = pos.Line
		} else {
			before = append(before, word{Text: name, Pos: pos})
		}
		visit(word{Text: name, Pos: pos}, e.Value)
	}
}

// either reads a value in one of two forms, told apart by type.
func either[V any](a, b value[V]) value[V] {
	return value[V]{
		words:   a.words + " or " + b.words,
		schema:  func() map[string]any { return map[string]any{"anyOf": []any{a.schema(), b.schema()}} },
		accepts: func(n ast.Node) bool { return a.accepts(n) || b.accepts(n) },
		parts:   append(slices.Clone(a.parts), b.parts...),
		read: func(d *decoder, n ast.Node) (V, bool) {
			if a.accepts(n) {
				return a.read(d, n)
			}
			return b.read(d, n)
		},
	}
}

// as turns what one value reads into another type.
func as[A, B any](v value[A], turn func(A, diag.Pos) B) value[B] {
	return value[B]{
		words: v.words, schema: v.schema, accepts: v.accepts, parts: v.parts,
		read: func(d *decoder, n ast.Node) (B, bool) {
			a, ok := v.read(d, n)
			return turn(a, d.pos(n)), ok
		},
	}
}

// anything is free YAML as JSON-like values. Numbers whose text a number type
// would change (007, 1.10) stay texts.
func anything() value[any] {
	var v value[any]
	v = value[any]{
		words:   "anything",
		schema:  func() map[string]any { return map[string]any{} },
		accepts: func(ast.Node) bool { return true },
		read: func(d *decoder, n ast.Node) (any, bool) {
			switch x := n.(type) {
			case *ast.NullNode:
				return nil, true
			case *ast.BoolNode:
				return x.Value, true
			case *ast.SequenceNode:
				items := make([]any, 0, len(x.Values))
				for _, item := range x.Values {
					if got, ok := readAs(d, v, item); ok {
						items = append(items, got)
					}
				}
				return items, true
			}
			if isMapping(n) {
				m := map[string]any{}
				d.each(n, func(k word, item ast.Node) {
					if got, ok := readAs(d, v, item); ok {
						m[k.Text] = got
					}
				})
				return m, true
			}
			s, _ := scalarText(n)
			if n.Type() == ast.IntegerType {
				if i, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(i, 10) == s {
					return i, true
				}
			}
			if n.Type() == ast.FloatType {
				if f, err := strconv.ParseFloat(s, 64); err == nil && strconv.FormatFloat(f, 'f', -1, 64) == s {
					return f, true
				}
			}
			return s, true
		},
	}
	return v
}

// clip shortens a text for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
