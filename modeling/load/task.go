package load

import (
	"slices"
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// task builds one task: a command if it has one, else a SQL script.
func (b *builder) task(r rawTask, g group) *modeling.Task {
	t := &modeling.Task{
		Name: stem(g.base), Kind: modeling.SQLTask, Description: r.Description.Text, Owner: r.Owner.Text, Tags: b.tags(r.Tags),
		SQL: g.sql.text, SQLFile: g.sql.path, Schedule: b.schedule(r.Schedule), Config: config(r.Config, r.Meta),
		Paused: r.Paused, DryRun: r.DryRun, SkipIf: r.SkipIf.Text, SkipIfPos: r.SkipIf.Pos, YAMLFile: g.yaml.path, Pos: r.at("task"),
	}
	name := word{Text: t.Name, Pos: r.Pos}
	if r.has("task") {
		name = r.Task
	}
	if b.goodName(name, taskWord) {
		t.Name = name.Text
	}
	b.owner = t.Name
	for _, w := range r.Command {
		t.Command = append(t.Command, w.Text)
	}
	if r.has("command") {
		t.Kind = modeling.Command
		if len(t.Command) > 0 && strings.TrimSpace(t.Command[0]) == "" {
			b.report(diag.Errorf("bad_value", "the program of the command is empty").At(r.Command[0].Pos).WithHint("write command: [program, argument, …]"))
		}
	} else if r.has("env") {
		b.report(diag.Errorf("bad_value", "a SQL task has no environment variables").At(r.at("env")).
			WithHint("remove env, or write the values under params"))
	}
	for _, e := range r.Env {
		if e.Key.Text == "" || strings.ContainsAny(e.Key.Text, "=\x00") {
			b.report(diag.Errorf("bad_name", "%q cannot be the name of an environment variable", clip(e.Key.Text)).At(e.Key.Pos).
				WithHint("use letters, digits and underscores"))
			continue
		}
		t.Env = append(t.Env, e.Key.Text+"="+e.Value.Text)
	}
	slices.Sort(t.Env)
	for _, o := range r.Outputs {
		if b.goodName(o.Table, "output table") {
			t.Outputs = append(t.Outputs, modeling.Output{Table: o.Table.Text, Partition: b.partition(o.Partition), Pos: o.Table.Pos})
		}
	}
	t.Reads, _ = b.names(r.Reads, "table read")
	for _, w := range r.Reads {
		b.refs = append(b.refs, reference{what: "reads", word: w, from: t.Name})
	}
	seen := map[string]bool{}
	for _, s := range r.Sets {
		if !b.goodName(s.Param, "parameter") {
			continue
		}
		if seen[fold(s.Param.Text)] {
			b.report(diag.Errorf("duplicate_value", "parameter %q is set twice", clip(s.Param.Text)).At(s.Param.Pos).WithHint("remove one of the two"))
			continue
		}
		seen[fold(s.Param.Text)] = true
		p := modeling.SetParam{Name: s.Param.Text, Description: s.Description.Text, Query: s.Query.Text, QueryPos: s.Query.Pos, Pos: s.Param.Pos}
		switch {
		case s.has("query") && r.has("command"):
			b.report(diag.Errorf("bad_value", "a command sets %q by a line in the file named by RETROFILL_OUTPUT, not by a query", clip(p.Name)).At(s.at("query")).
				WithHint("remove query, or make it a SQL task"))
		case s.has("query") && strings.TrimSpace(p.Query) == "":
			b.report(diag.Errorf("bad_value", "the query of parameter %q is empty", clip(p.Name)).At(s.at("query")).WithHint("write a SELECT of one row with one column"))
		case !s.has("query") && !r.has("command") && g.sql.text != "" && !s.has("default"):
			b.report(diag.Errorf("bad_value", "nothing gives parameter %q a value", clip(p.Name)).At(s.Param.Pos).WithHint("add query: a SELECT of one row with one column, or a default"))
		}
		if s.has("default") {
			p.Default = &s.Default.Text
		}
		t.Sets = append(t.Sets, p)
	}
	t.Params = b.params(r.Params)
	t.DependsOn = b.dependencies(r.DependsOn)
	if r.Timeout.Text != "" {
		d, err := time.ParseDuration(r.Timeout.Text)
		if err != nil || d > 366*24*time.Hour {
			b.report(diag.Errorf("bad_value", "%q is too long for a timeout", r.Timeout.Text).At(r.Timeout.Pos).WithHint("write a duration such as 30m"))
		}
		t.TimeoutSec = int(d / time.Second)
	}
	return t
}
