package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Exit codes, as `retrofill --help` and docs/cli.md list them.
const (
	exitOK       = 0
	exitFailed   = 1
	exitRefused  = 2
	exitStopped  = 3
	exitConflict = 4
	exitUnknown  = 5
	exitKilled   = 130
)

// exitLine is one row of the table of exit codes.
type exitLine struct {
	Code    int
	Meaning string
}

// exitTable is the one table of exit codes; help and docs are made from it.
func exitTable() []exitLine {
	return []exitLine{
		{exitOK, "done"},
		{exitFailed, "some instances failed, or an unexpected error"},
		{exitRefused, "usage error, bad project or refused plan: nothing was run"},
		{exitStopped, "stopped or paused (first Ctrl-C, stop, pause, a budget, or no at the question)"},
		{exitConflict, "locked by, or in conflict with, another process or backfill"},
		{exitUnknown, "an instance's outcome is unknown: the engine may or may not have committed"},
		{exitKilled, "killed (second Ctrl-C)"},
	}
}

// exitError carries an exit code with the error or diagnostics behind it.
type exitError struct {
	code   int
	err    error     // nil when diags say it all
	silent bool      // the command has printed everything itself
	diags  diag.List // shown as text, or as JSON with -o json
}

// Error gives the text for people.
func (e *exitError) Error() string {
	switch {
	case len(e.diags) > 0 && e.err != nil:
		return e.diags.Error() + "\n" + e.err.Error()
	case len(e.diags) > 0:
		return e.diags.Error()
	case e.err != nil:
		return e.err.Error()
	}
	return fmt.Sprintf("exit code %d", e.code)
}

// Unwrap gives the error behind the code.
func (e *exitError) Unwrap() error { return e.err }

// refuse makes a refusal (exit code 2) of diagnostics.
func refuse(l diag.List) error { return &exitError{code: exitRefused, diags: l} }

// refusef makes a refusal of one diagnostic.
func refusef(code, format string, args ...any) error {
	return refuse(diag.List{diag.Errorf(code, format, args...)})
}

// exitCode maps an error to the table.
func exitCode(err error) int {
	var e *exitError
	var d diag.Diagnostic
	var l diag.List
	var file *ledger.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case conflicts(err):
		return exitConflict
	case errors.As(err, &d), errors.As(err, &l), errors.As(err, &file):
		return exitRefused
	case errors.Is(err, ledger.ErrNotFound), errors.As(err, new(*ledger.NameTakenError)), errors.As(err, new(*ledger.PausedError)):
		return exitRefused
	}
	return exitFailed
}

// conflicts tells whether an error means that another process or backfill is
// in the way.
func conflicts(err error) bool {
	var file *ledger.Error
	return errors.Is(err, executors.ErrLocked) || errors.Is(err, ledger.ErrFenced) || errors.Is(err, executors.ErrFenced) ||
		errors.As(err, new(*ledger.ConflictError)) || errors.As(err, new(*ledger.OwnedError)) ||
		errors.As(err, &file) && file.Code == ledger.CodeLocked
}

// diagnosticsOf gives any error as diagnostics.
func diagnosticsOf(err error) diag.List {
	var e *exitError
	var l diag.List
	var d diag.Diagnostic
	var own interface{ Diagnostic() diag.Diagnostic }
	var conflict *ledger.ConflictError
	var owned *ledger.OwnedError
	var taken *ledger.NameTakenError
	switch {
	case errors.As(err, &e) && len(e.diags) > 0:
		return e.diags
	case errors.As(err, &l):
		return l
	case errors.As(err, &d):
		return diag.List{d}
	case errors.As(err, &own):
		return diag.List{own.Diagnostic()}
	case errors.As(err, &conflict):
		d = diag.Errorf("conflict", "%s", unprefixed(conflict)).
			WithHint("wait until it ends: `retrofill status %s` shows how it stands", shellWord(conflict.Backfill))
	case errors.As(err, &owned):
		d = diag.Errorf("conflict", "%s", unprefixed(owned)).
			WithHint("`retrofill status %s -w` watches it", shellWord(owned.Backfill))
	case errors.As(err, &taken):
		d = diag.Errorf("name_taken", "the name %q is taken by another backfill", taken.Name).WithHint("choose another one with --name")
	case errors.Is(err, ledger.ErrFenced), errors.Is(err, executors.ErrFenced):
		d = diag.Errorf("fenced", "another process has taken the backfill over").WithDetail("%v", err).
			WithHint("`retrofill status` shows who runs it; nothing was written twice")
	case errors.Is(err, executors.ErrLocked):
		d = diag.Errorf("locked", "%s", unprefixed(err)).WithHint("wait for that process or end it; `status`, `logs` and `plan` work meanwhile")
	default:
		d = diag.Errorf("error", "%v", err)
	}
	return diag.List{d}
}

// unprefixed leaves out the name of the package that an error comes from.
func unprefixed(err error) string {
	text := err.Error()
	for _, p := range []string{"ledger: ", "duckdb: ", "run: "} {
		text = strings.TrimPrefix(text, p)
	}
	return text
}
