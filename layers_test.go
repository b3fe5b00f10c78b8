package retrofill_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/retrofill/retrofill/"

// layers is the table of allowed imports between the rooms: a package may
// import the packages whose path starts with one of the listed prefixes. The
// longest matching row counts. A new edge is a decision: add it here, with its
// reason in the commit.
var layers = map[string][]string{
	"modeling/diag":         {},
	"modeling/bizdate":      {"modeling/diag"},
	"modeling/param":        {"modeling/bizdate", "modeling/diag"},
	"modeling":              {"modeling/diag"},
	"modeling/sqlast":       {"modeling/diag"},
	"modeling/metric":       {"modeling"},
	"modeling/load":         {"modeling"},
	"planner/dialect":       {},
	"planner/plan":          {"modeling"},
	"planner/groups":        {"modeling"},
	"planner/status":        {"modeling"},
	"planner/fields":        {"modeling"},
	"planner/selector":      {"modeling"},
	"planner/compile":       {"planner/plan", "planner/dialect"},
	"planner/compile/spine": {"modeling", "planner/dialect", "planner/plan"},
	"planner":               {"modeling", "planner"},
	"executors":             {"modeling", "planner/plan"},
	"executors/faultengine": {"executors", "planner/plan"},
	"executors/enginetest":  {"executors", "planner/dialect"},
	"executors/duckdb":      {"executors", "planner/dialect", "modeling"},
	"executors/postgres":    {"executors", "planner/dialect", "modeling"},
	"executors/sqlscript":   {"executors"},
	"executors/ledger":      {"modeling", "planner"},
	"executors/run":         {"modeling", "planner", "executors"},
	"fixtures":              {"modeling", "planner", "executors"},
	"bench":                 {"modeling", "planner", "executors", "fixtures", "bench"},
	"cmd":                   {"modeling", "planner", "executors", "fixtures", "bench", "cmd"},
}

// drivers may be imported only below these rooms.
var drivers = map[string][]string{
	"github.com/duckdb/duckdb-go": {"executors/duckdb", "fixtures", "bench"},
	"github.com/jackc/pgx":        {"executors/postgres"},
	"modernc.org/sqlite":          {"executors/ledger"},
	"github.com/urfave/cli":       {"cmd"},
}

// TestLayers fails on an import between rooms that the table does not allow.
// Test files are looked at as well, but may import any room below their own
// and the engines that they are run on.
func TestLayers(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || !strings.Contains(path, "/") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		row := rowOf(pkg)
		if row == "" {
			t.Errorf("%s: no row in the layers table for package %s", path, pkg)
			return nil
		}
		seen[row] = true
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if in, ok := strings.CutPrefix(name, module); ok {
				if in != pkg && !slices.ContainsFunc(layers[row], func(p string) bool { return in == p || strings.HasPrefix(in, p+"/") }) {
					t.Errorf("%s imports %s, which the row %q does not allow", path, in, row)
				}
			}
			for prefix, rooms := range drivers {
				if strings.HasPrefix(name, prefix) && !slices.ContainsFunc(rooms, func(r string) bool { return pkg == r || strings.HasPrefix(pkg, r+"/") }) {
					t.Errorf("%s imports the driver %s, allowed only in %v", path, name, rooms)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for row := range layers {
		if !seen[row] {
			t.Errorf("the layers table has a row %q without a package", row)
		}
	}
}

// rowOf gives the longest row that holds the package.
func rowOf(pkg string) string {
	best := ""
	for row := range layers {
		if (pkg == row || strings.HasPrefix(pkg, row+"/")) && len(row) > len(best) {
			best = row
		}
	}
	return best
}
