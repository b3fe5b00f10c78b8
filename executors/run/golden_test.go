package run_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors/faultengine"
	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/planner/status"
)

var rewrite = flag.Bool("rewrite", false, "write what the golden files should hold")

// TestGolden runs a plan with scripted faults, one node at a time, and compares
// the events. A file holds: plan, faults (of the first run), again (options of
// a second run, if there is one), want.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			doc, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			names, parts := archive(string(doc))
			faults, err := faultengine.ParseFaults(parts["faults"])
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, planOf(t, parts["plan"]))
			rec := &recorder{}
			s, _, err := w.run(attempt{faults: faults, events: rec.add, opts: run.Options{Parallel: 1}})
			got := rec.String() + tail(s, err)
			if again, has := parts["again"]; has {
				rec := &recorder{}
				o := run.Options{Parallel: 1, RerunFailed: again == "rerun failed\n", RerunUnknown: again == "rerun unknown\n"}
				s, _, err := w.run(attempt{events: rec.add, opts: o})
				got += "== again\n" + rec.String() + tail(s, err)
			}
			got += "== target\n" + w.store.String()
			if *rewrite {
				parts["want"] = got
				var out strings.Builder
				for _, n := range names {
					out.WriteString("-- " + n + " --\n" + parts[n])
				}
				if err := os.WriteFile(f, []byte(out.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(parts["want"], got); d != "" {
				t.Error(d)
			}
		})
	}
}

// archive reads the parts of a txtar file.
func archive(doc string) (names []string, parts map[string]string) {
	parts = map[string]string{}
	for line := range strings.Lines(doc) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(name, " --") {
			names = append(names, strings.TrimSuffix(name, " --"))
			continue
		}
		if len(names) > 0 {
			parts[names[len(names)-1]] += line
		}
	}
	return names, parts
}

func tail(s run.Summary, err error) string {
	out := fmt.Sprintf("state %s, ran %d, rows %d:", s.State, s.Ran, s.Rows)
	for _, st := range status.All() {
		if n := s.Counts.Of(st); n != 0 {
			out += fmt.Sprintf(" %d %s", n, st)
		}
	}
	if s.Note != "" {
		out += " (" + s.Note + ")"
	}
	if err != nil {
		out += "\nerror " + err.Error()
	}
	return out + "\n"
}
