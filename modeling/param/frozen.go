package param

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Frozen is a parameter as a plan stores it: its meaning without the project.
type Frozen struct {
	// Value is the canonical value expression, references resolved: a constant,
	// text with time expressions, or ${slotutc}. Empty if Late is set.
	Value    string `json:"value"`
	Raw      bool   `json:"raw,omitempty"`
	Verbatim bool   `json:"verbatim,omitempty"`
	// Late types a late-bound value: node, instance or cross. Key is the entry
	// of Late that gives it if that is not the parameter's own name.
	Late   LateKind `json:"late,omitempty"`
	Key    string   `json:"key,omitempty"`
	Node   string   `json:"node,omitempty"`   // producer of a cross-node parameter
	Output string   `json:"output,omitempty"` // its parameter
	// Default is the value of last resort of a cross-node parameter, Lookback
	// the age in days up to which a recorded value counts, nil = DefaultLookback.
	Default  *string `json:"default,omitempty"`
	Lookback *int    `json:"lookback,omitempty"`
	Origin   Origin  `json:"origin,omitempty"`
}

// Days gives the look-back of a cross-node parameter in days.
func (f Frozen) Days() int {
	if f.Lookback == nil {
		return DefaultLookback
	}
	return *f.Lookback
}

// Freeze gives the frozen form of a parameter by its name.
func (s *Set) Freeze(name string) (Frozen, bool) {
	key := strings.ToLower(name)
	p, ok := s.params[key]
	if !ok {
		return Frozen{}, false
	}
	if p.Verbatim {
		return Frozen{Verbatim: true, Origin: p.Origin}, true
	}
	return freeze(key, Binding{Expr: p.Expr, Raw: p.Raw, Origin: p.Origin}), true
}

func freeze(key string, b Binding) Frozen {
	f := Frozen{Raw: b.Raw, Origin: b.Origin}
	late := b.Expr.Late()
	if len(late) == 0 {
		f.Value = b.Expr.Canonical()
		return f
	}
	// Late-bound parts come only from a whole value: names in values are
	// references to whole parameters.
	f.Late, f.Node, f.Output = late[0].Kind, late[0].Node, late[0].Output
	f.Default, f.Lookback = late[0].Default, late[0].Lookback
	if late[0].Key != key {
		f.Key = late[0].Key
	}
	return f
}

// thaw gives back the binding of a frozen parameter.
func (f Frozen) thaw(d Dialect, key string, src Source) (Binding, diag.List) {
	b := Binding{Raw: f.Raw, Origin: f.Origin}
	if f.Late != "" {
		ref := LateRef{Kind: f.Late, Key: f.Key, Node: f.Node, Output: f.Output, Default: f.Default, Lookback: f.Lookback}
		switch {
		case ref.Key != "":
		case f.Late == LateNodeID:
			ref.Key = "nodeid"
		case f.Late == LateInstanceID:
			ref.Key = "instanceid"
		default:
			ref.Key = key
		}
		b.Expr = &Expr{dialect: d, src: src, parts: []part{{kind: partLate, late: ref}}}
		return b, nil
	}
	src.Text = f.Value
	e, diags := parseValue(d, src, func(name string) (*Expr, bool) {
		if name != "slotutc" {
			return nil, false
		}
		return &Expr{parts: []part{{kind: partSlotUTC}}}, true
	})
	if e != nil && e.ref != "" {
		return b, append(diags, diag.Errorf("frozen", "parameter %s of the plan holds the unresolved reference %s", key, f.Value).
			WithHint("make the plan again"))
	}
	b.Expr = e
	return b, diags.Errors() // warnings were given when the plan was made
}

// Bindings gives the frozen parameters that the code uses, by lower-case
// name. Time expressions in the code need none.
func (t *Template) Bindings() map[string]Frozen {
	out := map[string]Frozen{}
	for _, h := range t.holes {
		if !h.Timed {
			out[h.Name] = freeze(h.Name, h.Binding)
		}
	}
	for _, v := range t.verbatim {
		out[v] = Frozen{Verbatim: true}
	}
	return out
}

// Thaw rebuilds SQL code from a plan: its text, and the frozen parameters by
// lower-case name. It needs no project.
func Thaw(d Dialect, src Source, params map[string]Frozen) (*Template, diag.List) {
	return thaw(d, src, false, params)
}

// ThawText is Thaw for text that is not SQL.
func ThawText(d Dialect, src Source, params map[string]Frozen) (*Template, diag.List) {
	return thaw(d, src, true, params)
}

func thaw(d Dialect, src Source, plain bool, params map[string]Frozen) (*Template, diag.List) {
	var diags diag.List
	done := map[string]Binding{}
	failed := map[string]bool{}
	t, found := parseTemplate(src, plain, binder{
		dialect: d,
		lookup: func(key string) (Binding, bool, bool) {
			f, ok := params[key]
			if !ok || f.Verbatim || failed[key] {
				return Binding{}, f.Verbatim, ok && !failed[key]
			}
			b, ok := done[key]
			if !ok {
				var problems diag.List
				if b, problems = f.thaw(d, key, Source{Pos: src.Pos}); b.Expr == nil {
					diags = append(diags, problems...)
					failed[key] = true
					return Binding{}, false, false
				}
				done[key] = b
			}
			return b, false, true
		},
		quiet: func(key string) bool { return failed[key] },
		known: func() []string {
			var names []string
			for k := range params {
				names = append(names, k)
			}
			slices.Sort(names)
			return names
		},
	})
	diags = append(diags, found.Errors()...)
	if diags.HasErrors() {
		return nil, diags
	}
	return t, nil
}

// wireTemplate is the JSON form of a Template.
type wireTemplate struct {
	Dialect Dialect           `json:"dialect"`
	Text    string            `json:"text"`
	Plain   bool              `json:"plain,omitempty"`
	File    string            `json:"file,omitempty"`
	Line    int               `json:"line,omitempty"`
	Column  int               `json:"column,omitempty"`
	Params  map[string]Frozen `json:"params,omitempty"`
}

// MarshalJSON writes text and frozen parameters; the same template gives the
// same bytes.
func (t *Template) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(t.src.Text) {
		return nil, fmt.Errorf("param: encode template %s: the code is not valid UTF-8", t.src.At(0))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // plans are read by people too
	err := enc.Encode(wireTemplate{Dialect: t.dialect, Text: t.src.Text, Plain: t.plain,
		File: t.src.Pos.File, Line: t.src.Pos.Line, Column: t.src.Pos.Column, Params: t.Bindings()})
	if err != nil {
		return nil, fmt.Errorf("param: encode template: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// UnmarshalJSON rebuilds the template; it fails if a placeholder is neither a
// frozen parameter nor a time expression.
func (t *Template) UnmarshalJSON(b []byte) error {
	var w wireTemplate
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("param: decode template: %w", err)
	}
	src := Source{Text: w.Text, Pos: diag.Pos{File: w.File, Line: w.Line, Column: w.Column}}
	v, diags := thaw(w.Dialect, src, w.Plain, w.Params)
	if v == nil {
		return fmt.Errorf("param: rebuild template: %w", diags)
	}
	*t = *v
	return nil
}
