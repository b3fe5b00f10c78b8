package sqlscript

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil}, {" ;; \n-- c\n;/* x */", nil},
		{"select 1", []string{"select 1"}},
		{"select 1;", []string{"select 1"}},
		{"a;b ; c", []string{"a", "b", "c"}},
		{"select ';' , \";\"; x", []string{"select ';' , \";\"", "x"}},
		{"select 'it''s;'; x", []string{"select 'it''s;'", "x"}},
		{`select E'a\';b'; x`, []string{`select E'a\';b'`, "x"}},
		{`select 'a\'; x`, []string{`select 'a\'`, "x"}},
		{"select $$a;b$$; x", []string{"select $$a;b$$", "x"}},
		{"select $t$a;$$;b$t$; x", []string{"select $t$a;$$;b$t$", "x"}},
		{"select $1; x", []string{"select $1", "x"}},
		{"select a$b$c; x$b$", []string{"select a$b$c", "x$b$"}},
		{"-- a;b\nx; y -- ;", []string{"-- a;b\nx", "y -- ;"}},
		{"/* a;/* b; */ c; */ x; y", []string{"/* a;/* b; */ c; */ x", "y"}},
		{"x /* never closed; y", []string{"x /* never closed; y"}},
		{"x 'never closed; y", []string{"x 'never closed; y"}},
		{"select name'x;y'; z", []string{"select name'x;y'", "z"}},
		{"select ü;x", []string{"select ü", "x"}},
	} {
		if d := cmp.Diff(c.want, Split(c.text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, d)
		}
	}
	if w := FirstWord(" -- x\n /* y */ Commit;"); w != "COMMIT" {
		t.Errorf("first word %q", w)
	}
}

func TestStageName(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"create temp table s as select 1":                               "s",
		"CREATE OR REPLACE TEMPORARY TABLE /* x */ \"a\"\"b c\"(a int)": `"a""b c"`,
		"CREATE TEMP TABLE \"s\" AS SELECT 1":                           `"s"`,
		"CREATE TEMP TABLE IF NOT EXISTS s (a int)":                     "",
		"CREATE TABLE s (a int)":                                        "",
		"CREATE TEMP VIEW s AS SELECT 1":                                "",
		"INSERT INTO s SELECT 1":                                        "",
		"":                                                              "",
	} {
		if got := StageName(sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}
