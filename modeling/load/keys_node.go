package load

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/retrofill/retrofill/modeling/diag"
)

// tableFile is the key table of models/**/<table>.yml.
func tableFile() value[rawTable] {
	return object("a table file", "A logical table: what its SELECT, in the .sql file of the same name beside it, cannot say; or a summary composed of metrics.",
		key("table", text(), "the file's name", "Name of the logical table; readers use it.", func(t *rawTable) *word { return &t.Table }),
		key("kind", oneOf(kinds[:]...), "by the folder (fact, dimension, summary), else fact", "What the table is.", func(t *rawTable) *word { return &t.Kind }),
		key("description", text(), "", "For people.", func(t *rawTable) *word { return &t.Description }),
		key("owner", text(), "", "For people and `owner:`.", func(t *rawTable) *word { return &t.Owner }),
		key("tags", list(text(), 0), "", "For `tag:`.", func(t *rawTable) *[]word { return &t.Tags }),
		key("key", list(text(), 0), "none; required for a dimension and with several nodes", "Primary key inside one partition.", func(t *rawTable) *[]word { return &t.Key }),
		key("partition", partitionValue(), required, "Partition columns. retrofill adds them, the SELECT does not have them; two slots must never give the same values.", func(t *rawTable) *[]entry[rawPartition] { return &t.Partition }).
			missing("no_partition", `add partition: {ds: "${yyyy-mm-dd}"}; every table needs one in this version, a full snapshot too`),
		key("schedule", scheduleValue(), "daily at 00:00", "When the table runs.", func(t *rawTable) *rawSchedule { return &t.Schedule }),
		key("params", dict(paramValue(), 0), "", "Parameters of the SELECT by name.", func(t *rawTable) *[]entry[rawParam] { return &t.Params }),
		key("compose", composeValue(), "", "Instead of a .sql file: a summary table made of metrics.", func(t *rawTable) *rawCompose { return &t.Compose }),
		key("materialize", list(nodeValue(), 1), "one node `<table>__main` with all fields", "Physical tables that hold the fields.", func(t *rawTable) *[]rawNode { return &t.Materialize }),
		key("fields", dict(fieldValue(), 0), "", "What is to be said of single fields, by name. Fields need not be listed.", func(t *rawTable) *[]entry[rawField] { return &t.Fields }),
		key("checks", list(checkValue(), 0), "", "Audits of each partition before it is committed.", func(t *rawTable) *[]rawCheck { return &t.Checks }),
		key("depends_on", list(dependencyValue(), 0), "", "Dependencies that the SELECT does not show.", func(t *rawTable) *[]rawDependency { return &t.DependsOn }),
		key("parent", text(), "", "Child dimension: the primary table it extends.", func(t *rawTable) *word { return &t.Parent }),
		key("lifecycle", matching("bad_value", daysPattern, "a number of days such as 400d"), "forever", "How long the engine keeps partitions, such as 400d.", func(t *rawTable) *word { return &t.Lifecycle }),
		key("skip_if", text(), "", "Expression over parameters and slot; where true, an instance succeeds without running.", func(t *rawTable) *word { return &t.SkipIf }),
		key("paused", boolean(), "false", "The table and everything below it are left out.", func(t *rawTable) *bool { return &t.Paused }),
		key("dry_run", boolean(), "false", "Instances succeed without executing.", func(t *rawTable) *bool { return &t.DryRun }),
		key("config", dict(anything(), 0), "", "Free settings for `config.KEY:`.", func(t *rawTable) *[]entry[any] { return &t.Config }),
		key("meta", dict(anything(), 0), "", "Free notes for `config.meta.KEY:`.", func(t *rawTable) *[]entry[any] { return &t.Meta }),
	)
}

// taskFile is the key table of tasks/**/<task>.yml.
func taskFile() value[rawTask] {
	return object("a task file", "A task: a SQL script (the .sql file of the same name beside it) or an external command.",
		key("task", text(), "the file's name", "Name of the task.", func(t *rawTask) *word { return &t.Task }),
		key("description", text(), "", "For people.", func(t *rawTask) *word { return &t.Description }),
		key("owner", text(), "", "For people and `owner:`.", func(t *rawTask) *word { return &t.Owner }),
		key("tags", list(text(), 0), "", "For `tag:`.", func(t *rawTask) *[]word { return &t.Tags }),
		key("command", list(scalar(false), 1), "the .sql file", "Program and arguments, started without a shell in the project folder; arguments may hold parameters.", func(t *rawTask) *[]word { return &t.Command }),
		key("env", dict(scalar(false), 0), "", "Environment variables of the command; values may hold parameters.", func(t *rawTask) *[]entry[word] { return &t.Env }),
		key("outputs", list(outputValue(), 0), "", "Tables that the task fills.", func(t *rawTask) *[]rawOutput { return &t.Outputs }),
		key("reads", list(text(), 0), "derived from SQL", "Tables that the task reads.", func(t *rawTask) *[]word { return &t.Reads }),
		key("sets", list(setValue(), 0), "", "Cross-node parameters that the task sets.", func(t *rawTask) *[]rawSet { return &t.Sets }),
		key("schedule", scheduleValue(), "daily at 00:00", "When the task runs.", func(t *rawTask) *rawSchedule { return &t.Schedule }),
		key("params", dict(paramValue(), 0), "", "Parameters of the script or command by name.", func(t *rawTask) *[]entry[rawParam] { return &t.Params }),
		key("depends_on", list(dependencyValue(), 0), "", "What must have run before.", func(t *rawTask) *[]rawDependency { return &t.DependsOn }),
		key("timeout", matching("bad_value", `^[1-9][0-9]{0,5}(s|m|h)$`, "a duration such as 90s, 30m or 2h"), "none", "When a running instance is killed, such as 30m.", func(t *rawTask) *word { return &t.Timeout }),
		key("skip_if", text(), "", "Expression over parameters and slot; where true, an instance succeeds without running.", func(t *rawTask) *word { return &t.SkipIf }),
		key("paused", boolean(), "false", "The task and everything below it are left out.", func(t *rawTask) *bool { return &t.Paused }),
		key("dry_run", boolean(), "false", "Instances succeed without executing.", func(t *rawTask) *bool { return &t.DryRun }),
		key("config", dict(anything(), 0), "", "Free settings for `config.KEY:`.", func(t *rawTask) *[]entry[any] { return &t.Config }),
		key("meta", dict(anything(), 0), "", "Free notes for `config.meta.KEY:`.", func(t *rawTask) *[]entry[any] { return &t.Meta }),
	)
}

func nodeValue() value[rawNode] {
	return object("materialization node", "One physical table of the logical table.",
		key("node", text(), required, "Name of the physical table, unique in the project.", func(n *rawNode) *word { return &n.Node }),
		key("fields", list(text(), 0), "none", "Fields it holds, without key and partition columns, which every node has. A field may be in several nodes.", func(n *rawNode) *[]word { return &n.Fields }),
		key("anchor", boolean(), "the first node", "This node holds the row set: `count(*)` of the table is its.", func(n *rawNode) *bool { return &n.Anchor }),
		key("at", matching("bad_time", clockPattern, "a time such as 02:30"), "the table's time", "Local time of this node.", func(n *rawNode) *word { return &n.At }),
	)
}

func fieldValue() value[rawField] {
	short := as(scalar(true), func(_ word, at diag.Pos) rawField { return rawField{place: place{Pos: at}} })
	short.words = "nothing"
	short.accepts = func(n ast.Node) bool { return n.Type() == ast.NullType }
	short.schema = func() map[string]any { return map[string]any{"type": "null"} }
	return either(short, object("field", "What YAML says of a field; its logic is in the SELECT.",
		key("description", text(), "", "For people.", func(f *rawField) *word { return &f.Description }),
		key("type", text(), "derived by the engine", "SQL type that the column must have.", func(f *rawField) *word { return &f.Type }),
		key("registered", text(), "", "`table.column` of a source or a task's output with the same key: the field is mapped, never computed, never backfilled.", func(f *rawField) *word { return &f.Registered }),
		key("paused", boolean(), "false", "Leave a logical table out as long as this field would have to be written.", func(f *rawField) *bool { return &f.Paused }),
		key("tags", list(text(), 0), "", "For people.", func(f *rawField) *[]word { return &f.Tags }),
	))
}

func checkValue() value[rawCheck] {
	columns := either(list(text(), 1), as(text(), func(w word, _ diag.Pos) []word { return []word{w} }))
	accepted := object("accepted_values", "The values that a field may have; NULL is always allowed.",
		key("field", text(), required, "The field.", func(a *rawAccepted) *word { return &a.Field }),
		key("values", list(scalar(false), 1), required, "Its values.", func(a *rawAccepted) *[]word { return &a.Values }),
	)
	return object("check", "One audit: exactly one of these keys.",
		key("not_null", columns, "", "Fields that are never NULL.", func(c *rawCheck) *[]word { return &c.NotNull }),
		key("unique", columns, "", "Fields whose values together occur once a partition.", func(c *rawCheck) *[]word { return &c.Unique }),
		key("accepted_values", accepted, "", "A field and the values it may have.", func(c *rawCheck) *rawAccepted { return &c.Accepted }),
		key("rows_between", list(integer(0, 1<<53), 2), "", "Least and greatest number of rows a partition, both included.", func(c *rawCheck) *[]int64 { return &c.RowsBetween }),
		key("sql", text(), "", "A SELECT that gives the offending rows; none = passed. Not run yet: the plan warns.", func(c *rawCheck) *word { return &c.SQL }),
	)
}

func dependencyValue() value[rawDependency] {
	return object("dependency", "One upstream: exactly one of table, task, node.",
		key("table", text(), "", "A logical table, also the table itself.", func(d *rawDependency) *word { return &d.Table }),
		key("task", text(), "", "A task.", func(d *rawDependency) *word { return &d.Task }),
		key("node", text(), "", "A logical table or task.", func(d *rawDependency) *word { return &d.Node }),
		key("cycle", text(), "the same business date", "Which of its cycles: `-1d` the day before, `-7d..-1d` the seven days before, `-1h` the hour before.", func(d *rawDependency) *word { return &d.Cycle }),
	)
}

func outputValue() value[rawOutput] {
	return object("output", "A table that a task fills.",
		key("table", text(), required, "The table as SELECTs write it.", func(o *rawOutput) *word { return &o.Table }),
		key("partition", partitionValue(), "that of the source", "Its partition columns.", func(o *rawOutput) *[]entry[rawPartition] { return &o.Partition }),
	)
}

func setValue() value[rawSet] {
	return object("set parameter", "A cross-node parameter: a SQL task sets it by the one row of `query`, a command by a line `name=value` in the file named by RETROFILL_OUTPUT.",
		key("param", text(), required, "Its name.", func(s *rawSet) *word { return &s.Param }),
		key("default", scalar(false), "", "Value where no run has set one.", func(s *rawSet) *word { return &s.Default }),
		key("query", text(), "", "SQL task: SELECT that gives the value, one row with one column. It is run when the script is committed; NULL or no row sets nothing.", func(s *rawSet) *word { return &s.Query }),
		key("description", text(), "", "For people.", func(s *rawSet) *word { return &s.Description }),
	)
}
