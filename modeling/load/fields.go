package load

import (
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/diag"
)

// CheckFields checks what the YAML of a table says of fields against the
// output columns of its SELECT (names, in order, as sqlast found them):
// key columns that the SELECT lacks, unknown fields in nodes, fields and
// checks, partition columns that the SELECT has though retrofill adds them,
// and fields that no node holds. All problems are reported.
func CheckFields(t *modeling.Table, names []string) diag.List {
	c := fieldCheck{t: t, names: names, has: make(map[string]bool, len(names))}
	for _, n := range names {
		if c.has[fold(n)] {
			c.report(diag.Errorf("duplicate_field", "the SELECT gives column %q twice", clip(n)).At(diag.Pos{File: t.SQLFile}).
				WithHint("name one of the two otherwise: AS other_name (letter case does not count)"))
		}
		c.has[fold(n)] = true
	}
	for i, k := range t.Key {
		c.known(k, at(t.KeyPos, i, t.Pos), "key column")
	}
	for _, p := range t.Partition {
		if c.has[fold(p.Name)] {
			c.report(diag.Errorf("partition_in_select", "the SELECT has the partition column %q", clip(p.Name)).At(p.Pos).
				WithDetail("retrofill adds partition columns by their expressions").
				WithHint("remove the column from the SELECT in %s", t.SQLFile))
		}
	}
	registered := map[string]bool{}
	for _, f := range t.Fields {
		if f.Registered != "" {
			registered[fold(f.Name)] = true
			if c.has[fold(f.Name)] {
				c.report(diag.Errorf("registered_field", "registered field %q is in the SELECT", clip(f.Name)).At(f.Pos).
					WithDetail("it is mapped from %s, which someone else fills", clip(f.Registered)).
					WithHint("remove the column from the SELECT in %s, or registered of the field", c.t.SQLFile))
			}
			continue
		}
		if !isPartition(t, f.Name) {
			c.known(f.Name, f.Pos, "field")
		}
	}
	c.stored(registered)
	for _, ch := range t.Checks {
		for _, f := range ch.Fields {
			if !isPartition(t, f) && !registered[fold(f)] {
				c.known(f, ch.Pos, "field")
			}
		}
	}
	c.diags.Sort()
	return c.diags
}

// CompleteFields fills the fields of a node that holds all of them: the
// output columns of the SELECT without the key. It changes nothing else and
// may be called again.
func CompleteFields(t *modeling.Table, names []string) {
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.AllFields {
			continue
		}
		n.Fields = make([]string, 0, len(names))
		for _, f := range names {
			if !t.IsKey(f) && !isPartition(t, f) {
				n.Fields = append(n.Fields, f)
			}
		}
	}
}

type fieldCheck struct {
	t     *modeling.Table
	names []string
	has   map[string]bool // by fold
	diags diag.List
}

func (c *fieldCheck) report(d diag.Diagnostic) { c.diags = append(c.diags, d) }

func (c *fieldCheck) known(name string, pos diag.Pos, what string) {
	if c.has[fold(name)] {
		return
	}
	c.report(diag.Errorf("unknown_field", "%s %q is not in the SELECT of %s", what, clip(name), clip(c.t.Name)).At(pos).
		WithDetail("%s gives: %s", c.t.SQLFile, clipList(c.names)).
		WithHint("%s", diag.DidYouMean(name, c.names, "add the column to the SELECT or remove the name here")))
}

// stored checks the nodes' lists: every name known, every field in some node.
func (c *fieldCheck) stored(registered map[string]bool) {
	if len(c.t.Nodes) == 0 {
		return // not a loaded table
	}
	held := map[string]bool{}
	for _, n := range c.t.Nodes {
		if n.AllFields {
			return
		}
		for i, f := range n.Fields {
			c.known(f, at(n.FieldPos, i, n.Pos), "field")
			held[fold(f)] = true
		}
	}
	for _, f := range c.names {
		if held[fold(f)] || c.t.IsKey(f) || isPartition(c.t, f) || registered[fold(f)] {
			continue
		}
		c.report(diag.Errorf("field_without_node", "no materialization node holds field %q", clip(f)).At(c.t.Nodes[0].Pos).
			WithDetail("once `materialize` is written, it places every field of the SELECT").
			WithHint("add %q to `fields` of a node, such as %s", clip(f), clip(c.t.Nodes[0].Name)))
	}
}

func at(list []diag.Pos, i int, otherwise diag.Pos) diag.Pos {
	if i < len(list) {
		return list[i]
	}
	return otherwise
}

func clipList(names []string) string {
	const most = 30
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
