package dialect_test

import (
	"testing"

	"github.com/retrofill/retrofill/planner/dialect"
)

func TestWidens(t *testing.T) {
	t.Parallel()
	d, err := dialect.For("duckdb")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"INTEGER", "BIGINT", true},
		{"BIGINT", "INTEGER", false},
		{"decimal(10, 2)", "DECIMAL(18,2)", true},
		{"DECIMAL(10,2)", "DECIMAL(18,4)", true},
		{"DECIMAL(18,2)", "DECIMAL(18,4)", false},
		{"DECIMAL(10,2)[]", "DECIMAL(18,2)", false},
		{"DECIMAL(10,2)", "DECIMAL(18,2)[]", false},
		{"DECIMAL(10,2)[]", "DECIMAL(18,2)[]", false},
		{"INTEGER[]", "BIGINT", false},
		{"STRUCT(a INTEGER)", "STRUCT(a BIGINT)", false},
		{"VARCHAR", "INTEGER", false},
		{"DATE", "TIMESTAMP", true},
	} {
		if got := d.Widens(tt.from, tt.to); got != tt.want {
			t.Errorf("%s -> %s: %v", tt.from, tt.to, got)
		}
	}
}
