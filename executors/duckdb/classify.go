package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/retrofill/retrofill/executors"
)

// Classify tells what an error means. Only write-write conflicts are
// Transient: DuckDB is in this process, so that everything else comes back the
// same. A cancelled context is Permanent.
func (e *Engine) Classify(err error) executors.Class { return classify(err) }

func classify(err error) executors.Class {
	var ambiguous *executors.AmbiguousError
	var engine *duck.Error
	switch {
	case err == nil:
		return executors.Permanent
	case errors.Is(err, executors.ErrLocked):
		return executors.Locked
	case errors.As(err, &ambiguous):
		return executors.Ambiguous
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return executors.Permanent
	case errors.As(err, &engine) && conflict(engine):
		return executors.Transient
	}
	return executors.Permanent
}

// conflict tells whether another transaction was in the way. DuckDB has one
// error type for everything about transactions, so the text decides.
func conflict(err *duck.Error) bool {
	if err.Type != duck.ErrorTypeTransaction {
		return false
	}
	text := strings.ToLower(err.Msg)
	return strings.Contains(text, "conflict") || strings.Contains(text, "altered")
}

// cancelled adds the context's error to an interruption: the driver leaves it
// out when the interrupt meets a statement that is still being planned.
func cancelled(ctx context.Context, err error) error {
	var engine *duck.Error
	if why := ctx.Err(); why != nil && errors.As(err, &engine) && engine.Type == duck.ErrorTypeInterrupt && !errors.Is(err, why) {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// explain adds what to do to errors whose text does not say it.
func explain(err error) error {
	var engine *duck.Error
	if err == nil || !errors.As(err, &engine) {
		return err
	}
	text := engine.Msg
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	hint := ""
	switch {
	case has("No space left on device", "File too large", "Disk quota exceeded"):
		hint = "the disk (or the user's quota) is full: free space for the database file, its .wal and the temp_directory, then resume; nothing of this unit was written"
	case engine.Type == duck.ErrorTypeFatal, has("database has been invalidated"):
		hint = "DuckDB gave the database up after an earlier error: start the command again and resume"
	case engine.Type == duck.ErrorTypeOutOfMemory:
		hint = "raise memory_limit, lower the number of groups or threads, or set temp_directory so that DuckDB can spill"
	case conflict(engine):
		hint = "another transaction changed the same rows or table at the same time"
	case has("Ambiguous reference to catalog or schema"):
		hint = "the database file is named like a schema in it: rename the file (its name without the ending is DuckDB's catalog name)"
	case has("read-only mode"):
		hint = "the database was opened read-only"
	}
	if hint == "" {
		return err
	}
	return &executors.HintError{Err: err, Hint: hint}
}
