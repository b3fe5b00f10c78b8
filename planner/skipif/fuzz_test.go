package skipif

import (
	"testing"
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// FuzzCompile: whatever is written compiles or is told, and what compiles
// gives the same answer for the same slot and parameters.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`params.rows == "0"`, `bizdate == "2024-01-01"`, `params["x"] in ["a", "b"]`, `true`, `1 / 0 == 1`, `params.`, `"`, `now()`, `repeat("a", 9) != ""`} {
		f.Add(s, "0")
	}
	slot := bizdate.Slot{Date: bizdate.Of(2024, 1, 1), At: time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)}
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(text) > 200 {
			t.Skip()
		}
		e, diags := Compile(text, diag.Pos{})
		if (e == nil) != diags.HasErrors() {
			t.Fatalf("%q: %v, %v", text, e, diags)
		}
		if e == nil {
			return
		}
		params := map[string]string{}
		for i, name := range e.Params() {
			if i > 0 && e.Params()[i-1] >= name {
				t.Errorf("%q: parameters %v", text, e.Params())
			}
			params[name] = value
		}
		first, err := e.Eval(slot, time.UTC, params)
		again, err2 := e.Eval(slot, time.UTC, params)
		if first != again || (err == nil) != (err2 == nil) {
			t.Errorf("%q: %v %v, then %v %v", text, first, err, again, err2)
		}
	})
}
