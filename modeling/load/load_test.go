package load

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

const okYAML = "key: [id]\npartition: {ds: \"${yyyymmdd}\"}\n"

// tree makes a file system of a project; files add to or replace the basics.
func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{
		"retrofill.yml": {Data: []byte("name: p\n")},
		"models/a.yml":  {Data: []byte(okYAML)},
		"models/a.sql":  {Data: []byte("SELECT 1 AS id\n")},
	}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func brief(diags diag.List) []string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Code+" "+d.Pos.String())
	}
	return out
}

// Encodings, sizes and nesting that a parser could choke on.
func TestHardFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"BOM and CRLF":  {map[string]string{"models/a.yml": "\ufeff" + strings.ReplaceAll(okYAML, "\n", "\r\n"), "models/a.sql": "\ufeffSELECT 1\r\n"}, nil},
		"old Mac":       {map[string]string{"models/a.yml": strings.ReplaceAll(okYAML, "\n", "\r")}, nil},
		"CRLF position": {map[string]string{"models/a.yml": "key: [id]\r\npartition: {ds: x}\r\nkee: 1\r\n"}, []string{"unknown_key models/a.yml:3:1"}},
		"rune position": {map[string]string{"models/a.yml": okYAML + "config: {\"ключ é\": x}\nfields: {\"列\": {typ: x}}\n"}, []string{"unknown_key models/a.yml:4:16"}},
		"latin-1":       {map[string]string{"models/a.yml": okYAML + "description: Caf\xe9\n"}, []string{"not_utf8 models/a.yml:3:17"}},
		"latin-1 sql":   {map[string]string{"models/a.sql": "SELECT 'é', '\xe9'"}, []string{"not_utf8 models/a.sql:1:14"}},
		"UTF-16":        {map[string]string{"models/a.yml": "\xff\xfek\x00e\x00"}, []string{"not_utf8 models/a.yml:1:1"}},
		"NUL":           {map[string]string{"models/a.sql": "SELECT\n\x00"}, []string{"not_utf8 models/a.sql:2:1"}},
		"empty YAML":    {map[string]string{"models/a.yml": ""}, []string{"empty_file models/a.yml:1:1"}},
		"only BOM":      {map[string]string{"models/a.yml": "\ufeff"}, []string{"empty_file models/a.yml:1:1"}},
		"empty SQL":     {map[string]string{"models/a.sql": " \n"}, []string{"empty_file models/a.sql:1:1"}},
		"empty project": {map[string]string{"retrofill.yml": "---\n"}, []string{"empty_file retrofill.yml:1:1"}},
		"50 MB YAML":    {map[string]string{"models/a.yml": strings.Repeat("a", 50<<20)}, []string{"too_large models/a.yml"}},
		"50 MB SQL":     {map[string]string{"models/a.sql": strings.Repeat("a", 50<<20)}, []string{"too_large models/a.sql"}},
		"deep flow":     {map[string]string{"models/a.yml": strings.Repeat("[", 1<<19)}, []string{"yaml_too_complex models/a.yml:1"}},
		"deep map":      {map[string]string{"models/a.yml": strings.Repeat("{a: ", 1<<17)}, []string{"yaml_too_complex models/a.yml:1"}},
		"deep block":    {map[string]string{"models/a.yml": "x:\n" + strings.Repeat("- ", 1<<18)}, []string{"yaml_too_complex models/a.yml:2"}},
		"many lines":    {map[string]string{"models/a.yml": strings.Repeat("#\n", 1<<18)}, []string{"yaml_too_complex models/a.yml:20001"}},
		"tab":           {map[string]string{"models/a.yml": "key:\n\t- id\n"}, []string{"yaml_syntax models/a.yml:2:1"}},
		"several at once": {map[string]string{
			"retrofill.yml": "name: p\nzoen: UTC\nzone: Nowhere\n", "models/a.yml": "kee: [id]\n", "tasks/t.yml": "x: 1\n",
		}, []string{
			"no_partition models/a.yml:1:1", "unknown_key models/a.yml:1:1", "unknown_key retrofill.yml:2:1", "unknown_zone retrofill.yml:3:7",
			"missing_file tasks/t.yml", "unknown_key tasks/t.yml:1:1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, diags := Load(tree(c.files))
			if diff := cmp.Diff(c.want, brief(diags)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, diags.Error())
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

// Positions are right whatever stands before them.
func TestPositions(t *testing.T) {
	t.Parallel()
	for _, before := range []string{
		"", "description: >\n  folded\n  text\n\n\n", "description: |-\n  a\n\n  b\n", "description: plain\n  goes on\n  and on\n",
		"description: \"quoted\n  goes\n\n  on\"\n", "description: 'q\n\n  on'\n", "# c\n\n# d é\n\n", "tags:\n- a\n- b\n\n# x\n",
		"tags: [\n  a, # c\n  b\n]\n", "config: {\n 'é': \"é\\n\"\n}\n", "config:\n  a:\n    - b: |\n        x\n      c: 1\n    - d\n",
		"description: |\n  # not a comment\n   x\n  \n", "description: >+\n  x\n\n\n", "\n\n\n", "description: x # c\n",
	} {
		text := "partition: {ds: x}\n" + before + "kee: 1\nfields: {é: {typ: 1}}\n"
		line := strings.Count(text[:strings.Index(text, "kee")], "\n") + 1
		_, diags := Load(tree(map[string]string{"models/a.yml": text}))
		want := []string{fmt.Sprintf("unknown_key models/a.yml:%d:1", line), fmt.Sprintf("unknown_key models/a.yml:%d:14", line+1)}
		if diff := cmp.Diff(want, brief(diags)); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", before, diff)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	digestOf := func(files map[string]string) string {
		p, _ := Load(tree(files))
		return p.Digest
	}
	base := digestOf(nil)
	for name, files := range map[string]map[string]string{
		"line ends": {"models/a.yml": strings.ReplaceAll(okYAML, "\n", "\r\n")},
		"BOM":       {"models/a.sql": "\ufeffSELECT 1 AS id\n"},
		"other":     {"models/README.md": "x", "notes.yml": "x"},
	} {
		if digestOf(files) != base {
			t.Errorf("%s changed the digest", name)
		}
	}
	seen := map[string]string{base: "base"}
	for name, files := range map[string]map[string]string{
		"sql":     {"models/a.sql": "SELECT 2 AS id\n"},
		"yaml":    {"models/a.yml": okYAML + "# c\n"},
		"project": {"retrofill.yml": "name: q\n"},
		"more":    {"models/b.sql": "SELECT 1 AS id\n", "models/b.yml": okYAML},
		"moved":   {"models/x/a.sql": "SELECT 1 AS id\n", "models/x/a.yml": okYAML},
		"variant": {"models/a.trino.sql": "SELECT 1 AS id\n"},
		"task":    {"tasks/t.yml": "command: [a]\n"},
	} {
		d := digestOf(files)
		if other, dup := seen[d]; dup || len(d) != 64 {
			t.Errorf("%s has the digest of %s: %s", name, other, d)
		}
		seen[d] = name
	}
}

func TestCheckFields(t *testing.T) {
	t.Parallel()
	build := func(yaml string) *modeling.Table {
		p, diags := Load(tree(map[string]string{"models/a.yml": yaml, "retrofill.yml": "name: p\nsources: [{table: src.r, key: [ID]}]\n"}))
		if diags.HasErrors() {
			t.Fatal(diags.Error())
		}
		return p.Tables[0]
	}
	head := "partition: {ds: \"${yyyymmdd}\"}\nkey: [ID]\n"
	for name, c := range map[string]struct {
		yaml  string
		names []string
		want  []string
	}{
		"good":          {head + "materialize: [{node: n, fields: [a, B]}]\nchecks: [{not_null: [a, ds]}]\nfields: {a: {type: INT}, ds: {description: day}}\n", []string{"id", "A", "b"}, nil},
		"default node":  {head, []string{"id", "a"}, nil},
		"key":           {head, []string{"a"}, []string{"unknown_field models/a.yml:2:7"}},
		"unknown":       {head + "materialize: [{node: n, fields: [a, aa]}]\nchecks: [{not_null: [x]}]\nfields: {y: {type: INT}}\n", []string{"id", "a"}, []string{"unknown_field models/a.yml:3:37", "unknown_field models/a.yml:4:11", "unknown_field models/a.yml:5:10"}},
		"without node":  {head + "materialize: [{node: n, fields: [a]}]\n", []string{"id", "a", "b", "c"}, []string{"field_without_node models/a.yml:3:16", "field_without_node models/a.yml:3:16"}},
		"partition":     {head, []string{"id", "DS"}, []string{"partition_in_select models/a.yml:1:13"}},
		"twice":         {head, []string{"id", "a", "A"}, []string{"duplicate_field models/a.sql"}},
		"registered":    {head + "materialize: [{node: n, fields: [a]}]\nfields: {r: {registered: src.r.x}}\nchecks: [{not_null: r}]\n", []string{"id", "a"}, nil},
		"registered in": {head + "materialize: [{node: n, fields: [a]}]\nfields: {r: {registered: src.r.x}}\n", []string{"id", "a", "r"}, []string{"registered_field models/a.yml:4:10"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := build(c.yaml)
			diags := CheckFields(table, c.names)
			if diff := cmp.Diff(c.want, brief(diags)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, diags.Error())
			}
		})
	}
	table := build(head)
	for range 2 {
		CompleteFields(table, []string{"id", "b", "a"})
		if diff := cmp.Diff([]string{"b", "a"}, table.Nodes[0].Fields); diff != "" {
			t.Errorf("fields of the default node (-want +got):\n%s", diff)
		}
	}
}

// Templates load without a problem, under any name; Init writes all or nothing.
func TestInit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shop", `it's "quoted": {x} #1`, "名前", "true"} {
		dir := filepath.Join(t.TempDir(), "new", "folder")
		written, err := Init(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		p, diags := Dir(dir)
		if len(diags) > 0 || p.Name != name || len(p.Tables) != 3 || len(p.Tasks) != 1 || len(p.Table("fct_order").Nodes) != 2 {
			t.Errorf("%q: %v %s", name, p, diags.Error())
		}
		if !slices.Contains(written, ".gitignore") || !slices.IsSorted(written) {
			t.Errorf("written: %v", written)
		}
		var d diag.Diagnostic
		if again, err := Init(dir, name); !errors.As(err, &d) || d.Code != "file_exists" || again != nil {
			t.Errorf("second time: %v %v", again, err)
		}
	}
	// One file in the way: nothing is written.
	dir := t.TempDir()
	mine := filepath.Join(dir, "tasks", "load_orders.sql")
	if err := errors.Join(os.Mkdir(filepath.Dir(mine), 0o755), os.WriteFile(mine, []byte("mine"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, "p"); err == nil || !strings.Contains(err.Error(), "tasks/load_orders.sql") {
		t.Errorf("error: %v", err)
	}
	// A file where a folder must go: what was made before is removed.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "tasks"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(other, "p"); err == nil {
		t.Error("no error with a file named tasks")
	}
	for root, want := range map[string][]string{dir: {".", "tasks", "tasks/load_orders.sql"}, other: {".", "tasks"}} {
		var left []string
		err := fs.WalkDir(os.DirFS(root), ".", func(p string, _ fs.DirEntry, err error) error {
			left = append(left, p)
			return err
		})
		if diff := cmp.Diff(want, left); err != nil || diff != "" {
			t.Errorf("left behind: %v (-want +got):\n%s", err, diff)
		}
	}
	var d diag.Diagnostic
	if _, err := Init(t.TempDir(), "a\nb"); !errors.As(err, &d) || d.Code != "bad_name" {
		t.Errorf("bad name: %v", err)
	}
}

// The same files load the same whatever the order in which they are read.
func TestStable(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("models/d%d/t%d.yml", i%7, i)] = fmt.Sprintf("table: T%d\n%skee: x\n", i/2, okYAML)
		files[fmt.Sprintf("models/d%d/t%d.sql", i%7, i)] = "SELECT 1"
	}
	p, diags := Load(tree(files))
	for range 5 {
		q, again := Load(tree(files))
		if diff := cmp.Diff(diags, again); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatal(diff)
		}
	}
}

// synthetic writes a project of n tables like those of the design.
func synthetic(tb testing.TB, dir string, n int) {
	tb.Helper()
	var yaml bytes.Buffer
	for i := range n {
		yaml.Reset()
		fmt.Fprintf(&yaml, "table: fct_%d\nkind: fact\ndescription: One row for each departure.\nowner: team\ntags: [core]\nkey: [carrier, flight, origin]\n", i)
		yaml.WriteString("partition: {ds: \"${yyyy-mm-dd}\"}\nschedule: {cycle: daily, at: \"02:00\"}\nparams:\n  bizdate_iso: \"${yyyy-mm-dd}\"\n  next_day: \"${yyyy-mm-dd+1}\"\n")
		fmt.Fprintf(&yaml, "materialize:\n  - {node: n_%d_a, anchor: true, fields: [dest, tailnum, distance]}\n  - {node: n_%d_b, fields: [dep_delay, arr_delay]}\n", i, i)
		yaml.WriteString("fields:\n  on_time: {description: \"Arrived less than on_time_min minutes late.\"}\nchecks:\n  - not_null: [carrier, flight]\n  - rows_between: [500, 1200]\n")
		folder := filepath.Join(dir, "models", fmt.Sprintf("area%d", i/100))
		base := filepath.Join(folder, fmt.Sprintf("fct_%d", i))
		sql := "SELECT carrier, flight, origin, dest, tailnum, distance, dep_delay, arr_delay\nFROM src.flights WHERE ds = '${bizdate_iso}'\n"
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(base+".yml", yaml.Bytes(), 0o644), os.WriteFile(base+".sql", []byte(sql), 0o644)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ProjectFile), []byte("name: big\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// Goals on two cores: 1,000 tables under 150 ms, 10,000 under 1.5 s.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			synthetic(b, dir, n)
			for b.Loop() {
				if p, diags := Dir(dir); len(diags) > 0 || len(p.Tables) != n {
					b.Fatal(len(p.Tables), diags.Error())
				}
			}
		})
	}
}
