package spine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling/param"
)

// values holds the text of every placeholder on every slot.
type values struct {
	bySlot [][]string // slot, placeholder
}

func evaluate(c *code, slots []Slot) (values, *Refusal) {
	v := values{bySlot: make([][]string, len(slots))}
	for s, slot := range slots {
		row := make([]string, len(c.holes))
		for i, h := range c.holes {
			text, ds := h.Binding.Expr.EvalLate(slot.At, slot.Late)
			if len(ds) > 0 {
				r := refuse(UnknownValue, h.Pos, "${%s} has no value for %s: %s", h.Name, slot.ID, ds[0].Summary)
				r.All = true
				return v, r
			}
			if strings.ContainsRune(text, 0) {
				return v, refuse(ChangesSyntax, h.Pos, "the value of ${%s} for %s holds a NUL character", h.Name, slot.ID)
			}
			row[i] = text
		}
		v.bySlot[s] = row
	}
	return v, nil
}

func (v values) at(slot int) func(hole int) string {
	return func(h int) string { return v.bySlot[slot][h] }
}

// constant tells whether a placeholder has one value on all slots.
func (v values) constant(hole int) bool {
	for _, row := range v.bySlot {
		if row[hole] != v.bySlot[0][hole] {
			return false
		}
	}
	return true
}

// checkBare refuses values outside literals that are no numbers.
func (c *code) checkBare(v values, slots []Slot) *Refusal {
	for _, m := range c.markers {
		if m.kind != bare {
			continue
		}
		for s := range slots {
			n := m.number(v.at(s))
			if literalType(n) != "" {
				if strings.HasPrefix(n, "-") && m.start > 0 && c.text[m.start-1] == '-' {
					return refuse(ChangesSyntax, m.pos, "%s after a minus sign starts a comment (%s)", n, slots[s].ID)
				}
				continue
			}
			h := c.holes[m.first]
			if n != "" && !isDigit(n[0]) && n[0] != '-' && n[0] != '+' && n[0] != '.' {
				return refuse(InIdentifier, m.pos, "${%s} is %q for %s: a name or a keyword, not a value", h.Name, n, slots[s].ID)
			}
			return refuse(ChangesSyntax, m.pos, "${%s} is %q for %s, which outside quotes is no number", h.Name, n, slots[s].ID)
		}
	}
	return nil
}

// literalType gives the type that engines give a number's text, "" = none.
func literalType(n string) string {
	t := strings.TrimPrefix(n, "-")
	mant, exp, hasExp := t, "", false
	if i := strings.IndexAny(t, "eE"); i >= 0 {
		mant, exp, hasExp = t[:i], t[i+1:], true
	}
	whole, frac, dot := strings.Cut(mant, ".")
	if whole+frac == "" || !digits(whole) || !digits(frac) {
		return ""
	}
	if hasExp {
		if exp = strings.TrimLeft(exp, "+-"); exp == "" || !digits(exp) {
			return ""
		}
		return "DOUBLE"
	}
	if dot {
		w := len(strings.TrimLeft(whole, "0"))
		if w == 0 {
			w = min(len(whole), 1)
		}
		if w += len(frac); w > 38 {
			return "DOUBLE"
		}
		return fmt.Sprintf("DECIMAL(%d,%d)", max(w, 1), len(frac))
	}
	if strings.HasPrefix(n, "-") {
		t = "-" + whole
	}
	if _, err := strconv.ParseInt(t, 10, 32); err == nil {
		return "INTEGER"
	}
	if _, err := strconv.ParseInt(t, 10, 64); err == nil {
		return "BIGINT"
	}
	if len(whole) <= 38 {
		return "HUGEINT"
	}
	return "DOUBLE"
}

func digits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// widest gives a type that holds the values of all the literal types.
func widest(types []string) string {
	rank := map[string]int{"INTEGER": 1, "BIGINT": 2, "HUGEINT": 3}
	best, whole, scale := "", 0, -1
	for _, t := range types {
		if t == "DOUBLE" {
			return t
		}
		w, s := decimalOf(t)
		if s >= 0 {
			whole, scale = max(whole, w-s), max(scale, s)
		} else {
			whole = max(whole, map[string]int{"INTEGER": 10, "BIGINT": 19, "HUGEINT": 38}[t])
			if rank[t] > rank[best] {
				best = t
			}
		}
	}
	if scale < 0 {
		return best
	}
	if whole+scale > 38 {
		return "DOUBLE"
	}
	return fmt.Sprintf("DECIMAL(%d,%d)", max(whole+scale, 1), scale)
}

func decimalOf(t string) (width, scale int) {
	if _, err := fmt.Sscanf(t, "DECIMAL(%d,%d)", &width, &scale); err != nil {
		return 0, -1
	}
	return width, scale
}

// representatives gives slots such that the texts of all others differ from
// one of theirs in the values of literals only: their parses are the same.
func (c *code) representatives(v values) []int {
	seen := map[string]bool{}
	var out []int
	for s := range v.bySlot {
		var key strings.Builder
		for _, m := range c.markers {
			if m.kind == bare {
				n := m.number(v.at(s))
				fmt.Fprintf(&key, "%t %s;", strings.HasPrefix(n, "-"), literalType(n))
			}
		}
		if !seen[key.String()] {
			seen[key.String()] = true
			out = append(out, s)
		}
	}
	return out
}

// render gives the text of one slot as a normal run has it.
func render(t *param.Template, s Slot) (string, *Refusal) {
	text, ds := t.Render(s.At, s.Late)
	if len(ds) == 0 {
		return text, nil
	}
	d := ds[0]
	if d.Code == "unsafe_value" {
		return "", refuse(ChangesSyntax, d.Pos, "%s (%s)", d.Summary, s.ID)
	}
	r := refuse(UnknownValue, d.Pos, "%s (%s)", d.Summary, s.ID)
	r.All = true
	return "", r
}
