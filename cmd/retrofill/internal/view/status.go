package view

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/status"
)

// BackfillLine is one backfill in a list.
type BackfillLine struct {
	ledger.Backfill
	Succeeded int   `json:"succeeded"`
	Failed    int   `json:"failed"` // failed, blocked, stopped and unknown ones
	Rows      int64 `json:"rows"`
}

// BackfillList is what `status` shows without a name.
type BackfillList struct {
	Backfills   []BackfillLine `json:"backfills"`
	Diagnostics diag.List      `json:"diagnostics"`
}

// NodeLine is how one node of a backfill stands.
type NodeLine struct {
	ledger.NodeCounts
	Status string         `json:"status"` // roll-up
	Counts map[string]int `json:"counts"` // by status, without zeros
}

// BackfillStatus is what `status NAME` shows.
type BackfillStatus struct {
	Backfill ledger.Backfill `json:"backfill"`
	// Summary is the roll-up of all instances (semantics §6.7).
	Summary string         `json:"summary"`
	Counts  map[string]int `json:"counts"`
	Rows    int64          `json:"rows"`
	Nodes   []NodeLine     `json:"nodes"`
	// Broken are the first failed, unknown, stopped and blocked instances.
	Broken  []ledger.Instance `json:"broken"`
	Running []ledger.Instance `json:"running"`
	// Paused are the first instances with a pause flag, Noted the first ones
	// that succeeded with a remark (an older parameter value, for example).
	Paused      []ledger.Instance `json:"paused,omitempty"`
	Noted       []ledger.Instance `json:"noted,omitempty"`
	Diagnostics diag.List         `json:"diagnostics"`
}

// Backfills writes a list of backfills as a table.
func Backfills(w io.Writer, l BackfillList, zone *time.Location) error {
	if len(l.Backfills) == 0 {
		return write(w, "no backfill yet\n")
	}
	rows := [][]string{{"BACKFILL", "STATE", "DONE", "NOT OK", "ROWS", "ENV", "CREATED"}}
	for _, b := range l.Backfills {
		rows = append(rows, []string{
			Clean(b.Name), string(b.State), fmt.Sprintf("%s/%s", Number(int64(b.Succeeded)), Number(int64(b.Instances))),
			Number(int64(b.Failed)), Number(b.Rows), Clean(b.Environment), b.CreatedAt.In(zone).Format("2006-01-02 15:04"),
		})
	}
	return write(w, Table(rows, 2, 3, 4))
}

// BackfillsCSV writes a list of backfills as CSV.
func BackfillsCSV(w io.Writer, l BackfillList) error {
	rows := [][]string{{"name", "state", "environment", "instances", "succeeded", "failed", "rows", "created_at", "started_at", "finished_at"}}
	for _, b := range l.Backfills {
		rows = append(rows, []string{b.Name, string(b.State), b.Environment, strconv.Itoa(b.Instances), strconv.Itoa(b.Succeeded),
			strconv.Itoa(b.Failed), strconv.FormatInt(b.Rows, 10), stamp(b.CreatedAt), stamp(b.StartedAt), stamp(b.FinishedAt)})
	}
	return writeCSV(w, rows)
}

// NodeCountsCSV writes the nodes of a backfill as CSV, a column a status.
func NodeCountsCSV(w io.Writer, nodes []NodeLine) error {
	head := []string{"node", "kind", "status", "instances"}
	for _, s := range status.All() {
		head = append(head, s.String())
	}
	rows := [][]string{append(head, "rows")}
	for _, n := range nodes {
		row := []string{n.Node, n.Kind, n.Status, strconv.Itoa(n.Instances)}
		for _, s := range status.All() {
			row = append(row, strconv.Itoa(n.Counts[s.String()]))
		}
		rows = append(rows, append(row, strconv.FormatInt(n.Rows, 10)))
	}
	return writeCSV(w, rows)
}

// Status writes how a backfill stands.
func Status(w io.Writer, s BackfillStatus, zone *time.Location) error {
	return write(w, strings.Join(StatusLines(s, zone), "\n")+"\n")
}

// StatusLine writes how a backfill stands in one line.
func StatusLine(s BackfillStatus) string {
	return fmt.Sprintf("%s  %s  %s", Clean(s.Backfill.Name), s.Backfill.State, countsText(s.Counts, s.Backfill.Instances))
}

// StatusLines writes how a backfill stands, line by line.
func StatusLines(s BackfillStatus, zone *time.Location) []string {
	b := s.Backfill
	out := []string{fmt.Sprintf("backfill %s · %s · environment %s", Clean(b.Name), stateText(s), Clean(b.Environment))}
	out = append(out, "  "+timesText(b, zone))
	out = append(out, "  "+countsText(s.Counts, b.Instances)+rowsText(s.Rows))
	if b.Note != "" {
		out = append(out, "  "+Clean(b.Note))
	}
	out = append(out, "")
	rows := [][]string{}
	for _, n := range s.Nodes {
		rows = append(rows, []string{"  " + Clean(n.Node), n.Status, countsText(n.Counts, n.Instances) + rowsText(n.Rows)})
	}
	out = append(out, strings.Split(strings.TrimRight(Table(rows), "\n"), "\n")...)
	for _, part := range []struct {
		title string
		list  []ledger.Instance
	}{{"running", s.Running}, {"not succeeded", s.Broken}, {"paused", s.Paused}, {"remarks", s.Noted}} {
		if len(part.list) == 0 {
			continue
		}
		out = append(out, "", part.title)
		for _, i := range part.list {
			out = append(out, "  "+instanceText(i))
		}
	}
	if rest := brokenCount(s.Counts) - len(s.Broken); rest > 0 {
		out = append(out, fmt.Sprintf("  … and %s more", Number(int64(rest))))
	}
	if hint := nextText(s); hint != "" {
		out = append(out, "", hint)
	}
	return out
}

func stateText(s BackfillStatus) string {
	state := string(s.Backfill.State)
	if s.Backfill.Paused && s.Backfill.State != ledger.Paused {
		state += ", paused by a user"
	}
	if s.Summary != "" && s.Summary != state {
		return state + " (" + s.Summary + ")"
	}
	return state
}

// nextText says what can be done about a backfill that has not succeeded.
func nextText(s BackfillStatus) string {
	name := shellName(s.Backfill.Name)
	switch {
	case s.Backfill.Paused:
		return "`retrofill unpause " + name + "` lets it go on"
	case s.Backfill.State == ledger.Interrupted:
		return "the process that ran it is gone; `retrofill resume " + name + "` goes on with what is left"
	case s.Backfill.State == ledger.Stopped, s.Backfill.State == ledger.Paused && len(s.Paused) == 0:
		return "`retrofill resume " + name + "` goes on with what is left"
	case s.Backfill.State == ledger.Unknown:
		return "`retrofill resume " + name + "` looks up in the target what happened, and goes on"
	case s.Backfill.State == ledger.Failed:
		return "`retrofill logs " + name + " --failed` shows why, `retrofill resume " + name + " --rerun-failed` tries again"
	}
	return ""
}

// shellName quotes a name for a shell where it needs it.
func shellName(s string) string {
	s = Clean(s)
	if strings.ContainsAny(s, " \t'\"\\$`&|;<>()*?#~[]{}!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func timesText(b ledger.Backfill, zone *time.Location) string {
	const form = "2006-01-02 15:04:05"
	s := "created " + b.CreatedAt.In(zone).Format(form)
	if !b.StartedAt.IsZero() {
		s += ", started " + b.StartedAt.In(zone).Format(form)
	}
	if !b.FinishedAt.IsZero() {
		s += ", ended " + b.FinishedAt.In(zone).Format(form)
		if !b.StartedAt.IsZero() {
			s += " (" + Duration(b.FinishedAt.Sub(b.StartedAt)) + ")"
		}
	}
	s += " " + zone.String()
	if !b.RunAt.IsZero() {
		s += ", runs at " + b.RunAt.In(zone).Format(form)
	}
	return s
}

// countsText writes `12 of 40 succeeded, 1 failed, 27 pending`.
func countsText(c map[string]int, total int) string {
	parts := []string{fmt.Sprintf("%s of %s succeeded", Number(int64(c[status.Succeeded.String()])), Number(int64(total)))}
	for _, s := range []status.Status{status.Running, status.Waiting, status.Failed, status.Blocked, status.Stopped, status.Unknown, status.Pending} {
		if n := c[s.String()]; n > 0 {
			parts = append(parts, Number(int64(n))+" "+s.String())
		}
	}
	return strings.Join(parts, ", ")
}

func rowsText(n int64) string {
	if n <= 0 {
		return ""
	}
	return ", " + Count(int(n), "row")
}

func brokenCount(c map[string]int) int {
	n := 0
	for _, s := range status.All() {
		if s.Broken() {
			n += c[s.String()]
		}
	}
	return n
}

func instanceText(i ledger.Instance) string {
	s := Clean(i.ID) + "  " + i.Status.String()
	if i.Attempt > 1 {
		s += fmt.Sprintf(" (attempt %d)", i.Attempt)
	}
	why := i.Error
	if why == "" {
		why = i.Reason
	}
	if why != "" {
		first, _, _ := strings.Cut(strings.TrimSpace(why), "\n")
		s += ": " + Clean(first)
	}
	return s
}

// Table aligns rows of cells in columns, two blanks apart; the listed columns
// are aligned to the right.
func Table(rows [][]string, right ...int) string {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		line := ""
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-Width(c))
			if slices.Contains(right, i) {
				line += pad + c + "  "
			} else {
				line += c + pad + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Duration writes a span for people: 30 ms, 0.4 s, 12 s, 3 min 20 s, 2 h 5 min.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d > 0 && d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	case d < 10*time.Second:
		return strings.Replace(strconv.FormatFloat(d.Seconds(), 'f', 1, 64)+" s", ".0 s", " s", 1)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// stamp is a moment in CSV: RFC 3339 in UTC, empty if not yet.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func writeCSV(w io.Writer, rows [][]string) error {
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("view: write CSV: %w", err)
	}
	return nil
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("view: write: %w", err)
	}
	return nil
}
