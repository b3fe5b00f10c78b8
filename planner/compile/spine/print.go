package spine

import (
	"fmt"
	"strings"
)

// print writes an expression of the tree as SQL, if it is of a simple kind. It
// is used for the type of the expression only, never for its value.
func (p *prepared) print(n node) (string, bool) {
	switch str(n, "class") {
	case "COLUMN_REF":
		if i, ok := markerOf(n); ok {
			m := p.code.markers[i]
			m.partner = nil // two literals side by side must not ask each other
			return p.expression(&m), true
		}
		var parts []string
		for _, s := range names(n) {
			parts = append(parts, `"`+strings.ReplaceAll(s, `"`, `""`)+`"`)
		}
		return strings.Join(parts, "."), true
	case "CONSTANT":
		v := sub(n, "value")
		switch id := str(sub(v, "type"), "id"); id {
		case "INTEGER", "BIGINT", "HUGEINT", "DOUBLE":
			return fmt.Sprintf("CAST(NULL AS %s)", id), true
		case "BOOLEAN":
			return "true", true
		case "DECIMAL":
			info := sub(sub(v, "type"), "type_info")
			return fmt.Sprintf("CAST(NULL AS DECIMAL(%v,%v))", info["width"], info["scale"]), true
		}
		return "", false
	case "CAST":
		t := sub(n, "cast_type")
		switch id := str(t, "id"); {
		case t["type_info"] == nil && id != "" && !strings.Contains(id, "UNBOUND") && id != "USER":
			return "CAST(NULL AS " + id + ")", true
		case id == "DECIMAL":
			info := sub(t, "type_info")
			return fmt.Sprintf("CAST(NULL AS DECIMAL(%v,%v))", info["width"], info["scale"]), true
		}
		return "", false
	case "FUNCTION":
		if n["filter"] != nil || n["distinct"] == true || len(nodes(sub(n, "order_bys"), "orders")) > 0 {
			return "", false
		}
		var args []string
		for _, c := range nodes(n, "children") {
			var a string
			if isNullOrText(c) && str(c, "class") == "CONSTANT" && str(sub(sub(c, "value"), "type"), "id") == "VARCHAR" {
				s, _ := sub(c, "value")["value"].(string)
				a = quote(s)
			} else {
				var ok bool
				if a, ok = p.print(c); !ok {
					return "", false
				}
			}
			args = append(args, a)
		}
		name := funcName(n)
		if n["is_operator"] == true {
			switch len(args) {
			case 1:
				return "(" + name + " " + args[0] + ")", true
			case 2:
				return "(" + args[0] + " " + name + " " + args[1] + ")", true
			}
			return "", false
		}
		if name == "count_star" {
			return "count(*)", true
		}
		return `"` + name + `"(` + strings.Join(args, ", ") + ")", true
	case "OPERATOR":
		if str(n, "type") == "OPERATOR_COALESCE" {
			for _, c := range nodes(n, "children") {
				if s, ok := p.print(c); ok {
					return s, true
				}
			}
		}
	}
	return "", false
}
