package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/lineage"
)

func showCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show a node: its fields and what they read, row set, nodes, schedule, inputs and readers",
		UsageText: "retrofill show NODE [flags]",
		Flags:     append(projectFlags(), outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			out, err := outputOf(c, "text", "json")
			if err != nil {
				return err
			}
			if c.Args().Len() != 1 {
				return refuse(diag.List{diag.Errorf("usage", "show takes one node, got %d", c.Args().Len()).WithHint("`retrofill ls` lists the nodes")})
			}
			return runShow(c.Context, projectOptionsOf(c), c.Args().First(), out, env)
		},
	}
}

// showField is a field in the output of show.
type showField struct {
	Name             string   `json:"name"`
	Type             string   `json:"type"`
	Key              bool     `json:"key,omitempty"`
	Nodes            []string `json:"nodes"`
	Reads            []string `json:"reads"`
	Params           []string `json:"params,omitempty"`
	Joins            []string `json:"joins,omitempty"`
	Nondeterministic string   `json:"nondeterministic,omitempty"`
	Description      string   `json:"description,omitempty"`
	Fingerprint      string   `json:"fingerprint"`
	// Registered is the table.column that a registered field is mapped from.
	Registered string `json:"registered,omitempty"`
}

// showInput is a node or source that a node reads.
type showInput struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Columns []string `json:"columns"`
	RowSet  bool     `json:"row_set"`
}

// showDocument is the JSON of show.
type showDocument struct {
	Name         string            `json:"name"`
	Kind         string            `json:"kind"`
	Description  string            `json:"description,omitempty"`
	Owner        string            `json:"owner,omitempty"`
	Tags         []string          `json:"tags"`
	Schedule     string            `json:"schedule"`
	Key          []string          `json:"key"`
	Partition    map[string]string `json:"partition"`
	Nodes        []showNode        `json:"nodes"`
	Fields       []showField       `json:"fields"`
	RowSet       []string          `json:"row_set"`
	Sources      []string          `json:"sources"`
	Unsplittable string            `json:"unsplittable,omitempty"`
	Inputs       []showInput       `json:"inputs"`
	Readers      []string          `json:"readers"`
	SQL          string            `json:"sql,omitempty"`
	Composed     *showCompose      `json:"composed,omitempty"`
	Command      []string          `json:"command,omitempty"`
	Diagnostics  diag.List         `json:"diagnostics"`
}

// showNode is a materialization node.
type showNode struct {
	Name   string   `json:"name"`
	Table  string   `json:"table"`
	Anchor bool     `json:"anchor"`
	Fields []string `json:"fields"`
}

// showCompose is what a composed table is made of.
type showCompose struct {
	From    string   `json:"from"`
	Grain   []string `json:"grain"`
	Metrics []string `json:"metrics"`
	Filters []string `json:"filters"`
}

// runShow shows one node.
func runShow(ctx context.Context, o projectOptions, name, output string, env *Env) (err error) {
	s, err := openSession(ctx, sessionOptions{projectOptions: o}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	n := s.model.Node(name)
	if n == nil {
		return refuse(diag.List{diag.Errorf("unknown_node", "no table or task is called %q", name).
			WithHint("%s", diag.DidYouMean(name, s.model.Names(), "`retrofill ls` lists the nodes"))})
	}
	doc := s.showDocument(ctx, n)
	if output == "json" {
		writeJSON(env.Stdout, doc)
	} else {
		env.diagnostics(doc.Diagnostics)
		if _, err := fmt.Fprint(env.Stdout, showText(doc)); err != nil {
			return fmt.Errorf("cli: write node: %w", err)
		}
	}
	if doc.Diagnostics.HasErrors() {
		return &exitError{code: exitRefused, diags: doc.Diagnostics, silent: true}
	}
	return nil
}

func (s *session) showDocument(ctx context.Context, n *lineage.Node) showDocument {
	doc := showDocument{
		Name: n.Name, Kind: string(n.Kind), Schedule: n.Schedule.String(), Tags: []string{}, Key: []string{}, Partition: map[string]string{},
		Nodes: []showNode{}, Fields: []showField{}, RowSet: []string{}, Sources: []string{}, Inputs: []showInput{}, Readers: []string{},
		Diagnostics: append(append(diag.List{}, s.Warnings...), n.Diagnostics...),
	}
	for _, in := range n.Inputs {
		x := showInput{Name: in.Name, Kind: "source", Columns: []string{}}
		if in.Node >= 0 {
			x.Kind = string(s.model.Nodes[in.Node].Kind)
		}
		for _, r := range in.References {
			ref := n.Analysis.References[r]
			x.RowSet = x.RowSet || ref.RowSet
			for _, c := range ref.Columns {
				if !hasFold(x.Columns, c) {
					x.Columns = append(x.Columns, c)
				}
			}
		}
		for _, r := range in.Registered {
			x.RowSet = x.RowSet || r.RowSet
			if !hasFold(x.Columns, r.Column) {
				x.Columns = append(x.Columns, r.Column)
			}
		}
		doc.Inputs = append(doc.Inputs, x)
	}
	for _, r := range s.model.Nodes {
		for _, in := range r.Inputs {
			if in.Node == n.Position {
				doc.Readers = append(doc.Readers, r.Name)
			}
		}
	}
	if n.Table == nil {
		doc.Description, doc.Owner, doc.SQL, doc.Command = n.Task.Description, n.Task.Owner, n.Task.SQL, n.Task.Command
		doc.Tags = append(doc.Tags, n.Task.Tags...)
		return doc
	}
	t := n.Table
	doc.Description, doc.Owner, doc.SQL = t.Description, t.Owner, t.SQL
	doc.Tags, doc.Key = append(doc.Tags, t.Tags...), append(doc.Key, t.Key...)
	for _, p := range n.Partition {
		doc.Partition[p.Name] = p.Expr.Written()
	}
	for _, m := range t.Nodes {
		doc.Nodes = append(doc.Nodes, showNode{m.Name, s.Environment.Schema + "." + m.Name, m.Anchor, m.Fields})
	}
	if c := t.Compose; c != nil {
		doc.Composed = &showCompose{From: c.From, Grain: c.Grain, Metrics: c.Metrics, Filters: append([]string{}, c.Filters...)}
	}
	if n.Analysis == nil {
		return doc
	}
	if n.Analysis.Unsplittable != nil {
		doc.Unsplittable = n.Analysis.Unsplittable.Kind + ": " + n.Analysis.Unsplittable.Reason
	}
	cols, diags := s.typer.Fields(ctx, n)
	doc.Diagnostics = append(doc.Diagnostics, diags...)
	types := map[string]string{}
	for _, c := range cols {
		types[strings.ToLower(c.Name)] = c.Type
	}
	for _, f := range n.Analysis.Fields {
		x := showField{Name: f.Name, Type: types[strings.ToLower(f.Name)], Key: t.IsKey(f.Name), Nodes: []string{}, Reads: []string{},
			Params: f.Params, Joins: f.Joins, Nondeterministic: f.Nondeterministic, Fingerprint: f.Fingerprint}
		for _, m := range t.Nodes {
			if x.Key || hasFold(m.Fields, f.Name) {
				x.Nodes = append(x.Nodes, m.Name)
			}
		}
		for _, r := range f.Reads {
			x.Reads = append(x.Reads, r.String())
		}
		for _, spec := range t.Fields {
			if strings.EqualFold(spec.Name, f.Name) {
				x.Description = spec.Description
			}
		}
		doc.Fields = append(doc.Fields, x)
	}
	for _, r := range n.Registered {
		x := showField{Name: r.Field, Type: r.Type, Nodes: []string{}, Reads: []string{}, Registered: r.Table + "." + r.Column}
		for _, spec := range t.Fields {
			if strings.EqualFold(spec.Name, r.Field) {
				x.Description = spec.Description
			}
		}
		doc.Fields = append(doc.Fields, x)
	}
	for _, r := range n.Analysis.RowSet.Reads {
		doc.RowSet = append(doc.RowSet, r.String())
	}
	doc.Sources = append(doc.Sources, n.Analysis.RowSet.Sources...)
	return doc
}

func showText(d showDocument) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, %s", d.Name, d.Kind, d.Schedule)
	if d.Owner != "" {
		fmt.Fprintf(&b, ", owner %s", d.Owner)
	}
	b.WriteString("\n")
	if d.Description != "" {
		fmt.Fprintf(&b, "  %s\n", d.Description)
	}
	line := func(label string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&b, "  %-11s %s\n", label, strings.Join(list, ", "))
		}
	}
	line("tags", d.Tags)
	line("key", d.Key)
	for _, k := range sortedKeys(d.Partition) {
		fmt.Fprintf(&b, "  %-11s %s = %s\n", "partition", k, d.Partition[k])
	}
	for _, n := range d.Nodes {
		anchor := ""
		if n.Anchor {
			anchor = " (anchor)"
		}
		fmt.Fprintf(&b, "  %-11s %s%s: %s\n", "node", n.Table, anchor, strings.Join(n.Fields, ", "))
	}
	line("row set", d.RowSet)
	if d.Unsplittable != "" {
		fmt.Fprintf(&b, "  %-11s full table only: %s\n", "fields", d.Unsplittable)
	}
	line("command", d.Command)
	if len(d.Fields) > 0 {
		rows := [][]string{{"  FIELD", "TYPE", "READS", "NOTE"}}
		for _, f := range d.Fields {
			note := f.Description
			if f.Nondeterministic != "" {
				note = strings.TrimSpace("not deterministic: " + f.Nondeterministic + ". " + note)
			}
			if f.Registered != "" {
				note = strings.TrimSpace("registered: " + f.Registered + ". " + note)
			}
			name := f.Name
			if f.Key {
				name += " (key)"
			}
			rows = append(rows, []string{"  " + name, f.Type, strings.Join(f.Reads, ", "), note})
		}
		b.WriteString("\n")
		if err := table(&b, rows); err != nil {
			return b.String() // a strings.Builder never fails
		}
	}
	if len(d.Inputs) > 0 {
		b.WriteString("\n  reads\n")
		for _, in := range d.Inputs {
			role := "fields only"
			if in.RowSet {
				role = "decides the rows"
			}
			fmt.Fprintf(&b, "    %s (%s, %s): %s\n", in.Name, in.Kind, role, strings.Join(in.Columns, ", "))
		}
	}
	if d.Composed != nil {
		fmt.Fprintf(&b, "\n  composed from %s\n\n%s\n", d.Composed.From, strings.TrimRight("    "+strings.ReplaceAll(d.SQL, "\n", "\n    "), " \n"))
	}
	if len(d.Readers) > 0 {
		fmt.Fprintf(&b, "\n  read by %s\n", strings.Join(d.Readers, ", "))
	}
	return b.String()
}
