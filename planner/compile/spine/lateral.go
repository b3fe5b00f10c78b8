package spine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		for _, h := range holes {
			b.WriteString(", CAST(" + p.in.Dialect.String(p.values.bySlot[s][h]) + " AS VARCHAR)")
		}
		b.WriteString(")")
	}
	fmt.Fprintf(&b, ") AS %s(%s", p.code.alias(), p.in.Dialect.Quote(OrdinalColumn))
	for _, c := range cols {
		b.WriteString(", " + p.in.Dialect.Quote(c))
	}
	return b.String() + ")"
}

// lateralSQL writes the lateral form for the slots [from, to).
func (p *prepared) lateralSQL(from, to int) string {
	text, _ := p.code.build(func(i int) string { return p.expression(&p.code.markers[i]) })
	a := p.code.alias()
	return fmt.Sprintf("SELECT %s.%s, %s.* FROM %s, LATERAL (\n%s\n) AS %s", a, p.in.Dialect.Quote(OrdinalColumn), bodyAlias,
		p.spineValues(from, to), body(text), bodyAlias)
}

// tryLateral gives the lateral form of a prepared body, or why not.
func (p *prepared) tryLateral(ctx context.Context) (string, *Refusal) {
	if p.in.Dialect.Name == "trino" {
		return "", refuse(Unsupported, p.code.src.Pos, "trino takes only some correlated subqueries")
	}
	if p.marked != nil {
		return "", p.marked
	}
	if r := p.lateral(); r != nil {
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
			return "", refuse(Unsupported, p.code.src.Pos, "the engine does not take it in one statement over several dates: %s", firstLine(err.Error()))
		}
	}
	return sql, nil
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
		var b strings.Builder
		for s := from; s < to; s++ {
			text, r := render(p.in.Body.Template, p.in.Slots[s])
			if r != nil {
				return nil, r
			}
			if s > from {
				b.WriteString("\nUNION ALL\n")
			}
			fmt.Fprintf(&b, "SELECT %d AS %s, %s.* FROM (\n%s\n) AS %s", s, p.in.Dialect.Quote(OrdinalColumn), bodyAlias, body(text), bodyAlias)
		}
		out = append(out, Chunk{From: from, To: to, SQL: b.String()})
	}
	return out, nil
}
