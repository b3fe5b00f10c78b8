package run

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
)

// compiled is a step's text, parsed once for all of its instances.
type compiled struct {
	once       sync.Once
	err        error
	statements []*param.Template // nil for plain statements
	command    []*param.Template
	env        []*param.Template
	sets       []*param.Template // of the step's Sets, nil where there is no query
	late       []param.LateRef
}

// compile parses the templates of a job's step, once.
func (j *job) compile() (*compiled, error) {
	c := j.steps[j.key.Node][j.in.Step]
	c.once.Do(func() {
		params := make(map[string]param.Frozen, len(j.node.Params))
		for name, f := range j.node.Params {
			params[strings.ToLower(name)] = f
		}
		thaw := func(text, what string, parse func(param.Dialect, param.Source, map[string]param.Frozen) (*param.Template, diag.List)) *param.Template {
			if c.err != nil {
				return nil
			}
			src := param.Source{Text: text, Pos: diag.Pos{File: what}}
			t, diags := parse(param.Dialect(j.plan.Dialect), src, params)
			if t == nil {
				c.err = fmt.Errorf("run: read %s of %s: %w", what, j.node.Name, diags)
				return nil
			}
			c.late = append(c.late, t.Late()...)
			return t
		}
		for i, s := range j.step.Statements {
			var t *param.Template
			if !s.Plain {
				t = thaw(s.SQL, fmt.Sprintf("statement %d", i+1), param.Thaw)
			}
			c.statements = append(c.statements, t)
		}
		for _, a := range j.step.Command {
			c.command = append(c.command, thaw(a, "command", param.ThawText))
		}
		for _, e := range j.step.Env {
			c.env = append(c.env, thaw(e, "env", param.ThawText))
		}
		for _, s := range j.step.Sets {
			var t *param.Template
			if s.Query != "" {
				t = thaw(s.Query, "query of "+s.Param, param.Thaw)
			}
			c.sets = append(c.sets, t)
		}
	})
	return c, c.err
}

// unit renders the step's statements at the job's slot.
func (j *job) unit(ctx context.Context, m executors.Marker) (executors.Unit, error) {
	c, err := j.compile()
	if err != nil {
		return executors.Unit{}, err
	}
	late, err := j.late(ctx, c.late)
	if err != nil {
		return executors.Unit{}, err
	}
	u := executors.Unit{Marker: m, Statements: make([]executors.Statement, len(j.step.Statements))}
	at := param.At(j.in.Slot)
	for i, s := range j.step.Statements {
		text := s.SQL
		if t := c.statements[i]; t != nil {
			var diags diag.List
			if text, diags = t.Render(at, late); diags.HasErrors() {
				return executors.Unit{}, fmt.Errorf("run: write statement %d of %s: %w", i+1, j.id, diags)
			}
		}
		u.Statements[i] = executors.Statement{SQL: text, Role: executors.Role(s.Role), Target: s.Target, Name: s.Name}
	}
	if rules := j.step.Verify; len(rules) > 0 {
		u.Accept = func(f executors.Facts) error { return Check(rules, f, j.plan.AllowEmpty) }
	}
	return u, nil
}

// RuleError says that the facts of a unit broke a rule of the plan: nothing
// was written.
type RuleError struct {
	Code    string
	Message string
	// Facts are the numbers at that moment.
	Facts map[string]int64
}

// Error gives code and message.
func (e *RuleError) Error() string { return e.Code + ": " + e.Message }

// Check judges collected facts by a step's rules and gives the first that is
// broken as *RuleError. A rule about a number that was not collected is an
// error too: a proof that was not made proves nothing.
func Check(rules []plan.Rule, f executors.Facts, allowEmpty bool) error {
	for _, r := range rules {
		n, known := f[r.Fact]
		if !known {
			return fmt.Errorf("run: verify: the fact %s was not collected", r.Fact)
		}
		other, known := f[r.Other]
		if r.Other != "" && !known {
			return fmt.Errorf("run: verify: the fact %s was not collected", r.Other)
		}
		var ok bool
		detail := fmt.Sprintf("%s = %d", r.Fact, n)
		switch r.Kind {
		case "zero":
			ok = n == 0
		case "equals":
			ok = n == other
			detail += fmt.Sprintf(", %s = %d", r.Other, other)
		case "not_emptied":
			ok = n != 0 || other == 0 || allowEmpty
			detail += fmt.Sprintf(", %s = %d", r.Other, other)
		default:
			return fmt.Errorf("run: verify: the rule kind %q is not known", r.Kind)
		}
		if !ok {
			return &RuleError{Code: r.Code, Message: fmt.Sprintf("%s (%s)", r.Message, detail), Facts: maps.Clone(f)}
		}
	}
	return nil
}
