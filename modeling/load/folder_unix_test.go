//go:build unix

package load

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What only a real folder has: links, loops, pipes' kin, missing rights.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Init(dir, "p"); err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(shared, "linked.yml"): okYAML, filepath.Join(shared, "linked.sql"): "SELECT 1 AS id",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	link(filepath.Join(shared, "linked.yml"), "models/linked.yml")
	link(filepath.Join(shared, "linked.sql"), "models/linked.sql")
	link("..", "models/loop")
	link("ring.yml", "models/ring.yml")
	link("nowhere.sql", "models/gone.sql")
	if err := os.Mkdir(filepath.Join(dir, "models", "folder.yml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "models", "pipe.yml"), 0o644); err != nil {
		t.Skip(err)
	}
	p, diags := Dir(dir)
	want := []string{
		"missing_file models/gone.sql", "unreadable_file models/gone.sql", "symlink_ignored models/loop",
		"unreadable_file models/pipe.yml", "unreadable_file models/ring.yml",
	}
	if diff := cmp.Diff(want, brief(diags)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, diags.Error())
	}
	if p.Table("linked") == nil || p.Dir != dir || strings.Contains(diags.Error(), dir) {
		t.Errorf("linked table %v, dir %q, diagnostics %s", p.Table("linked"), p.Dir, diags.Error())
	}
	p, diags = Dir(filepath.Join(dir, "nowhere"))
	if diff := cmp.Diff([]string{"unreadable_file .", "missing_file retrofill.yml"}, brief(diags)); diff != "" || p == nil {
		t.Errorf("no folder (-want +got):\n%s", diff)
	}
}
