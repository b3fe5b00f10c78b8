package param

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nasty holds values that try to leave the place they are put in.
var nasty = []string{
	"", "'", "''", "\\", "\\'", "'\\", "a'b", "a\"b", "\"", "--", "/*", "*/", "-- x\n", "\n", "\r\n'", "$", "$$", "$q$", "q$", "$q", "; drop table t; --",
	"' or 1=1 --", "1 or 1=1", "-5", "--5", "5", "1e5", "1.5", ".5", "5.", "e", "E", "x", "n", "or", "abc", "a.b", "a..b", "a b", "a-b", "2024-01-31",
	"2024/01", "2024-01/31", "06:30", "日本", "é'", "\x00", "\xc3", "\xff'", "${a}", "${yyyymmdd}", "$[x]", "}", "\u2019", "\u00a0", "U&", "(", "a(1)",
}

// frames holds code with the placeholder ${a} (and ${b}) in every context.
var frames = []string{
	"select '${a}' x", "select 'it''s ${a}''s', '${b}'", "select E'a\\t${a}\\'' x", "select e'\\${a}' x", "select E'${a}'\n'${b}\\'' x",
	"select U&'${a}' x", "select X'${a}', N'${a}'", "select \"${a}\" x", "select \"a\"\"${a}\" x", "select $$a ${a} b$$ x", "select $$${a}$$, $q$ ${a}$ $q$",
	"select $q$${a}${b}$q$", "select ${a} x", "select 1-${a} x", "select 1 -- ${a} '\n, '${a}'", "select /* ' ${a} /* ${b} */ ' */ ${a}", "select 1/${a}*2",
	"select ${a}'abc\\'", "select ${a}e'a\\''", "select ${a}$$b$$", "select a$${a}$$", "select $a${b}", "select ${a}${b}, ${a}.${b}, t_${a}", "${a}", "'${a}",
	"\"${a}", "$$${a}", "/* ${a}", "select E'${a}\\\\'", "select ''${a}''", "select '${a}''${b}'", "select 'a' '${a}'", "select typ'${a}'", "select a${a}'${b}'",
}

// checkStructure wants the rendered code to have the literals, identifiers
// and comments of the template, at the places where the template has them:
// then no value became syntax.
func checkStructure(t *testing.T, src, a, b string) {
	t.Helper()
	late := Late{"a": a, "b": b}
	tpl, diags := Thaw(Dataphin, Text(src), map[string]Frozen{"a": {Late: LateCross}, "b": {Late: LateCross}})
	if tpl == nil {
		if !diags.HasErrors() {
			t.Fatalf("%q: no template and no error", src)
		}
		return
	}
	got, diags := tpl.Render(Instant{}, late)
	if diags != nil {
		for _, d := range diags {
			if d.Code != "unsafe_value" || d.Line < 1 || d.Column < 1 {
				t.Fatalf("%q: %v", src, d)
			}
		}
		return
	}
	l := lexer{s: src}
	l.run()
	moved := func(off int) int {
		n := off
		for _, h := range tpl.holes {
			if h.End <= off {
				v := late[h.Name]
				if h.Timed {
					v, _ = h.Binding.Expr.Eval(Instant{})
				}
				if h.Context != Bare && h.Context != Dollar {
					v = string(appendEscaped(nil, h.Context, v))
				}
				n += len(v) - (h.End - h.Start)
			}
		}
		return n
	}
	var want []region
	for _, r := range l.regions {
		want = append(want, region{r.ctx, Span{moved(r.Start), moved(r.End)}})
	}
	out := lexer{s: got, plain: true}
	out.run()
	if d := cmp.Diff(want, out.regions, cmp.AllowUnexported(region{})); d != "" {
		t.Fatalf("template %q with %q, %q gives %q: %s", src, a, b, got, d)
	}
}

func TestValuesNeverBecomeSyntax(t *testing.T) {
	t.Parallel()
	for _, src := range frames {
		for i, a := range nasty {
			checkStructure(t, src, a, nasty[(i*7+3)%len(nasty)])
			checkStructure(t, src, "abc", a)
		}
	}
}

// FuzzRender looks for code and values whose rendering has another structure
// than the code.
func FuzzRender(f *testing.F) {
	for i, src := range frames {
		f.Add(src, nasty[i%len(nasty)], nasty[(i*5+1)%len(nasty)])
	}
	f.Fuzz(checkStructure)
}

// FuzzLex checks that placeholders lie where the code says, in order, and
// that text without placeholders is rendered unchanged.
func FuzzLex(f *testing.F) {
	for _, src := range frames {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, holes := range [][]hole{lexSQL(src), lexPlain(src)} {
			last := 0
			for _, h := range holes {
				if h.Start < last || h.End > len(src) || !strings.HasPrefix(src[h.Start:], "${") || !h.open && src[h.End-1] != '}' {
					t.Fatalf("%q: %+v", src, h)
				}
				if h.around != (Span{}) && (h.around.Start > h.Start || h.around.End < h.End) {
					t.Fatalf("%q: %+v", src, h)
				}
				last = h.End
			}
		}
		if strings.Contains(src, "${") {
			return
		}
		tpl, diags := Thaw(Dataphin, Text(src), nil)
		if diags != nil {
			t.Fatal(diags)
		}
		if got, _ := tpl.Render(Instant{}, nil); got != src {
			t.Fatalf("%q became %q", src, got)
		}
	})
}
