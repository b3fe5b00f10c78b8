package load

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/diag"
)

// maxSQLBytes is the greatest size of one SQL file.
const maxSQLBytes = 8 << 20

// file is one project file: its text has LF line ends and no byte order mark.
type file struct {
	path  string // relative to the project, slashes
	entry fs.DirEntry
	text  string
	sha   *[sha256.Size]byte
}

// group is the files of one table or task.
type group struct {
	base     string // path without .yml and .sql
	task     bool
	metrics  bool // one file under metrics
	yaml     file
	sql      file
	variants map[string]*file // by engine type
}

// walked is what the folder holds.
type walked struct {
	groups []group                // sorted by base
	found  map[string]fs.DirEntry // at the root
	diags  diag.List
}

// walk finds the project's files. Names that start with a dot or an
// underscore are left out, folders behind symbolic links too (with a
// warning), so that no loop can form.
func walk(fsys fs.FS) walked {
	w := walked{found: map[string]fs.DirEntry{}}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		w.diags = append(w.diags, unreadable(".", err))
		return w
	}
	for _, e := range entries {
		w.found[e.Name()] = e
	}
	groups := map[string]*group{}
	for _, root := range []string{"models", "tasks", "metrics"} {
		if w.found[root] == nil {
			continue
		}
		var files []file
		err := fs.WalkDir(fsys, root, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				w.diags = append(w.diags, unreadable(p, err))
				return nil
			}
			return w.visit(fsys, p, e, &files)
		})
		if err != nil {
			w.diags = append(w.diags, unreadable(root, err))
		}
		if root == "metrics" {
			w.metrics(groups, files)
			continue
		}
		w.pair(groups, files, root == "tasks")
	}
	for _, g := range groups {
		w.groups = append(w.groups, *g)
	}
	slices.SortFunc(w.groups, func(a, b group) int { return cmp.Compare(a.base, b.base) })
	return w
}

func (w *walked) visit(fsys fs.FS, p string, e fs.DirEntry, files *[]file) error {
	hidden := strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_")
	switch {
	case hidden && e.IsDir():
		return fs.SkipDir
	case hidden || e.IsDir():
		return nil
	case e.Type()&fs.ModeSymlink != 0:
		if info, err := fs.Stat(fsys, p); err == nil && info.IsDir() {
			w.diags = append(w.diags, diag.Warnf("symlink_ignored", "the folder behind the symbolic link %s is not read", p).
				At(diag.Pos{File: p}).WithHint("put the files into the project, or link them one by one"))
			return nil
		}
	}
	switch strings.ToLower(path.Ext(p)) {
	case ".yml", ".yaml", ".sql":
		*files = append(*files, file{path: p, entry: e})
	}
	return nil
}

// metrics takes the files of metrics, each for itself.
func (w *walked) metrics(groups map[string]*group, files []file) {
	for _, f := range files {
		if strings.EqualFold(path.Ext(f.path), ".sql") {
			w.diags = append(w.diags, diag.Errorf("bad_file", "%s is a SQL file among the metrics", f.path).At(diag.Pos{File: f.path}).
				WithHint("metrics are YAML; put a table's SELECT under models"))
			continue
		}
		groups[f.path] = &group{base: f.path, metrics: true, yaml: f}
	}
}

// pair brings the files of one table or task together.
func (w *walked) pair(groups map[string]*group, files []file, task bool) {
	of := func(base string) *group {
		if groups[base] == nil {
			groups[base] = &group{base: base, task: task}
		}
		return groups[base]
	}
	twice := func(f, first file) {
		w.diags = append(w.diags, diag.Errorf("duplicate_file", "%s says the same as %s", f.path, first.path).
			At(diag.Pos{File: f.path}).WithHint("keep one of the two files"))
	}
	for _, f := range files {
		ext := path.Ext(f.path)
		if strings.EqualFold(ext, ".sql") {
			continue
		}
		if g := of(strings.TrimSuffix(f.path, ext)); g.yaml.path != "" {
			twice(f, g.yaml)
		} else {
			g.yaml = f
		}
	}
	for _, f := range files {
		ext := path.Ext(f.path)
		if !strings.EqualFold(ext, ".sql") {
			continue
		}
		base := strings.TrimSuffix(f.path, ext)
		engine := strings.TrimPrefix(path.Ext(base), ".")
		if groups[base] == nil && !task && slices.Contains(engineTypes[:], engine) {
			g := of(strings.TrimSuffix(base, "."+engine))
			if g.variants == nil {
				g.variants = map[string]*file{}
			}
			g.variants[engine] = &f
			continue
		}
		if g := of(base); g.sql.path != "" {
			twice(f, g.sql)
		} else {
			g.sql = f
		}
	}
}

// noProject reports a folder without retrofill.yml.
func (w *walked) noProject() diag.Diagnostic {
	hint := "change into the project folder, or make a project with retrofill init"
	for name := range w.found {
		if base := strings.ToLower(name); base == "retrofill.yaml" || base == ProjectFile {
			hint = "rename " + name + " to " + ProjectFile
		}
	}
	return diag.Errorf("missing_file", "there is no %s in this folder", ProjectFile).At(diag.Pos{File: ProjectFile}).WithHint("%s", hint)
}

// fetch reads one file that the walk found into f.text.
func fetch(fsys fs.FS, f *file) (diag.Diagnostic, bool) {
	at, entry := diag.Pos{File: f.path}, f.entry
	limit := int64(maxYAMLBytes)
	if strings.EqualFold(path.Ext(f.path), ".sql") {
		limit = maxSQLBytes
	}
	// Type and size before opening: opening a pipe would wait for ever.
	info, err := entry.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = fs.Stat(fsys, f.path)
	}
	if err != nil {
		return unreadable(f.path, err), false
	}
	if !info.Mode().IsRegular() {
		return unreadable(f.path, errors.New("not a regular file")), false
	}
	var raw []byte
	if info.Size() <= limit {
		raw, err = readUpTo(fsys, f.path, info.Size(), limit)
		if err != nil {
			return unreadable(f.path, err), false
		}
	}
	if info.Size() > limit || int64(len(raw)) > limit {
		return diag.Errorf("too_large", "the file has %.1f MB, more than %d MB", float64(max(info.Size(), int64(len(raw))))/(1<<20), limit>>20).At(at).
			WithHint("split it; data does not belong into project files"), false
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if bad := firstBad(raw); bad >= 0 {
		line, col := lineColumn(raw, bad)
		return diag.Errorf("not_utf8", "the file is not UTF-8 text").At(diag.Pos{File: f.path, Line: line, Column: col}).
			WithDetail("byte 0x%02x at offset %d", raw[bad], bad).WithHint("save it with encoding UTF-8"), false
	}
	f.text = string(raw)
	if strings.IndexByte(f.text, '\r') >= 0 {
		f.text = strings.ReplaceAll(strings.ReplaceAll(f.text, "\r\n", "\n"), "\r", "\n")
	}
	return diag.Diagnostic{}, true
}

func readUpTo(fsys fs.FS, name string, size, limit int64) (raw []byte, err error) {
	r, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = buf.ReadFrom(io.LimitReader(r, limit+1))
	return buf.Bytes(), err
}

// firstBad is the offset of the first byte that no text file has, or -1.
func firstBad(raw []byte) int {
	if utf8.Valid(raw) {
		return bytes.IndexByte(raw, 0)
	}
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// lineColumn gives line and column (in characters, from 1) of an offset.
func lineColumn(raw []byte, offset int) (line, column int) {
	before := raw[:offset]
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

func unreadable(p string, err error) diag.Diagnostic {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the path would tell the machine's folders
	}
	return diag.Errorf("unreadable_file", "cannot read %s: %v", p, err).At(diag.Pos{File: p}).
		WithHint("check that it is a plain file that you may read")
}

// emptySQL reports a SQL file without any statement.
func (b *builder) emptySQL(f file) {
	if f.sha == nil || !onlyComments(f.text) {
		return
	}
	b.report(diag.Errorf("empty_file", "the file holds no SQL").At(diag.Pos{File: f.path, Line: 1, Column: 1}).
		WithHint("write a SELECT, or delete the file"))
}

// onlyComments tells whether SQL has nothing but blanks, semicolons and
// comments.
func onlyComments(s string) bool {
	for {
		s = strings.TrimLeft(s, " \t\n\r\f\v;\u00a0")
		switch {
		case s == "":
			return true
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			var closed bool
			if _, s, closed = strings.Cut(s, "*/"); !closed {
				return true
			}
		default:
			return false
		}
	}
}

func (f *file) sum() {
	s := sha256.Sum256([]byte(f.text))
	f.sha = &s
}

// digest is the sha256 over version, paths and checksums of the files, in the
// order of their paths. Line ends and byte order marks do not count.
func digest(files []file) string {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	h := sha256.New()
	h.Write([]byte{1})
	for _, f := range files {
		fmt.Fprintf(h, "%d:%s", len(f.path), f.path)
		h.Write(f.sha[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}
