package load

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

//go:embed template
var template embed.FS

// Template gives the files of a small working project, by slash path: a
// source that a SQL task fills, a dimension, a fact of two materialization
// nodes and a daily summary. name becomes the project's name; it must be
// valid (diagnostic bad_name).
func Template(name string) (map[string][]byte, error) {
	b := &builder{}
	if !b.goodName(word{Text: name, Pos: diag.Pos{Line: 1}}, "project") {
		d := b.diags[0]
		d.Pos = diag.Pos{}
		return nil, d
	}
	quoted, err := json.Marshal(name) // a JSON string is a YAML one
	if err != nil {
		return nil, fmt.Errorf("load: encode project name: %w", err)
	}
	out := map[string][]byte{}
	err = fs.WalkDir(template, "template", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := template.ReadFile(p)
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(p, "template/")
		if rel == "gitignore" { // with its dot it would be in force here
			rel = ".gitignore"
		}
		out[rel] = []byte(strings.ReplaceAll(string(text), "{{name}}", string(quoted)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load: read template: %w", err)
	}
	return out, nil
}

// Init writes the Template into dir, which is made if it is not there, and
// gives the files written, sorted. It replaces nothing: if any of the files is
// there already, it writes none and gives a diagnostic file_exists that lists
// them. If writing fails half-way it removes what it has made.
func Init(dir, name string) (written []string, err error) {
	files, err := Template(name)
	if err != nil {
		return nil, err
	}
	for rel := range files {
		written = append(written, rel)
	}
	slices.Sort(written)
	var there []string
	for _, rel := range written {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(rel))); err == nil {
			there = append(there, rel)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load: look for %s: %w", rel, err)
		}
	}
	if len(there) > 0 {
		return nil, diag.Errorf("file_exists", "the folder holds %d of the files already; nothing was written", len(there)).
			WithDetail("%s", strings.Join(there, "\n")).WithHint("choose an empty folder, or move these files away")
	}
	var made []string // files and folders, in the order made
	defer func() {
		if err == nil {
			return
		}
		written = nil
		for _, p := range slices.Backward(made) {
			err = errors.Join(err, os.Remove(p))
		}
	}()
	for _, rel := range written {
		full := filepath.Join(dir, filepath.FromSlash(rel))
		if err := makeFolders(filepath.Dir(full), &made); err != nil {
			return nil, fmt.Errorf("load: make folder of %s: %w", rel, err)
		}
		if err := writeNew(full, files[rel], &made); err != nil {
			return nil, fmt.Errorf("load: write %s: %w", rel, err)
		}
	}
	return written, nil
}

// makeFolders is os.MkdirAll that notes what it has made.
func makeFolders(dir string, made *[]string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("not a folder")}
		}
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeFolders(parent, made); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	*made = append(*made, dir)
	return nil
}

// writeNew writes a file that must not exist.
func writeNew(full string, text []byte, made *[]string) (err error) {
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	*made = append(*made, full)
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}
