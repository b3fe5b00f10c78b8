package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/selector"
)

func lsCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list the nodes that a selection gives",
		UsageText: "retrofill ls [SELECTION …] [flags]",
		Flags: append(projectFlags(), outputFlag("text", "json", "csv", "dot"),
			&cli.StringSliceFlag{Name: "select", Usage: "`SELECTION` in dbt's language, such as +fct_flight+ or tag:core,kind:fact; repeatable"},
			&cli.StringSliceFlag{Name: "exclude", Usage: "leave this `SELECTION` out; repeatable"},
			&cli.StringFlag{Name: "where", Usage: "keep nodes for which this `EXPRESSION` holds, such as 'cycle == \"hourly\"'"}),
		Action: func(c *cli.Context) error {
			o := lsOptions{projectOptions: projectOptionsOf(c), Select: append(c.StringSlice("select"), c.Args().Slice()...), Exclude: c.StringSlice("exclude"), Where: c.String("where")}
			var err error
			if o.Output, err = outputOf(c, "text", "json", "csv", "dot"); err != nil {
				return err
			}
			return runLs(c.Context, o, env)
		},
	}
}

type lsOptions struct {
	projectOptions
	Select, Exclude []string
	Where           string
	Output          string
}

// lsNode is a node in the output of ls.
type lsNode struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Project string   `json:"project"`
	Owner   string   `json:"owner"`
	Tags    []string `json:"tags"`
	State   string   `json:"state"` // scheduled, paused or dry_run
	Level   int      `json:"level"` // levels below the nodes that read no other
	Cycle   string   `json:"cycle"`
	Fields  int      `json:"fields"`
}

// lsDocument is the JSON of ls.
type lsDocument struct {
	Nodes       []lsNode  `json:"nodes"`
	Diagnostics diag.List `json:"diagnostics"`
}

// runLs lists a selection (semantics §5.2, §5.5).
func runLs(ctx context.Context, o lsOptions, env *Env) (err error) {
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	g, err := s.graph(ctx)
	if err != nil {
		return err
	}
	q := selector.Query{Exclude: o.Exclude, Where: o.Where}
	if len(o.Select) > 0 {
		q.Select = o.Select
	}
	doc := lsDocument{Nodes: []lsNode{}, Diagnostics: append(diag.List{}, s.Warnings...)}
	sel, diags := g.Select(q)
	doc.Diagnostics = append(doc.Diagnostics, diags...)
	if !diags.HasErrors() && len(s.model.Nodes) > 0 {
		doc.Diagnostics = append(doc.Diagnostics, selector.NonEmpty(sel.Nodes)...)
	}
	if doc.Diagnostics.HasErrors() {
		if o.Output == "json" {
			writeJSON(env.Stdout, doc)
			return &exitError{code: exitRefused, diags: doc.Diagnostics, silent: true}
		}
		return refuse(doc.Diagnostics)
	}
	depth := s.depths()
	for i := range sel.Nodes.All() {
		n := s.model.Nodes[i]
		x := lsNode{Name: n.Name, Kind: string(n.Kind), Project: s.Project.Name, State: "scheduled", Level: depth[i], Cycle: string(n.Schedule.Cycle), Fields: len(n.Fields), Tags: []string{}}
		paused, dry := false, false
		if t := n.Table; t != nil {
			x.Owner, paused, dry = t.Owner, t.Paused, t.DryRun
			x.Tags = append(x.Tags, t.Tags...)
		} else {
			x.Owner, paused, dry = n.Task.Owner, n.Task.Paused, n.Task.DryRun
			x.Tags = append(x.Tags, n.Task.Tags...)
		}
		if g.Node(i).Paused || paused {
			x.State = "paused"
		} else if dry {
			x.State = "dry_run"
		}
		doc.Nodes = append(doc.Nodes, x)
		doc.Diagnostics = append(doc.Diagnostics, n.Diagnostics.Warnings()...)
	}
	switch o.Output {
	case "json":
		writeJSON(env.Stdout, doc)
		return nil
	case "csv":
		err = lsCSV(env.Stdout, doc.Nodes)
	case "dot":
		err = s.lsDot(env.Stdout, g, sel.Nodes)
	default:
		err = lsText(env.Stdout, doc.Nodes)
	}
	env.diagnostics(doc.Diagnostics)
	return err
}

// depths gives the longest way from a node without inputs, for each node.
func (s *session) depths() []int {
	out := make([]int, len(s.model.Nodes))
	for i, n := range s.model.Nodes {
		for _, in := range n.Inputs {
			if in.Node >= 0 && in.Node < i {
				out[i] = max(out[i], out[in.Node]+1)
			}
		}
	}
	return out
}

func lsText(w io.Writer, nodes []lsNode) error {
	rows := [][]string{{"NAME", "KIND", "CYCLE", "LEVEL", "FIELDS", "STATE", "OWNER", "TAGS"}}
	for _, n := range nodes {
		rows = append(rows, []string{n.Name, n.Kind, n.Cycle, strconv.Itoa(n.Level), strconv.Itoa(n.Fields), n.State, n.Owner, strings.Join(n.Tags, ",")})
	}
	return table(w, rows)
}

// table writes rows with columns as wide as their longest cell, in runes.
func table(w io.Writer, rows [][]string) error {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			line.WriteString(c)
			line.WriteString(strings.Repeat(" ", width[i]-len([]rune(c))+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteString("\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cli: write table: %w", err)
	}
	return nil
}

func lsCSV(w io.Writer, nodes []lsNode) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"name", "kind", "project", "owner", "tags", "state", "level", "cycle", "fields"}}
	for _, n := range nodes {
		rows = append(rows, []string{n.Name, n.Kind, n.Project, n.Owner, strings.Join(n.Tags, " "), n.State, strconv.Itoa(n.Level), n.Cycle, strconv.Itoa(n.Fields)})
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("cli: write csv: %w", err)
	}
	return nil
}

// lsDot writes the selected nodes and their dependencies as a Graphviz graph.
func (s *session) lsDot(w io.Writer, g *selector.Graph, set selector.Set) error {
	var b strings.Builder
	b.WriteString("digraph retrofill {\n  rankdir=LR;\n  node [shape=box];\n")
	for i := range set.All() {
		fmt.Fprintf(&b, "  %s;\n", dotID(s.model.Nodes[i].Name))
	}
	edges := g.Contract(set)
	slices.SortFunc(edges, func(x, y [2]int) int {
		if x[0] != y[0] {
			return x[0] - y[0]
		}
		return x[1] - y[1]
	})
	for _, e := range edges {
		fmt.Fprintf(&b, "  %s -> %s;\n", dotID(s.model.Nodes[e[0]].Name), dotID(s.model.Nodes[e[1]].Name))
	}
	b.WriteString("}\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cli: write graph: %w", err)
	}
	return nil
}

// dotID quotes a Graphviz identifier.
func dotID(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
