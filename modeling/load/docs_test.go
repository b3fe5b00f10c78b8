package load

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manual = "../../docs/project-files.md"

// The manual's key tables are written from the loader's: every key of every
// mapping is in it.
func TestManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	done := map[string]bool{}
	for _, p := range slices.Concat(projectFile().parts, tableFile().parts, taskFile().parts, metricFile().parts) {
		if done[p.name] {
			continue
		}
		done[p.name] = true
		start, end := "<!-- keys: "+p.name+" -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(got, start)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Errorf("%s has no place %q for the keys %s", manual, strings.TrimSpace(start), keyTable(p))
			continue
		}
		got = before + start + keyTable(p) + end + after
	}
	if *rewrite {
		if err := os.WriteFile(manual, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), got); diff != "" {
		t.Errorf("run with -rewrite (-manual +tables):\n%s", diff)
	}
}

func keyTable(p part) string {
	var b strings.Builder
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, k := range p.keys {
		def := k.def
		if k.required {
			def = "**required**"
		}
		if def == "" {
			def = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, cell(k.words), cell(def), cell(k.doc))
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
