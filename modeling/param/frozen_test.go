package param_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/param"
)

// checkFrozen wants a template that went through JSON, and one rebuilt from
// its parts, to render the same text as the original.
func checkFrozen(t *testing.T, tpl *param.Template, at param.Instant, late param.Late) {
	t.Helper()
	want, wantDiags := tpl.Render(at, late)
	text, err := json.Marshal(tpl)
	if err != nil {
		t.Fatal(err)
	}
	var back param.Template
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	got, diags := back.Render(at, late)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("frozen: %s\n%s", d, text)
	}
	if d := cmp.Diff(wantDiags.Codes(), diags.Codes()); d != "" {
		t.Errorf("frozen: %s\n%s", d, text)
	}
	again, err := json.Marshal(&back)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(text), string(again)); d != "" {
		t.Errorf("frozen twice: %s", d)
	}
}
