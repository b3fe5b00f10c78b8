package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/retrofill/retrofill/modeling/diag"
)

// The codes of Error.
const (
	CodeNewer      = "ledger_newer"
	CodeOlder      = "ledger_older"
	CodeCorrupt    = "ledger_corrupt"
	CodeForeign    = "ledger_not_a_ledger"
	CodeReadOnly   = "ledger_read_only"
	CodeFull       = "ledger_full"
	CodeLocked     = "ledger_locked"
	CodeMissing    = "ledger_missing"
	CodeUnopenable = "ledger_unopenable"
	CodeIO         = "ledger_io"
)

// Error is a problem of the ledger file itself, in words for people.
type Error struct {
	Code string
	Path string
	Op   string // what was being done
	Err  error
}

// Error says what was done, to which file, and what is wrong.
func (e *Error) Error() string {
	return fmt.Sprintf("ledger: %s %s: %s: %v", e.Op, e.Path, e.summary(), e.Err)
}

// Unwrap gives the driver's or the system's error.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) summary() string {
	s, _ := e.words()
	return s
}

func (e *Error) words() (summary, hint string) {
	switch e.Code {
	case CodeNewer:
		return "the ledger was written by a newer retrofill", "use that version, or another ledger file"
	case CodeOlder:
		return "the ledger has an older format", "run a command that may write it once, it migrates the file"
	case CodeCorrupt:
		return "the ledger file is damaged", "restore a copy; the data in the target is not affected, and its marker table tells which steps were committed"
	case CodeForeign:
		return "the file is not a retrofill ledger", "name another file"
	case CodeReadOnly:
		return "the ledger cannot be written", "check the permissions of the file and of its folder"
	case CodeFull:
		return "the disk that holds the ledger is full", "free some space, then resume the backfill: nothing is lost"
	case CodeLocked:
		return "another process keeps the ledger locked", "try again; if it stays so, look for a process that holds the file"
	case CodeMissing:
		return "there is no ledger yet", "run a backfill first, or check the folder"
	case CodeIO:
		return "the ledger file cannot be read or written", "check the disk, then resume the backfill"
	}
	return "the ledger cannot be opened", "check the path and the permissions of its folder"
}

// Diagnostic gives the problem with what to do next.
func (e *Error) Diagnostic() diag.Diagnostic {
	summary, hint := e.words()
	return diag.Errorf(e.Code, "%s: %s", summary, e.Path).WithDetail("%s: %v", e.Op, e.Err).WithHint("%s", hint)
}

// problem wraps an error of op with the file's path and a code. Errors that
// are about records, not about the file, pass with their own type.
func (l *Ledger) problem(op string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var own *Error
	if errors.As(err, &own) {
		if own.Path == "" {
			own.Path, own.Op = l.path, op
		}
		return err
	}
	var se *sqlite.Error
	if errors.As(err, &se) {
		if code, known := codeOf(se.Code()); known {
			return &Error{Code: code, Path: l.path, Op: op, Err: err}
		}
	}
	if strings.HasPrefix(err.Error(), "ledger: ") {
		return err
	}
	return fmt.Errorf("ledger: %s: %w", op, err)
}

// codeOf reads SQLite's result code; its low byte is the primary one.
func codeOf(code int) (string, bool) {
	switch code & 0xff {
	case 5, 6: // BUSY, LOCKED
		return CodeLocked, true
	case 3, 8: // PERM, READONLY
		return CodeReadOnly, true
	case 10: // IOERR
		return CodeIO, true
	case 11: // CORRUPT
		return CodeCorrupt, true
	case 13: // FULL
		return CodeFull, true
	case 14: // CANTOPEN
		return CodeUnopenable, true
	case 26: // NOTADB
		return CodeForeign, true
	}
	return "", false
}

// ErrNotFound is wrapped when a backfill or instance does not exist.
var ErrNotFound = errors.New("not found")

// ErrFenced is wrapped when another owner has taken the backfill over: the
// caller must stop at once, nothing of the call was written.
var ErrFenced = errors.New("another process has taken this backfill over")

// ErrDone is wrapped when an attempt is refused because the instance has
// succeeded already (another process set it so, for example).
var ErrDone = errors.New("the instance has already succeeded")

// ErrPaused is wrapped when an attempt is refused by a pause flag.
var ErrPaused = errors.New("the instance is paused")

// NameTakenError says that a backfill of that name exists.
type NameTakenError struct{ Name string }

// Error names the backfill.
func (e *NameTakenError) Error() string {
	return fmt.Sprintf("ledger: create backfill: the name %q is taken; choose another with --name", e.Name)
}

// ConflictError says that another backfill holds what this one would write
// (semantics §6.9).
type ConflictError struct {
	Backfill string // the holder
	Node     string // materialization node
	From, To string // the common business dates
	Fields   []string
	Owner    Owner
	Beat     time.Time // last heartbeat, zero: a queued backfill without a process
}

// Error names the other backfill and what both would write.
func (e *ConflictError) Error() string {
	what := e.Node
	if len(e.Fields) > 0 {
		what += " (" + strings.Join(e.Fields, ", ") + ")"
	}
	dates := e.From
	if e.To != e.From {
		dates += " to " + e.To
	}
	who := "which is queued"
	if !e.Beat.IsZero() {
		who = fmt.Sprintf("process %d on %s", e.Owner.PID, e.Owner.Host)
	}
	return fmt.Sprintf("ledger: backfill %s (%s) writes %s on %s at this time", e.Backfill, who, what, dates)
}

// OwnedError says that a live process runs this backfill already.
type OwnedError struct {
	Backfill string
	Owner    Owner
	Beat     time.Time
}

// Error names the process.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("ledger: claim backfill %s: process %d on %s runs it (last seen %s)",
		e.Backfill, e.Owner.PID, e.Owner.Host, e.Beat.UTC().Format(time.RFC3339))
}

// PausedError says that a backfill is paused as a whole.
type PausedError struct{ Backfill string }

// Error names the backfill.
func (e *PausedError) Error() string {
	return fmt.Sprintf("ledger: claim backfill %s: it is paused", e.Backfill)
}

// Diagnostic says how to go on.
func (e *PausedError) Diagnostic() diag.Diagnostic {
	return diag.Errorf("paused", "backfill %s is paused", e.Backfill).
		WithHint("`retrofill unpause %s` lets it go on; `retrofill history %s` says who paused it and why", e.Backfill, e.Backfill)
}
