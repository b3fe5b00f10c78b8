package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/groups"
)

// dateFlags are the flags that select business dates, the same in every
// command (semantics §3.1).
func dateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "start-date", Usage: "first business `DATE` (YYYY-MM-DD), included"},
		&cli.StringFlag{Name: "end-date", Usage: "last business `DATE` (YYYY-MM-DD), included"},
		&cli.StringSliceFlag{Name: "dates", Usage: "single business dates: `LIST` separated by commas or line breaks, @file, or - for standard input; repeatable"},
		&cli.StringSliceFlag{Name: "weekdays", Usage: "keep only these `DAYS` of the week of the range, such as mon,thu"},
		&cli.StringSliceFlag{Name: "monthdays", Usage: "keep only these `DAYS` of the month of the range, such as 1,15,last"},
		&cli.BoolFlag{Name: "allow-long-range", Usage: "allow a range of more than 366 days"},
		&cli.IntFlag{Name: "groups", Value: 1, Usage: "cut the dates into `N` groups that run side by side, 1 to 12"},
		&cli.StringFlag{Name: "order", Value: "asc", Usage: "`ORDER` of the dates: asc or desc"},
		&cli.StringFlag{Name: "run-at", Usage: "start at this `TIME` (project's zone unless it carries an offset); allows dates up to its date"},
	}
}

// datesOptions are what the date flags say.
type datesOptions struct {
	Selection bizdate.Selection
	RunAt     string
	Groups    int
	Zone      string
	Output    string
}

// dateOptions reads the date flags. Lists from files and standard input are
// read here.
func dateOptions(c *cli.Context, env *Env) (datesOptions, error) {
	o := datesOptions{
		Selection: bizdate.Selection{
			Start: c.String("start-date"), End: c.String("end-date"),
			Weekdays: c.StringSlice("weekdays"), MonthDays: c.StringSlice("monthdays"),
			AllowLongRange: c.Bool("allow-long-range"),
		},
		RunAt: c.String("run-at"), Groups: c.Int("groups"),
	}
	dir, diags := bizdate.ParseDirection(c.String("order"))
	if diags.HasErrors() {
		return o, refuse(diags)
	}
	o.Selection.Direction = dir
	for _, l := range c.StringSlice("dates") {
		text, err := listText(l, env)
		if err != nil {
			return o, err
		}
		o.Selection.Lists = append(o.Selection.Lists, text)
	}
	return o, nil
}

// maxListBytes bounds a list from a file or standard input.
const maxListBytes = 8 << 20

// listText gives a list's text: itself, a file's (@file) or standard input's (-).
func listText(arg string, env *Env) (string, error) {
	var r io.Reader
	switch {
	case arg == "-":
		r = bufio.NewReader(env.Stdin)
	case strings.HasPrefix(arg, "@"):
		f, err := os.Open(env.path(arg[1:]))
		if err != nil {
			return "", refuse(diag.List{diag.Errorf("missing_file", "cannot read the list %s", arg[1:]).WithDetail("%v", err).
				WithHint("check the path behind the @")})
		}
		defer func() { _ = f.Close() }() // only read
		r = f
	default:
		return arg, nil
	}
	b, err := io.ReadAll(io.LimitReader(r, maxListBytes+1))
	if err != nil {
		return "", refuse(diag.List{diag.Errorf("missing_file", "cannot read the list %s", arg).WithDetail("%v", err).
			WithHint("a list is a text of dates separated by commas or line breaks")})
	}
	if len(b) > maxListBytes {
		return "", refuse(diag.List{diag.Errorf("list_too_long", "the list %s is longer than %d bytes", arg, maxListBytes).
			WithHint("split it into several backfills")})
	}
	return string(b), nil
}

// clock gives the selection's clock in the zone.
func (o datesOptions) clock(env *Env, zone *time.Location) (bizdate.Clock, error) {
	now, err := env.now(zone)
	if err != nil {
		return bizdate.Clock{}, err
	}
	clock := bizdate.Clock{Now: now, Zone: zone}
	if o.RunAt != "" {
		t, diags := bizdate.ParseInstant(o.RunAt, zone)
		if diags.HasErrors() {
			return clock, refuse(diags)
		}
		clock.RunAt = &t
	}
	return clock, nil
}

func datesCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "dates",
		Usage:     "print the business dates and groups that a selection gives",
		UsageText: "retrofill dates --start-date D --end-date D [flags]\nretrofill dates --dates D,D,… [flags]",
		Description: "Works without a project; inside one, the project's zone decides what today is. " +
			"The text output has one line a group, csv one line a date.",
		Flags: append(dateFlags(), outputFlag("text", "json", "csv"),
			&cli.StringFlag{Name: "zone", Usage: "IANA `ZONE` that decides what today is (default: the project's zone, else UTC)"}),
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 0, "give dates with --dates, or --start-date and --end-date"); err != nil {
				return err
			}
			output, err := outputOf(c, "text", "json", "csv")
			if err != nil {
				return err
			}
			o, err := dateOptions(c, env)
			o.Output, o.Zone = output, c.String("zone")
			if err != nil {
				return o.print(nil, nil, diagnosticsOf(err), env)
			}
			return runDates(c.Context, o, env)
		},
	}
}

// datesDocument is the JSON of `dates`.
type datesDocument struct {
	Dates       []bizdate.Date   `json:"dates"`
	Groups      [][]bizdate.Date `json:"groups"`
	Diagnostics diag.List        `json:"diagnostics"`
}

// runDates prints what a selection gives (semantics §3.1, §6.1).
func runDates(_ context.Context, o datesOptions, env *Env) error {
	zone, err := zoneOrProject(o.Zone, env)
	if err != nil {
		return o.print(nil, nil, diagnosticsOf(err), env)
	}
	clock, err := o.clock(env, zone)
	if err != nil {
		return o.print(nil, nil, diagnosticsOf(err), env)
	}
	dates, diags := o.Selection.Select(clock)
	var cut [][]bizdate.Date
	if !diags.HasErrors() {
		var more diag.List
		cut, more = groups.Split(dates, o.Groups, o.Selection.Direction)
		diags = append(diags, more...)
	}
	return o.print(dates, cut, diags, env)
}

// print writes the result. With errors there are no dates, but the document
// has the same keys.
func (o datesOptions) print(dates []bizdate.Date, cut [][]bizdate.Date, diags diag.List, env *Env) error {
	doc := datesDocument{Dates: []bizdate.Date{}, Groups: [][]bizdate.Date{}, Diagnostics: append(diag.List{}, diags...)}
	failed := diags.HasErrors()
	if !failed {
		doc.Dates, doc.Groups = append(doc.Dates, dates...), append(doc.Groups, cut...)
	}
	if o.Output == "json" {
		if err := writeJSON(env.Stdout, doc); err != nil {
			return err
		}
	} else {
		if !failed {
			if err := view.Dates(env.Stdout, o.Output, doc.Groups); err != nil {
				return err
			}
		}
		env.diagnostics(doc.Diagnostics)
	}
	if failed {
		return &exitError{code: exitRefused, diags: doc.Diagnostics, silent: true}
	}
	return nil
}
