package spine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

// prepared is a body that has been parsed with markers, and proven to be the
// same as each date's text but for the markers' values.
type prepared struct {
	in     Input
	code   *code
	values values
	tree   node // with marker columns; nil if only literal texts are possible
	text   string
	places []place
	typed  []typedColumn
	// literalTree is the tree of one slot's text.
	literalTree node
	literalText string
	// marked is why no spine form is possible at all, nil = possible.
	marked *Refusal
}

// prepare parses the body. The refusal is one of all forms.
func prepare(ctx context.Context, in Input) (*prepared, *Refusal, error) {
	if len(in.Slots) == 0 {
		return nil, nil, fmt.Errorf("spine: compile a body: no slots")
	}
	t := in.Body.Template
	src := t.Source()
	if spans := param.StatementSpans(t.Text()); len(spans) != 1 {
		pos := src.At(0)
		if len(spans) > 1 {
			pos = src.At(spans[1].Start)
		}
		return nil, refuse(MultiStatement, pos, "%d statements", len(spans)), nil
	}
	p := &prepared{in: in}
	probe := &code{text: t.Text(), src: src, holes: t.Placeholders()}
	var r *Refusal
	if p.values, r = evaluate(probe, in.Slots); r != nil {
		return nil, r, nil
	}
	c, r := mark(t)
	if r == nil {
		r = c.checkBare(p.values, in.Slots)
	}
	p.code, p.marked = c, r
	if c == nil {
		probe.toks = scan(probe.text, probe.holes)
		p.code = probe
	}
	return p, p.parse(ctx), nil
}

// parse parses the representative texts and the marked one, and compares them.
func (p *prepared) parse(ctx context.Context) *Refusal {
	reps := []int{0}
	if p.marked == nil {
		reps = p.code.representatives(p.values)
	}
	var texts []string
	for _, s := range reps {
		text, r := render(p.in.Body.Template, p.in.Slots[s])
		if r != nil {
			if r.All {
				return r
			}
			if p.marked == nil {
				p.marked = r
			}
			// The literal text may still be looked at for what it is.
			continue
		}
		texts = append(texts, body(text))
	}
	if len(texts) == 0 {
		text, _ := p.code.marked(func(int) bool { return false }, p.values.at(0))
		texts = append(texts, body(text))
	}
	n := len(texts)
	if p.marked == nil {
		p.text, p.places = p.code.marked(func(int) bool { return true }, p.values.at(0))
		texts = append(texts, body(p.text))
	}
	res, err := p.in.Body.Parser.ParseSelects(ctx, texts)
	if err != nil || len(res) != len(texts) {
		return &Refusal{Kind: BadSyntax, Reason: fmt.Sprintf("the parser failed: %v", err), All: true}
	}
	if res[0].Tree == nil {
		return p.unparsed(res[0])
	}
	var trees []node
	for _, x := range res[:n] {
		if x.Tree == nil {
			p.marked = p.firstBare(ChangesSyntax, "with the values of some dates the text does not parse: "+x.Message)
			continue
		}
		tree, r := read(x.Tree)
		if r != nil {
			return r
		}
		trees = append(trees, tree)
	}
	p.literalTree, p.literalText = trees[0], texts[0]
	if p.marked != nil {
		return nil
	}
	if res[n].Tree == nil {
		p.marked = p.culprit(ctx, res[n].Message)
		return nil
	}
	tree, r := read(res[n].Tree)
	if r != nil {
		return r
	}
	for i := range p.code.markers {
		p.code.markers[i].types = nil
	}
	p.tree = tree
	if p.marked = p.positions(); p.marked != nil {
		return nil
	}
	for _, lit := range trees {
		if r := p.same(tree, lit); r != nil {
			p.marked = r
			return nil
		}
	}
	return nil
}

// positions refuses numbers that are places of columns. It comes before the
// comparison of the trees, since equal places of a GROUP BY fall together.
func (p *prepared) positions() *Refusal {
	s := &shape{p: p, tree: p.tree, marked: true}
	walk(p.tree, func(n node) bool {
		if isQuery(n) {
			s.positions(n, modifiersOf(n))
		}
		return true
	})
	return s.found
}

// body drops what may follow a single statement.
func body(text string) string {
	if spans := param.StatementSpans(text); len(spans) == 1 {
		return text[:spans[0].End]
	}
	return text
}

func read(raw json.RawMessage) (node, *Refusal) {
	n, err := decode(raw)
	if err != nil {
		return nil, &Refusal{Kind: BadSyntax, Reason: err.Error(), All: true}
	}
	return n, nil
}

// unparsed refuses a text that is no SELECT for the parser.
func (p *prepared) unparsed(res sqlast.ParseResult) *Refusal {
	pos := p.code.src.At(0)
	first := strings.ToUpper(p.code.str(0))
	if len(p.code.toks) > 0 {
		pos = p.code.src.At(p.code.toks[0].start)
	}
	for i := range p.code.toks {
		switch w := strings.ToUpper(p.code.str(i)); {
		case w == "INSERT" || w == "UPDATE" || w == "DELETE" || w == "MERGE":
			if p.code.depth(i) == 0 && p.code.toks[i].kind == tokWord {
				return refuse(NotASelect, pos, "the statement is a %s", w)
			}
		}
	}
	switch {
	case first == "PIVOT" || first == "UNPIVOT" || strings.Contains(strings.ToUpper(p.code.text), "PIVOT"):
		r := refuse(Unsupported, pos, "PIVOT as a statement: its columns depend on the data of each date")
		r.All = true
		return r
	case res.NotSelect:
		return refuse(NotASelect, pos, "the statement is no SELECT")
	case p.marked != nil:
		return p.marked
	}
	switch first {
	case "SELECT", "WITH", "FROM", "VALUES", "(", "TABLE", "DESCRIBE", "SUMMARIZE", "SHOW":
		return refuse(BadSyntax, pos, "the statement does not parse: %s", res.Message)
	}
	return refuse(NotASelect, pos, "the statement is no SELECT")
}

// depth gives the number of parentheses open at token i.
func (c *code) depth(i int) int {
	d := 0
	for k := range i {
		switch c.str(k) {
		case "(":
			d++
		case ")":
			d--
		}
	}
	return d
}

func (p *prepared) firstBare(k Kind, reason string) *Refusal {
	for _, m := range p.code.markers {
		if m.kind == bare {
			return refuse(k, m.pos, "%s", reason)
		}
	}
	return refuse(k, p.code.src.At(0), "%s", reason)
}

// culprit finds the marker that no column may replace where it stands: a name,
// a keyword, a struct's key, a number that belongs to the grammar.
func (p *prepared) culprit(ctx context.Context, message string) *Refusal {
	var texts []string
	for i := range p.code.markers {
		text, _ := p.code.marked(func(k int) bool { return k == i }, p.values.at(0))
		texts = append(texts, body(text))
	}
	res, err := p.in.Body.Parser.ParseSelects(ctx, texts)
	if err == nil {
		for i, x := range res {
			if x.Tree == nil {
				m := p.code.markers[i]
				return refuse(InIdentifier, m.pos, "${%s} stands where the grammar wants a name, a keyword or a constant", p.code.holes[m.first].Name)
			}
		}
	}
	return p.firstBare(ChangesSyntax, "the text does not parse with columns in the parameters' places: "+message)
}

// same compares the marked tree with the tree of one date's text: they may
// differ in places and, at a marker, in the literal.
func (p *prepared) same(m, lit node) *Refusal {
	at, ok := p.equal(m, lit, -1)
	if ok {
		return nil
	}
	if at.marker < 0 || at.marker >= len(p.code.markers) {
		return p.firstBare(ChangesSyntax, "the values of some dates change the structure of the statement")
	}
	x := p.code.markers[at.marker]
	name := p.code.holes[x.first].Name
	switch {
	case at.table && x.kind != bare:
		return refuse(InTableFunction, x.pos, "${%s} is part of a path that stands for a table", name)
	case at.table, x.kind != bare:
		return refuse(InIdentifier, x.pos, "${%s} is part of a name", name)
	}
	return refuse(ChangesSyntax, x.pos, "the values of ${%s} change the structure of the statement", name)
}

// difference is where two trees differ.
type difference struct {
	marker int
	table  bool
}

func (p *prepared) equal(m, lit any, near int) (difference, bool) {
	no := difference{marker: near}
	switch x := m.(type) {
	case map[string]any:
		y, ok := lit.(map[string]any)
		if !ok {
			return difference{marker: firstMarker(x)}, false
		}
		if i, ok := markerOf(x); ok && i < len(p.code.markers) {
			if str(x, "alias") != str(y, "alias") || !p.literalAt(i, y) {
				return difference{marker: i}, false
			}
			return no, true
		}
		if i, ok := negatedMarker(x); ok && str(y, "class") == "CONSTANT" && i < len(p.code.markers) {
			if !p.literalAt(i, y) {
				return difference{marker: i}, false
			}
			return no, true
		}
		if str(x, "type") == "BASE_TABLE" && strings.EqualFold(str(x, "schema_name"), markerTable) {
			var i int
			if _, err := fmt.Sscanf(str(x, "table_name"), "m%d", &i); err != nil {
				i = -1
			}
			return difference{marker: i, table: true}, false
		}
		if len(x) != len(y) {
			return difference{marker: firstMarker(x)}, false
		}
		for _, k := range keysOf(x) {
			if k == "query_location" || k == "named_param_map" {
				continue
			}
			v, ok := y[k]
			if !ok {
				return difference{marker: firstMarker(x)}, false
			}
			if d, ok := p.equal(x[k], v, near); !ok {
				if d.marker < 0 {
					d.marker = firstMarker(x)
				}
				return d, false
			}
		}
		return no, true
	case []any:
		y, ok := lit.([]any)
		if !ok || len(x) != len(y) {
			return difference{marker: firstMarker(x)}, false
		}
		for i := range x {
			if d, ok := p.equal(x[i], y[i], near); !ok {
				return d, false
			}
		}
		return no, true
	}
	return no, m == lit
}

// negatedMarker recognises -${n}, which engines fold into a negative constant.
func negatedMarker(n node) (int, bool) {
	if funcName(n) != "-" {
		return 0, false
	}
	c := nodes(n, "children")
	if len(c) != 1 {
		return 0, false
	}
	return markerOf(c[0])
}

// literalAt tells whether a date's tree has a literal where marker i stands,
// and notes the type that the engine gave it.
func (p *prepared) literalAt(i int, y node) bool {
	m := &p.code.markers[i]
	if str(y, "type") != "VALUE_CONSTANT" {
		return false
	}
	var t node
	if v := sub(y, "value"); v != nil {
		t = sub(v, "type")
	}
	id := str(t, "id")
	if m.kind != bare {
		return id == "VARCHAR"
	}
	switch id {
	case "INTEGER", "BIGINT", "HUGEINT", "DOUBLE":
	case "DECIMAL":
		info := sub(t, "type_info")
		id = fmt.Sprintf("DECIMAL(%v,%v)", info["width"], info["scale"])
	default:
		return false
	}
	if !slices.Contains(m.types, id) {
		m.types = append(m.types, id)
	}
	return true
}
