package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// line is a case as a line of JSON.
type line struct {
	Suite      string   `json:"suite"`
	Case       string   `json:"case"`
	Seconds    float64  `json:"seconds"`
	Floor      float64  `json:"floor_seconds"`
	Ratio      float64  `json:"ratio"`
	Target     *float64 `json:"target,omitempty"`
	Equal      bool     `json:"equal"`
	Rows       int64    `json:"rows"`
	Statements int64    `json:"statements"`
}

// JSONL writes one line of JSON a case. Short runs have no key target.
func JSONL(w io.Writer, res Result) error {
	enc := json.NewEncoder(w)
	for _, c := range res.Cases {
		l := line{Suite: c.Suite, Case: c.Name, Seconds: round(c.Seconds), Floor: round(c.Floor), Ratio: round(c.Ratio),
			Equal: c.Equal, Rows: c.Rows, Statements: c.Statements}
		if c.Target > 0 {
			l.Target = &c.Target
		}
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("bench: write %s/%s: %w", c.Suite, c.Name, err)
		}
	}
	return nil
}

// round keeps six significant digits: more is noise.
func round(f float64) float64 {
	if f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(f))))
	return math.Round(f*scale) / scale
}

// Text writes a table for a terminal.
func Text(w io.Writer, res Result) error {
	if _, err := fmt.Fprintln(w, res.Machine.String()+rounds(res)); err != nil {
		return fmt.Errorf("bench: write: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "case\tseconds\tspread\tfloor\tratio\ttarget\t\tequal\tstatements\tcpu\tpeak")
	for _, c := range res.Cases {
		fmt.Fprintln(t, strings.Join(cells(c), "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("bench: write: %w", err)
	}
	for _, n := range res.Notes {
		if _, err := fmt.Fprintln(w, n); err != nil {
			return fmt.Errorf("bench: write: %w", err)
		}
	}
	return nil
}

// Markdown writes a table for docs/benchmarks.md.
func Markdown(w io.Writer, res Result) error {
	var b strings.Builder
	b.WriteString(res.Machine.String() + rounds(res) + "\n\n")
	b.WriteString("| case | seconds | spread | floor | ratio | target | met | equal | statements | CPU | peak memory |\n|---|--:|--:|--:|--:|--:|---|---|--:|--:|--:|\n")
	for _, c := range res.Cases {
		b.WriteString("| " + strings.Join(cells(c), " | ") + " |\n")
	}
	if len(res.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range res.Notes {
		b.WriteString("- " + n + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("bench: write: %w", err)
	}
	return nil
}

// String puts the machine in one line.
func (m Machine) String() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s, %s", m.OS, m.Arch, m.CPUs, m.Go, m.Engine)
}

func rounds(res Result) string {
	s := fmt.Sprintf("; %d rounds", res.Rounds)
	if res.Short {
		s += ", short: the numbers mean nothing"
	}
	return s
}

func cells(c Case) []string {
	floor := short(c.Floor)
	if c.Goal {
		floor += " (goal)"
	}
	target, met := "–", ""
	if c.Target > 0 {
		target, met = fmt.Sprintf("≤ %g", c.Target), "yes"
		if !c.Met() {
			met = "NO"
		}
	}
	equal, peak, cpu := "yes", "–", "–"
	if !c.Equal {
		equal = "NO"
	}
	if c.CPU > 0 {
		cpu = short(c.CPU)
	}
	if c.PeakMB > 0 {
		peak = fmt.Sprintf("%.0f MB", c.PeakMB)
	}
	return []string{c.Suite + "/" + c.Name, short(c.Seconds), fmt.Sprintf("±%.0f %%", c.Spread*50), floor,
		fmt.Sprintf("%.2f", c.Ratio), target, met, equal, fmt.Sprint(c.Statements), cpu, peak}
}

// short gives seconds with three significant digits.
func short(s float64) string {
	switch a := math.Abs(s); {
	case a >= 100:
		return fmt.Sprintf("%.0f", s)
	case a >= 1:
		return fmt.Sprintf("%.2f", s)
	case a >= 0.01:
		return fmt.Sprintf("%.4f", s)
	}
	return fmt.Sprintf("%.6f", s)
}
