package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/groups"
	"github.com/retrofill/retrofill/planner/plan"
)

// planFlags are the flags that say what to refresh and how, the same for plan
// and backfill.
func planFlags() []cli.Flag {
	return slices.Concat(projectFlags(), dateFlags(), []cli.Flag{
		&cli.StringSliceFlag{Name: "fields", Usage: "refresh only these `FIELDS` of the node, and what they require"},
		&cli.BoolFlag{Name: "full-table", Usage: "refresh all fields but registered ones (the default)"},
		&cli.StringFlag{Name: "recommended", Usage: "take recommended fields: all, none or a `LIST`"},
		&cli.BoolFlag{Name: "stale", Usage: "refresh what the fields command shows as stale, of the named tables or of all, and nothing else; without dates, of all recorded ones"},
		&cli.StringFlag{Name: "effective-from", Usage: "forward-only: accept the older logic of the selected fields on business dates before `YYYY-MM-DD`"},
		&cli.BoolFlag{Name: "diff", Usage: "compute what would change, count the rows by field and date, and write nothing"},
		&cli.BoolFlag{Name: "drop-removed", Usage: "drop the stored columns of fields that the written tables no longer have"},
		&cli.BoolFlag{Name: "allow-destructive", Usage: "let the type of a stored column change although values may be lost"},
		&cli.StringFlag{Name: "refresh", Value: "auto", Usage: "how fields are refreshed: auto, column (in place) or rewrite"},
		&cli.StringFlag{Name: "upstream", Usage: "with so many `LEVELS` of upstream nodes: 1 to 10, or all"},
		&cli.StringFlag{Name: "downstream", Usage: "with so many `LEVELS` of downstream nodes: 1 to 10, or all"},
		&cli.StringSliceFlag{Name: "children", Usage: "with these direct `CHILDREN` of the node and everything below them"},
		&cli.StringFlag{Name: "names-file", Usage: "keep only the descendants with these names, and no others: `FILE` with one a line (5,000 at most), or - for standard input"},
		&cli.StringFlag{Name: "ids-file", Usage: "keep only the descendants with these ids: `FILE` as for --names-file"},
		&cli.StringFlag{Name: "outputs-file", Usage: "keep only the descendants that write these tables: `FILE` with one a line (1,000 at most), or - for standard input"},
		&cli.StringFlag{Name: "downstream-fields", Value: "readers", Usage: "of downstream tables take only the fields that read (readers) or all"},
		&cli.StringSliceFlag{Name: "select", Usage: "add the nodes of this `SELECTION` (dbt's language) as whole nodes; repeatable"},
		&cli.StringFlag{Name: "where", Usage: "of --select keep nodes for which this `EXPRESSION` holds, such as 'cycle == \"hourly\"'"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "leave the nodes of this `SELECTION` out; repeatable"},
		&cli.StringFlag{Name: "from-time", Usage: "hourly and minute nodes: first `HH:MM` of the day, included"},
		&cli.StringFlag{Name: "to-time", Usage: "hourly and minute nodes: last `HH:MM` of the day, included"},
		&cli.StringFlag{Name: "hourly-impact", Usage: "with a time window, daily, weekly and monthly nodes run: all, or in-window"},
		&cli.StringSliceFlag{Name: "param", Usage: "override a parameter, `NAME=VALUE`; repeatable"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the backfill (default <node>_<yyyyMMdd>_<n>)"},
		&cli.StringFlag{Name: "on-failure", Value: "continue", Usage: "after a failed instance: continue, stop (start nothing new) or fail-fast (cancel what runs)"},
		&cli.IntFlag{Name: "retries", Usage: "repeat an instance `N` times after a transient error"},
		&cli.StringFlag{Name: "resource-group", Usage: "run on the connections of this `GROUP` of the project (resource_groups)"},
		&cli.BoolFlag{Name: "wait-schedule", Usage: "let no instance begin before its slot's own time"},
		&cli.DurationFlag{Name: "max-duration", Usage: "pause the backfill after this `TIME`, such as 2h, at a step's end"},
		&cli.Int64Flag{Name: "max-rows", Usage: "pause the backfill when it has written `N` rows, at a step's end"},
		&cli.StringFlag{Name: "not-between", Usage: "pause the backfill in this part of the day, `HH:MM-HH:MM` in the project's zone, at a step's end"},
		&cli.BoolFlag{Name: "allow-empty", Usage: "let a partition that holds rows become empty"},
		&cli.BoolFlag{Name: "strict", Usage: "refuse the plan when a slot that it reads outside the backfill was never built, or a source partition has no rows"},
		&cli.BoolFlag{Name: "allow-missing-source", Usage: "leave out the warning of source partitions without rows (with --strict: the error)"},
		&cli.BoolFlag{Name: "allow-past-retention", Usage: "replace rows built from source partitions that are past their retention and gone"},
		&cli.BoolFlag{Name: "allow-lifecycle", Usage: "write dates that are older than the table's lifecycle"},
		&cli.BoolFlag{Name: "allow-snapshot", Usage: "replace rows of old dates by what the latest state of a snapshot source gives"},
		&cli.BoolFlag{Name: "dry-run-this-node", Usage: "the current node's instances succeed without executing"},
		&cli.StringFlag{Name: "paused-tasks", Value: "block", Usage: "instances of paused nodes: block, dry-run or run"},
		&cli.StringFlag{Name: "dry-run-tasks", Value: "dry-run", Usage: "instances of dry-run nodes: dry-run or run"},
		&cli.BoolFlag{Name: "full", Usage: "show every node, date and warning of a large plan, instead of counts"},
		&cli.BoolFlag{Name: "include-paused", Usage: "take paused downstream nodes and what is below them"},
	})
}

// planOptions are what the planning flags say.
type planOptions struct {
	projectOptions
	Dates   datesOptions
	Request planner.Request
	// Overrides are --param values.
	Overrides []param.Declared
	Output    string
	SQL       bool
	Yes       bool
	// Full shows every node and warning of a plan's text one by one.
	Full bool
	// Explain asks about a node, field or date instead of showing the plan.
	Explain string
	// Diff asks for the rows that would change, instead of the run.
	Diff bool
}

func planOptionsOf(c *cli.Context, env *Env) (planOptions, error) {
	o := planOptions{projectOptions: projectOptionsOf(c)}
	var err error
	if o.Dates, err = dateOptions(c, env); err != nil {
		return o, err
	}
	var diags diag.List
	level := func(flag string) int {
		n, d := levels(flag, c.String(flag))
		diags = append(diags, d...)
		return n
	}
	overrides, values, pd := overridesOf(c.StringSlice("param"))
	diags = append(diags, pd...)
	o.Overrides = overrides
	o.Request = planner.Request{
		Nodes: c.Args().Slice(), Select: c.StringSlice("select"), Exclude: c.StringSlice("exclude"),
		Fields: listOf(c.StringSlice("fields")), FieldsGiven: c.IsSet("fields"),
		Recommended: c.String("recommended"), Refresh: c.String("refresh"),
		Upstream: level("upstream"), Downstream: level("downstream"), DownstreamWhole: c.String("downstream-fields") == "all",
		Children:  listOf(c.StringSlice("children")),
		Selection: o.Dates.Selection, Groups: o.Dates.Groups,
		WindowFrom: c.String("from-time"), WindowTo: c.String("to-time"), HourlyImpact: c.String("hourly-impact"),
		Params: values, Name: c.String("name"), OnFailure: c.String("on-failure"), Retries: c.Int("retries"),
		WaitSchedule: c.Bool("wait-schedule"), MaxDuration: c.Duration("max-duration"), MaxRows: c.Int64("max-rows"), NotBetween: c.String("not-between"),
		AllowEmpty: c.Bool("allow-empty"), Strict: c.Bool("strict"), DryRunThisNode: c.Bool("dry-run-this-node"),
		IncludePaused: c.Bool("include-paused"), PausedTasks: c.String("paused-tasks"), DryRunTasks: c.String("dry-run-tasks"),
	}
	o.Full = c.Bool("full")
	o.Request.Where = c.String("where")
	o.Request.Allow = planner.Allow{
		MissingSource: c.Bool("allow-missing-source"), PastRetention: c.Bool("allow-past-retention"),
		Lifecycle: c.Bool("allow-lifecycle"), Snapshot: c.Bool("allow-snapshot"),
	}
	if err := nodeLists(c, env, &o.Request); err != nil {
		return o, err
	}
	o.Diff, o.Request.ResourceGroup = c.Bool("diff"), c.String("resource-group")
	o.Request.Stale, o.Request.DropRemoved, o.Request.AllowDestructive = c.Bool("stale"), c.Bool("drop-removed"), c.Bool("allow-destructive")
	if v := c.String("effective-from"); v != "" {
		d, err := bizdate.Parse(v)
		if err != nil {
			diags = append(diags, diag.Errorf("bad_date", "--effective-from %q is not a date", v).WithHint("write an existing date as YYYY-MM-DD"))
		}
		o.Request.EffectiveFrom = &d
	}
	if v := c.String("downstream-fields"); v != "readers" && v != "all" {
		diags = append(diags, diag.Errorf("bad_value", "--downstream-fields %q is not known", v).WithHint("give readers or all"))
	}
	// For the planner 0 is the default; on the command line it is a mistake.
	if _, d := groups.Split(nil, o.Dates.Groups, o.Dates.Selection.Direction); d.HasErrors() {
		diags = append(diags, d...)
	}
	if c.Bool("full-table") && c.IsSet("fields") {
		diags = append(diags, diag.Errorf("usage", "--full-table and --fields contradict each other").WithHint("leave one of them out"))
	}
	o.Request.Display = plan.Request{Command: c.Command.Name, Nodes: o.Request.Nodes, Options: setFlags(c), Params: values}
	if diags.HasErrors() {
		return o, refuse(diags)
	}
	return o, nil
}

// setFlags keeps the flags that were written, for display.
func setFlags(c *cli.Context) map[string]string {
	out := map[string]string{}
	for _, name := range c.LocalFlagNames() {
		switch name {
		case "now", "output", "o", "yes", "y", "sql", "full", "explain", "param", "dir", "C":
			continue
		}
		if v, ok := c.Value(name).(cli.StringSlice); ok {
			out[name] = strings.Join(v.Value(), ",")
			continue
		}
		out[name] = fmt.Sprint(c.Value(name))
	}
	return out
}

// levels reads a number of levels: "" = 0, all = every one.
func levels(flag, text string) (int, diag.List) {
	switch text {
	case "":
		return 0, nil
	case "all":
		return planner.AllLevels, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 10 {
		return 0, diag.List{diag.Errorf("bad_value", "--%s %q is not a number of levels", flag, text).WithHint("give 1 to 10, or all")}
	}
	return n, nil
}

// overridesOf reads NAME=VALUE pairs.
func overridesOf(list []string) ([]param.Declared, map[string]string, diag.List) {
	var out []param.Declared
	var diags diag.List
	values := map[string]string{}
	for _, p := range list {
		name, v, ok := strings.Cut(p, "=")
		if !ok {
			diags = append(diags, diag.Errorf("bad_param", "--param %q has no value", p).WithHint("write --param NAME=VALUE"))
			continue
		}
		if !param.ValidName(name) {
			diags = append(diags, diag.Errorf("name", "--param %q: %q is no parameter name", p, name).WithHint("a name is 1 to 32 letters, digits or _"))
			continue
		}
		if _, twice := values[strings.ToLower(name)]; twice {
			diags = append(diags, diag.Errorf("duplicate", "--param %s is given twice", name))
			continue
		}
		values[strings.ToLower(name)] = v
		out = append(out, param.Declared{Name: name, Value: &v, Pos: diag.Pos{File: "--param " + name}})
	}
	return out, values, diags
}

// listOf cuts texts at commas and drops blanks and empty items.
func listOf(texts []string) []string {
	var out []string
	for _, t := range texts {
		for _, x := range strings.Split(t, ",") {
			if x = strings.TrimSpace(x); x != "" {
				out = append(out, x)
			}
		}
	}
	return out
}

// sampleDate gives a business date whose parameter values stand in where only
// types matter: the middle of a year, so that no date is special.
func sampleDate(now time.Time) bizdate.Date { return bizdate.Of(now.Year()-1, 6, 15) }
