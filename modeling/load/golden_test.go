package load

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write goldens instead of comparing")

// The goldens: each archive is a project, its `want` the diagnostics, and
// `want.json`, where it is there, the project.
func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("goldens: %v %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			ar := parseArchive(string(text))
			fsys := fstest.MapFS{}
			for _, f := range ar.files {
				if f.name != "want" && f.name != "want.json" {
					fsys[f.name] = &fstest.MapFile{Data: []byte(f.data)}
				}
			}
			p, diags := Load(fsys)
			report := "none\n"
			if len(diags) > 0 {
				report = diags.Error() + "\n"
			}
			project, err := json.MarshalIndent(p, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"want": report, "want.json": string(project) + "\n"}
			seen := false
			for i := range ar.files {
				f := &ar.files[i]
				want, ok := got[f.name]
				if !ok {
					continue
				}
				seen = true
				if *rewrite {
					f.data = want
				} else if diff := cmp.Diff(f.data, want); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f.name, diff)
				}
			}
			if !seen {
				t.Fatal("the archive has no want")
			}
			if *rewrite {
				if err := os.WriteFile(name, []byte(ar.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range diags {
				if d.Code == "" || d.Summary == "" || d.Hint == "" || d.File == "" {
					t.Errorf("incomplete diagnostic: %#v", d)
				}
			}
		})
	}
}

// archive is a txtar file, as golang.org/x/tools/txtar reads it.
type archive struct {
	comment string
	files   []archived
}

type archived struct{ name, data string }

func parseArchive(text string) archive {
	var a archive
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
		if name, isMark := strings.CutSuffix(name, " --"); ok && isMark {
			a.files = append(a.files, archived{name: name})
			continue
		}
		if len(a.files) == 0 {
			a.comment += line
			continue
		}
		a.files[len(a.files)-1].data += line
	}
	return a
}

func (a archive) String() string {
	s := a.comment
	for _, f := range a.files {
		s += "-- " + f.name + " --\n" + f.data
	}
	return s
}
