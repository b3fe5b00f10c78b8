// Package load reads a project folder into a modeling.Project and reports
// every problem of every file at once, with file, line and column (design,
// "Logical tables in a project").
//
// Invariants:
//   - One description per YAML file, its key table (projectFile, tableFile,
//     taskFile, metricFile), gives the decoder, the JSON Schema and the manual's tables;
//     they cannot say different things.
//   - Loading never panics on what a file holds, runs nothing, and reads
//     nothing outside the project folder's tree but what a symbolic link to a
//     file points at.
//   - The same files give the same project, digest and diagnostics, in any
//     folder and on any machine.
package load

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// ProjectFile is the name of the file that makes a folder a project.
const ProjectFile = "retrofill.yml"

// Dir loads the project in a folder of the file system; Project.Dir is its
// absolute path. See Load.
func Dir(dir string) (*modeling.Project, diag.List) {
	p, diags := Load(os.DirFS(dir))
	p.Dir = dir
	if full, err := filepath.Abs(dir); err == nil {
		p.Dir = full
	}
	return p, diags
}

// Load loads a project from a file tree with retrofill.yml at its root. The
// project is never nil; where diags has errors it holds what could be read,
// for display only, and must not be planned. All problems of all files are
// reported, sorted by place.
func Load(fsys fs.FS) (*modeling.Project, diag.List) {
	w := walk(fsys)
	diags := w.diags

	read := rawProject{}
	pb := &builder{file: ProjectFile}
	project := file{path: ProjectFile, entry: w.found[ProjectFile]}
	if project.entry == nil {
		diags = append(diags, w.noProject())
	} else if d, ok := fetch(fsys, &project); !ok {
		diags = append(diags, d)
	} else {
		read, _ = decode(pb, project, projectFile())
	}
	p := pb.project(read)

	l := loader{fsys: fsys, tables: tableFile(), tasks: taskFile(), metrics: metricFile(), results: make([]result, len(w.groups))}
	l.all(w.groups)

	project.sum()
	sums := []file{project}
	builders := []*builder{pb}
	for _, r := range l.results {
		if r.table != nil {
			p.Tables = append(p.Tables, r.table)
		}
		if r.task != nil {
			p.Tasks = append(p.Tasks, r.task)
		}
		p.Metrics = joinMetrics(p.Metrics, r.metrics)
		builders = append(builders, r.b)
		sums = append(sums, r.files...)
	}
	p.Digest = digest(sums)
	slices.SortStableFunc(p.Tables, func(a, b *modeling.Table) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(p.Tasks, func(a, b *modeling.Task) int { return cmp.Compare(a.Name, b.Name) })
	whole := &builder{}
	whole.crossFile(p, builders)
	whole.compose(p)
	for _, b := range append(builders, whole) {
		diags = append(diags, b.diags...)
	}
	diags.Sort()
	return p, diags
}

// loader reads the groups of files side by side.
type loader struct {
	fsys    fs.FS
	tables  value[rawTable]
	tasks   value[rawTask]
	metrics value[rawMetrics]
	results []result
}

type result struct {
	b       *builder
	table   *modeling.Table
	task    *modeling.Task
	metrics *modeling.Metrics
	files   []file // read, with checksums
}

func (l *loader) all(groups []group) {
	g, _ := errgroup.WithContext(context.Background())
	workers := min(runtime.GOMAXPROCS(0), 8)
	for w := range workers {
		g.Go(func() error {
			for i := w; i < len(groups); i += workers {
				l.results[i] = l.one(groups[i])
			}
			return nil
		})
	}
	_ = g.Wait() // no worker fails: problems are diagnostics
}

// one reads the files of one table or task.
func (l *loader) one(g group) result {
	r := result{b: &builder{file: g.yaml.path}}
	whole := true
	get := func(f *file) {
		if f.path == "" {
			return
		}
		d, ok := fetch(l.fsys, f)
		if !ok {
			r.b.report(d)
			whole = false
			return
		}
		f.sum()
		r.files = append(r.files, *f)
	}
	get(&g.yaml)
	get(&g.sql)
	for name, f := range g.variants {
		get(f)
		r.b.emptySQL(*f)
		if g.yaml.path == "" && g.sql.path == "" {
			r.b.report(diag.Errorf("missing_file", "%s varies a file that is not there", f.path).At(diag.Pos{File: f.path}).
				WithHint("add %s.sql and %s.yml; %s is its variant for %s", g.base, g.base, f.path, name))
		}
	}
	if g.yaml.path == "" {
		if g.sql.path != "" {
			r.b.report(diag.Errorf("missing_file", "%s has no YAML file beside it", g.sql.path).At(diag.Pos{File: g.sql.path}).
				WithHint("add %s.yml (docs/project-files.md shows its keys)", g.base))
		}
		return r
	}
	if g.sql.path != "" {
		r.b.emptySQL(g.sql)
	}
	switch {
	case g.yaml.sha == nil: // unreadable, reported
	case g.metrics:
		if raw, ok := decode(r.b, g.yaml, l.metrics); ok {
			r.metrics = r.b.metrics(raw)
		}
	case g.task:
		raw, n := decode(r.b, g.yaml, l.tasks)
		if n && whole {
			r.task = r.b.task(raw, g)
		}
		r.b.taskFiles(raw, g, n)
	default:
		raw, n := decode(r.b, g.yaml, l.tables)
		if !raw.has("compose") && g.sql.path == "" {
			r.b.report(diag.Errorf("missing_file", "%s has no SQL file beside it", g.yaml.path).At(diag.Pos{File: g.yaml.path}).
				WithHint("add %s.sql with the table's SELECT, or delete %s", g.base, g.yaml.path))
		}
		if n {
			r.table = r.b.table(raw, g)
		}
	}
	return r
}

// taskFiles checks that a task is a command or a script, not both.
func (b *builder) taskFiles(raw rawTask, g group, said bool) {
	switch has := raw.has("command"); {
	case has && g.sql.path != "":
		b.report(diag.Errorf("bad_value", "the task has both a command and %s", g.sql.path).At(raw.at("command")).
			WithHint("keep one of the two"))
	case !has && g.sql.path == "" && said:
		b.report(diag.Errorf("missing_file", "%s has neither a command nor a SQL file beside it", g.yaml.path).At(diag.Pos{File: g.yaml.path}).
			WithHint("add %s.sql, or command: [program, argument, …]", g.base))
	}
}

// decode reads one YAML file by its key table and tells whether it could be
// read as a mapping.
func decode[T any](b *builder, f file, v value[T]) (T, bool) {
	var out T
	d := &decoder{file: f.path}
	root := d.document(f.text)
	ok := false
	if root != nil {
		out, ok = readAs(d, v, root)
	}
	b.diags = append(b.diags, d.diags...)
	return out, ok
}
