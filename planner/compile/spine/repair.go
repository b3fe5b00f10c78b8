package spine

import (
	"context"
	"fmt"
	"strings"
)

// maxRepairs bounds the rewrites of one body.
const maxRepairs = 30

type repairKind int

const (
	inlineCTE    repairKind = iota // node is a reference to a CTE
	addCount                       // node is a SELECT: the engine keeps the empty date's row beside a COUNT
	coalesceZero                   // node is an aggregate that is 0 over no rows
)

// repair is a rewrite of the text that keeps its meaning and goes around a
// fault of the engine (cases README, spine 10).
type repair struct {
	kind repairKind
	node node
}

// repaired rewrites the body around faults of the engine, one by one, and
// gives the lateral form of the result.
func (p *prepared) repaired(ctx context.Context) (string, []string, *Refusal) {
	if p.marked != nil {
		return "", nil, p.marked
	}
	var done []string
	q := p
	for range maxRepairs {
		r, fix := q.lateral()
		if r == nil {
			if len(done) == 0 {
				return "", nil, refuse(Unsupported, p.code.src.At(0), "there is nothing to rewrite")
			}
			sql, r := q.tryLateral(ctx)
			return sql, done, r
		}
		if fix == nil {
			return "", nil, r
		}
		text, what := q.apply(*fix)
		if text == "" {
			return "", nil, r
		}
		done = append(done, what)
		next, r := q.reworked(ctx, text)
		if r != nil {
			return "", nil, r
		}
		if next.marked != nil {
			return "", nil, next.marked
		}
		q = next
	}
	return "", nil, refuse(Unsupported, p.code.src.At(0), "more than %d rewrites", maxRepairs)
}

// apply gives the rewritten text and what was done, "" if it cannot be done.
func (p *prepared) apply(r repair) (text, what string) {
	c := p.code
	switch r.kind {
	case inlineCTE:
		return c.inline(p.tokenAt(r.node), str(r.node, "table_name"), str(r.node, "alias"))
	case coalesceZero:
		i := p.tokenAt(r.node)
		if i < 0 || c.str(i+1) != "(" {
			return "", ""
		}
		end := c.closing(i + 1)
		if strings.EqualFold(c.str(end+1), "FILTER") && c.str(end+2) == "(" {
			end = c.closing(end + 2)
		}
		if end < 0 {
			return "", ""
		}
		a, b := c.toks[i].start, c.toks[end].end
		return c.text[:a] + "coalesce(" + c.text[a:b] + ", 0)" + c.text[b:], fmt.Sprintf("coalesce around %s()", c.str(i))
	case addCount:
		a := ownAggregate(r.node, func(string, node) bool { return true })
		return c.having(p.tokenAt(a))
	}
	return "", ""
}

// tokenAt gives the index of the token at which a node of the marked tree
// stands in the code, or -1.
func (p *prepared) tokenAt(n node) int {
	off := location(n)
	if off < 0 {
		return -1
	}
	at := place{}
	for _, x := range p.places {
		if x.to <= off {
			at = x
		}
	}
	off = at.from + off - at.to
	for i, t := range p.code.toks {
		if t.start == off {
			return i
		}
	}
	return -1
}

// closing gives the index of the parenthesis that closes the one at token i,
// or -1.
func (c *code) closing(i int) int {
	depth := 0
	for ; i >= 0 && i < len(c.toks); i++ {
		switch c.str(i) {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// inline puts a CTE's query where token i names it.
func (c *code) inline(i int, name, alias string) (text, what string) {
	if i < 0 {
		return "", ""
	}
	from, to, columns := -1, -1, ""
	for k := range c.toks {
		if !c.named(k, name) || k == i || k == 0 {
			continue
		}
		if before := strings.ToUpper(c.str(k - 1)); before != "WITH" && before != "RECURSIVE" && before != "," {
			continue
		}
		j, cols := k+1, ""
		if c.str(j) == "(" {
			end := c.closing(j)
			if end < 0 {
				continue
			}
			cols, j = c.text[c.toks[j].start:c.toks[end].end], end+1
		}
		if !strings.EqualFold(c.str(j), "AS") {
			continue
		}
		for j++; strings.EqualFold(c.str(j), "NOT") || strings.EqualFold(c.str(j), "MATERIALIZED"); j++ {
		}
		if c.str(j) != "(" {
			continue
		}
		if from >= 0 { // two CTEs of one name: which is meant is not for tokens to tell
			return "", ""
		}
		from, to, columns = j, c.closing(j), cols
	}
	if from < 0 || to < 0 || i > from && i < to {
		return "", ""
	}
	for k := from; k < to; k++ {
		if c.named(k, name) { // recursive
			return "", ""
		}
	}
	as := ""
	if alias == "" {
		as = " AS " + c.str(i) + columns
	} else if columns != "" {
		return "", "" // the alias in the text would have to take the columns
	}
	t := c.toks[i]
	q := c.text[c.toks[from].start:c.toks[to].end]
	// A comment at the query's end must not swallow the parenthesis: it is part
	// of the span, which ends with the parenthesis itself.
	return c.text[:t.start] + q + as + c.text[t.end:], fmt.Sprintf("the query of %s put in its place", name)
}

func (c *code) named(i int, name string) bool {
	switch c.toks[i].kind {
	case tokWord:
		return strings.EqualFold(c.str(i), name)
	case tokQuoted:
		return strings.EqualFold(strings.ReplaceAll(strings.Trim(c.str(i), `"`), `""`, `"`), name)
	}
	return false
}

// having adds a condition with a COUNT, which is always true, to the SELECT
// around the aggregate at token i.
func (c *code) having(i int) (text, what string) {
	const done = "COUNT beside an aggregate over all rows"
	level, least, from := 0, 0, -1
	for k := i; k >= 0 && from < 0; k-- {
		switch w := c.str(k); {
		case w == ")":
			level++
		case w == "(":
			level--
			least = min(least, level)
		case level == least && c.toks[k].kind == tokWord && strings.EqualFold(w, "SELECT"):
			from = k
		}
	}
	if from < 0 {
		return "", ""
	}
	level = 0
	for k := from + 1; k < len(c.toks); k++ {
		w := strings.ToUpper(c.str(k))
		if w == "(" {
			level++
		}
		if w == ")" {
			level--
		}
		if level > 0 || level == 0 && w == ")" || level == 0 && c.toks[k].kind != tokWord {
			continue
		}
		if level == 0 {
			switch w {
			case "HAVING":
				at := c.toks[k].end
				return c.text[:at] + " count(*) >= 0 AND" + c.text[at:], done
			case "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT":
			default:
				continue
			}
		}
		at := c.toks[k].start
		return c.text[:at] + " HAVING count(*) >= 0 " + c.text[at:], done
	}
	end := c.toks[len(c.toks)-1].end
	if strings.HasSuffix(c.text[:end], ";") {
		end--
	}
	return c.text[:end] + " HAVING count(*) >= 0" + c.text[end:], done
}
