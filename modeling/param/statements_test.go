package param

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatementSpans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want []string
	}{
		{"", nil},
		{" ; ;\n", nil},
		{"-- nothing; here\n/* ; */", nil},
		{"select 1", []string{"select 1"}},
		{"select 1;", []string{"select 1"}},
		{"select ';' ; -- done;", []string{"select ';'"}},
		{"a; b -- x;y\n; c", []string{"a", "b -- x;y", "c"}},
		{`select ";" as "a;b"; $$;$$`, []string{`select ";" as "a;b"`, "$$;$$"}},
		{"/* lead */ select 1;\n'x'", []string{"/* lead */ select 1", "'x'"}},
	} {
		var got []string
		for _, s := range StatementSpans(c.sql) {
			got = append(got, c.sql[s.Start:s.End])
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q: %s", c.sql, d)
		}
	}
}
