package param_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

func text(s string) *string { return &s }

// newSet makes a node's set of name → value; a name that ends in ! is raw.
func newSet(t testing.TB, pairs ...string) *param.Set {
	t.Helper()
	cfg := param.Config{Env: "prod"}
	for i := 0; i < len(pairs); i += 2 {
		name, raw := strings.CutSuffix(pairs[i], "!")
		cfg.Node = append(cfg.Node, param.Declared{Name: name, Value: &pairs[i+1], Raw: raw})
	}
	set, diags := param.NewSet(cfg)
	if diags != nil {
		t.Fatal(diags)
	}
	return set
}

func TestRender(t *testing.T) {
	t.Parallel()
	set := newSet(t, "who", "O'Neil", "bs", `a\b`, "dq", `a"b`, "neg", "-2", "ds", "${yyyy-mm-dd}", "cond!", "a = 'x' or b", "col", "qty", "ym", "${yyyymm}", "e", "",
		"words", "a b", "iso", "2024-01-31", "dollar", "a$q$b", "pct", "50%")
	for _, c := range []struct{ in, want string }{
		{"select '${who}', 'it''s ${who}''s'", "select 'O''Neil', 'it''s O''Neil''s'"},
		{`select E'a\t${bs}\'${who}', e'${bs}'`, `select E'a\ta\\b\'O''Neil', e'a\\b'`},
		{`select '${bs}', U&'${bs}'`, `select 'a\b', U&'a\\b'`},
		{"select $$it's '${who}'$$, $q$ $$${ds}$$ $q$", "select $$it's 'O'Neil'$$, $q$ $$2018-01-09$$ $q$"},
		{`select "n ${dq}" -- ${who} ${nowhere}` + "\n/* ${who} /* ${x} */ */ from t", `select "n a""b" -- ${who} ${nowhere}` + "\n/* ${who} /* ${x} */ */ from t"},
		{"where x > ${ym}01 and ${col} = ${neg} and ds > ${iso}", "where x > 20180101 and qty = -2 and ds > 2024-01-31"},
		{"where ${cond} and '${cond}' = ''", "where a = 'x' or b and 'a = ''x'' or b' = ''"},
		{"where x = '${e}'", "where x = ''"},
		{"x ->> '$[0]' = '$.a' and $[yyyy] and $1", "x ->> '$[0]' = '$.a' and $[yyyy] and $1"},
		{"'${DS}${Env}${BizDate}'", "'2018-01-09prod20180109'"},
		{"'${slotutc}'", "'20180110063000'"},
		{"select a->${neg}, 5*${neg}, a <${neg}", "select a->-2, 5*-2, a <-2"},
		{"select 10 %${neg}", "unsafe_value 1:12"},
		{"select 10 -${neg}", "unsafe_value 1:12"},
		{"select\n  ${who}", "unsafe_value 2:3"},
		{"select ${e}", "unsafe_value 1:8"},
		{"select ${words}, '${words}', é ${pct}", "unsafe_value 1:8 unsafe_value 1:32"},
		{"select $q$${dollar}$q$", "unsafe_value 1:11"},
		{"select $$${dollar}$$", "select $$a$q$b$$"},
		{`select E'\${who}'`, "unsafe_value 1:11"},
		{"select '${instanceid}'", "unbound 1:9"},
		{"select '${whoo}', ${yyyy-nn}", "undefined 1:9 undefined 1:19"},
	} {
		tpl, diags := param.ParseCode(param.Source{Text: c.in}, set)
		got := ""
		if tpl != nil {
			got, diags = tpl.Render(at(t, "2018-01-09", "01:30"), nil)
		}
		var codes []string
		for _, d := range diags {
			codes = append(codes, d.Code+" "+d.Pos.String())
		}
		if diags != nil {
			got = strings.Join(codes, " ")
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s\n%v", c.in, d, diags)
		}
		if tpl != nil {
			checkFrozen(t, tpl, at(t, "2018-01-09", "01:30"), nil)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	set := newSet(t, "a", "1", "b", "2")
	src := param.Source{Text: "select é, '${A} x',\n E'${b}', ${yyyy}, \"${a}\", $$${b}$$ -- ${a}\n", Pos: diag.Pos{File: "m.sql", Line: 10, Column: 3}}
	tpl, diags := param.ParseCode(src, set)
	if diags != nil {
		t.Fatal(diags)
	}
	var got []string
	for _, p := range tpl.Placeholders() {
		around := src.Text[p.Around.Start:p.Around.End]
		got = append(got, fmt.Sprintf("%s %s %s %s %v %s", p.Name, src.Text[p.Start:p.End], p.Pos, p.Context, p.Timed, around))
	}
	want := []string{
		"a ${A} m.sql:10:14 string false '${A} x'",
		"b ${b} m.sql:11:4 e_string false E'${b}'",
		"yyyy ${yyyy} m.sql:11:11 bare true ",
		`a ${a} m.sql:11:21 identifier false "${a}"`,
		"b ${b} m.sql:11:30 dollar false $$${b}$$",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a", "b"}, tpl.Names()); d != "" {
		t.Error(d)
	}
}

func TestLateValues(t *testing.T) {
	t.Parallel()
	cfg := param.Config{Node: []param.Declared{
		{Name: "Rate", Cross: &param.CrossRef{Node: "load_rates", Output: "fx"}},
		{Name: "r2", Value: text("$rate")},
		{Name: "keep", Verbatim: true},
	}}
	set, diags := param.NewSet(cfg)
	if diags != nil {
		t.Fatal(diags)
	}
	tpl, diags := param.ParseCode(param.Text("'${r2}' ${RATE} '${instanceid}' '${nodeid}' '${keep}'"), set)
	if diags != nil {
		t.Fatal(diags)
	}
	wantLate := []param.LateRef{
		{Kind: param.LateCross, Key: "rate", Node: "load_rates", Output: "fx"},
		{Kind: param.LateInstanceID, Key: "instanceid"}, {Kind: param.LateNodeID, Key: "nodeid"},
	}
	if d := cmp.Diff(wantLate, tpl.Late()); d != "" {
		t.Error(d)
	}
	i := at(t, "2018-01-09", "00:00")
	got, diags := tpl.Preview(i, param.Late{"rate": "1.25"})
	if d := cmp.Diff("'1.25' 1.25 '${instanceid}' '${nodeid}' '${keep}'", got); d != "" || diags != nil {
		t.Error(d, diags)
	}
	late := param.Late{"rate": "1.25", "instanceid": "i'1", "nodeid": "n"}
	got, _ = tpl.Render(i, late)
	if d := cmp.Diff("'1.25' 1.25 'i''1' 'n' '${keep}'", got); d != "" {
		t.Error(d)
	}
	checkFrozen(t, tpl, i, late)
	late["rate"] = "1; drop"
	if _, diags = tpl.Render(i, late); !cmp.Equal(diags.Codes(), []string{"unsafe_value"}) {
		t.Error(diags)
	}
	checkFrozen(t, tpl, i, late)

	_, diags = set.ParseValue(param.Text("${rate}"))
	if !cmp.Equal(diags.Codes(), []string{"late_bound"}) {
		t.Error(diags)
	}
}

func TestLiteralAt(t *testing.T) {
	t.Parallel()
	set := newSet(t, "prev", "${yyyymm-1}", "who", "O'Neil")
	code := "select 'x', a = '${prev}01', n'it''s ${who}''s', $$d ${yyyy}''$$, E'${prev}', X'${prev}', ${prev}, \"${prev}\", '${yyyy-mm-dd}'"
	tpl, diags := param.ParseCode(param.Text(code), set)
	if diags != nil {
		t.Fatal(diags)
	}
	var got []string
	for _, p := range tpl.Placeholders() {
		e, span, ok := tpl.LiteralAt(p.Start)
		if !ok {
			got = append(got, string(p.Context))
			continue
		}
		v, _ := e.Eval(at(t, "2018-01-09", "01:30"))
		f, _ := e.DateForm()
		got = append(got, code[span.Start:span.End]+" = "+v+" "+string(f.Grain))
	}
	want := []string{"'${prev}01' = 20171201 month", "n'it''s ${who}''s' = it's O'Neil's ", "$$d ${yyyy}''$$ = d 2018'' year", "e_string", "string", "bare", "identifier",
		"'${yyyy-mm-dd}' = 2018-01-09 day"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, _, ok := tpl.LiteralAt(strings.Index(code, "'x'")); ok {
		t.Error("a literal without a placeholder has no expression")
	}
	for _, open := range []string{"'${prev}", "'${prev}''", "n'${prev}"} {
		tpl, _ := param.ParseCode(param.Text(open), set)
		if e, span, ok := tpl.LiteralAt(strings.Index(open, "$")); ok {
			t.Errorf("%s is not closed, but %v %v", open, e.Written(), span)
		}
	}
}

// TestFrozenNeedsNoProject renders from text and the frozen parameters only.
func TestFrozenNeedsNoProject(t *testing.T) {
	t.Parallel()
	set := newSet(t, "d", "$d2", "d2", "x${yyyymmdd - 1}", "raw!", "a or b", "yyyy", "shadow")
	code := "'${d}' ${raw} '${yyyy}' '${mm}' '${slotutc}' '${env}'"
	params := map[string]param.Frozen{}
	for _, name := range []string{"D", "raw", "yyyy", "slotutc", "env"} {
		f, ok := set.Freeze(name)
		if !ok {
			t.Fatal(name)
		}
		params[strings.ToLower(name)] = f
	}
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"d":{"value":"x${yyyyMMdd-1}","origin":"table"},"env":{"value":"prod","origin":"builtin"},"raw":{"value":"a or b","raw":true,"origin":"table"},` +
		`"slotutc":{"value":"${slotutc}","origin":"builtin"},"yyyy":{"value":"shadow","origin":"table"}}`
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Error(d)
	}
	tpl, diags := param.Thaw(param.Dataphin, param.Text(code), params)
	if diags != nil {
		t.Fatal(diags)
	}
	got, _ := tpl.Render(at(t, "2018-01-09", "01:30"), nil)
	if d := cmp.Diff("'x20180108' a or b 'shadow' '01' '20180110063000' 'prod'", got); d != "" {
		t.Error(d)
	}
	for _, bad := range []map[string]param.Frozen{nil, {"d": {Value: "$d2"}}, {"d": {Value: "${QQ}"}}} {
		if _, diags := param.Thaw(param.Dataphin, param.Text("'${d}'"), bad); !diags.HasErrors() {
			t.Error("a broken plan must not thaw")
		}
	}
}

func TestSetLayers(t *testing.T) {
	t.Parallel()
	set, diags := param.NewSet(param.Config{
		Env:     "dev",
		Project: []param.Declared{{Name: "a", Value: text("p")}, {Name: "b", Value: text("p")}, {Name: "BizDate", Value: text("p")}},
		Node:    []param.Declared{{Name: "B", Value: text("n"), Raw: true}, {Name: "c", Value: text("$env")}},
		Overrides: []param.Declared{{Name: "b", Value: text("x or y")}, {Name: "zz", Value: text("1")},
			{Name: "instanceid", Value: text("mine")}},
	})
	if diags != nil {
		t.Fatal(diags)
	}
	var got []string
	for _, p := range set.Params() {
		v, _ := set.Eval(p.Name, param.Instant{}, nil)
		got = append(got, fmt.Sprintf("%s=%s %s raw=%v shadows=%v", p.Name, v, p.Origin, p.Raw, p.Shadows))
	}
	want := []string{
		"a=p project raw=false shadows=false", "b=x or y override raw=true shadows=false", "BizDate=p project raw=false shadows=true",
		"c=dev table raw=false shadows=false", "zz=1 override raw=false shadows=false", "instanceid=mine override raw=false shadows=true",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"zz"}, set.UndeclaredOverrides()); d != "" {
		t.Error(d)
	}
	var names []string
	for _, p := range set.Builtins() {
		names = append(names, p.Name)
	}
	if d := cmp.Diff([]string{"env", "nodeid", "slotutc"}, names); d != "" {
		t.Error(d)
	}
	if n := len(set.Shadowed()); n != 2 {
		t.Error(n)
	}
	if _, diags := set.Eval("bb", param.Instant{}, nil); !cmp.Equal(diags.Codes(), []string{"undefined"}) {
		t.Error(diags)
	}
}

func TestSetDiagnostics(t *testing.T) {
	t.Parallel()
	p := func(line int) diag.Pos { return diag.Pos{File: "m.yml", Line: line, Column: 3} }
	_, diags := param.NewSet(param.Config{Node: []param.Declared{
		{Name: "a", Value: text("$bizdat"), Pos: p(1), ValuePos: diag.Pos{File: "m.yml", Line: 1, Column: 6}},
		{Name: "b", Value: text("${yyyy-Q}"), Pos: p(2), ValuePos: diag.Pos{File: "m.yml", Line: 2, Column: 6}},
		{Name: "c", Value: text("${b}"), Pos: p(3)},
		{Name: "d", Value: text("$d"), Pos: p(4)},
		{Name: "A", Value: text("1"), Pos: p(5)},
		{Name: "v", Verbatim: true, Pos: p(6)},
		{Name: "w", Value: text("$v"), Pos: p(7)},
	}})
	diags.Sort()
	var got []string
	for _, d := range diags {
		got = append(got, d.Code+" "+d.Pos.String()+" "+d.Hint)
	}
	want := []string{
		`undefined m.yml:1:6 did you mean "bizdate"?`,
		"token m.yml:2:13 tokens are yyyy MM mm dd HH mi ss, as written here",
		"token m.yml:3:5 tokens are yyyy MM mm dd HH mi ss, as written here; the value of another parameter is written $b",
		"cycle m.yml:4:3 give one of them a value of its own",
		"duplicate m.yml:5:3 letter case does not tell names apart; remove one of the two",
		"unassigned m.yml:7:3 give v a value",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestPartitionValues reads partition expressions, in which names may stand.
func TestPartitionValues(t *testing.T) {
	t.Parallel()
	set := newSet(t, "iso", "${yyyy-mm-dd-1}", "alias", "$iso")
	for in, want := range map[string]string{
		"${yyyy-mm-dd}": "2018-01-09", "${bizdate}": "20180109", "$[yyyyMMddHH]": "2018011001", "${slotutc}": "20180110063000",
		"p=${Alias}": "p=2018-01-08", "$alias": "2018-01-08", "const": "const",
		"$nope": "undefined", "${nope}": "token", "${instanceid}": "late_bound",
	} {
		e, diags := set.ParseValue(param.Text(in))
		got := ""
		if e != nil {
			got, diags = e.Eval(at(t, "2018-01-09", "01:30"))
		}
		if diags != nil {
			got = diags[0].Code
		}
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	e, _ := set.ParseValue(param.Text("$alias"))
	if f, ok := e.DateForm(); !ok || f.Days != -1 {
		t.Error(f, ok)
	}
}

func TestBuiltinsOfEachDialect(t *testing.T) {
	t.Parallel()
	for d, want := range map[param.Dialect]string{
		param.Dataphin:  "bizdate=20180109 env= slotutc=20180110063000",
		param.DataWorks: "bizdate=20180109 cyctime=20180110013000 env= gmtdate=20180110 slotutc=20180110063000",
	} {
		set, diags := param.NewSet(param.Config{Dialect: d})
		if diags != nil {
			t.Fatal(diags)
		}
		var got []string
		for _, p := range set.Builtins() {
			if len(p.Expr.Late()) == 0 {
				v, _ := p.Expr.Eval(at(t, "2018-01-09", "01:30"))
				got = append(got, p.Name+"="+v)
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Error(d)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	set := newSet(b, "iso", "${yyyy-mm-dd}", "next", "${yyyy-mm-dd+1}", "n", "15")
	tpl, diags := param.ParseCode(param.Text("SELECT a, b < ${n} FROM t WHERE ds BETWEEN '${iso}' AND '${next}' AND m = '${yyyymm}01'"), set)
	if diags != nil {
		b.Fatal(diags)
	}
	i := at(b, "2018-01-09", "01:30")
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := tpl.Render(i, nil); diags != nil {
			b.Fatal(diags)
		}
	}
}

// BenchmarkNewSet makes the configuration of one node among 10,000.
func BenchmarkNewSet(b *testing.B) {
	cfg := param.Config{Env: "prod"}
	for i := range 5 {
		cfg.Project = append(cfg.Project, param.Declared{Name: fmt.Sprint("p", i), Value: text("15")})
		cfg.Node = append(cfg.Node, param.Declared{Name: fmt.Sprint("n", i), Value: text("${yyyy-mm-dd-1}")})
	}
	b.ReportAllocs()
	for b.Loop() {
		set, diags := param.NewSet(cfg)
		if diags != nil {
			b.Fatal(diags)
		}
		if _, diags := param.ParseCode(param.Text("SELECT a, b < ${p1} FROM t WHERE ds BETWEEN '${n1}' AND '${n2}'"), set); diags != nil {
			b.Fatal(diags)
		}
	}
}

// TestLongCode wants the time to grow with the length of the code, not its square.
func TestLongCode(t *testing.T) {
	t.Parallel()
	set := newSet(t, "a", "1")
	for _, piece := range []string{"'${a}', ", "$a b ", "$a$ ", "'x'\n ", "E'a'\n", "-- ${a}\n", "${a} + ", "/* ", "$$ "} {
		tpl, diags := param.ParseCode(param.Text(strings.Repeat(piece, 20000)), set)
		if tpl == nil {
			t.Fatal(diags[0])
		}
		if _, diags := tpl.Render(at(t, "2018-01-09", "01:30"), nil); diags != nil {
			t.Fatal(diags[0])
		}
	}
}
