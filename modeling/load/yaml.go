package load

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Limits of one YAML file. They keep the parser, whose time grows faster than
// the size of its input, within about two seconds for anything that a person
// could have written, and its recursion far from the end of the stack.
const (
	maxYAMLBytes = 1 << 20
	maxYAMLLines = 20_000
	maxYAMLDepth = 100
	maxYAMLNodes = 200_000
)

// decoder reads one YAML file by its key tables and collects the problems.
type decoder struct {
	file    string
	diags   diag.List
	root    ast.Node
	anchors map[string]ast.Node
	visited int
	depth   int
}

func (d *decoder) report(p diag.Diagnostic) { d.diags = append(d.diags, p) }

// document parses text and gives the body of its only document, or nil after
// reporting why there is none. text has LF line ends and no byte order mark.
func (d *decoder) document(text string) ast.Node {
	if p, ok := tooComplex(text); ok {
		d.report(p.At(diag.Pos{File: d.file, Line: max(1, p.Line)}))
		return nil
	}
	if d.root = quick(text); d.root != nil {
		return d.root
	}
	file, err := parse(text)
	if err != nil {
		d.report(d.syntax(err))
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			d.report(diag.Errorf("yaml_syntax", "the file holds more than one YAML document").At(d.pos(doc.Body)).
				WithHint("keep one document a file; put the others into files of their own"))
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		d.report(diag.Errorf("empty_file", "the file says nothing").At(diag.Pos{File: d.file, Line: 1, Column: 1}).
			WithHint("write its keys (docs/project-files.md lists them) or delete the file"))
	}
	d.root = body
	return body
}

// parse shields the load from a panic in the parser: one broken file must not
// hide the problems of the others.
func parse(text string) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
}

func (d *decoder) syntax(err error) diag.Diagnostic {
	out := diag.Errorf("yaml_syntax", "broken YAML: %s", firstLine(err.Error())).
		At(diag.Pos{File: d.file, Line: 1, Column: 1}).
		WithHint("check indentation, brackets and quotes from this place upwards; texts with ': ', '#', '{' or a leading '%%', '@', '`' need quotes")
	var y yaml.Error
	if !errors.As(err, &y) {
		return out
	}
	out.Summary = "broken YAML: " + firstLine(y.GetMessage())
	if tk := y.GetToken(); tk != nil && tk.Position != nil {
		out.Line, out.Column = max(1, tk.Position.Line), max(1, tk.Position.Column)
	}
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// tooComplex refuses texts that would take the parser minutes or its stack,
// before it sees them. Brackets inside strings count too: a hundred open ones
// do not occur in a text that a person wrote.
func tooComplex(text string) (diag.Diagnostic, bool) {
	what, line, depth, run := "", 1, 0, 0
	leading := true
scan:
	for _, c := range []byte(text) {
		switch c {
		case '\n':
			line, run, leading = line+1, 0, true
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if c != ' ' && c != '-' && c != '?' && c != '\t' {
			leading = false
		} else if leading {
			run++
		}
		switch {
		case depth > maxYAMLDepth:
			what = fmt.Sprintf("brackets nest deeper than %d", maxYAMLDepth)
		case run > 4*maxYAMLDepth:
			what = fmt.Sprintf("a line starts with more than %d blanks and dashes", 4*maxYAMLDepth)
		case line > maxYAMLLines:
			what = fmt.Sprintf("it has more than %d lines", maxYAMLLines)
		default:
			continue
		}
		break scan
	}
	if what == "" {
		return diag.Diagnostic{}, false
	}
	p := diag.Errorf("yaml_too_complex", "the file is too complex: %s", what).WithHint("split it into several files")
	p.Line = line
	return p, true
}

// pos is where a node starts in its file.
func (d *decoder) pos(n ast.Node) diag.Pos {
	out := diag.Pos{File: d.file, Line: 1, Column: 1}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return d.pos(m.Values[0].Key)
	}
	if mv, ok := n.(*ast.MappingValueNode); ok {
		return d.pos(mv.Key)
	}
	if n == nil {
		return out
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		out.Line, out.Column = max(1, tk.Position.Line), max(1, tk.Position.Column)
	}
	return out
}

// resolve gives the node behind anchors, aliases and standard tags, or false
// after reporting why there is none. text says that a `!!str` tag was seen.
func (d *decoder) resolve(n ast.Node) (_ ast.Node, text, ok bool) {
	for range maxYAMLDepth {
		if d.visited++; d.visited > maxYAMLNodes {
			if d.visited == maxYAMLNodes+1 {
				d.report(diag.Errorf("yaml_too_complex", "aliases expand the file to more than %d values", maxYAMLNodes).At(d.pos(n)).
					WithHint("write the values out instead of nesting aliases"))
			}
			return nil, false, false
		}
		switch x := n.(type) {
		case nil:
			return ast.Null(nil), text, true
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			name := ""
			if x.Value != nil && x.Value.GetToken() != nil {
				name = x.Value.GetToken().Value
			}
			target, found := d.anchor(name)
			if !found {
				d.report(diag.Errorf("yaml_syntax", "alias *%s names no anchor of this file", name).At(d.pos(x)).
					WithHint("define it with &%s before, or quote the text if it is not an alias", name))
				return nil, false, false
			}
			n = target
		case *ast.TagNode:
			tag := x.Start.Value
			if !strings.HasPrefix(tag, "!!") {
				d.report(diag.Errorf("bad_type", "YAML tag %s is not known here", tag).At(d.pos(x)).WithHint("remove the tag"))
				return nil, false, false
			}
			text = text || tag == "!!str"
			n = x.Value
		default:
			return n, text, true
		}
	}
	d.report(diag.Errorf("yaml_too_complex", "an alias leads back to itself").At(d.pos(n)).WithHint("write the value out"))
	return nil, false, false
}

// anchor finds an anchored node; the index is made at the first alias, as few
// files have any.
func (d *decoder) anchor(name string) (ast.Node, bool) {
	if d.anchors == nil {
		d.anchors = map[string]ast.Node{}
		d.indexAnchors(d.root)
	}
	n, ok := d.anchors[name]
	return n, ok
}

func (d *decoder) indexAnchors(n ast.Node) {
	switch x := n.(type) {
	case *ast.AnchorNode:
		if x.Name != nil && x.Name.GetToken() != nil {
			d.anchors[x.Name.GetToken().Value] = x.Value
		}
		d.indexAnchors(x.Value)
	case *ast.TagNode:
		d.indexAnchors(x.Value)
	case *ast.SequenceNode:
		for _, v := range x.Values {
			d.indexAnchors(v)
		}
	default:
		values, _ := pairs(n)
		for _, v := range values {
			d.indexAnchors(v.Value)
		}
	}
}

// pairs gives the entries of a mapping. A mapping with one entry may come as
// a bare entry from the parser.
func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch x := n.(type) {
	case *ast.MappingNode:
		return x.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{x}, true
	}
	return nil, false
}

// keyText reads the key of an entry as text, or reports why it cannot.
func (d *decoder) keyText(k ast.Node) (string, bool) {
	if mk, ok := k.(*ast.MappingKeyNode); ok {
		k = mk.Value
	}
	n, _, ok := d.resolve(k)
	if !ok {
		return "", false
	}
	if n.Type() == ast.MergeKeyType {
		d.report(diag.Errorf("not_supported", "merge keys (<<) are not supported").At(d.pos(k)).WithHint("write the keys out"))
		return "", false
	}
	if s, ok := scalarText(n); ok {
		return s, true
	}
	d.report(diag.Errorf("bad_type", "a key must be a text, not %s", describe(n)).At(d.pos(k)).
		WithHint("quote the key"))
	return "", false
}

// scalarText gives a scalar as it was written: 007 stays 007, 1.10 stays 1.10.
func scalarText(n ast.Node) (string, bool) {
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		if x.Value == nil {
			return "", true
		}
		return x.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		if tk := n.GetToken(); tk != nil {
			return tk.Value, true
		}
	}
	return "", false
}

// describe names a node's type for messages.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	return "something else"
}
