package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/retrofill/retrofill/executors/run"
)

// Summary writes how a run ended: the state, what was done, the first
// failures and what to look at next.
func Summary(w io.Writer, backfill string, s run.Summary) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s in %s: %s run, %s rows written\n", backfill, s.State, s.Elapsed.Round(10*time.Millisecond), Count(s.Ran, "instance"), Number(s.Rows))
	if s.Note != "" {
		fmt.Fprintf(&b, "  %s\n", s.Note)
	}
	for _, f := range s.Failures {
		fmt.Fprintf(&b, "  %s %s: %s\n", f.ID, f.Status, firstError(f.Error))
	}
	if len(s.Failures) > 0 {
		fmt.Fprintf(&b, "  see `retrofill status %s` and `retrofill logs %s`\n", backfill, backfill)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("view: write summary: %w", err)
	}
	return nil
}

// firstError gives the first line of an error.
func firstError(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
