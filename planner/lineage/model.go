// Package lineage turns a loaded project into the analysed model that
// planning works on: every node with its parameters, schedule, partitions,
// fields with types, and what it reads of which other node (semantics §1,
// §3.7, §4.7).
//
// Invariants: a node stands behind everything it reads from other slots of
// the same date; problems belong to the node that has them, so that one broken
// table does not stop a backfill of another; an Analysis that was made before
// from the same text and the same tables is taken from the cache.
package lineage

import (
	"strings"
	"time"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/modeling/sqlast"
)

// Model is an analysed project. It is read-only after Analyze.
type Model struct {
	Project *modeling.Project
	Zone    *time.Location
	// Nodes are the tables and tasks in dependency order.
	Nodes []*Node
	// Diagnostics are the problems that belong to no single node, such as a
	// circle of tables.
	Diagnostics diag.List
	// Sources are the sources that anything reads, by lower-case name, with
	// the columns that are declared or that the engine knows.
	Sources map[string]sqlast.Table

	index   map[string]int // lower-case name → position in Nodes
	outputs map[string]int // lower-case table written by a task → its position
}

// Partition is a partition column with its parsed expression.
type Partition struct {
	Name string
	Type string // SQL type
	Expr *param.Expr
	Form param.DateForm
	// Dated says that Form is valid: the value is a pure function of the
	// business date.
	Dated bool
}

// Node is a logical table or a task.
type Node struct {
	Position int
	Name     string
	Kind     modeling.Kind
	Table    *modeling.Table // nil for tasks
	Task     *modeling.Task  // nil for tables
	Params   *param.Set
	Schedule bizdate.Schedule
	// Partition of a table; a task's outputs have their own.
	Partition []Partition
	// Analysis of a table's SELECT, nil for tasks and broken tables.
	Analysis *sqlast.Analysis
	// Fields are the output columns with their types ("" unknown).
	Fields []sqlast.Column
	// Registered are the registered fields that are sound.
	Registered []Registered
	// Inputs are the nodes and sources that it reads, each once, by name.
	Inputs []Input
	// Diagnostics are the problems of this node.
	Diagnostics diag.List
}

// Input is one table or task that a node reads.
type Input struct {
	Name string // as declared
	// Node is the position of the producer, −1 for a source nobody in the
	// project fills.
	Node   int
	Source *modeling.Source // nil for logical tables and undeclared outputs
	// References are indexes into Analysis.References.
	References []int
	// Declared are the `depends_on` entries for it.
	Declared []modeling.Dependency
	// Registered are its columns that are read through logical tables whose
	// registered fields they are.
	Registered []RegisteredRead
	// Parameter says that a cross-node parameter is read from it.
	Parameter bool
}

// Node finds a table or task by name, without letter case.
func (m *Model) Node(name string) *Node {
	if i, ok := m.index[strings.ToLower(name)]; ok {
		return m.Nodes[i]
	}
	return nil
}

// Producer finds the node behind a name in SQL: a logical table, or the task
// that declares the table as an output; −1 without one.
func (m *Model) Producer(name string) int {
	k := strings.ToLower(name)
	if i, ok := m.index[k]; ok {
		return i
	}
	if i, ok := m.outputs[k]; ok {
		return i
	}
	return -1
}

// Names gives the names of all nodes.
func (m *Model) Names() []string {
	out := make([]string, len(m.Nodes))
	for i, n := range m.Nodes {
		out[i] = n.Name
	}
	return out
}

// IsTable tells whether the node is a logical table.
func (n *Node) IsTable() bool { return n.Table != nil }

// FieldNames gives the names of a table's fields, in the SELECT's order.
func (n *Node) FieldNames() []string {
	out := make([]string, len(n.Fields))
	for i, f := range n.Fields {
		out[i] = f.Name
	}
	return out
}

// File gives the file that people look at for the node.
func (n *Node) File() string {
	switch {
	case n.Table != nil:
		return n.Table.YAMLFile
	case n.Task != nil:
		return n.Task.YAMLFile
	}
	return ""
}

// Pos gives the node's place in the project.
func (n *Node) Pos() diag.Pos {
	if n.Table != nil {
		return n.Table.Pos
	}
	return n.Task.Pos
}

// Anchor gives the name of the materialization node that anchors a table's
// row set.
func Anchor(n *Node) string {
	for _, m := range n.Table.Nodes {
		if m.Anchor {
			return m.Name
		}
	}
	return n.Table.Nodes[0].Name
}
