package spine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// node is an object of the engine's tree (DuckDB's json_serialize_sql).
type node = map[string]any

// decode reads the tree of one statement and gives its query node.
func decode(tree json.RawMessage) (node, error) {
	d := json.NewDecoder(bytes.NewReader(tree))
	d.UseNumber() // places use all 64 bits
	var doc struct {
		Statements []struct {
			Node node `json:"node"`
		} `json:"statements"`
	}
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("spine: read the parser's tree: %w", err)
	}
	if len(doc.Statements) != 1 || doc.Statements[0].Node == nil {
		return nil, fmt.Errorf("spine: read the parser's tree: %d statements", len(doc.Statements))
	}
	return doc.Statements[0].Node, nil
}

func str(n node, key string) string { s, _ := n[key].(string); return s }
func sub(n node, key string) node   { s, _ := n[key].(map[string]any); return s }
func list(n node, key string) []any { s, _ := n[key].([]any); return s }

// nodes gives the objects of a list.
func nodes(n node, key string) []node {
	var out []node
	for _, v := range list(n, key) {
		if o, ok := v.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// location gives the byte offset of a node in the parsed text, or -1.
func location(n node) int {
	v, ok := n["query_location"].(json.Number)
	if !ok {
		return -1
	}
	i, err := strconv.ParseInt(v.String(), 10, 64)
	if err != nil {
		return -1
	}
	return int(i)
}

// walk visits every object below v, parents first; visit returning false skips
// what is below.
func walk(v any, visit func(node) bool) {
	switch x := v.(type) {
	case map[string]any:
		if !visit(x) {
			return
		}
		for _, k := range keysOf(x) {
			walk(x[k], visit)
		}
	case []any:
		for _, e := range x {
			walk(e, visit)
		}
	}
}

// keysOf gives an object's keys in a fixed order.
func keysOf(n node) []string {
	out := make([]string, 0, len(n))
	for k := range n {
		out = append(out, k)
	}
	for i := 1; i < len(out); i++ {
		for j := i; j > 0 && out[j] < out[j-1]; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// find tells whether a node below v satisfies is.
func find(v any, is func(node) bool) (found node) {
	walk(v, func(n node) bool {
		if found == nil && is(n) {
			found = n
		}
		return found == nil
	})
	return found
}

// isQuery tells the nodes that are queries.
func isQuery(n node) bool {
	switch str(n, "type") {
	case "SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE":
		return true
	}
	return false
}

// names gives the parts of a column reference, nil for anything else.
func names(n node) []string {
	if str(n, "class") != "COLUMN_REF" {
		return nil
	}
	var out []string
	for _, v := range list(n, "column_names") {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// markerTable qualifies the columns that stand for the code's markers while it
// is parsed.
const markerTable = "_rfm"

// markerOf gives the index of the marker that a column reference is.
func markerOf(n node) (int, bool) {
	ns := names(n)
	if len(ns) != 2 || ns[0] != markerTable || !strings.HasPrefix(ns[1], "m") {
		return 0, false
	}
	i, err := strconv.Atoi(ns[1][1:])
	return i, err == nil
}

// firstMarker gives the lowest marker below v, or -1.
func firstMarker(v any) int {
	first := -1
	walk(v, func(n node) bool {
		if i, ok := markerOf(n); ok && (first < 0 || i < first) {
			first = i
		}
		return true
	})
	return first
}

func hasMarker(v any) bool { return firstMarker(v) >= 0 }

func funcName(n node) string {
	switch str(n, "class") {
	case "FUNCTION":
		return strings.ToLower(str(n, "function_name"))
	}
	return ""
}

// subqueryNode gives the query of a subquery expression, a FROM subquery or a
// CTE.
func subqueryNode(n node) node {
	if q := sub(n, "subquery"); q != nil {
		if inner := sub(q, "node"); inner != nil {
			return inner
		}
		return q
	}
	return nil
}
