package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/planner/plan"
)

// Check is an audit of a slot's rows that one query over them answers: the
// kinds not_null, unique, accepted_values and rows_between of the project file.
type Check struct {
	Kind     string
	Fields   []string
	Values   []string
	Min, Max *int64
}

// String gives the check as a project file writes it.
func (c Check) String() string {
	switch c.Kind {
	case "rows_between":
		return fmt.Sprintf("rows_between [%s, %s]", bound(c.Min), bound(c.Max))
	case "accepted_values":
		return fmt.Sprintf("accepted_values of %s [%s]", strings.Join(c.Fields, ", "), strings.Join(c.Values, ", "))
	}
	return fmt.Sprintf("%s [%s]", c.Kind, strings.Join(c.Fields, ", "))
}

func bound(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// checkFacts gives the columns that count violations among rows which hold the
// available columns, each behind ", ", and their rules. A check of a column
// that is not written is left out: it holds from when it was.
func (t Table) checkFacts(name string, available []string) (columns string, rules []plan.Rule) {
	var b strings.Builder
	for i, c := range t.Checks {
		if slices.ContainsFunc(c.Fields, func(f string) bool { return !containsFold(available, f) }) {
			continue
		}
		sql := t.violations(c)
		if sql == "" {
			continue
		}
		fact := fmt.Sprintf("check_%d", i+1)
		fmt.Fprintf(&b, ", %s AS %s", sql, fact)
		rules = append(rules, plan.Rule{Fact: name + "." + fact, Kind: "zero", Code: "check_failed",
			Message: fmt.Sprintf("the check %s of %s does not hold in this slot", c, t.Name)})
	}
	return b.String(), rules
}

// violations gives an aggregate that is 0 exactly if the check holds.
func (t Table) violations(c Check) string {
	d := t.Dialect
	nulls := make([]string, len(c.Fields))
	for i, f := range c.Fields {
		nulls[i] = d.Quote(f) + " IS NULL"
	}
	some := strings.Join(nulls, " OR ")
	switch c.Kind {
	case "not_null":
		return "count(*) FILTER (WHERE " + some + ")"
	case "unique":
		cols := d.Columns("", c.Fields)
		if len(c.Fields) > 1 {
			cols = "(" + cols + ")"
		}
		return fmt.Sprintf("count(*) FILTER (WHERE NOT (%[1]s)) - count(DISTINCT %[2]s) FILTER (WHERE NOT (%[1]s))", some, cols)
	case "accepted_values":
		values := make([]string, len(c.Values))
		for i, v := range c.Values {
			values[i] = d.String(v)
		}
		return fmt.Sprintf("count(*) FILTER (WHERE CAST(%s AS VARCHAR) NOT IN (%s))", d.Columns("", c.Fields), strings.Join(values, ", "))
	case "rows_between":
		var out []string
		if c.Min != nil {
			out = append(out, fmt.Sprintf("count(*) < %d", *c.Min))
		}
		if c.Max != nil {
			out = append(out, fmt.Sprintf("count(*) > %d", *c.Max))
		}
		if len(out) == 0 {
			return ""
		}
		return "CASE WHEN " + strings.Join(out, " OR ") + " THEN 1 ELSE 0 END"
	}
	return ""
}
