package load

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling/diag"
)

// corpus gives the YAML files of the goldens and of the template.
func corpus(tb testing.TB) []string {
	tb.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range parseArchive(string(text)).files {
			if filepath.Ext(file.name) == ".yml" {
				out = append(out, file.data)
			}
		}
	}
	files, err := Template("p")
	if err != nil {
		tb.Fatal(err)
	}
	for name, text := range files {
		if filepath.Ext(name) == ".yml" {
			out = append(out, string(text))
		}
	}
	return out
}

// FuzzQuick: where the quick parser gives a document, the full one gives the
// same one, with the same places.
func FuzzQuick(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
	}
	for _, text := range []string{
		"a: b\nc:\n- d\n- e: f\n  g: h\n-  i\n", "a: b - c\n", "a: b' c, d (e)\n", "a: [b, c ]\n", "a: {b: c , d: 'e'}\n", "a:\n  b: c\n d: e\n",
		"a: \"b\"c\n", "a: b #c\n", "a: b# c\n", "a: 'é' # d\nb: {c: \"é\", d: e}\n", "a: [b] c\n", "a: b\n c\n", "a:\n- b\n  c\n", "a: b: c\n", "a: -b\n", "a : b\n",
		"a: b.c-d/e;f=g+h<i>j\n", "a:  b\n", "a: b  \n\n\n  # c\nd: e", "a: 12\nb: 012\nc: 1_0\nd: true\ne: True\n", "a: {b: {c: [d, {e: f}]}}\n", "a: [b, c]]\n", "a: [b c]#\n", "a:#b\n", "a:\n    b:\n      - c\n    d: e\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, bad := tooComplex(text); bad || strings.ContainsRune(text, '\r') || !utf8.ValidString(text) {
			t.Skip()
		}
		compareQuick(t, text)
	})
}

// Documents made at random out of the pieces that project files are made of,
// many of them broken.
func TestQuickRandom(t *testing.T) {
	t.Parallel()
	rounds := 20000
	if testing.Short() {
		rounds = 2000
	}
	pieces := strings.Split("a|b: |key:|: |[|]|{|}|, |,|- |-|\"x y\"|'é'|# c| #c|12|0|400d|-1d|-7d..-1d|--date|true|yes|null|x.y|a b| |  |\"|'|x'y|(z)|a-b|a/b|_|é|1.5|:|c: d|{a: b}|[a, b]|{a: [b, {c: d}]}|- a: b|&x|*x|!t|?|%|@|>|~|y", "|")
	seed := uint64(1)
	rng := rand.New(rand.NewPCG(seed, 2))
	taken := 0
	for range rounds {
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			b.WriteString(strings.Repeat(" ", rng.IntN(4)*rng.IntN(2)))
			if rng.IntN(3) > 0 {
				b.WriteString([]string{"k: ", "k:", "- ", "- k: ", "key: v", "q: \"v\"", "z: [a, 1]"}[rng.IntN(7)])
			}
			for range rng.IntN(4) {
				b.WriteString(pieces[rng.IntN(len(pieces))])
			}
			b.WriteByte('\n')
		}
		if compareQuick(t, b.String()) {
			taken++
		}
		if t.Failed() {
			t.Fatalf("seed %d, document %q", seed, b.String())
		}
	}
	if taken < rounds/100 {
		t.Errorf("only %d of %d documents took the quick way", taken, rounds)
	}
}

// compareQuick tells whether the quick parser took a text; then the full one
// must agree.
func compareQuick(t *testing.T, text string) bool {
	t.Helper()
	n := quick(text)
	if n == nil {
		return false
	}
	file, err := parse(text)
	if err != nil || len(file.Docs) != 1 {
		t.Errorf("the full parser says %v", err)
		return true
	}
	d := &decoder{}
	var full, fast []placed
	d.dump(file.Docs[0].Body, &full)
	d.dump(n, &fast)
	lines := strings.Split(text, "\n")
	for i := range min(len(full), len(fast)) {
		// The full parser mistakes some columns (of a text with blanks
		// behind it); what stands in the file decides.
		at, there := fast[i].pos, string([]rune(lines[fast[i].pos.Line-1])[fast[i].pos.Column-1:])
		if there = strings.TrimLeft(there, `"'`); full[i].pos != at && !strings.HasPrefix(there, fast[i].text) {
			t.Errorf("%q: quick says %v, full %v", fast[i].text, at, full[i].pos)
		}
		full[i].pos = at
	}
	if diff := cmp.Diff(full, fast, cmp.AllowUnexported(placed{})); diff != "" {
		t.Errorf("(-full +quick):\n%s", diff)
	}
	return true
}

// placed is one node of a document.
type placed struct {
	what, text string
	pos        diag.Pos
}

// dump lists a document's nodes with the places that diagnostics use.
func (d *decoder) dump(n ast.Node, out *[]placed) {
	text, _ := scalarText(n)
	*out = append(*out, placed{what: n.Type().String(), text: text, pos: d.pos(n)})
	if l, ok := n.(*ast.SequenceNode); ok {
		for _, v := range l.Values {
			d.dump(v, out)
		}
	}
	entries, _ := pairs(n)
	for _, e := range entries {
		d.dump(e.Key, out)
		d.dump(e.Value, out)
	}
	*out = append(*out, placed{what: "end", pos: d.pos(n)})
}

// The files that people write take the quick way, or it would be of no use.
func TestQuickIsTaken(t *testing.T) {
	t.Parallel()
	files, err := Template("p")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if filepath.Ext(name) == ".yml" && quick(string(text)) == nil {
			t.Errorf("%s does not take the quick way", name)
		}
	}
	golden, err := os.ReadFile("testdata/example.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range parseArchive(string(golden)).files {
		if filepath.Ext(file.name) == ".yml" && quick(file.data) == nil {
			t.Errorf("%s does not take the quick way", file.name)
		}
	}
}

// No content of any file may panic the load, hang it or leave a diagnostic
// without its place; what loads without an error must have what the planner
// relies on.
func FuzzLoad(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add([]byte(text), []byte("SELECT 1"))
	}
	f.Add([]byte("\ufeffkey: [a]\r\npartition: {a: b}\r"), []byte("/*"))
	f.Add([]byte("? [a, b]\n: - !!str 5\n&a *a"), []byte("\xff"))
	f.Fuzz(func(t *testing.T, yaml, sql []byte) {
		p, diags := Load(fstest.MapFS{
			"retrofill.yml": {Data: yaml}, "models/t.yml": {Data: yaml}, "models/t.sql": {Data: sql}, "tasks/j.yml": {Data: yaml}, "tasks/k.yml": {Data: yaml}, "tasks/k.sql": {Data: sql},
		})
		for _, d := range diags {
			if d.Code == "" || d.Hint == "" || d.File == "" || !utf8.ValidString(d.String()) {
				t.Fatalf("diagnostic %#v", d)
			}
		}
		if diags.HasErrors() {
			return
		}
		for _, table := range p.Tables {
			anchors := 0
			for _, n := range table.Nodes {
				if n.Anchor {
					anchors++
				}
			}
			if anchors != 1 || len(table.Partition) == 0 || table.Name == "" {
				t.Fatalf("table %#v", table)
			}
		}
	})
}
