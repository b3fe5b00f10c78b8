// Package bench measures retrofill: suites as data, run by Run.
//
// Invariants: a case and its floor are measured in the same run, in
// interleaved rounds, because machines are noisy and only ratios can be
// trusted; a result says whether both sides made the same rows; the floor's
// SQL is a file of this package or is exactly what retrofill gave the engine;
// a case that cannot be measured says why.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config says what to run. Clock and at least one suite must be given.
type Config struct {
	Suites []string
	// Short makes everything small: it shows that the suites work, its numbers
	// mean nothing and carry no target.
	Short bool
	// Rounds is how often each side of a case is measured, 0 = 5 (short: 1).
	Rounds int
	// Binary is the built command retrofill; without it the cases that start
	// processes are left out, with a note.
	Binary string
	// Dir is where projects and databases are made, "" = a temporary folder
	// that is removed at the end.
	Dir string
	// Clock gives the present moment.
	Clock func() time.Time
	// Progress is told about each case as it ends; nil = nobody.
	Progress io.Writer
}

// Case is one result. Times are medians over the rounds, in seconds.
type Case struct {
	Suite, Name    string
	Seconds, Floor float64
	// Ratio is the median of the rounds' ratios of case to floor.
	Ratio float64
	// Target is the greatest ratio that is good, 0 = none is set.
	Target float64
	// Goal says that the floor is an absolute goal and was not measured.
	Goal bool
	// Equal says that both sides gave the same rows; where the floor is a goal,
	// that every round gave what was expected.
	Equal bool
	// Rows and Statements are what the case wrote and ran in one round.
	Rows, Statements int64
	// Spread is (slowest − fastest) / median of the case's rounds.
	Spread float64
	Rounds int
	// CPU is the median of the processor time of a started process, user and
	// system, in seconds: on a shared machine it tells more than the clock. 0 =
	// unknown.
	CPU float64
	// PeakMB is the greatest memory of a started process, 0 = unknown.
	PeakMB float64
}

// Met tells whether the target is met; true without one.
func (c Case) Met() bool { return c.Target == 0 || c.Ratio <= c.Target }

// Result is a run.
type Result struct {
	Machine Machine
	Rounds  int
	Short   bool
	Cases   []Case
	// Notes are findings that are no cases, such as fits, and what was left out.
	Notes []string
}

// Machine is what the numbers were measured on.
type Machine struct {
	OS, Arch string
	CPUs     int
	Go       string
	Engine   string // with its version
}

// suite is a named list of cases, made when it runs.
type suite struct {
	name  string
	about string
	run   func(ctx context.Context, r *runner) error
}

// suites lists all suites.
func suites() []suite {
	return []suite{
		{"overhead", "retrofill's own time around the engine's", overhead},
		{"planner", "planning of generated projects of 1,000 and 10,000 tables", planning},
	}
}

// Suites gives the names of all suites with what they measure.
func Suites() [][2]string {
	var out [][2]string
	for _, s := range suites() {
		out = append(out, [2]string{s.name, s.about})
	}
	return out
}

// UnknownSuiteError names a suite that is not there.
type UnknownSuiteError struct{ Name string }

// Error names the known suites.
func (e *UnknownSuiteError) Error() string {
	var known []string
	for _, s := range suites() {
		known = append(known, s.name)
	}
	return fmt.Sprintf("bench: there is no suite %q; the suites are %s", e.Name, strings.Join(known, ", "))
}

// Check tells whether Run could begin: *UnknownSuiteError, or what is missing.
func Check(cfg Config) error {
	if _, err := choose(cfg.Suites); err != nil {
		return err
	}
	if cfg.Clock == nil {
		return errors.New("bench: run: no clock is given")
	}
	return nil
}

func choose(names []string) ([]suite, error) {
	var chosen []suite
	for _, name := range names {
		i := slices.IndexFunc(suites(), func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, &UnknownSuiteError{Name: name}
		}
		chosen = append(chosen, suites()[i])
	}
	if len(chosen) == 0 {
		return nil, errors.New("bench: run: no suite is given")
	}
	return chosen, nil
}

// Run measures the suites in the given order. Errors: those of Check, and
// failures of what is measured; then the result holds what was measured before.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	if err := Check(cfg); err != nil {
		return Result{}, err
	}
	chosen, err := choose(cfg.Suites)
	if err != nil {
		return Result{}, err
	}
	switch {
	case cfg.Rounds <= 0 && cfg.Short:
		cfg.Rounds = 1
	case cfg.Rounds <= 0:
		cfg.Rounds = 5
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = os.MkdirTemp("", "retrofill-bench-"); err != nil {
			return Result{}, fmt.Errorf("bench: make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(cfg.Dir)) }()
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return Result{}, fmt.Errorf("bench: make folder: %w", err)
	}
	r := &runner{cfg: cfg}
	r.res.Machine = Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	r.res.Rounds, r.res.Short = cfg.Rounds, cfg.Short
	if r.res.Machine.Engine, err = engineVersion(ctx); err != nil {
		return Result{}, err
	}
	for _, s := range chosen {
		r.suite = s.name
		if err := s.run(ctx, r); err != nil {
			return r.res, fmt.Errorf("bench: suite %s: %w", s.name, err)
		}
	}
	return r.res, nil
}

// runner is one run.
type runner struct {
	cfg   Config
	res   Result
	suite string
}

func (r *runner) note(format string, args ...any) {
	r.res.Notes = append(r.res.Notes, r.suite+": "+fmt.Sprintf(format, args...))
}

// seconds times f.
func (r *runner) seconds(f func() error) (float64, error) {
	began := r.cfg.Clock()
	err := f()
	return r.cfg.Clock().Sub(began).Seconds(), err
}
