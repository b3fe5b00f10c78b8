package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// crossFile checks what needs all files: names given twice, and names that
// refer to other files.
func (b *builder) crossFile(p *modeling.Project, builders []*builder) {
	reg := registry{}
	for _, s := range p.Sources {
		b.claim(reg, sourceWord, s.Table, s.Pos)
	}
	tables, tasks := make(map[string]*modeling.Table, len(p.Tables)), make(map[string]*modeling.Task, len(p.Tasks))
	for _, t := range inFileOrder(p.Tables, func(t *modeling.Table) diag.Pos { return t.Pos }) {
		b.claim(reg, tableWord, t.Name, t.Pos)
		tables[fold(t.Name)] = t
	}
	for _, t := range inFileOrder(p.Tasks, func(t *modeling.Task) diag.Pos { return t.Pos }) {
		b.claim(reg, taskWord, t.Name, t.Pos)
		tasks[fold(t.Name)] = t
	}
	for _, t := range inFileOrder(p.Tables, func(t *modeling.Table) diag.Pos { return t.Pos }) {
		if first := reg[fold(t.Name)]; first.pos != t.Pos {
			continue // its default node would repeat the same problem
		}
		for _, n := range t.Nodes {
			b.claim(reg, nodeWord, n.Name, n.Pos)
		}
	}
	filled := map[string]bool{}
	for _, t := range p.Tasks {
		for _, o := range t.Outputs {
			filled[fold(o.Table)] = true
			if first, taken := reg[fold(o.Table)]; taken && (first.what == tableWord || first.what == nodeWord) {
				b.report(diag.Errorf("duplicate_name", "output %q is named like %s %q", clip(o.Table), first.what, clip(first.name)).At(o.Pos).
					WithDetail("the other one is at %s; a table has one writer", first.pos).WithHint("let the task fill another table"))
			}
		}
	}
	look := lookup{p: p, tables: tables, tasks: tasks, reg: reg, filled: filled}
	for _, o := range builders {
		for _, r := range o.refs {
			b.refer(look, r)
		}
	}
	b.parentCycles(tables)
}

func inFileOrder[T any](list []T, pos func(T) diag.Pos) []T {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b T) int { return strings.Compare(pos(a).File, pos(b).File) })
	return out
}

type lookup struct {
	p      *modeling.Project
	tables map[string]*modeling.Table
	tasks  map[string]*modeling.Task
	reg    registry
	filled map[string]bool // outputs of tasks
}

// refer checks one name that refers to another file.
func (b *builder) refer(l lookup, r reference) {
	k := fold(r.word.Text)
	table, task := l.tables[k], l.tasks[k]
	code, what, other := "unknown_node", "logical table or task", ""
	var candidates []string
	switch r.what {
	case "table", "parent":
		code, what, candidates = "unknown_table", tableWord, l.tableNames()
		if task != nil && r.what == "table" {
			other = "it is a task: write task: " + task.Name
		}
		task = nil
	case "task":
		code, what, candidates = "unknown_task", taskWord, l.taskNames()
		if table != nil {
			other = "it is a logical table: write table: " + table.Name
		}
		table = nil
	case "node":
		candidates = append(l.tableNames(), l.taskNames()...)
	case "from":
		b.producer(l, r, table, task)
		return
	case "registered":
		if l.filled[k] || l.reg[k].what == sourceWord {
			return
		}
		code, what = "unknown_table", "source or output of a task"
		for _, s := range l.p.Sources {
			candidates = append(candidates, s.Table)
		}
		if table != nil {
			other = "it is a logical table: LEFT JOIN it in the SELECT instead"
		}
		other = cmp.Or(other, diag.DidYouMean(r.word.Text, candidates, "declare it under `sources` in retrofill.yml, with its key"))
		table, task = nil, nil
	case "reads":
		if table != nil || l.filled[k] || l.reg[k].what == sourceWord {
			return
		}
		code, what, candidates = "unknown_table", "logical table, source or output of a task", l.tableNames()
		for _, s := range l.p.Sources {
			candidates = append(candidates, s.Table)
		}
	}
	switch {
	case table == nil && task == nil || r.what == "reads":
		b.report(diag.Errorf(code, "the project has no %s %q", what, clip(r.word.Text)).At(r.word.Pos).
			WithHint("%s", cmp.Or(other, diag.DidYouMean(r.word.Text, candidates, "check the spelling; `retrofill ls` lists all"))))
	case r.what == "parent" && table.Kind != modeling.Dimension:
		b.report(diag.Errorf("bad_value", "parent %q is a %s table, not a dimension", clip(table.Name), table.Kind).At(r.word.Pos).
			WithHint("name a dimension"))
	case r.what != "parent" && r.sameSlot && strings.EqualFold(r.word.Text, r.from):
		b.report(diag.Errorf("cycle", "%q depends on itself in the same cycle", clip(r.from)).At(r.word.Pos).
			WithHint("add cycle: -1d to need the cycle before"))
	}
}

// producer checks a cross-node parameter (semantics §2.6).
func (b *builder) producer(l lookup, r reference, table *modeling.Table, task *modeling.Task) {
	switch {
	case task == nil && table == nil:
		b.report(diag.Errorf("unknown_node", "the project has no task %q", clip(r.word.Text)).At(r.word.Pos).
			WithHint("%s", diag.DidYouMean(r.word.Text, l.taskNames(), "name the task that sets the parameter")))
	case strings.EqualFold(r.word.Text, r.from):
		b.report(diag.Errorf("cycle", "%q reads a parameter that it sets itself", clip(r.from)).At(r.word.Pos).
			WithHint("let another task set it"))
	case task == nil:
		b.report(diag.Errorf("undeclared", "logical table %q sets no parameters", clip(table.Name)).At(r.word.Pos).
			WithHint("name a task that sets %q", clip(r.param)))
	default:
		var names []string
		for _, s := range task.Sets {
			if strings.EqualFold(s.Name, r.param) {
				return
			}
			names = append(names, s.Name)
		}
		b.report(diag.Errorf("undeclared", "task %q does not set parameter %q", clip(task.Name), clip(r.param)).At(r.word.Pos).
			WithHint("%s", diag.DidYouMean(r.param, names, "add it to sets in "+task.YAMLFile)))
	}
}

func (l lookup) tableNames() []string {
	out := make([]string, len(l.p.Tables))
	for i, t := range l.p.Tables {
		out[i] = t.Name
	}
	return out
}

func (l lookup) taskNames() []string {
	out := make([]string, len(l.p.Tasks))
	for i, t := range l.p.Tasks {
		out[i] = t.Name
	}
	return out
}

// parentCycles reports dimensions that are their own ancestors, once a ring.
func (b *builder) parentCycles(tables map[string]*modeling.Table) {
	done := map[*modeling.Table]bool{}
	names := make([]string, 0, len(tables))
	for k := range tables {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		var chain []*modeling.Table
		t := tables[k]
		for t != nil && t.Parent != "" && !done[t] && !slices.Contains(chain, t) {
			chain = append(chain, t)
			t = tables[fold(t.Parent)]
		}
		if i := slices.Index(chain, t); t != nil && i >= 0 {
			ring := make([]string, 0, len(chain))
			for _, c := range chain[i:] {
				ring = append(ring, clip(c.Name))
			}
			b.report(diag.Errorf("cycle", "dimension %q is its own ancestor", clip(t.Name)).At(t.Pos).
				WithDetail("%s → %s", strings.Join(ring, " → "), clip(t.Name)).WithHint("remove one parent key"))
		}
		for _, c := range chain {
			done[c] = true
		}
	}
}
