package executors

import "fmt"

// AmbiguousError says that a commit failed and that the marker could not be
// looked up: the unit may be in the database or not. Its class is Ambiguous.
type AmbiguousError struct {
	Commit error // why COMMIT failed
	Lookup error // why the marker could not be read
}

// Error gives both reasons.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("the commit failed and its outcome is unknown: %v (reading the marker: %v)", e.Commit, e.Lookup)
}

// Unwrap gives both errors.
func (e *AmbiguousError) Unwrap() []error { return []error{e.Commit, e.Lookup} }

// HintError is an engine's error with what to do about it.
type HintError struct {
	Err  error
	Hint string
}

// Error gives the engine's text and the hint.
func (e *HintError) Error() string { return e.Err.Error() + " — " + e.Hint }

// Unwrap gives the engine's error.
func (e *HintError) Unwrap() error { return e.Err }
