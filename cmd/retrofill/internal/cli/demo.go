package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/plan"
)

// Demo makes and changes the example warehouse. The program plugs it in, so
// that this package links no driver.
type Demo interface {
	// Create writes the example project and its database into a folder.
	Create(ctx context.Context, dir string) error
	// Edit applies a named change to the project's files and gives what it
	// does in words.
	Edit(dir, name string) (string, error)
}

// demoDir is the folder that demo makes without --dir.
const demoDir = "retrofill-demo"

// demoEdit is the change that demo shows.
const demoEdit = "manufacturer_normalised"

func demoCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "demo",
		Usage:     "make the example warehouse (New York's flights of 2013) and backfill a month of it",
		UsageText: "retrofill demo [--dir FOLDER]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Aliases: []string{"C"}, Value: demoDir, Usage: "`FOLDER` to make; it must be empty or not there"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return refuse(diag.List{diag.Errorf("usage", "demo takes no argument, got %q", c.Args().First()).WithHint("name the folder with --dir")})
			}
			return runDemo(c.Context, c.String("dir"), env)
		},
	}
}

// runDemo plays a modeler's first session on real data: backfill a month, look
// at the result, change one field's logic, and see what a field backfill of it
// would do. It asks nothing and needs no network.
func runDemo(ctx context.Context, dir string, env *Env) error {
	if env.Demo == nil {
		return errors.New("cli: demo: this program was built without the example warehouse")
	}
	at := env.path(dir)
	if err := emptyFolder(at, dir); err != nil {
		return err
	}
	d := &demo{env: env, inside: *env}
	d.inside.Dir, d.inside.Stdout = at, env.Stdout
	d.say("# 1. A project of 13 logical tables over 336,776 real flights, and a DuckDB file")
	d.say("#    with its sources, go to %s", dir)
	if d.err == nil {
		d.err = env.Demo.Create(ctx, at)
	}
	d.say("")
	d.say("# 2. Backfill January 2013: the flights, what they read and everything below")
	d.say("$ retrofill backfill fct_flight --upstream all --downstream all --start-date 2013-01-01 --end-date 2013-01-31 --yes")
	d.do(func() error { return runBackfill(ctx, demoBackfill(), &d.inside) })
	d.say("")
	d.say("# 3. What happened, and what is there now")
	d.say("$ retrofill status")
	d.do(func() error { return runStatus(ctx, statusOptions{Output: "text"}, &d.inside) })
	d.say("")
	d.do(func() error { return d.rows(ctx) })
	d.say("")
	d.say("# 4. Change the logic of one field and ask what its backfill would do")
	d.do(func() error {
		what, err := env.Demo.Edit(at, demoEdit)
		if err == nil {
			d.say("#    %s", strings.ReplaceAll(what, "\n", "\n#    "))
		}
		return err
	})
	d.say("$ retrofill plan fct_flight --fields manufacturer --start-date 2013-01-01 --end-date 2013-01-31")
	d.do(func() error {
		o := demoBackfill()
		o.Request.Fields, o.Request.FieldsGiven, o.Request.Upstream, o.Request.Downstream = []string{"manufacturer"}, true, 0, 0
		o.Request.Display.Command = "plan"
		return runPlan(ctx, o, &d.inside)
	})
	d.say("")
	d.say("# 5. Try next, in %s:", dir)
	d.say("cd %s", dir)
	d.say("retrofill backfill fct_flight --fields manufacturer --start-date 2013-01-01 --end-date 2013-01-31")
	d.say("retrofill show fct_flight")
	d.say("retrofill params fct_flight --date 2013-01-15")
	d.say("retrofill plan ind_carrier_ledger --start-date 2013-02-01 --end-date 2013-02-28 --upstream all --sql")
	d.say("retrofill ls +agg_carrier_day+ -o dot")
	return d.err
}

// demo is a session being played; after the first error nothing more happens.
type demo struct {
	env    *Env
	inside Env
	err    error
}

func (d *demo) say(format string, args ...any) {
	if d.err != nil {
		return
	}
	if _, err := fmt.Fprintf(d.env.Stdout, format+"\n", args...); err != nil {
		d.err = fmt.Errorf("cli: write: %w", err)
	}
}

func (d *demo) do(f func() error) {
	if d.err == nil {
		d.err = f()
	}
}

// demoBackfill is the backfill of January 2013.
func demoBackfill() planOptions {
	sel := bizdate.Selection{Start: "2013-01-01", End: "2013-01-31"}
	return planOptions{
		Yes: true, Output: "text",
		Dates: datesOptions{Selection: sel, Groups: 1},
		Request: planner.Request{
			Nodes: []string{"fct_flight"}, Selection: sel, Groups: 1,
			Upstream: planner.AllLevels, Downstream: planner.AllLevels,
			Display: plan.Request{Command: "backfill", Nodes: []string{"fct_flight"}},
		},
	}
}

// rows shows a few result rows.
func (d *demo) rows(ctx context.Context) (err error) {
	const query = `SELECT carrier, sum(legs)::BIGINT AS legs, sum(on_time)::BIGINT AS on_time, ` +
		`round(100.0 * sum(on_time) / sum(legs), 1)::DECIMAL(5,1) AS pct, sum(added_min - recovered_min)::BIGINT AS net_delay_min ` +
		`FROM dw_dev.agg_carrier_day WHERE ds BETWEEN '2013-01-01' AND '2013-01-31' GROUP BY carrier ORDER BY legs DESC, carrier LIMIT 5`
	w, err := openProject(projectOptions{}, &d.inside)
	if err != nil {
		return err
	}
	eng, err := w.openEngine(ctx, EngineOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	got, err := eng.Query(ctx, query, 0)
	if err != nil {
		return fmt.Errorf("cli: read the result: %w", err)
	}
	d.say("%s", "-- dw_dev.agg_carrier_day, January 2013")
	out := [][]string{{}}
	for _, c := range got.Columns {
		out[0] = append(out[0], c.Name)
	}
	for _, v := range got.Values {
		row := make([]string, len(v))
		for i, x := range v {
			row[i] = fmt.Sprint(x)
		}
		out = append(out, row)
	}
	return table(d.env.Stdout, out)
}

// emptyFolder refuses a folder that holds anything.
func emptyFolder(path, shown string) error {
	list, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o755); err != nil {
			return refuse(diag.List{diag.Errorf("unwritable_folder", "the folder %s cannot be made", shown).WithDetail("%v", err).WithHint("choose another with --dir")})
		}
		return nil
	case err != nil:
		return refuse(diag.List{diag.Errorf("unwritable_folder", "the folder %s cannot be used", shown).WithDetail("%v", err).WithHint("choose another with --dir")})
	case len(list) > 0:
		return refuse(diag.List{diag.Errorf("folder_not_empty", "the folder %s is not empty (it holds %s)", shown, filepath.Base(list[0].Name())).
			WithHint("choose another with --dir, or remove it")})
	}
	return nil
}
