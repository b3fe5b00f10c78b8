// Package skipif is the condition of `skip_if:`: an expr-lang expression over
// a node's parameters and a slot. Where it is true, the instance succeeds
// without running.
//
// Invariants: the same slot and parameter values give the same answer, today
// and next month (nothing reads the wall clock); names are checked when the
// expression is compiled.
package skipif

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// Env is what an expression sees: `weekday in ["sat", "sun"]`,
// `params.rate == "0"`, `date < "2024-01-01" or last_day`.
type Env struct {
	Params  map[string]string `expr:"params"`   // values at the slot, as text
	Date    string            `expr:"date"`     // business date, yyyy-mm-dd
	Slot    string            `expr:"slot"`     // slot id: the date, or the instant of a sub-daily slot
	Year    int               `expr:"year"`     // of the business date
	Month   int               `expr:"month"`    // 1 to 12
	Day     int               `expr:"day"`      // 1 to 31
	Weekday string            `expr:"weekday"`  // mon to sun
	LastDay bool              `expr:"last_day"` // of the month
	Hour    int               `expr:"hour"`     // of the slot's own time in the project's zone
	Minute  int               `expr:"minute"`
}

const hint = `properties: params.NAME, date, slot, year, month, day, weekday, last_day, hour, minute; for example: weekday in ["sat", "sun"] or params.mode == "off"`

// Expr is a compiled expression, safe for concurrent use.
type Expr struct {
	program *vm.Program
	params  []string
}

// Compile reads an expression that stands at pos. Diagnostic: skip_if, with
// the place inside the expression.
func Compile(text string, pos diag.Pos) (*Expr, diag.List) {
	names := &collector{}
	program, err := expr.Compile(text, expr.Env(Env{}), expr.AsBool(), expr.DisableBuiltin("now"), expr.Patch(names))
	if err == nil && names.err != nil {
		err = names.err.Bind(file.NewSource(text))
	}
	if err == nil {
		slices.Sort(names.params)
		return &Expr{program: program, params: slices.Compact(names.params)}, nil
	}
	message, at := err.Error(), pos
	var place *file.Error
	if errors.As(err, &place) {
		message = place.Message
		if at.Line > 0 {
			if place.Line > 1 {
				at.Line, at.Column = at.Line+place.Line-1, place.Column+1
			} else {
				at.Column += place.Column
			}
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	return nil, diag.List{diag.Errorf("skip_if", "skip_if %q: %s", text, message).At(at).WithHint("%s", hint)}
}

// Params gives the parameters that the expression reads, in lower case, sorted.
func (e *Expr) Params() []string { return e.params }

// Eval tells whether the instance of a slot is skipped. params are the values
// of Params by lower-case name, zone is the project's.
func (e *Expr) Eval(s bizdate.Slot, zone *time.Location, params map[string]string) (bool, error) {
	year, month, day := s.Date.Civil()
	_, nextMonth, _ := (s.Date + 1).Civil()
	at := s.At.In(zone)
	v, err := expr.Run(e.program, Env{
		Params: params, Date: s.Date.String(), Slot: s.ID(), Year: year, Month: int(month), Day: day,
		Weekday: strings.ToLower(s.Date.Weekday().String()[:3]), LastDay: month != nextMonth, Hour: at.Hour(), Minute: at.Minute(),
	})
	if err != nil {
		return false, fmt.Errorf("skipif: evaluate: %w", err)
	}
	skip, isBool := v.(bool)
	if !isBool {
		return false, fmt.Errorf("skipif: evaluate: it gives %v, not true or false", v)
	}
	return skip, nil
}

// collector finds the parameters that an expression reads; names have no
// letter case.
type collector struct {
	params []string
	err    *file.Error
}

// Visit implements ast.Visitor.
func (c *collector) Visit(node *ast.Node) {
	m, is := (*node).(*ast.MemberNode)
	if !is {
		return
	}
	if id, is := m.Node.(*ast.IdentifierNode); !is || id.Value != "params" {
		return
	}
	name, constant := m.Property.(*ast.StringNode)
	if !constant {
		if c.err == nil {
			c.err = &file.Error{Location: m.Property.Location(), Message: "the name of a parameter must be written out: params.NAME"}
		}
		return
	}
	name.Value = strings.ToLower(name.Value)
	c.params = append(c.params, name.Value)
}
