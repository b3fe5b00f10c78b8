package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/status"
)

// statusOptions are what the flags of `status` say.
type statusOptions struct {
	projectOptions
	Name   string // backfill, "" = list
	Watch  bool
	Limit  int
	Output string
}

func statusCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "list the backfills, or show how one of them stands",
		UsageText: "retrofill status [flags]\nretrofill status BACKFILL [-w] [flags]",
		Description: "Reads the ledger only, so it works while a backfill holds the database. A running backfill whose process is " +
			"gone is shown as interrupted.",
		Flags: append(projectFlags(),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "show it again each second until it ends"},
			&cli.IntFlag{Name: "limit", Value: 20, Usage: "list at most `N` backfills, the newest first; 0 = all"},
			outputFlag("text", "json", "csv")),
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one backfill"); err != nil {
				return err
			}
			o := statusOptions{projectOptions: projectOptionsOf(c), Name: c.Args().First(), Watch: c.Bool("watch"), Limit: c.Int("limit")}
			var err error
			if o.Output, err = outputOf(c, "text", "json", "csv"); err != nil {
				return err
			}
			switch {
			case o.Watch && o.Name == "":
				return refuse(diag.List{diag.Errorf("usage", "--watch needs a backfill").WithHint("retrofill status BACKFILL -w")})
			case o.Watch && o.Output != "text":
				return refuse(diag.List{diag.Errorf("usage", "--watch shows text only").WithHint("leave out -o, or run status again and again")})
			case o.Limit < 0:
				return refuse(diag.List{diag.Errorf("usage", "--limit cannot be negative").WithHint("0 lists all")})
			}
			return runStatus(c.Context, o, env)
		},
	}
}

func runStatus(ctx context.Context, o statusOptions, env *Env) (err error) {
	w, err := openRecords(o.projectOptions, env)
	if err != nil {
		return err
	}
	l, err := w.readLedger(ctx)
	if err != nil {
		return err
	}
	if l != nil {
		defer func() { err = errors.Join(err, l.Close()) }()
	}
	switch {
	case o.Name == "":
		return statusList(ctx, l, o, env, w.Zone)
	case l == nil:
		return noBackfill(ctx, nil, o.Name)
	case o.Watch:
		return watchStatus(ctx, l, o.Name, env, w.Zone)
	}
	s, err := statusOf(ctx, l, o.Name)
	if err != nil {
		return err
	}
	switch o.Output {
	case "json":
		return writeJSON(env.Stdout, s)
	case "csv":
		return view.NodeCountsCSV(env.Stdout, s.Nodes)
	}
	return view.Status(env.Stdout, s, w.Zone)
}

// statusList prints the newest backfills. Without a ledger there are none.
func statusList(ctx context.Context, l *ledger.Ledger, o statusOptions, env *Env, zone *time.Location) error {
	doc := view.BackfillList{Backfills: []view.BackfillLine{}, Diagnostics: diag.List{}}
	if l != nil {
		found, err := l.Backfills(ctx, o.Env, o.Limit)
		if err != nil {
			return err
		}
		for _, b := range found {
			nodes, err := l.Counts(ctx, b.Name)
			if err != nil {
				return err
			}
			line := view.BackfillLine{Backfill: b}
			for _, n := range nodes {
				line.Succeeded += n.Counts.Of(status.Succeeded)
				line.Failed += broken(n.Counts)
				line.Rows += n.Rows
			}
			doc.Backfills = append(doc.Backfills, line)
		}
	}
	switch o.Output {
	case "json":
		return writeJSON(env.Stdout, doc)
	case "csv":
		return view.BackfillsCSV(env.Stdout, doc)
	}
	return view.Backfills(env.Stdout, doc, zone)
}

func broken(c status.Counts) int {
	n := 0
	for _, s := range status.All() {
		if s.Broken() {
			n += c.Of(s)
		}
	}
	return n
}

// maxShown is how many instances of each kind `status` shows; -o json has the
// same ones.
const maxShown = 20

// statusOf gathers how a backfill stands.
func statusOf(ctx context.Context, l *ledger.Ledger, name string) (view.BackfillStatus, error) {
	b, err := l.Backfill(ctx, name)
	if errors.Is(err, ledger.ErrNotFound) {
		return view.BackfillStatus{}, noBackfill(ctx, l, name)
	}
	if err != nil {
		return view.BackfillStatus{}, err
	}
	s := view.BackfillStatus{Backfill: b, Counts: map[string]int{}, Nodes: []view.NodeLine{}, Broken: []ledger.Instance{},
		Running: []ledger.Instance{}, Diagnostics: diag.List{}}
	nodes, err := l.Counts(ctx, name)
	if err != nil {
		return s, err
	}
	for _, n := range nodes {
		line := view.NodeLine{NodeCounts: n, Counts: map[string]int{}}
		for _, st := range status.All() {
			if k := n.Counts.Of(st); k > 0 {
				line.Counts[st.String()] = k
				s.Counts[st.String()] += k
			}
		}
		if sum, refused := status.Rollup(n.Counts); refused == nil {
			line.Status = sum.String()
		}
		s.Rows += n.Rows
		s.Nodes = append(s.Nodes, line)
	}
	s.Summary = summaryOf(nodes)
	for _, st := range []status.Status{status.Failed, status.Unknown, status.Stopped, status.Blocked} {
		if s.Counts[st.String()] == 0 || len(s.Broken) >= maxShown {
			continue
		}
		found, err := l.Instances(ctx, name, ledger.Filter{Status: []status.Status{st}, Limit: maxShown - len(s.Broken)})
		if err != nil {
			return s, err
		}
		s.Broken = append(s.Broken, found...)
	}
	if s.Paused, err = l.Instances(ctx, name, ledger.Filter{Paused: true, Limit: maxShown}); err != nil {
		return s, err
	}
	if s.Noted, err = l.Instances(ctx, name, ledger.Filter{Noted: true, Status: []status.Status{status.Succeeded}, Limit: maxShown}); err != nil {
		return s, err
	}
	if s.Counts[status.Running.String()] > 0 {
		found, err := l.Instances(ctx, name, ledger.Filter{Status: []status.Status{status.Running}, Limit: maxShown})
		if err != nil {
			return s, err
		}
		s.Running = append(s.Running, found...)
	}
	return s, nil
}

// summaryOf rolls all instances of a backfill up (semantics §6.7).
func summaryOf(nodes []ledger.NodeCounts) string {
	var all status.Counts
	for _, n := range nodes {
		for _, st := range status.All() {
			all.Add(status.State{Status: st}, n.Counts.Of(st))
		}
	}
	sum, refused := status.Rollup(all)
	if refused != nil {
		return status.Pending.String()
	}
	if sum == status.Incomplete { // is it held by a pause flag?
		for _, n := range nodes {
			if s, r := status.Rollup(n.Counts); r == nil && s == status.HeldByPause {
				return s.String()
			}
		}
	}
	return sum.String()
}

// noBackfill refuses an unknown name, with the nearest known one.
func noBackfill(ctx context.Context, l *ledger.Ledger, name string) error {
	hint := "`retrofill status` lists the backfills"
	if l == nil {
		hint = "no backfill has been run in this project yet"
	} else if found, err := l.Backfills(ctx, "", 1000); err == nil { // only for the hint
		names := make([]string, len(found))
		for i, b := range found {
			names[i] = b.Name
		}
		hint = diag.DidYouMean(name, names, hint)
	}
	return refuse(diag.List{diag.Errorf("unknown_backfill", "there is no backfill %q", name).WithHint("%s", hint)})
}

// watchInterval is the time between two looks at the ledger.
const watchInterval = time.Second

// watchStatus shows a backfill again and again until it has ended: in place on
// a terminal, a line for each change elsewhere. Ctrl-C ends it at once, as
// watching changes nothing.
func watchStatus(ctx context.Context, l *ledger.Ledger, name string, env *Env, zone *time.Location) error {
	live := view.NewLive(env.Stdout, env.terminal(env.Stdout), func() int { return env.width(env.Stdout) })
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	last := ""
	for {
		s, err := statusOf(ctx, l, name)
		if err != nil {
			return err
		}
		ended := s.Backfill.State != ledger.Running && s.Backfill.State != ledger.Queued
		switch {
		case ended:
			live.Clear()
			return view.Status(env.Stdout, s, zone)
		case live.Redraws():
			live.Draw(firstLines(view.StatusLines(s, zone), env.height(env.Stdout)-1))
		default:
			if line := view.StatusLine(s); line != last {
				last = line
				if err := writeText(env.Stdout, line+"\n"); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cli: watch %s: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}

// firstLines cuts a block to what a terminal can redraw.
func firstLines(lines []string, n int) []string {
	if len(lines) <= n || n < 2 {
		return lines
	}
	return append(slices.Clone(lines[:n-1]), fmt.Sprintf("… and %d more lines", len(lines)-n+1))
}
