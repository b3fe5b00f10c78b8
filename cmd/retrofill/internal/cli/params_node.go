package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
)

// paramValue is one parameter in the output of `params NODE`.
type paramValue struct {
	Name    string `json:"name"`
	Written string `json:"written"`
	Value   string `json:"value"`
	Origin  string `json:"origin"`
	// Late says that only a run knows the value.
	Late bool `json:"late,omitempty"`
	// Shadows says that the user replaced a built-in name.
	Shadows bool `json:"shadows_builtin,omitempty"`
}

// slotParams is what a node's parameters and code are at one slot.
type slotParams struct {
	Slot      string            `json:"slot"`
	Params    []paramValue      `json:"params"`
	Partition map[string]string `json:"partition,omitempty"`
	SQL       string            `json:"sql,omitempty"`
	Command   []string          `json:"command,omitempty"`
}

// paramsDocument is the JSON of `params NODE`.
type paramsDocument struct {
	Node        string       `json:"node"`
	Bizdate     string       `json:"bizdate"`
	Slots       []slotParams `json:"slots"`
	Diagnostics diag.List    `json:"diagnostics"`
}

// runParamsNode shows every parameter's value and the final SQL of a node at a
// business date (semantics §2).
func runParamsNode(ctx context.Context, o paramsOptions, env *Env) (err error) {
	if o.Moment.Bizdate == "" {
		return refuse(diag.List{diag.Errorf("usage", "params NODE needs a business date").WithHint("add --date YYYY-MM-DD")})
	}
	date, perr := bizdate.Parse(o.Moment.Bizdate)
	if perr != nil {
		return refuse(diag.List{diag.Errorf("bad_date", "%q is not a date", o.Moment.Bizdate).WithHint("write YYYY-MM-DD")})
	}
	overrides, _, diags := overridesOf(o.Params)
	if diags.HasErrors() {
		return refuse(diags)
	}
	s, err := openSession(ctx, sessionOptions{projectOptions: o.projectOptions, Overrides: overrides}, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	n := s.model.Node(o.Node)
	if n == nil {
		return refuse(diag.List{diag.Errorf("unknown_node", "no table or task is called %q", o.Node).
			WithHint("%s", diag.DidYouMean(o.Node, s.model.Names(), "`retrofill ls` lists the nodes"))})
	}
	doc := paramsDocument{Node: n.Name, Bizdate: date.String(), Slots: []slotParams{}, Diagnostics: append(diag.List{}, s.Warnings...)}
	doc.Diagnostics = append(doc.Diagnostics, n.Diagnostics...)
	var tmpl *param.Template
	var argv []*param.Template
	switch {
	case n.Table != nil:
		sql := n.Table.SQL
		if v, ok := n.Table.SQLByEngine[s.Project.Engine(s.Environment.Engine).Type]; ok {
			sql = v
		}
		tmpl, diags = param.ParseCode(param.Source{Text: sql, Pos: diag.Pos{File: n.Table.SQLFile, Line: 1, Column: 1}}, n.Params)
		doc.Diagnostics = append(doc.Diagnostics, diags...)
	case n.Task.SQL != "":
		tmpl, diags = param.ParseCode(param.Source{Text: n.Task.SQL, Pos: diag.Pos{File: n.Task.SQLFile, Line: 1, Column: 1}}, n.Params)
		doc.Diagnostics = append(doc.Diagnostics, diags...)
	default:
		for _, a := range n.Task.Command {
			t, d := param.ParseText(param.Source{Text: a, Pos: n.Task.Pos}, n.Params)
			doc.Diagnostics = append(doc.Diagnostics, d...)
			argv = append(argv, t)
		}
	}
	doc.Diagnostics = distinct(doc.Diagnostics)
	if doc.Diagnostics.HasErrors() {
		return refuse(doc.Diagnostics)
	}
	for _, slot := range n.Schedule.Slots(date, s.Zone, nil) {
		at := param.At(slot)
		sp := slotParams{Slot: slot.ID(), Params: []paramValue{}}
		for _, p := range append(n.Params.Params(), n.Params.Builtins()...) {
			v := paramValue{Name: p.Name, Written: p.Written, Origin: string(p.Origin), Shadows: p.Shadows}
			if p.Expr != nil && len(p.Expr.Late()) == 0 {
				text, d := p.Expr.Eval(at)
				doc.Diagnostics = append(doc.Diagnostics, d...)
				v.Value = text
			} else {
				v.Late = p.Expr != nil
			}
			sp.Params = append(sp.Params, v)
		}
		for _, p := range n.Partition {
			text, d := p.Expr.Eval(at)
			doc.Diagnostics = append(doc.Diagnostics, d...)
			if sp.Partition == nil {
				sp.Partition = map[string]string{}
			}
			sp.Partition[p.Name] = text
		}
		if tmpl != nil {
			text, d := tmpl.Preview(at, nil)
			doc.Diagnostics = append(doc.Diagnostics, d...)
			sp.SQL = text
		}
		for _, t := range argv {
			text, d := t.Preview(at, nil)
			doc.Diagnostics = append(doc.Diagnostics, d...)
			sp.Command = append(sp.Command, text)
		}
		doc.Slots = append(doc.Slots, sp)
	}
	doc.Diagnostics = distinct(doc.Diagnostics)
	if doc.Diagnostics.HasErrors() {
		return refuse(doc.Diagnostics)
	}
	if o.Output == "json" {
		writeJSON(env.Stdout, doc)
		return nil
	}
	env.diagnostics(doc.Diagnostics)
	return paramsText(env, doc)
}

func paramsText(env *Env, doc paramsDocument) error {
	var b strings.Builder
	for i, sp := range doc.Slots {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s at %s (business date %s)\n", doc.Node, sp.Slot, doc.Bizdate)
		rows := [][]string{}
		for _, p := range sp.Params {
			value := p.Value
			if p.Late {
				value = "(known while running)"
			}
			note := p.Origin
			if p.Shadows {
				note += ", replaces the built-in name"
			}
			written := ""
			if p.Written != p.Value {
				written = p.Written
			}
			rows = append(rows, []string{"  " + p.Name, value, written, note})
		}
		for _, k := range sortedKeys(sp.Partition) {
			rows = append(rows, []string{"  partition " + k, sp.Partition[k], "", ""})
		}
		if err := table(&b, rows); err != nil {
			return err
		}
		if sp.SQL != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(sp.SQL, "\n"))
		}
		if len(sp.Command) > 0 {
			fmt.Fprintf(&b, "\n%q\n", sp.Command)
		}
	}
	if _, err := fmt.Fprint(env.Stdout, b.String()); err != nil {
		return fmt.Errorf("cli: write parameters: %w", err)
	}
	return nil
}
