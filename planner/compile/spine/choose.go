package spine

import (
	"context"
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/modeling/param"
)

// Compile gives the Lateral form alone: the query of all slots, or why the
// engine cannot compute it right (semantics §6.4). An error is a failure of the
// parser or of the caller.
func Compile(ctx context.Context, in Input) (Choice, *Refusal, error) {
	return choose(ctx, in, Lateral)
}

// Choose takes the fastest form that keeps every date's meaning: Lateral, then
// Constants, then Repaired, then UnionAll. The refusal is returned if none
// does; its position names the author's file. Choice.Refused tells why the
// faster ones were not taken.
func Choose(ctx context.Context, in Input) (Choice, *Refusal, error) {
	return choose(ctx, in, Lateral, Constants, Repaired, UnionAll)
}

// ChooseFrom is Choose among some forms only, in the order given.
func ChooseFrom(ctx context.Context, in Input, forms ...Form) (Choice, *Refusal, error) {
	return choose(ctx, in, forms...)
}

func choose(ctx context.Context, in Input, forms ...Form) (Choice, *Refusal, error) {
	c := Choice{Refused: map[Form]*Refusal{}}
	p, r, err := prepare(ctx, in)
	if err != nil || r != nil {
		return c, r, err
	}
	r, c.Warnings = p.general()
	if r != nil {
		return c, r, nil
	}
	var first *Refusal
	for _, f := range forms {
		if err := ctx.Err(); err != nil {
			return c, nil, err
		}
		chunks, repairs, r := p.form(ctx, f)
		if r == nil {
			c.Form, c.Chunks, c.Repairs = f, chunks, repairs
			c.Why = why(f, first, repairs, len(in.Slots), len(chunks))
			return c, nil, nil
		}
		c.Refused[f] = r
		if first == nil {
			first = r
		}
		if r.All {
			return c, r, nil
		}
	}
	return c, first, nil
}

func why(f Form, first *Refusal, repairs []string, slots, chunks int) string {
	s := fmt.Sprintf("one statement over %d dates, the SELECT once a date (LATERAL)", slots)
	switch f {
	case Constants:
		s += ", parameters that are equal on all dates written out"
	case Repaired:
		s += ", around a fault of the engine: " + strings.Join(repairs, "; ")
	case UnionAll:
		s = fmt.Sprintf("UNION ALL of %d dates' SELECTs in %d statement(s)", slots, chunks)
	}
	if first != nil {
		s += " (" + first.Error() + ")"
	}
	return s
}

func (p *prepared) form(ctx context.Context, f Form) ([]Chunk, []string, *Refusal) {
	whole := func(sql string) []Chunk { return []Chunk{{From: 0, To: len(p.in.Slots), SQL: sql}} }
	switch f {
	case Lateral:
		sql, r := p.tryLateral(ctx)
		if r != nil {
			return nil, nil, r
		}
		return whole(sql), nil, nil
	case Constants:
		q, changed, r := p.withConstants(ctx)
		if r == nil && !changed {
			r = refuse(Unsupported, p.code.src.At(0), "no parameter is equal on all dates")
		}
		if r != nil {
			return nil, nil, r
		}
		sql, r := q.tryLateral(ctx)
		if r != nil {
			return nil, nil, r
		}
		return whole(sql), nil, nil
	case Repaired:
		sql, repairs, r := p.repaired(ctx)
		if r != nil {
			return nil, nil, r
		}
		return whole(sql), repairs, nil
	case UnionAll:
		chunks, r := p.unionAll()
		return chunks, nil, r
	}
	return nil, nil, refuse(Unsupported, p.code.src.At(0), "there is no form %q", f)
}

// withConstants prepares the body with the parameters written out that have
// one value on all slots.
func (p *prepared) withConstants(ctx context.Context) (*prepared, bool, *Refusal) {
	var b strings.Builder
	last, changed := 0, false
	for i, h := range p.code.holes {
		v := p.values.bySlot[0][i]
		if !p.values.constant(i) || strings.Contains(v, "${") || h.Context == param.Dollar && strings.Contains(v, "$") {
			continue
		}
		changed = true
		b.WriteString(p.code.text[last:h.Start])
		switch h.Context {
		case param.String:
			v = strings.ReplaceAll(v, "'", "''")
		case param.EString:
			v = strings.ReplaceAll(strings.ReplaceAll(v, `\`, `\\`), "'", "''")
		case param.Ident:
			v = strings.ReplaceAll(v, `"`, `""`)
		}
		b.WriteString(v)
		last = h.End
	}
	if !changed {
		return nil, false, nil
	}
	b.WriteString(p.code.text[last:])
	// What a normal run refuses as unsafe stays refused.
	if _, r := render(p.in.Body.Template, p.in.Slots[0]); r != nil {
		return nil, true, r
	}
	q, r := p.reworked(ctx, b.String())
	return q, true, r
}

// reworked prepares another text of the same body.
func (p *prepared) reworked(ctx context.Context, text string) (*prepared, *Refusal) {
	t := p.in.Body.Template
	src := param.Source{Text: text, Pos: t.Source().Pos}
	n, err := param.Thaw(t.Dialect(), src, t.Bindings())
	if len(err) > 0 {
		return nil, refuse(Unsupported, p.code.src.At(0), "the rewritten text cannot be read: %s", err[0].Summary)
	}
	in := p.in
	in.Body.Template = n
	q, r, fail := prepare(ctx, in)
	if fail != nil {
		return nil, refuse(Unsupported, p.code.src.At(0), "%v", fail)
	}
	return q, r
}
