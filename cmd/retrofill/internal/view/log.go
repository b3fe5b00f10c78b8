package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
)

// LogEntry is one instance with its attempts and its log.
type LogEntry struct {
	ledger.Instance
	Attempts []ledger.Tried `json:"attempts"`
	Log      []ledger.Chunk `json:"log"`
}

// Log writes one instance: a head line, then each attempt with its times, its
// output and its error.
func Log(w io.Writer, e LogEntry, zone *time.Location) error {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s  %s", Clean(e.ID), e.Status)
	if e.Rows > 0 {
		fmt.Fprintf(&b, "  %s", Count(int(e.Rows), "row"))
	}
	b.WriteString("\n")
	if e.Reason != "" {
		fmt.Fprintf(&b, "   %s\n", indented(e.Reason))
	}
	last := ""
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "   attempt %d  %s  %s", a.Attempt, a.StartedAt.In(zone).Format("2006-01-02 15:04:05"), a.Status)
		if !a.FinishedAt.IsZero() {
			fmt.Fprintf(&b, " after %s", Duration(a.FinishedAt.Sub(a.StartedAt)))
		}
		b.WriteString("\n")
		for _, c := range e.Log {
			if c.Attempt == a.Attempt {
				for line := range strings.Lines(c.Text) {
					fmt.Fprintf(&b, "   | %s\n", strings.TrimRight(line, "\r\n"))
				}
			}
		}
		if a.Error != "" {
			fmt.Fprintf(&b, "   %s\n", indented(a.Error))
			last = a.Error
		}
	}
	if e.Error != "" && e.Error != last {
		fmt.Fprintf(&b, "   %s\n", indented(e.Error))
	}
	return write(w, b.String())
}

func indented(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n   ") }

// Pending says that an instance has no log because it has not begun.
func Pending(node, slot string) string {
	return fmt.Sprintf("== %s@%s  pending: it has not begun\n", Clean(node), slot)
}

// OperationList is what `history` shows.
type OperationList struct {
	Operations  []ledger.Operation `json:"operations"`
	Diagnostics diag.List          `json:"diagnostics"`
}

// Operations writes the operations log, one line each.
func Operations(w io.Writer, l OperationList, zone *time.Location) error {
	if len(l.Operations) == 0 {
		return write(w, "nothing yet\n")
	}
	rows := [][]string{{"WHEN", "BY", "WHAT", "BACKFILL", "TARGET", "DETAIL"}}
	for _, o := range l.Operations {
		detail := o.Detail
		if o.Reason != "" {
			detail = strings.TrimSpace(detail + " (" + o.Reason + ")")
		}
		rows = append(rows, []string{o.At.In(zone).Format("2006-01-02 15:04:05"), Clean(o.By), o.Op, Clean(o.Backfill), Clean(o.Target), Clean(detail)})
	}
	return write(w, Table(rows))
}
