// Package fields computes what a field backfill takes along (semantics §4):
// the fields and materialization nodes of the table itself, the fields worth
// recommending, the readers below it and what is read above it, each with a
// reason. It is pure: the planner fills Tables from the analysed project and
// the ledger, nothing is read from elsewhere.
//
// Invariants:
//   - the closure is a fixpoint: closing its own result adds nothing
//     (idempotent), and selecting more never gives less (monotone);
//   - a registered field is never in a result as written;
//   - a field is downstream only if something that it, or its table's row set,
//     reads is written;
//   - results do not depend on the order in which tables are given.
package fields

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/bizdate"
)

// AnyField as the Field of a Ref stands for every field of the table.
const AnyField = "*"

// Ref names a field of a table; AnyField stands for all its fields.
type Ref struct {
	Table string `json:"table"`
	Field string `json:"field"`
}

// String gives table.field.
func (r Ref) String() string { return r.Table + "." + r.Field }

// When tells on which business dates a fact holds. A nil When is never.
type When interface {
	On(bizdate.Date) bool
}

// Days is a When that lists its dates, in any order.
type Days []bizdate.Date

// On implements When.
func (d Days) On(x bizdate.Date) bool { return slices.Contains(d, x) }

// Func makes a predicate a When.
type Func func(bizdate.Date) bool

// On implements When.
func (f Func) On(x bizdate.Date) bool { return f(x) }

// Node is one materialization node: a physical table and the fields it
// stores. The key is stored by every node and need not be listed.
type Node struct {
	Name   string
	Fields []string
}

// Table is what the closure knows of one logical table, or of a task (which
// has FullOnly set and lists what it reads in From and RowSetReads). Names of
// tables that are not in the model, sources say, may occur and mean nothing.
type Table struct {
	Name       string
	Key        []string // primary key columns
	Fields     []string // computed fields, without the key
	Registered []string // filled by someone else, never computed
	Nodes      []Node

	// From are the tables that give this one its rows; RowSetReads the fields
	// that decide which rows exist (filter, join, grouping, key). Reads maps a
	// field to the fields that it reads. What a key column reads counts as
	// read by the row set. References to the table itself (other slots of it)
	// are ignored.
	From        []string
	Reads       map[string][]Ref
	RowSetReads []Ref

	// KeyChanged, RowSetChanged (the table's sources included) and Changed (by
	// field) tell for which dates the recorded logic differs from today's.
	KeyChanged    When
	RowSetChanged When
	Changed       map[string]When
	// CycleChanged are the fields whose schedule changed while their storage
	// stayed: system-required (semantics §4.3).
	CycleChanged []string
	// Primary is the parent dimension's name, "" without one.
	Primary string
	// Paused are the fields that a user has paused.
	Paused []string
	// FullOnly marks a table that can only be refreshed as a whole (its SELECT
	// cannot be split, or it is a task).
	FullOnly bool
	// Differences shows, by reason of refusal (pk_changed, row_set_changed,
	// unsplittable), what changed; it becomes the detail of the message.
	Differences map[string]string
}

type fieldKind uint8

const (
	kindKey fieldKind = iota
	kindComputed
	kindRegistered
)

// Model is an index over tables, ready for any number of closures. It is
// read-only after New and safe for concurrent use.
type Model struct {
	tables  []Table // by name
	tableID map[string]int32

	// Fields have ids; those of table t are first[t] … first[t+1]-1: key,
	// computed, registered.
	first     []int32
	kind      []fieldKind
	name      []string
	owner     []int32
	wide      map[int32]map[string]int32 // field index of tables with many fields
	nodeFirst []int32                    // nodes of table t: nodeFirst[t] … nodeFirst[t+1]-1
	nodeField [][]int32                  // node → stored fields (computed ones only)
	fieldNode [][]int32                  // field → nodes that store it

	reads    [][]int32 // field → fields it reads
	rowReads [][]int32 // table → fields its row set reads, key derivations included
	from     [][]int32 // table → tables that give it rows
	readers  [][]int32 // field → readers: a field id, or ^table for a row set
	feeds    [][]int32 // table → tables it gives rows to
}

// wideTable is the number of fields from which a table gets a map for
// look-ups; below it a scan is faster.
const wideTable = 24

// New indexes tables. It fails on a repeated table name and on a field name
// that a table declares twice. Time and memory are linear in the fields and
// references given.
func New(tables []Table) (*Model, error) {
	m := &Model{tables: slices.Clone(tables), tableID: make(map[string]int32, len(tables)), wide: map[int32]map[string]int32{}}
	fields := 0
	for i := range tables {
		fields += len(tables[i].Key) + len(tables[i].Fields) + len(tables[i].Registered)
	}
	m.name, m.kind, m.owner = make([]string, 0, fields), make([]fieldKind, 0, fields), make([]int32, 0, fields)
	slices.SortFunc(m.tables, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	for i := range m.tables {
		if _, twice := m.tableID[m.tables[i].Name]; twice {
			return nil, fmt.Errorf("fields: index table %q: the name occurs twice", m.tables[i].Name)
		}
		m.tableID[m.tables[i].Name] = int32(i)
	}
	if err := m.indexFields(); err != nil {
		return nil, err
	}
	m.indexReads()
	return m, nil
}

func (m *Model) indexFields() error {
	for i := range m.tables {
		t := &m.tables[i]
		m.first = append(m.first, int32(len(m.name)))
		for kind, names := range [][]string{t.Key, t.Fields, t.Registered} {
			for _, n := range names {
				// A key column may be listed among the fields as well.
				if kind != int(kindKey) && slices.Contains(t.Key, n) {
					continue
				}
				m.name = append(m.name, n)
				m.kind = append(m.kind, fieldKind(kind))
				m.owner = append(m.owner, int32(i))
			}
		}
		lo, hi := m.first[i], int32(len(m.name))
		if hi-lo > wideTable {
			w := make(map[string]int32, hi-lo)
			for f := lo; f < hi; f++ {
				w[m.name[f]] = f
			}
			m.wide[int32(i)] = w
		}
	}
	m.first = append(m.first, int32(len(m.name)))
	m.fieldNode = make([][]int32, len(m.name))
	for i := range m.tables {
		t := int32(i)
		for f := m.first[i]; f < m.first[i+1]; f++ {
			if g := m.field(t, m.name[f]); g != f {
				return fmt.Errorf("fields: index table %q: field %q occurs twice", m.tables[i].Name, m.name[f])
			}
		}
		m.nodeFirst = append(m.nodeFirst, int32(len(m.nodeField)))
		for _, n := range m.tables[i].Nodes {
			id := int32(len(m.nodeField))
			var stored []int32
			for _, name := range n.Fields {
				// The key is in every node and links none (semantics §4.3).
				if f := m.field(t, name); f >= 0 && m.kind[f] == kindComputed && !slices.Contains(stored, f) {
					stored = append(stored, f)
					m.fieldNode[f] = append(m.fieldNode[f], id)
				}
			}
			m.nodeField = append(m.nodeField, stored)
		}
	}
	m.nodeFirst = append(m.nodeFirst, int32(len(m.nodeField)))
	return nil
}

func (m *Model) indexReads() {
	m.reads = make([][]int32, len(m.name))
	m.readers = make([][]int32, len(m.name))
	m.rowReads = make([][]int32, len(m.tables))
	m.from = make([][]int32, len(m.tables))
	m.feeds = make([][]int32, len(m.tables))
	for i := range m.tables {
		t := int32(i)
		for _, name := range m.tables[i].From {
			if u, ok := m.tableID[name]; ok && u != t && !slices.Contains(m.from[i], u) {
				m.from[i] = append(m.from[i], u)
				m.feeds[u] = append(m.feeds[u], t)
			}
		}
		row := m.resolve(nil, t, m.tables[i].RowSetReads)
		for f := m.first[i]; f < m.first[i+1]; f++ {
			refs := m.tables[i].Reads[m.name[f]]
			if len(refs) == 0 {
				continue
			}
			// What a registered field reads is not ours to follow.
			switch m.kind[f] {
			case kindKey:
				row = m.resolve(row, t, refs)
			case kindComputed:
				m.reads[f] = m.resolve(make([]int32, 0, len(refs)), t, refs)
				for _, r := range m.reads[f] {
					m.readers[r] = append(m.readers[r], f)
				}
			}
		}
		m.rowReads[i] = row
		for _, r := range row {
			m.readers[r] = append(m.readers[r], ^t)
		}
	}
}

// resolve adds the fields that refs name to list, each once; unknown ones are
// sources, those of table t itself are other slots of it.
func (m *Model) resolve(list []int32, t int32, refs []Ref) []int32 {
	add := func(f int32) {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	for _, r := range refs {
		u, ok := m.tableID[r.Table]
		if !ok || u == t {
			continue
		}
		if r.Field == AnyField || r.Field == "" {
			for f := m.first[u]; f < m.first[u+1]; f++ {
				add(f)
			}
			continue
		}
		if f := m.field(u, r.Field); f >= 0 {
			add(f)
		}
	}
	return list
}

// field gives the id of a table's field, −1 without one.
func (m *Model) field(t int32, name string) int32 {
	if w := m.wide[t]; w != nil {
		if f, ok := w[name]; ok {
			return f
		}
		return -1
	}
	for f := m.first[t]; f < m.first[t+1]; f++ {
		if m.name[f] == name {
			return f
		}
	}
	return -1
}

func (m *Model) ref(f int32) Ref {
	return Ref{Table: m.tables[m.owner[f]].Name, Field: m.name[f]}
}

func (m *Model) nodeName(n int32) string {
	t := m.nodeTable(n)
	return m.tables[t].Nodes[n-m.nodeFirst[t]].Name
}

// nodeTable finds the table of a node.
func (m *Model) nodeTable(n int32) int32 {
	i, exact := slices.BinarySearch(m.nodeFirst, n)
	if !exact {
		return int32(i - 1)
	}
	// Tables without nodes share a start with the next one.
	for i+1 < len(m.nodeFirst) && m.nodeFirst[i+1] == n {
		i++
	}
	return int32(i)
}

// Meets gives the dates among selected on which w holds, in their order.
func Meets(w When, selected []bizdate.Date) []bizdate.Date {
	if w == nil {
		return nil
	}
	var out []bizdate.Date
	for _, d := range selected {
		if w.On(d) {
			out = append(out, d)
		}
	}
	return out
}
