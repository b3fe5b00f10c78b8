package load

import (
	"strconv"

	"github.com/retrofill/retrofill/modeling/diag"
)

// What the files say, as written; project.go, table.go and task.go turn it into modeling values.
type (
	rawProject struct {
		place
		Name, Zone, Dialect, DefaultEnvironment word
		Engines                                 []entry[rawEngine]
		Environments                            []entry[rawEnvironment]
		Params                                  []entry[rawParam]
		Sources                                 []rawSource
		ResourceGroups                          []entry[rawGroup]
	}
	rawEngine struct {
		place
		Type, Path, DSN word
		Options         []entry[word]
	}
	rawEnvironment struct {
		place
		Engine, Schema word
	}
	rawParam struct {
		place
		Value, From, Param, Default, Lookback word
		Verbatim, Raw                         bool
	}
	rawPartition struct {
		place
		Value, Type word
	}
	rawSchedule struct {
		place
		Cycle, At, Every, From, To word
		Weekdays, MonthDays        []word
	}
	rawColumn struct {
		place
		Type, Description word
	}
	rawSource struct {
		place
		Table, Description, Owner, Retention word
		Tags, Key                            []word
		Keys                                 [][]word
		Partition                            []entry[rawPartition]
		Schedule                             rawSchedule
		Columns                              []entry[rawColumn]
		Snapshot                             bool
	}
	rawNode struct {
		place
		Node, At word
		Anchor   bool
		Fields   []word
	}
	rawField struct {
		place
		Type, Description, Registered word
		Paused                        bool
		Tags                          []word
	}
	rawCheck struct {
		place
		NotNull, Unique []word
		Accepted        rawAccepted
		RowsBetween     []int64
		SQL             word
	}
	rawAccepted struct {
		place
		Field  word
		Values []word
	}
	rawDependency struct {
		place
		Table, Task, Node, Cycle word
	}
	rawTable struct {
		place
		Table, Kind, Description, Owner, Parent, Lifecycle, SkipIf word
		Tags, Key                                                  []word
		Partition                                                  []entry[rawPartition]
		Schedule                                                   rawSchedule
		Params                                                     []entry[rawParam]
		Materialize                                                []rawNode
		Fields                                                     []entry[rawField]
		Checks                                                     []rawCheck
		DependsOn                                                  []rawDependency
		Config, Meta                                               []entry[any]
		Paused, DryRun                                             bool
		Compose                                                    rawCompose
	}
	rawOutput struct {
		place
		Table     word
		Partition []entry[rawPartition]
	}
	rawSet struct {
		place
		Param, Default, Description, Query word
	}
	rawTask struct {
		place
		Task, Description, Owner, SkipIf, Timeout word
		Tags, Command, Reads                      []word
		Env                                       []entry[word]
		Outputs                                   []rawOutput
		Sets                                      []rawSet
		Schedule                                  rawSchedule
		Params                                    []entry[rawParam]
		DependsOn                                 []rawDependency
		Config, Meta                              []entry[any]
		Paused, DryRun                            bool
	}
)

// The choices of the key tables.
var (
	engineTypes = [...]string{"duckdb", "postgres", "trino"}
	dialects    = [...]string{"dataphin", "dataworks"}
	cycles      = [...]string{"daily", "weekly", "monthly", "hourly", "minute"}
	weekdays    = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	kinds       = [...]string{"fact", "dimension", "summary"}
)

const (
	clockPattern = `^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$`
	hhmmPattern  = `^([01][0-9]|2[0-3]):[0-5][0-9]$`
	daysPattern  = `^[1-9][0-9]{0,5}d$`
)

// projectFile is the key table of retrofill.yml.
func projectFile() value[rawProject] {
	return object("retrofill.yml", "The project: one file at the root of the project folder.",
		key("name", text(), required, "Name of the project; `project.node` names a node of it.", func(p *rawProject) *word { return &p.Name }),
		key("zone", text(), "UTC", "IANA time zone that days and times belong to, such as America/New_York.", func(p *rawProject) *word { return &p.Zone }),
		key("parameters", parametersValue(), "dataphin", "How scheduling parameters are written.", func(p *rawProject) *word { return &p.Dialect }),
		key("engines", dict(engineValue(), 0), "`local`: DuckDB on warehouse.duckdb", "SQL engines by name.", func(p *rawProject) *[]entry[rawEngine] { return &p.Engines }),
		key("environments", dict(environmentValue(), 0), "`default` on the only engine", "Where runs write, by name (`--env`).", func(p *rawProject) *[]entry[rawEnvironment] { return &p.Environments }),
		key("default_environment", text(), "the first environment written", "The environment of commands without `--env`.", func(p *rawProject) *word { return &p.DefaultEnvironment }),
		key("params", dict(paramValue(), 0), "", "Parameters for every table and task; their own ones win.", func(p *rawProject) *[]entry[rawParam] { return &p.Params }),
		key("sources", list(sourceValue(), 0), "", "Tables that someone else fills, or a task.", func(p *rawProject) *[]rawSource { return &p.Sources }),
		key("resource_groups", dict(groupValue(), 0), "", "Named pools of engine connections (`--resource-group`).", func(p *rawProject) *[]entry[rawGroup] { return &p.ResourceGroups }),
		later[rawProject]("schedules", "Periodic backfills come with workers."),
		later[rawProject]("state", "A ledger shared by a team comes with workers."),
	)
}

func parametersValue() value[word] {
	type dialect struct{ Dialect word }
	v := object("parameters", "How scheduling parameters are written (semantics §2.3).",
		key("dialect", oneOf(dialects[:]...), "dataphin", "The grammar of scheduling parameters.", func(p *dialect) *word { return &p.Dialect }))
	return as(v, func(p dialect, _ diag.Pos) word { return p.Dialect })
}

func engineValue() value[rawEngine] {
	return object("engine", "One SQL engine. Secrets come from the environment or a file: `${env:NAME}`, `${file:PATH}`.",
		key("type", oneOf(engineTypes[:]...), required, "What it is.", func(e *rawEngine) *word { return &e.Type }),
		key("path", text(), "warehouse.duckdb", "DuckDB: the database file, relative to the project folder.", func(e *rawEngine) *word { return &e.Path }),
		key("dsn", text(), "", "Others: how to connect.", func(e *rawEngine) *word { return &e.DSN }),
		key("options", dict(scalar(false), 0), "", "Settings of the engine, by name.", func(e *rawEngine) *[]entry[word] { return &e.Options }),
	)
}

func environmentValue() value[rawEnvironment] {
	return object("environment", "Where a run writes.",
		key("engine", text(), "the only engine", "Name of one of `engines`.", func(e *rawEnvironment) *word { return &e.Engine }),
		key("schema", text(), "main (DuckDB), public (PostgreSQL)", "Schema of the physical tables and views.", func(e *rawEnvironment) *word { return &e.Schema }),
	)
}

func paramValue() value[rawParam] {
	short := as(scalar(true), func(w word, at diag.Pos) rawParam { return rawParam{place: place{Pos: at}, Value: w} })
	return either(short, object("parameter", "The long form of a parameter. The short one is its value alone; a name without a value is declared but unassigned.",
		key("value", scalar(true), "", "A constant, an expression such as `${yyyymmdd-1}`, or `$other`. Kept as written: 007 stays 007.", func(p *rawParam) *word { return &p.Value }),
		key("verbatim", boolean(), "false", "Leave `${name}` in the code as it is.", func(p *rawParam) *bool { return &p.Verbatim }),
		key("raw", boolean(), "false", "Let the value become SQL syntax. Without it, a value outside quotes must be a number, a date or an identifier.", func(p *rawParam) *bool { return &p.Raw }),
		key("from", text(), "", "Task that sets the value while running (cross-node parameter).", func(p *rawParam) *word { return &p.From }),
		key("param", text(), "the same name", "Name of the parameter at that task.", func(p *rawParam) *word { return &p.Param }),
		key("default", scalar(false), "the default of the task", "Value where the task never set one.", func(p *rawParam) *word { return &p.Default }),
		key("lookback", matching("bad_value", `^[0-9]{1,3}d$`, "a number of days such as 15d"), "15d", "How old a recorded value of the task may be.", func(p *rawParam) *word { return &p.Lookback }),
	))
}

func partitionValue() value[[]entry[rawPartition]] {
	short := as(text(), func(w word, at diag.Pos) rawPartition { return rawPartition{place: place{Pos: at}, Value: w} })
	return dict(either(short, object("partition column", "The long form of a partition column. The short one is its expression alone.",
		key("value", text(), required, "Scheduling-parameter expression, such as `${yyyy-mm-dd}`.", func(p *rawPartition) *word { return &p.Value }),
		key("type", text(), "DATE for `${yyyy-mm-dd}`, else VARCHAR", "SQL type of the column.", func(p *rawPartition) *word { return &p.Type }),
	)), 1)
}

func scheduleValue() value[rawSchedule] {
	number := as(integer(1, 1439), func(i int64, at diag.Pos) word { return word{Text: strconv.FormatInt(i, 10), Pos: at} })
	monthDay := either(
		as(integer(1, 31), func(i int64, at diag.Pos) word { return word{Text: strconv.FormatInt(i, 10), Pos: at} }),
		oneOf("last"))
	short := as(oneOf(cycles[:]...), func(w word, at diag.Pos) rawSchedule { return rawSchedule{place: place{Pos: at}, Cycle: w} })
	return either(short, object("schedule", "When a node runs. The short form is the cycle alone.",
		key("cycle", oneOf(cycles[:]...), "daily", "How often.", func(s *rawSchedule) *word { return &s.Cycle }),
		key("at", matching("bad_time", clockPattern, "a time such as 02:30"), "00:00", "Local time of daily, weekly and monthly nodes.", func(s *rawSchedule) *word { return &s.At }),
		key("every", either(number, matching("bad_interval", `^[1-9][0-9]{0,3}(m|h)$`, "a step such as 15m or 2h")), "1h (hourly), 1m (minute)", "Step of hourly and minute nodes: 2h, 15m, or a number in the unit of the cycle.", func(s *rawSchedule) *word { return &s.Every }),
		key("from", matching("bad_time", hhmmPattern, "a time such as 08:00"), "00:00", "First time of the day of hourly and minute nodes.", func(s *rawSchedule) *word { return &s.From }),
		key("to", matching("bad_time", hhmmPattern, "a time such as 20:00"), "23:59", "Last time of the day, included.", func(s *rawSchedule) *word { return &s.To }),
		key("weekdays", list(oneOf(weekdays[:]...), 1), "required for weekly", "Weekdays of the scheduled date (business date + 1).", func(s *rawSchedule) *[]word { return &s.Weekdays }),
		key("monthdays", list(monthDay, 1), "required for monthly", "Days of the month of the scheduled date: 1 to 31, last.", func(s *rawSchedule) *[]word { return &s.MonthDays }),
	))
}

func sourceValue() value[rawSource] {
	return object("source", "A table that retrofill reads and no logical table fills.",
		key("table", text(), required, "The table as SELECTs write it: schema.table.", func(s *rawSource) *word { return &s.Table }),
		key("description", text(), "", "For people.", func(s *rawSource) *word { return &s.Description }),
		key("owner", text(), "", "For people and `owner:`.", func(s *rawSource) *word { return &s.Owner }),
		key("tags", list(text(), 0), "", "For `tag:`.", func(s *rawSource) *[]word { return &s.Tags }),
		key("key", list(text(), 1), "", "Columns of a unique key: a LEFT JOIN onto it changes no rows.", func(s *rawSource) *[]word { return &s.Key }),
		key("keys", list(list(text(), 1), 0), "", "Further unique keys.", func(s *rawSource) *[][]word { return &s.Keys }),
		key("partition", partitionValue(), "", "Its partition columns and the expressions that give their values.", func(s *rawSource) *[]entry[rawPartition] { return &s.Partition }),
		key("schedule", scheduleValue(), "daily", "How often it gets a new partition.", func(s *rawSource) *rawSchedule { return &s.Schedule }),
		key("retention", matching("bad_value", daysPattern, "a number of days such as 400d"), "forever", "How long partitions are kept, such as 400d.", func(s *rawSource) *word { return &s.Retention }),
		key("columns", dict(columnValue(), 0), "asked from the engine", "Its columns by name, with their SQL types.", func(s *rawSource) *[]entry[rawColumn] { return &s.Columns }),
		key("snapshot", boolean(), "false", "It holds only its latest state: a backfill of an old date sees today's rows.", func(s *rawSource) *bool { return &s.Snapshot }),
	)
}

func columnValue() value[rawColumn] {
	short := as(text(), func(w word, at diag.Pos) rawColumn { return rawColumn{place: place{Pos: at}, Type: w} })
	return either(short, object("column", "The long form of a column. The short one is its type alone.",
		key("type", text(), "asked from the engine", "SQL type.", func(c *rawColumn) *word { return &c.Type }),
		key("description", text(), "", "For people.", func(c *rawColumn) *word { return &c.Description }),
	))
}
