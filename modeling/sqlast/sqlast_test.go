package sqlast

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTokensAreLossless(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "SELECT a", "select 'it''s' || E'a\\'b' || $$x'y$$ || $t$ $$ $t$ -- end\n/* a /* b */ c */ \"q\"\"x\".y",
		"'open", "/* open", "${a}${b}x ${", "é = 'ü' AND $1 = $x", "a::INT[1:2]",
	} {
		var b strings.Builder
		for _, k := range tokenize(text) {
			b.WriteString(text[k.start:k.end])
		}
		if b.String() != text {
			t.Errorf("%q became %q", text, b.String())
		}
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"SELECT 1", "SELECT 1"},
		{"a = '${x}01'", "a = '\uE0000\uE00101'"},
		{"a = ${x} + 2${y}", "a = $rfparam_0 + $rfparam_1"},
		{"FROM t_${x} -- ${y}\n", "FROM t___rfparam_0__ -- ${y}\n"},
		{"FROM ${s}.t", "FROM __rfparam_0__.t"},
		{"a -> '$[x]' = $$ ${x} $$", "a -> '$[x]' = $$ \uE0000\uE001 $$"},
		{"'${Keep}' /* ${x} */", "'${Keep}' /* ${x} */"},
		{"'${open'", "'${open'"},
	}
	for _, tt := range tests {
		p := prepare(tt.text, map[string]bool{"keep": true})
		if p.text != tt.want {
			t.Errorf("%q: want %q, got %q", tt.text, tt.want, p.text)
		}
		if got := p.restore(p.text); strings.Contains(got, fragOpen) || strings.ContainsRune(got, markOpen) {
			t.Errorf("%q: not restored: %q", tt.text, got)
		}
	}
}

func TestPrepareKeepsPositions(t *testing.T) {
	t.Parallel()
	text := "SELECT '${first_parameter}' AS a, ${n} AS b, c FROM t_${x}_y AS z WHERE ü"
	p := prepare(text, nil)
	for _, word := range []string{"AS a", "AS b", "c FROM", "AS z", "WHERE", "ü"} {
		at := strings.Index(p.text, word)
		if got := p.original(at); got != strings.Index(text, word) {
			t.Errorf("%q: want %d, got %d", word, strings.Index(text, word), got)
		}
	}
}

func TestParameterIdentity(t *testing.T) {
	t.Parallel()
	p := newParams(Definition{Params: map[string]string{"Day": "${yyyymmdd - 1}", "alias": "$day", "loop": "$loop", "c": "a - 1", "BIZDATE": "20200101"}})
	tests := []struct{ ph, name, meaning string }{
		{"${day}", "day", "${yyyymmdd-1}"},
		{"${ALIAS}", "alias", "${yyyymmdd-1}"},
		{"${yyyymmdd-1}", "yyyymmdd-1", "${yyyymmdd-1}"},
		{"${c}", "c", "a - 1"},
		{"${bizdate}", "bizdate", "20200101"},
		{"${NodeID}", "nodeid", "${nodeid}"},
	}
	for _, tt := range tests {
		if name, meaning := p.identity(tt.ph); name != tt.name || meaning != tt.meaning {
			t.Errorf("%s: %q, %q", tt.ph, name, meaning)
		}
	}
	if _, meaning := p.identity("${loop}"); meaning == "" {
		t.Error("a cycle must end")
	}
	names, canonical := p.describe("x${day}y'${c}")
	if d := cmp.Diff([]string{"day", "c"}, names); d != "" || canonical != "'x'«${yyyymmdd-1}»'y'''«a - 1»" {
		t.Errorf("%s %s", d, canonical)
	}
}

func TestSelectItems(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, items, from, joins string }{
		{"SELECT a, f(b, c) AS d, 'x,y' FROM t", "a|f(b, c) AS d|'x,y'", "t", ""},
		{"WITH x AS (SELECT 1, 2) SELECT DISTINCT ON (a, b) a, b -- c\n, /* d */ e FROM x WHERE f", "a|b|e", "x", ""},
		{"SELECT a IS NOT DISTINCT FROM b, c FROM t", "a IS NOT DISTINCT FROM b|c", "t", ""},
		{"SELECT 1", "1", "", ""},
		{"SELECT a FROM t LEFT OUTER JOIN s.u AS v ON v.x = t.x CROSS JOIN (SELECT 1) w, y JOIN z USING (a) USING SAMPLE 1 ROWS", "a",
			"t LEFT OUTER JOIN s.u AS v ON v.x = t.x CROSS JOIN (SELECT 1) w, y JOIN z USING (a)",
			"v=LEFT OUTER JOIN s.u AS v ON v.x = t.x|w=CROSS JOIN (SELECT 1) w|z=JOIN z USING (a)"},
		{"SELECT a FROM t UNION SELECT b FROM u", "", "", ""},
		{"FROM t SELECT a", "", "", ""},
		{"SELECT * EXCEPT (a) FROM t", "* EXCEPT (a)", "t", ""},
	}
	for _, tt := range tests {
		l, ok := SelectItems(tt.text)
		var items, joins []string
		for _, i := range l.Items {
			items = append(items, tt.text[i.Start:i.End])
		}
		for _, j := range l.Joins {
			joins = append(joins, j.Alias+"="+tt.text[j.Start:j.End])
		}
		got := strings.Join(items, "|") + "\n" + tt.text[l.From.Start:l.From.End] + "\n" + strings.Join(joins, "|")
		if want := tt.items + "\n" + tt.from + "\n" + tt.joins; got != want || ok != (tt.items != "") {
			t.Errorf("%s\nwant %s\ngot  %s", tt.text, want, got)
		}
	}
}

func TestSchemaLookup(t *testing.T) {
	t.Parallel()
	s := NewSchema(Table{Name: "src.Orders"}, Table{Name: `"a.b"`}, Table{Name: "plain"},
		Table{Name: "my table", Logical: true}, Table{Name: "c.d", Logical: true}, Table{Name: "x\"y;", Logical: true})
	for name, want := range map[string]bool{"SRC.orders": true, `"src"."ORDERS"`: true, "orders": false, `"a.b"`: true, "a.b": false, "main.plain": true, "db.main.plain": true,
		"my table": true, `"My Table"`: true, "c.d": true, `"c.d"`: true, `c."d"`: false, `x"y;`: true, `"x""y;"`: true} {
		if _, ok := s.Lookup(name); ok != want {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

func TestCacheKey(t *testing.T) {
	t.Parallel()
	d := Definition{SQL: "SELECT a FROM t", Params: map[string]string{"x": "1", "y": "2"}}
	a, b := Table{Name: "t", Columns: []Column{{Name: "a"}}}, Table{Name: "u"}
	k1, err1 := CacheKey(d, SchemaSnapshot{a, b})
	k2, err2 := CacheKey(d, SchemaSnapshot{b, a})
	a.Columns[0].Type = "INTEGER"
	k3, err3 := CacheKey(d, SchemaSnapshot{a, b})
	if err1 != nil || err2 != nil || err3 != nil || k1 != k2 || k1 == k3 {
		t.Error(k1, k2, k3, err1, err2, err3)
	}
}

func TestStructFields(t *testing.T) {
	t.Parallel()
	got := structFields(normalType(`STRUCT(a INTEGER, "b c" DECIMAL(10,2), s STRUCT(x INTEGER, y VARCHAR)[])`))
	if d := cmp.Diff([]string{"a", "b c", "s"}, got); d != "" {
		t.Error(d)
	}
}
