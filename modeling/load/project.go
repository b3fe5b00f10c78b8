package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// project builds what retrofill.yml says.
func (b *builder) project(r rawProject) *modeling.Project {
	p := &modeling.Project{
		Name: r.Name.Text, Zone: cmp.Or(r.Zone.Text, "UTC"), Dialect: cmp.Or(r.Dialect.Text, "dataphin"),
		DefaultEnvironment: r.DefaultEnvironment.Text,
	}
	b.goodName(r.Name, "project")
	if r.Zone.Pos.Line > 0 {
		b.zone(r.Zone)
	}
	b.engines(r, p)
	b.environments(r, p)
	b.groups(r, p)
	for _, e := range r.Params {
		if e.Value.has("from") {
			b.report(diag.Errorf("bad_value", "a parameter of the whole project has no producer").At(e.Value.at("from")).
				WithHint("write it under params of the tables and tasks that read it: they must be direct downstream of the task"))
		}
	}
	p.Params = b.params(r.Params)
	b.refs = nil
	for _, s := range r.Sources {
		p.Sources = append(p.Sources, b.source(s))
	}
	slices.SortStableFunc(p.Sources, func(a, c modeling.Source) int { return cmp.Compare(a.Table, c.Table) })
	return p
}

func (b *builder) zone(w word) {
	if _, err := bizdate.LoadZone(w.Text); err == nil {
		return
	}
	hint := "write an IANA name such as Europe/Berlin, America/New_York or UTC"
	if strings.EqualFold(w.Text, "local") {
		hint += "; the machine's own zone would give other days elsewhere"
	}
	b.report(diag.Errorf("unknown_zone", "%q is not a time zone", clip(w.Text)).At(w.Pos).WithHint("%s", diag.DidYouMean(w.Text, commonZones[:], hint)))
}

// commonZones are offered for a mistyped zone.
var commonZones = [...]string{
	"UTC", "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo",
	"Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Rome", "Europe/Moscow", "Europe/Istanbul",
	"Asia/Shanghai", "Asia/Tokyo", "Asia/Seoul", "Asia/Singapore", "Asia/Kolkata", "Asia/Dubai", "Asia/Hong_Kong",
	"Australia/Sydney", "Pacific/Auckland", "Africa/Johannesburg", "Africa/Cairo",
}

func (b *builder) engines(r rawProject, p *modeling.Project) {
	for _, e := range r.Engines {
		if !b.goodName(e.Key, "engine") {
			continue
		}
		v := e.Value
		eng := modeling.Engine{Name: e.Key.Text, Type: v.Type.Text, Path: v.Path.Text, DSN: v.DSN.Text, Pos: e.Key.Pos}
		for _, o := range v.Options {
			if eng.Options == nil {
				eng.Options = map[string]string{}
			}
			eng.Options[o.Key.Text] = o.Value.Text
		}
		switch {
		case eng.Type == "":
		case eng.Type == "duckdb":
			eng.Path = cmp.Or(eng.Path, "warehouse.duckdb")
			if v.has("dsn") {
				b.report(diag.Errorf("bad_value", "a duckdb engine has a path, not a dsn").At(v.at("dsn")).WithHint("write path: warehouse.duckdb"))
			}
		default:
			if v.has("path") {
				b.report(diag.Errorf("bad_value", "a %s engine has a dsn, not a path", eng.Type).At(v.at("path")).WithHint(`write dsn: "${env:DSN}"`))
			}
			if !v.has("dsn") {
				b.report(diag.Errorf("missing_key", "key %q is missing in engine %q", "dsn", eng.Name).At(e.Key.Pos).
					WithHint(`add dsn: "${env:DSN}"; secrets come from the environment or a file, never from the project`))
			}
		}
		p.Engines = append(p.Engines, eng)
	}
	if !r.has("engines") {
		p.Engines = []modeling.Engine{{Name: "local", Type: "duckdb", Path: "warehouse.duckdb", Pos: r.Pos}}
	}
}

func (b *builder) environments(r rawProject, p *modeling.Project) {
	var names []string
	target := map[string]modeling.Environment{}
	for _, e := range r.Environments {
		if !b.goodName(e.Key, "environment") {
			continue
		}
		env := modeling.Environment{Name: e.Key.Text, Engine: e.Value.Engine.Text, Schema: e.Value.Schema.Text, Pos: e.Key.Pos}
		if e.Value.has("schema") {
			b.goodName(e.Value.Schema, "schema")
		}
		if !e.Value.has("engine") {
			if len(p.Engines) == 1 {
				env.Engine = p.Engines[0].Name
			} else {
				b.report(diag.Errorf("missing_key", "key %q is missing in environment %q", "engine", env.Name).At(e.Key.Pos).
					WithHint("the project has %d engines; name one of: %s", len(p.Engines), engineNames(p)))
			}
		}
		eng := p.Engine(env.Engine)
		if eng == nil && e.Value.Engine.Pos.Line > 0 {
			b.report(diag.Errorf("unknown_engine", "the project has no engine %q", clip(env.Engine)).At(e.Value.Engine.Pos).
				WithHint("%s", diag.DidYouMean(env.Engine, strings.Split(engineNames(p), ", "), "name one of `engines`: "+engineNames(p))))
		}
		if env.Schema == "" && eng != nil {
			env.Schema = defaultSchema(eng.Type)
		}
		same := fold(env.Engine) + "\x00" + fold(env.Schema)
		if first, ok := target[same]; ok && env.Engine != "" {
			b.report(diag.Warnf("same_target", "environments %q and %q write to the same schema %q", first.Name, env.Name, env.Schema).At(e.Key.Pos).
				WithHint("give each environment a schema of its own"))
		}
		target[same] = env
		p.Environments = append(p.Environments, env)
		names = append(names, env.Name)
	}
	if !r.has("environments") && len(p.Engines) > 0 {
		if len(p.Engines) > 1 {
			b.report(diag.Errorf("missing_key", "key %q is missing in retrofill.yml", "environments").At(r.Pos).
				WithHint("the project has %d engines; say where runs write: environments: {dev: {engine: %s, schema: dw_dev}}", len(p.Engines), p.Engines[0].Name))
		}
		eng := p.Engines[0]
		p.Environments = []modeling.Environment{{Name: "default", Engine: eng.Name, Schema: defaultSchema(eng.Type), Pos: eng.Pos}}
		names = []string{"default"}
	}
	switch w := r.DefaultEnvironment; {
	case !r.has("default_environment") && len(names) > 0:
		p.DefaultEnvironment = names[0]
	case w.Pos.Line > 0 && !slices.Contains(names, w.Text):
		b.report(diag.Errorf("unknown_environment", "the project has no environment %q", clip(w.Text)).At(w.Pos).
			WithHint("%s", diag.DidYouMean(w.Text, names, "name one of `environments`: "+strings.Join(names, ", "))))
	}
	slices.SortStableFunc(p.Environments, func(a, c modeling.Environment) int { return cmp.Compare(a.Name, c.Name) })
	slices.SortStableFunc(p.Engines, func(a, c modeling.Engine) int { return cmp.Compare(a.Name, c.Name) })
}

func defaultSchema(engine string) string {
	switch engine {
	case "postgres":
		return "public"
	case "trino":
		return "default"
	}
	return "main"
}

func engineNames(p *modeling.Project) string {
	names := make([]string, len(p.Engines))
	for i, e := range p.Engines {
		names[i] = e.Name
	}
	return strings.Join(names, ", ")
}

func (b *builder) source(r rawSource) modeling.Source {
	s := modeling.Source{
		Table: r.Table.Text, Description: r.Description.Text, Owner: r.Owner.Text, Tags: b.tags(r.Tags),
		Partition: b.partition(r.Partition), Schedule: b.schedule(r.Schedule), RetentionDays: days(r.Retention),
		Snapshot: r.Snapshot, Pos: r.at("table"),
	}
	if r.has("table") {
		b.goodName(r.Table, sourceWord)
	}
	for _, k := range append([][]word{r.Key}, r.Keys...) {
		if names, _ := b.names(k, "key column"); len(names) > 0 {
			s.Keys = append(s.Keys, names)
		}
	}
	declared := map[string]bool{}
	for _, c := range r.Columns {
		if !b.goodName(c.Key, "column") {
			continue
		}
		if declared[fold(c.Key.Text)] {
			b.report(diag.Errorf("duplicate_value", "column %q is written twice", clip(c.Key.Text)).At(c.Key.Pos).WithHint("remove one of the two (letter case does not count)"))
			continue
		}
		declared[fold(c.Key.Text)] = true
		s.Columns = append(s.Columns, modeling.Column{Name: c.Key.Text, Type: c.Value.Type.Text, Description: c.Value.Description.Text})
	}
	if len(s.Columns) > 0 {
		b.declaredKeys(r, s, declared)
	}
	return s
}

// declaredKeys checks keys and partition of a source against its columns.
func (b *builder) declaredKeys(r rawSource, s modeling.Source, declared map[string]bool) {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	for _, p := range s.Partition {
		declared[fold(p.Name)] = true
	}
	for _, k := range append([][]word{r.Key}, r.Keys...) {
		for _, w := range k {
			if !declared[fold(w.Text)] {
				b.report(diag.Errorf("unknown_field", "key column %q is not among the columns of %s", clip(w.Text), clip(s.Table)).At(w.Pos).
					WithHint("%s", diag.DidYouMean(w.Text, names, "add it under columns")))
			}
		}
	}
}
