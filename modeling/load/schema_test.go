package load

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// check is the part of JSON Schema that Schemas uses; an unknown keyword is an
// error, so that a new one is not taken for granted.
func check(s map[string]any, v any, at string) []string {
	var bad []string
	fail := func(format string, args ...any) { bad = append(bad, at+": "+fmt.Sprintf(format, args...)) }
	for _, k := range slices.Sorted(maps.Keys(s)) {
		switch arg := s[k]; k {
		case "description", "title", "$schema", "$id":
		case "type":
			types, ok := arg.([]any)
			if !ok {
				types = []any{arg}
			}
			if !slices.ContainsFunc(types, func(t any) bool { return hasType(t.(string), v) }) {
				fail("type %v", arg)
			}
		case "enum":
			if !slices.Contains(arg.([]any), v) {
				fail("enum")
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				fail("pattern %s", arg)
			}
		case "minimum", "maximum":
			if n, ok := v.(float64); ok && (k == "minimum" && n < arg.(float64) || k == "maximum" && n > arg.(float64)) {
				fail("%s", k)
			}
		case "minItems":
			if l, ok := v.([]any); ok && float64(len(l)) < arg.(float64) {
				fail("%s", k)
			}
		case "minProperties":
			if m, ok := v.(map[string]any); ok && float64(len(m)) < arg.(float64) {
				fail("%s", k)
			}
		case "required":
			if m, ok := v.(map[string]any); ok {
				for _, r := range arg.([]any) {
					if _, has := m[r.(string)]; !has {
						fail("missing %s", r)
					}
				}
			}
		case "items":
			if l, ok := v.([]any); ok {
				for i, item := range l {
					bad = append(bad, check(arg.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
				}
			}
		case "anyOf":
			if !slices.ContainsFunc(arg.([]any), func(o any) bool { return len(check(o.(map[string]any), v, at)) == 0 }) {
				fail("anyOf")
			}
		case "properties", "additionalProperties":
		default:
			fail("unknown keyword %s", k)
		}
	}
	if m, ok := v.(map[string]any); ok {
		props, _ := s["properties"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if p, ok := props[k]; ok {
				bad = append(bad, check(p.(map[string]any), m[k], at+"."+k)...)
			} else if more, ok := s["additionalProperties"].(map[string]any); ok {
				bad = append(bad, check(more, m[k], at+"."+k)...)
			} else if s["additionalProperties"] == false {
				fail("unknown key %s", k)
			}
		}
	}
	return bad
}

func hasType(t string, v any) bool {
	switch x := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case float64:
		return t == "number" || t == "integer" && x == float64(int64(x))
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	}
	return false
}

// asJSON reads YAML as a JSON document.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	j, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(j, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func schemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	texts, err := Schemas()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for name, text := range texts {
		var s map[string]any
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		out[name] = s
	}
	return out
}

// structural are the codes that a schema can see too.
var structural = []string{"unknown_key", "bad_type", "missing_key", "no_partition"}

// read decodes one file without the checks that need more than its keys.
func read(kind, text string) []string {
	d := &decoder{file: kind}
	root := d.document(text)
	if root == nil {
		return d.diags.Codes()
	}
	switch kind {
	case "retrofill":
		readAs(d, projectFile(), root)
	case "table":
		readAs(d, tableFile(), root)
	case "task":
		readAs(d, taskFile(), root)
	case "metrics":
		readAs(d, metricFile(), root)
	}
	return d.diags.Codes()
}

const tableHead = "partition: {ds: x}\n"

func TestSchemaAgreesWithLoader(t *testing.T) {
	t.Parallel()
	all := schemas(t)
	for _, c := range []struct {
		kind, text string
		good       bool
	}{
		{"retrofill", "name: p", true},
		{"retrofill", "zone: UTC", false},
		{"retrofill", "name: 5", false},
		{"retrofill", "name: p\nstate: x", false},
		{"retrofill", "name: p\nparams: {a: 1, b: 1.5, c: x, d: true, e: , f: {value: , verbatim: true}, g: {from: t, default: 1}}", true},
		{"retrofill", "name: p\nparams: {a: [1]}", false},
		{"retrofill", "name: p\nparams: {a: {vale: 1}}", false},
		{"retrofill", "name: p\nparams: {a: {raw: 'true'}}", false},
		{"retrofill", "name: p\nparameters: {dialect: dataworks}", true},
		{"retrofill", "name: p\nparameters: {dialect: other}", false},
		{"retrofill", "name: p\nparameters: {}", true},
		{"retrofill", "name: p\nengines: {a: {type: duckdb, options: {x: 1, y: z}}}", true},
		{"retrofill", "name: p\nengines: {a: {type: oracle}}", false},
		{"retrofill", "name: p\nengines: {a: {}}", false},
		{"retrofill", "name: p\nengines: [a]", false},
		{"retrofill", "name: p\nsources: [{table: a, key: [x], keys: [[a, b]], retention: 3d, columns: {a: INT, b: {type: X}}}]", true},
		{"retrofill", "name: p\nsources: [{table: a, keys: [a]}]", false},
		{"retrofill", "name: p\nsources: [{table: a, key: []}]", false},
		{"retrofill", "name: p\nsources: [{table: a, retention: 3w}]", false},
		{"retrofill", "name: p\nsources: [{}]", false},
		{"retrofill", "name: p\nsources: {table: a}", false},
		{"table", tableHead, true},
		{"table", "key: [a]", false},
		{"table", "partition: {}", false},
		{"table", "partition: {ds: 5}", false},
		{"table", "partition: {ds: {type: DATE}}", false},
		{"table", tableHead + "kind: fcat", false},
		{"table", tableHead + "key: a", false},
		{"table", tableHead + "tags: [1]", false},
		{"table", tableHead + "paused: yes", false},
		{"table", tableHead + "schedule: weekly", true},
		{"table", tableHead + "schedule: {at: '02:30:10'}", true},
		{"table", tableHead + "schedule: {at: '24:00'}", false},
		{"table", tableHead + "schedule: {every: 2}", true},
		{"table", tableHead + "schedule: {every: 2d}", false},
		{"table", tableHead + "schedule: {every: 0}", false},
		{"table", tableHead + "schedule: {monthdays: [1, last]}", true},
		{"table", tableHead + "schedule: {monthdays: [32]}", false},
		{"table", tableHead + "schedule: {weekdays: []}", false},
		{"table", tableHead + "materialize: []", false},
		{"table", tableHead + "materialize: [{node: a}]", true},
		{"table", tableHead + "materialize: [{fields: [a]}]", false},
		{"table", tableHead + "fields: {a: , b: {paused: true}}", true},
		{"table", tableHead + "fields: {a: text}", false},
		{"table", tableHead + "fields: [a]", false},
		{"table", tableHead + "checks: [{not_null: a}, {unique: [a, b]}, {accepted_values: {field: a, values: [1, x]}}, {rows_between: [1, 2]}]", true},
		{"table", tableHead + "checks: [{accepted_values: {field: a}}]", false},
		{"table", tableHead + "checks: [{rows_between: [-1, 2]}]", false},
		{"table", tableHead + "checks: [{rows_between: [1.5, 2]}]", false},
		{"table", tableHead + "checks: [{rows_between: [1]}]", false},
		{"table", tableHead + "depends_on: [{table: x, cycle: -1d}]", true},
		{"table", tableHead + "depends_on: [x]", false},
		{"table", tableHead + "config: {a: {b: [1, {c: }]}}\nmeta: {x: 1}", true},
		{"table", tableHead + "config: [a]", false},
		{"table", tableHead + "lifecycle: 3", false},
		{"task", "command: [a, 1, true]", true},
		{"task", "{}", true},
		{"task", "command: a", false},
		{"task", "command: []", false},
		{"task", "command: [[a]]", false},
		{"task", "outputs: [{table: x, partition: {ds: y}}]", true},
		{"task", "outputs: [{partition: {ds: y}}]", false},
		{"task", "sets: [{param: a, default: 1}]", true},
		{"task", "sets: [{default: 1}]", false},
		{"task", "timeout: 5m", true},
		{"task", "timeout: 5", false},
		{"task", "timeout: 5d", false},
		{"task", "partition: {ds: x}", false},
		{"table", tableHead + "compose: {from: a, grain: [b], metrics: [c], filters: [d]}", true},
		{"table", tableHead + "compose: {from: a, grain: [], metrics: [c]}", false},
		{"table", tableHead + "compose: {grain: [b], metrics: [c]}", false},
		{"metrics", "table: a\nmetrics: [{atomic: x, expr: count(*)}, {period: p, unit: week, from: -2, to: -1}, {filter: f, where: a > 1}]", true},
		{"metrics", "metrics: [{derived: x, metric: y, filters: [a], period: 7d}, {composite: x, expr: a / b, description: d}]", true},
		{"metrics", "metrics: []", false},
		{"metrics", "{}", false},
		{"metrics", "metrics: [{period: p, unit: quarter}]", false},
		{"metrics", "metrics: [{period: p, from: 1}]", false},
		{"metrics", "metrics: [{atomic: x, expr: 1}]", false},
	} {
		codes := read(c.kind, c.text)
		problems := check(all[c.kind+".schema.json"], asJSON(t, c.text), "")
		if (len(codes) == 0) != c.good || (len(problems) == 0) != c.good {
			t.Errorf("%s %q: want good=%v, loader says %v, schema says %v", c.kind, c.text, c.good, codes, problems)
		}
	}
}

// Every golden project: the schema finds a file good exactly where the loader
// reports nothing that a schema can see.
func TestSchemaOnGoldens(t *testing.T) {
	t.Parallel()
	all := schemas(t)
	for _, name := range []string{"example", "full", "good_names", "references", "metrics"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range parseArchive(string(text)).files {
			kind := map[string]string{"models": "table", "tasks": "task", "metrics": "metrics", "retrofill.yml": "retrofill"}[strings.Split(f.name, "/")[0]]
			if !strings.HasSuffix(f.name, ".yml") || kind == "" {
				continue
			}
			codes := slices.DeleteFunc(read(kind, f.data), func(c string) bool { return !slices.Contains(structural, c) })
			problems := check(all[kind+".schema.json"], asJSON(t, f.data), "")
			if (len(codes) == 0) != (len(problems) == 0) {
				t.Errorf("%s %s: loader says %v, schema says %v", name, f.name, codes, problems)
			}
		}
	}
}

// The keys of the schemas are those of the manual's parts, which are those of
// the decoder's tables.
func TestSchemaKeys(t *testing.T) {
	t.Parallel()
	all := schemas(t)
	for name, parts := range map[string][]part{
		"retrofill.schema.json": projectFile().parts, "table.schema.json": tableFile().parts, "task.schema.json": taskFile().parts,
		"metrics.schema.json": metricFile().parts,
	} {
		var want []string
		for _, p := range parts {
			for _, k := range p.keys {
				want = append(want, k.name)
			}
		}
		got := propertyNames(all[name])
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-tables +schema):\n%s", name, diff)
		}
	}
}

func propertyNames(v any) []string {
	var out []string
	switch x := v.(type) {
	case map[string]any:
		for k, sub := range x {
			if props, ok := sub.(map[string]any); ok && k == "properties" {
				for name, p := range props {
					out = append(append(out, name), propertyNames(p)...)
				}
				continue
			}
			out = append(out, propertyNames(sub)...)
		}
	case []any:
		for _, sub := range x {
			out = append(out, propertyNames(sub)...)
		}
	}
	return out
}
