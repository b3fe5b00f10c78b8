package spine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/dialect"
)

// spineAlias and bodyAlias name the spine and the body in a lateral form.
const (
	spineAlias = "_rf"
	bodyAlias  = "_q"
)

// alias gives the spine's alias: one that the body does not use.
func (c *code) alias() string {
	for n := 0; ; n++ {
		a := spineAlias
		if n > 0 {
			a += strconv.Itoa(n)
		}
		used := slices.ContainsFunc(c.toks, func(t token) bool {
			return (t.kind == tokWord || t.kind == tokQuoted) && strings.EqualFold(strings.Trim(c.text[t.start:t.end], `"`), a)
		})
		if !used {
			return a
		}
	}
}

// column gives the name of the spine column of a placeholder. Placeholders of
// one name share a column. The names begin so that no column of the body is
// meant by one, and none of the body's names reaches one.
func (c *code) column(hole int) string {
	h := c.holes[hole]
	if !h.Timed {
		return "_rf_" + h.Name
	}
	first := hole
	for k := range c.holes[:hole] {
		if c.holes[k].Timed && c.holes[k].Name == h.Name {
			first = k
			break
		}
	}
	return "_rft_" + strconv.Itoa(first)
}

// expression gives the SQL of a marker in the lateral form, atomic wherever
// it is put.
func (p *prepared) expression(m *marker) string {
	alias := p.code.alias()
	var parts []string
	for _, x := range m.pieces {
		if x.sql != "" {
			parts = append(parts, x.sql)
		} else {
			parts = append(parts, alias+"."+p.in.Dialect.Quote(p.code.column(x.hole)))
		}
	}
	s := strings.Join(parts, " || ")
	if len(parts) > 1 {
		s = "(" + s + ")"
	}
	if m.kind == bare {
		s = "CAST(" + s + " AS " + widest(m.types) + ")"
	}
	if m.partner != nil {
		if q, ok := p.print(m.partner); ok {
			s = "cast_to_type(" + s + ", " + q + ")"
		}
	}
	return m.wrap(s)
}

// spineValues writes the VALUES list of slots with its column names.
func (p *prepared) spineValues(from, to int) string {
	var cols []string
	var holes []int
	for i := range p.code.holes {
		if c := p.code.column(i); !slices.Contains(cols, c) {
			cols, holes = append(cols, c), append(holes, i)
		}
	}
	var b strings.Builder
	b.WriteString("(VALUES ")
	for s := from; s < to; s++ {
		if s > from {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d", s)
		for i, c := range p.in.Partition {
			b.WriteString(", " + partitionLiteral(p.in.Dialect, p.in.Slots[s].Partition[i], c.Type))
		}
		for _, h := range holes {
			b.WriteString(", CAST(" + p.in.Dialect.String(p.values.bySlot[s][h]) + " AS VARCHAR)")
		}
		b.WriteString(")")
	}
	fmt.Fprintf(&b, ") AS %s(%s", p.code.alias(), p.in.Dialect.Quote(OrdinalColumn))
	for i := range p.in.Partition {
		b.WriteString(", " + p.in.Dialect.Quote(PartitionColumn(i)))
	}
	for _, c := range cols {
		b.WriteString(", " + p.in.Dialect.Quote(c))
	}
	return b.String() + ")"
}

// lateralSQL writes the lateral form for the slots [from, to).
func (p *prepared) lateralSQL(from, to int) string {
	text, _ := p.code.build(func(i int) string { return p.expression(&p.code.markers[i]) })
	a := p.code.alias()
	head := a + "." + p.in.Dialect.Quote(OrdinalColumn)
	for i := range p.in.Partition {
		head += ", " + a + "." + p.in.Dialect.Quote(PartitionColumn(i))
	}
	return fmt.Sprintf("SELECT %s, %s.* FROM %s, LATERAL (\n%s\n) AS %s", head, bodyAlias, p.spineValues(from, to), body(text), bodyAlias)
}

// tryLateral gives the lateral form of a prepared body, or why not.
func (p *prepared) tryLateral(ctx context.Context) (string, *Refusal) {
	if p.in.Dialect.Name == "trino" {
		return "", refuse(Unsupported, p.code.src.At(0), "trino takes only some correlated subqueries")
	}
	if p.marked != nil {
		return "", p.marked
	}
	if r, _ := p.lateral(); r != nil {
		return "", r
	}
	if r := p.typing(); r != nil {
		return "", r
	}
	sql := p.lateralSQL(0, len(p.in.Slots))
	if p.in.Probe != nil {
		if err := p.in.Probe.Probe(ctx, sql); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return "", refuse(Unsupported, p.probed(ctx), "the engine does not take it in one statement over several dates: %s", firstLine(err.Error()))
		}
	}
	return sql, nil
}

// probed finds the place of what the engine refused: the first parameter
// without which it takes the statement, else the beginning.
func (p *prepared) probed(ctx context.Context) diag.Pos {
	for i := range p.code.markers {
		text, _ := p.code.build(func(k int) string {
			m := p.code.markers[k]
			if k == i {
				return m.wrap(m.constant(p.values.at(0)))
			}
			return p.expression(&m)
		})
		sql := fmt.Sprintf("SELECT %s.* FROM %s, LATERAL (\n%s\n) AS %s", bodyAlias, p.spineValues(0, len(p.in.Slots)), body(text), bodyAlias)
		if ctx.Err() == nil && p.in.Probe.Probe(ctx, sql) == nil {
			return p.code.markers[i].pos
		}
	}
	return p.code.src.At(0)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// unionAll gives the UNION ALL form, in chunks.
func (p *prepared) unionAll() ([]Chunk, *Refusal) {
	most := p.in.MaxUnion
	if most <= 0 {
		most = DefaultUnion
	}
	var out []Chunk
	for from := 0; from < len(p.in.Slots); from += most {
		to := min(from+most, len(p.in.Slots))
		var list []int
		for s := from; s < to; s++ {
			list = append(list, s)
		}
		sql, r := p.in.literal(list)
		if r != nil {
			return nil, r
		}
		out = append(out, Chunk{From: from, To: to, SQL: sql})
	}
	return out, nil
}

// literal writes the SELECTs of some slots, each with its own values as text,
// as one query of a Chunk's columns.
func (in Input) literal(slots []int) (string, *Refusal) {
	var b strings.Builder
	for i, s := range slots {
		text, r := render(in.Body.Template, in.Slots[s])
		if r != nil {
			return "", r
		}
		if i > 0 {
			b.WriteString("\nUNION ALL\n")
		}
		fmt.Fprintf(&b, "SELECT %d AS %s", s, in.Dialect.Quote(OrdinalColumn))
		for k, c := range in.Partition {
			fmt.Fprintf(&b, ", %s AS %s", partitionLiteral(in.Dialect, in.Slots[s].Partition[k], c.Type), in.Dialect.Quote(PartitionColumn(k)))
		}
		fmt.Fprintf(&b, ", %s.* FROM (\n%s\n) AS %s", bodyAlias, body(text), bodyAlias)
	}
	return b.String(), nil
}

func partitionLiteral(d dialect.Dialect, v, typ string) string {
	if typ == "" {
		typ = "VARCHAR"
	}
	return "CAST(" + d.String(v) + " AS " + typ + ")"
}
