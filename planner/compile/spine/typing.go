package spine

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// typing decides the type of every marker: an untyped literal takes its
// partner's type, a column does not, so it is cast to it; a number's type may
// differ from date to date (README spine 4, 8).
func (p *prepared) typing() *Refusal {
	t := &typer{p: p}
	t.visit(p.tree, nil)
	return t.found
}

type typer struct {
	p     *prepared
	found *Refusal
	// where is the WHERE of the SELECT around.
	where node
}

func (t *typer) visit(v any, parent node) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			t.visit(e, parent)
		}
	case map[string]any:
		before := t.where
		if str(x, "type") == "SELECT_NODE" {
			t.where = sub(x, "where_clause")
		}
		t.node(x)
		if i, ok := markerOf(x); ok {
			t.varies(i, parent)
		}
		up := parent
		if str(x, "class") != "" || isQuery(x) {
			up = x
		}
		for _, k := range keysOf(x) {
			t.visit(x[k], up)
		}
		t.where = before
	}
}

// node pairs the literals of an expression with their partners.
func (t *typer) node(n node) {
	switch str(n, "class") {
	case "COMPARISON":
		t.compared(sub(n, "left"), sub(n, "right"))
		t.meet(false, sub(n, "left"), sub(n, "right"))
	case "BETWEEN":
		t.meet(false, sub(n, "input"), sub(n, "lower"), sub(n, "upper"))
	case "CASE":
		var all []node
		for _, c := range nodes(n, "case_checks") {
			all = append(all, sub(c, "then_expr"))
		}
		t.meet(true, append(all, sub(n, "else_expr"))...)
	case "OPERATOR":
		switch str(n, "type") {
		case "COMPARE_IN", "COMPARE_NOT_IN":
			t.compared(nodes(n, "children")...)
			t.meet(false, nodes(n, "children")...)
		case "OPERATOR_COALESCE":
			t.meet(true, nodes(n, "children")...)
		}
	case "FUNCTION":
		c := nodes(n, "children")
		switch name := funcName(n); name {
		case "greatest", "least", "ifnull", "nullif", "list_value", "array_value":
			t.meet(true, c...)
		case "date_diff", "datediff", "date_sub", "datesub":
			if len(c) == 3 {
				t.meet(false, c[1:]...)
			}
		case "+", "-", "*", "%", "//", "/":
			if len(c) == 2 {
				t.arithmetic(name, c)
			}
		}
	}
}

// compared notes the markers that are operands of a comparison.
func (t *typer) compared(operands ...node) {
	for _, n := range operands {
		if str(n, "class") == "CAST" {
			n = sub(n, "child")
		}
		if i, ok := markerOf(n); ok {
			t.p.code.markers[i].compared = true
		}
	}
}

// meet gives the literals among expressions of one type the type of the
// others. Tuples meet element by element.
func (t *typer) meet(strict bool, all ...node) {
	rows := 0
	for _, n := range all {
		if funcName(n) == "row" {
			rows++
		}
	}
	if rows > 1 && rows == len(all) {
		for i := range nodes(all[0], "children") {
			var column []node
			for _, r := range all {
				if c := nodes(r, "children"); i < len(c) {
					column = append(column, c[i])
				}
			}
			t.meet(strict, column...)
		}
		return
	}
	var partner node
	for _, n := range all {
		if t.literal(n) < 0 && !isNullOrText(n) {
			partner = n
			break
		}
	}
	if partner == nil || t.text(partner) {
		return
	}
	for _, n := range all {
		if i := t.literal(n); i >= 0 {
			m := &t.p.code.markers[i]
			if _, ok := t.p.print(partner); ok {
				m.partner = partner
			} else if strict {
				t.refuse(TypeVaries, i, "the type that the literal takes beside it cannot be told; write a cast")
			}
		}
	}
}

// literal gives the marker that is an untyped literal, or -1.
func (t *typer) literal(n node) int {
	if i, ok := markerOf(n); ok && t.p.code.markers[i].kind == literal {
		return i
	}
	return -1
}

func isNullOrText(n node) bool {
	if n == nil {
		return true
	}
	if str(n, "type") != "VALUE_CONSTANT" {
		return false
	}
	v := sub(n, "value")
	id := str(sub(v, "type"), "id")
	return id == "VARCHAR" || id == "NULL"
}

// text tells what is surely a text.
func (t *typer) text(n node) bool {
	switch str(n, "class") {
	case "CAST":
		return str(sub(n, "cast_type"), "id") == "VARCHAR"
	case "COLUMN_REF":
		types := t.p.columnTypes(n)
		return len(types) > 0 && !slices.ContainsFunc(types, func(s string) bool { return s != "VARCHAR" && s != "TEXT" })
	case "FUNCTION":
		switch funcName(n) {
		case "lower", "upper", "substr", "substring", "strftime", "concat", "concat_ws", "replace", "trim", "ltrim", "rtrim", "left",
			"right", "lpad", "rpad", "md5", "->>", "regexp_replace", "regexp_extract", "format", "printf", "string_agg", "split_part":
			return true
		}
	}
	return false
}

// columnTypes gives the types of all columns of the schema's tables in the
// body that have the name of the reference.
func (p *prepared) columnTypes(ref node) []string {
	ns := names(ref)
	if len(ns) == 0 || p.in.Body.Schema == nil {
		return nil
	}
	var out []string
	walk(p.tree, func(n node) bool {
		if str(n, "type") == "BASE_TABLE" {
			if t, ok := p.in.Body.Schema.Lookup(tableName(n)); ok {
				for _, c := range t.Columns {
					if strings.EqualFold(c.Name, ns[len(ns)-1]) {
						out = append(out, strings.ToUpper(c.Type))
					}
				}
			}
		}
		return true
	})
	return out
}

func (t *typer) refuse(k Kind, marker int, format string, args ...any) {
	if t.found == nil {
		m := t.p.code.markers[marker]
		t.found = refuse(k, m.pos, "${%s}: %s", t.p.code.holes[m.first].Name, fmt.Sprintf(format, args...))
	}
}

// arithmetic judges a number beside its partner.
func (t *typer) arithmetic(op string, c []node) {
	for k := range c {
		i, ok := markerOf(c[k])
		if !ok {
			continue
		}
		m := &t.p.code.markers[i]
		partner := c[1-k]
		types := t.p.columnTypes(partner)
		if m.kind != bare || op == "/" {
			continue
		}
		// An integer literal takes a narrow partner's type, and with it its overflow.
		for _, typ := range types {
			lo, hi, narrow := narrowRange(typ)
			if !narrow {
				continue
			}
			if op == "*" {
				t.refuse(TypeVaries, i, "beside a %s column a number is a %s, too, and the product may overflow; a column is not", typ, typ)
				return
			}
			fits := true
			for s := range t.p.values.bySlot {
				v, ok := new(big.Int).SetString(m.number(t.p.values.at(s)), 10)
				fits = fits && ok && v.Cmp(big.NewInt(lo)) >= 0 && v.Cmp(big.NewInt(hi)) <= 0
			}
			if fits {
				m.partner = partner
			}
		}
	}
}

func narrowRange(typ string) (lo, hi int64, ok bool) {
	switch typ {
	case "TINYINT":
		return -128, 127, true
	case "SMALLINT":
		return -32768, 32767, true
	case "UTINYINT":
		return 0, 255, true
	case "USMALLINT":
		return 0, 65535, true
	}
	return 0, 0, false
}

// varies refuses a number whose type differs from date to date where that shows.
func (t *typer) varies(i int, parent node) {
	m := t.p.code.markers[i]
	if m.kind != bare || len(m.types) < 2 {
		return
	}
	if negated, ok := negatedMarker(parent); ok && negated == i {
		return
	}
	decimals := slices.ContainsFunc(m.types, func(s string) bool { return strings.HasPrefix(s, "DECIMAL") || s == "DOUBLE" })
	switch str(parent, "class") {
	case "", "COMPARISON", "BETWEEN", "CASE", "WINDOW":
		return
	case "OPERATOR":
		return
	case "CAST":
		if id := str(sub(parent, "cast_type"), "id"); id != "VARCHAR" {
			return
		}
	case "FUNCTION":
		switch name := funcName(parent); name {
		case "+", "-", "*":
			if decimals || t.fits(i, name, parent) {
				return
			}
		case "/", "abs", "greatest", "least", "list_value", "struct_pack", "min", "max", "sum", "avg", "to_days", "to_hours", "range",
			"generate_series", "trunc", "sqrt", "sign":
			return
		case "//", "%", "floor", "ceil", "round":
			if !decimals {
				return
			}
		}
	}
	t.refuse(TypeVaries, i, "the number's type differs from date to date (%s), and the result shows it", strings.Join(m.types, ", "))
}

// fits tells whether integer arithmetic of literals gives on each date what it
// gives with the widest type: it does not overflow where rows come out.
func (t *typer) fits(i int, op string, parent node) bool {
	c := nodes(parent, "children")
	if len(c) != 2 {
		return false
	}
	for k := range c {
		if types := t.p.columnTypes(c[k]); len(types) > 0 {
			return !slices.ContainsFunc(types, func(s string) bool { return s != "BIGINT" && s != "HUGEINT" && s != "DOUBLE" })
		}
	}
	for s := range t.p.values.bySlot {
		a, ok1 := t.p.integer(c[0], s)
		b, ok2 := t.p.integer(c[1], s)
		if !ok1 || !ok2 {
			return false
		}
		r := new(big.Int)
		switch op {
		case "+":
			r.Add(a, b)
		case "-":
			r.Sub(a, b)
		case "*":
			r.Mul(a, b)
		}
		limit := widest([]string{literalType(a.String()), literalType(b.String())})
		if got := literalType(r.String()); got != limit && widest([]string{got, limit}) == got && !t.p.neverTrue(t.where, s) {
			return false
		}
	}
	return true
}

// integer gives the value of an integer literal or marker on a slot.
func (p *prepared) integer(n node, slot int) (*big.Int, bool) {
	if i, ok := markerOf(n); ok {
		return new(big.Int).SetString(p.code.markers[i].number(p.values.at(slot)), 10)
	}
	if str(n, "type") != "VALUE_CONSTANT" {
		return nil, false
	}
	return new(big.Int).SetString(fmt.Sprint(sub(n, "value")["value"]), 10)
}

// neverTrue tells whether a condition of literals is false on a slot.
func (p *prepared) neverTrue(w node, slot int) bool {
	switch str(w, "class") {
	case "CONJUNCTION":
		if str(w, "type") == "CONJUNCTION_AND" {
			return slices.ContainsFunc(nodes(w, "children"), func(c node) bool { return p.neverTrue(c, slot) })
		}
	case "COMPARISON":
		a, ok1 := p.integer(sub(w, "left"), slot)
		b, ok2 := p.integer(sub(w, "right"), slot)
		if !ok1 || !ok2 {
			return false
		}
		c := a.Cmp(b)
		switch str(w, "type") {
		case "COMPARE_EQUAL":
			return c != 0
		case "COMPARE_NOTEQUAL":
			return c == 0
		case "COMPARE_LESSTHAN":
			return c >= 0
		case "COMPARE_GREATERTHAN":
			return c <= 0
		case "COMPARE_LESSTHANOREQUALTO":
			return c > 0
		case "COMPARE_GREATERTHANOREQUALTO":
			return c < 0
		}
	}
	return false
}
