package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
)

// stateDir is the folder inside a project that retrofill keeps its own files in.
const stateDir = ".retrofill"

// ledgerFile is the ledger inside stateDir.
const ledgerFile = "ledger.db"

// projectFlags choose the project and the environment.
func projectFlags() []cli.Flag {
	return []cli.Flag{dirFlag(), envFlag()}
}

func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Aliases: []string{"C"}, Usage: "project `FOLDER`, or one below it (default: the working folder)"}
}

func envFlag() cli.Flag {
	return &cli.StringFlag{Name: "env", Usage: "environment `NAME` (default: the project's default environment)"}
}

// projectOptions are what the project flags say.
type projectOptions struct {
	Dir string
	Env string
}

func projectOptionsOf(c *cli.Context) projectOptions {
	return projectOptions{Dir: c.String("dir"), Env: c.String("env")}
}

// workspace is an opened project: what most commands begin with.
type workspace struct {
	Project     *modeling.Project
	Environment *modeling.Environment // nil when the project has none
	Zone        *time.Location
	// Warnings of loading; already fit to be shown.
	Warnings diag.List
	env      *Env
}

// openProject finds retrofill.yml in the folder or above it and loads the
// project. All problems of all files are refused together.
func openProject(o projectOptions, env *Env) (*workspace, error) {
	return openWorkspace(o, env, func(diag.Diagnostic) bool { return true })
}

// openRecords opens a project for commands that look at its ledger only:
// mistakes in tables and tasks, which may be edited just now, do not matter.
func openRecords(o projectOptions, env *Env) (*workspace, error) {
	return openWorkspace(o, env, inProjectFile)
}

func inProjectFile(d diag.Diagnostic) bool { return d.File == load.ProjectFile }

// openWorkspace loads a project; problems for which matters is false are left
// out.
func openWorkspace(o projectOptions, env *Env, matters func(diag.Diagnostic) bool) (*workspace, error) {
	dir, err := findProject(o.Dir, env)
	if err != nil {
		return nil, err
	}
	p, diags := load.Dir(dir)
	diags = slices.DeleteFunc(diags, func(d diag.Diagnostic) bool { return !matters(d) })
	if diags.HasErrors() {
		return nil, refuse(diags)
	}
	w := &workspace{Project: p, Warnings: diags, env: env, Environment: p.Environment(o.Env)}
	if w.Environment == nil && o.Env != "" {
		var names []string
		for _, e := range p.Environments {
			names = append(names, e.Name)
		}
		return nil, refuse(diag.List{diag.Errorf("unknown_environment", "the project %s has no environment %q", p.Name, o.Env).
			WithHint("%s", diag.DidYouMean(o.Env, names, "its environments are in "+load.ProjectFile))})
	}
	if w.Zone, err = loadZone(p.Zone); err != nil {
		return nil, err
	}
	return w, nil
}

// findProject gives the folder that holds retrofill.yml: the given one or the
// nearest above it.
func findProject(dir string, env *Env) (string, error) {
	start := env.path(dir)
	if info, err := os.Stat(start); err != nil || !info.IsDir() {
		return "", refuse(diag.List{diag.Errorf("missing_folder", "the folder %s is not there", start).WithHint("check --dir")})
	}
	abs, err := filepath.Abs(start)
	if err != nil {
		return "", refusef("missing_folder", "the folder %s cannot be found: %v", start, err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, load.ProjectFile)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", refuse(diag.List{diag.Errorf("no_project", "there is no %s in %s or above it", load.ProjectFile, start).
				WithHint("change into a project, name one with --dir, or make one with `retrofill init`")})
		}
	}
}

// path gives a path that the user wrote, seen from the working folder.
func (e *Env) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Dir, p)
}

func loadZone(name string) (*time.Location, error) {
	if name == "" {
		name = "UTC"
	}
	z, err := bizdate.LoadZone(name)
	if err != nil {
		return nil, refuse(diag.List{diag.Errorf("bad_zone", "%q is not a known time zone", name).WithHint("use an IANA name such as Europe/Paris")})
	}
	return z, nil
}

// zoneOrProject gives the named zone; else that of the project that the
// working folder is in; else UTC. Mistakes in a project's tables do not matter
// here, one in its project file does: the zone decides what today is.
func zoneOrProject(zone string, env *Env) (*time.Location, error) {
	if zone != "" {
		return loadZone(zone)
	}
	dir, err := findProject("", env)
	if err != nil {
		return time.UTC, nil // no project: works without one
	}
	p, diags := load.Dir(dir)
	if own := slices.DeleteFunc(diags.Errors(), func(d diag.Diagnostic) bool { return !inProjectFile(d) }); len(own) > 0 {
		return nil, refuse(own)
	}
	return loadZone(p.Zone)
}

// ledgerPath gives the place of the project's ledger.
func (w *workspace) ledgerPath() string { return filepath.Join(w.Project.Dir, stateDir, ledgerFile) }

// openLedger opens the project's ledger, which is made if it is not there.
func (w *workspace) openLedger(ctx context.Context) (*ledger.Ledger, error) {
	return w.ledger(ctx, false)
}

// readLedger opens the ledger for reading; nil without an error when there is
// none yet.
func (w *workspace) readLedger(ctx context.Context) (*ledger.Ledger, error) {
	if _, err := os.Stat(w.ledgerPath()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	l, err := w.ledger(ctx, true)
	var own *ledger.Error
	if errors.As(err, &own) && own.Code == ledger.CodeOlder { // may be migrated
		return w.ledger(ctx, false)
	}
	return l, err
}

func (w *workspace) ledger(ctx context.Context, readOnly bool) (*ledger.Ledger, error) {
	clock, err := w.env.clock(w.Zone)
	if err != nil {
		return nil, err
	}
	if !readOnly {
		if err := keepStateOut(filepath.Join(w.Project.Dir, stateDir)); err != nil {
			return nil, err
		}
	}
	return ledger.Open(ctx, w.ledgerPath(), ledger.Options{Clock: clock, ReadOnly: readOnly, Alive: alive})
}

// keepStateOut makes the state folder with a .gitignore inside, so that it is
// never committed with the project.
func keepStateOut(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return refuse(diag.List{diag.Errorf("unwritable_folder", "the folder %s cannot be made", dir).WithDetail("%v", err).
			WithHint("retrofill keeps its ledger there; check the permissions of the project folder")})
	}
	ignore := filepath.Join(dir, ".gitignore")
	if _, err := os.Stat(ignore); err == nil {
		return nil
	}
	if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
		return refuse(diag.List{diag.Errorf("unwritable_folder", "the folder %s cannot be written", dir).WithDetail("%v", err).
			WithHint("retrofill keeps its ledger there; check its permissions and the free space")})
	}
	return nil
}

// owner names this process to the ledger.
func owner() ledger.Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // only tells machines apart
	}
	return ledger.Owner{Host: host, PID: os.Getpid()}
}

// EngineOptions say how an engine is opened.
type EngineOptions struct {
	// Dir is the folder that relative paths start from: the project's.
	Dir string
	// Create makes a database file that is not there yet.
	Create bool
	// ReadOnly opens without the right to write.
	ReadOnly bool
	// Connections is the number of units that run side by side, 0 = the
	// engine's default.
	Connections int
	// Settings bound its resources, besides the project's own options.
	Settings map[string]string
	// Getenv resolves ${env:NAME} in paths and addresses.
	Getenv func(string) string
}

// openEngine opens the engine of the chosen environment.
func (w *workspace) openEngine(ctx context.Context, o EngineOptions) (executors.Engine, error) {
	if w.Environment == nil {
		return nil, refuse(diag.List{diag.Errorf("no_environment", "the project %s has no environment to run in", w.Project.Name).
			WithHint("add environments: to %s", load.ProjectFile)})
	}
	e := w.Project.Engine(w.Environment.Engine)
	if e == nil {
		return nil, refuse(diag.List{diag.Errorf("unknown_engine", "the environment %s names the engine %q, which the project does not have", w.Environment.Name, w.Environment.Engine).
			At(w.Environment.Pos).WithHint("add it to engines: of %s", load.ProjectFile)})
	}
	o.Dir, o.Getenv = w.Project.Dir, w.env.Getenv
	if w.env.OpenEngine == nil {
		return nil, errors.New("cli: open engine: this program was built without engines")
	}
	return w.env.OpenEngine(ctx, *e, o)
}
