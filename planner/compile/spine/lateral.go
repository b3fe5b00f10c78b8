package spine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	s := p.valueOf(m)
	if m.partner != nil {
		if q, ok := p.print(m.partner); ok {
			s = "cast_to_type(" + s + ", " + q + ")"
		}
	}
	if m.column != "" && m.kind == typed {
		return s
	}
	return m.wrap(s)
}

// valueOf gives the marker's value from the columns of the spine.
func (p *prepared) valueOf(m *marker) string {
	alias := p.code.alias()
	switch {
	case m.column != "" && m.asText:
		return "CAST(" + alias + "." + p.in.Dialect.Quote(m.column) + " AS VARCHAR)"
	case m.column != "":
		return p.guarded(m, alias+"."+p.in.Dialect.Quote(m.column))
	}
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
	if m.compared && m.kind == literal && len(m.pieces) == 1 && !p.in.Dense {
		s = "(" + s + " || '')"
	}
	return s
}

// guarded makes an expression of a compared column. An equality with the bare
// column lets DuckDB drop the spine from below an aggregate or a window: it
// then computes every partition of the table, selected or not (30 dates of 365:
// 8 times slower). It does not look through these expressions.
func (p *prepared) guarded(m *marker, column string) string {
	for _, c := range p.typed {
		if c.name != m.column {
			continue
		}
		switch {
		case c.typ == "DATE" && m.compared && !p.in.Dense:
			return "(" + column + " + 0)"
		case p.stored(c) != c.typ:
			return "CAST(" + column + " AS " + c.typ + ")"
		}
	}
	return column
}

// typedColumn is a spine column whose values are computed before the join. The
// engine joins the body's rows with the spine on the columns that the body
// uses, and a DATE is compared much faster than a text that is cast for every
// row (7-day look-back over 365 dates: 2.3 times).
type typedColumn struct {
	name, typ string
	marker    int // whose constants it holds
}

// stored gives the type of the column itself: integers are stored wider, so
// that their use is a cast (see guarded).
func (p *prepared) stored(c typedColumn) string {
	if p.in.Dense {
		return c.typ
	}
	switch c.typ {
	case "INTEGER", "INT", "SMALLINT", "TINYINT":
		return "BIGINT"
	case "BIGINT":
		return "HUGEINT"
	}
	return c.typ
}

// assign gives markers of a known type a typed column; equal ones share it.
func (p *prepared) assign() {
	p.typed = nil
	find := func(i int, typ string) string {
		m := &p.code.markers[i]
		for _, c := range p.typed {
			if c.typ == typ && p.code.sameValue(m, &p.code.markers[c.marker]) {
				return c.name
			}
		}
		c := typedColumn{fmt.Sprintf("_rf_v%d", i), typ, i}
		p.typed = append(p.typed, c)
		return c.name
	}
	var texts []int
	for i := range p.code.markers {
		m := &p.code.markers[i]
		m.column, m.asText = "", false
		switch {
		case m.kind == bare:
			m.column = find(i, widest(m.types))
		case m.kind == typed && plainType(m.typ):
			m.column = find(i, strings.ToUpper(m.typ))
		case m.kind == literal && !m.interval && p.dates(m):
			// A date's text and the DATE tell the same in every type that a
			// partner may have.
			if m.partner != nil {
				m.column = find(i, "DATE")
			} else {
				texts = append(texts, i)
			}
		}
	}
	for _, i := range texts { // one key of the join less
		m := &p.code.markers[i]
		for _, c := range p.typed {
			if c.typ == "DATE" && p.code.sameValue(m, &p.code.markers[c.marker]) {
				m.column, m.asText = c.name, true
			}
		}
	}
}

// sameValue tells whether two markers have the same text on every date.
func (c *code) sameValue(a, b *marker) bool {
	return slices.EqualFunc(a.pieces, b.pieces, func(x, y piece) bool {
		if x.sql != "" || y.sql != "" {
			return x.sql == y.sql
		}
		return c.holes[x.hole].Name == c.holes[y.hole].Name && c.holes[x.hole].Timed == c.holes[y.hole].Timed
	})
}

// dates tells whether the marker's text is a date yyyy-mm-dd on every slot.
func (p *prepared) dates(m *marker) bool {
	if len(m.pieces) != 1 || m.pieces[0].sql != "" {
		return false
	}
	for _, row := range p.values.bySlot {
		if _, err := time.Parse(time.DateOnly, row[m.pieces[0].hole]); err != nil {
			return false
		}
	}
	return true
}

// plainType tells the types that a spine column may have.
func plainType(typ string) bool {
	switch strings.ToUpper(typ) {
	case "DATE", "TIMESTAMP", "TIME", "INTEGER", "INT", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT":
		return true
	}
	return false
}

// spineValues writes the VALUES list of slots with its column names.
func (p *prepared) spineValues(from, to int) string {
	var cols []string
	var holes []int
	for i := range p.code.markers {
		m := &p.code.markers[i]
		for _, x := range m.pieces {
			if c := ""; x.sql == "" && m.column == "" {
				if c = p.code.column(x.hole); !slices.Contains(cols, c) {
					cols, holes = append(cols, c), append(holes, x.hole)
				}
			}
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
		for _, c := range p.typed {
			v := p.code.markers[c.marker].constant(p.values.at(s))
			if p.code.markers[c.marker].kind == bare {
				v = quote(v)
			}
			b.WriteString(", CAST(" + v + " AS " + p.stored(c) + ")")
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
	for _, c := range p.typed {
		b.WriteString(", " + p.in.Dialect.Quote(c.name))
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
	p.assign()
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
