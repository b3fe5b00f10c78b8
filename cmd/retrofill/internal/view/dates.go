package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner/plan"
)

// Dates writes the groups of a date selection: a line a group as text, a line
// a date (group,date) as CSV.
func Dates(w io.Writer, format string, groups [][]bizdate.Date) error {
	var b strings.Builder
	if format == "csv" {
		b.WriteString("group,date\n")
	}
	for i, g := range groups {
		if format == "csv" {
			for _, d := range g {
				fmt.Fprintf(&b, "%d,%s\n", i+1, d)
			}
			continue
		}
		fmt.Fprintf(&b, "group %d: %s  (%d)\n", i+1, Ranges(g), len(g))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("view: write dates: %w", err)
	}
	return nil
}

// Ranges writes dates as runs, in their order: `2013-01-01..2013-01-31, 2013-02-05`.
func Ranges(dates []bizdate.Date) string {
	var parts []string
	for i := 0; i < len(dates); {
		j, step := i+1, bizdate.Date(1)
		if j < len(dates) && dates[j] == dates[i]-1 {
			step = -1
		}
		for j < len(dates) && dates[j] == dates[j-1]+step {
			j++
		}
		if j-i == 1 {
			parts = append(parts, dates[i].String())
		} else {
			parts = append(parts, dates[i].String()+".."+dates[j-1].String())
		}
		i = j
	}
	return strings.Join(parts, ", ")
}

// DateRanges writes ranges of consecutive dates as Ranges does.
func DateRanges(list []plan.DateRange) string {
	var dates []bizdate.Date
	for _, r := range list {
		for d := r.From; d <= r.To; d++ {
			dates = append(dates, d)
		}
	}
	return Ranges(dates)
}
