package selector

import (
	"errors"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Env is what a `--where` expression sees of one node, in the expr-lang
// language: `kind == "fact" and "pii" in tags and level <= 2`.
type Env struct {
	Name    string         `expr:"name"`
	Project string         `expr:"project"`
	Kind    string         `expr:"kind"`
	Owner   string         `expr:"owner"`
	ID      string         `expr:"id"`
	Path    string         `expr:"path"`
	Cycle   string         `expr:"cycle"`
	Paused  bool           `expr:"paused"`
	Tags    []string       `expr:"tags"`
	Outputs []string       `expr:"outputs"`
	Fields  []string       `expr:"fields"`
	Level   int            `expr:"level"`
	Config  map[string]any `expr:"config"`
}

// where takes the nodes for which the expression is not true out of s. A
// compile error, or one while it runs, is a diagnostic `where` with line and
// column inside the expression.
func (g *Graph) where(s Set, text string, level func(int) int) diag.List {
	program, err := expr.Compile(text, expr.Env(Env{}), expr.AsBool(),
		expr.DisableBuiltin("now")) // the same selection today and next month
	if err != nil {
		return diag.List{whereError(text, err, "")}
	}
	for i := range s.All() {
		n := &g.nodes[i]
		env := Env{
			Name: n.Name, Project: n.Project, Kind: n.Kind, Owner: n.Owner, ID: n.ID, Path: n.Path,
			Cycle: n.Cycle, Paused: n.Paused, Tags: n.Tags, Outputs: n.Outputs, Fields: n.Fields, Config: n.Config,
		}
		if level != nil {
			env.Level = level(i)
		}
		v, err := expr.Run(program, env)
		if err != nil {
			return diag.List{whereError(text, err, g.Label(i))}
		}
		if ok, isBool := v.(bool); !isBool || !ok {
			s.Remove(i)
		}
	}
	return nil
}

func whereError(text string, err error, node string) diag.Diagnostic {
	d := diag.Errorf("where", "--where %q: %s", text, firstLine(err))
	d.Line, d.Column = 1, 1 // the expression as a whole
	var at *file.Error
	if errors.As(err, &at) {
		d = diag.Errorf("where", "--where %q: %s", text, at.Message)
		d.Line, d.Column = at.Line, at.Column+1
	}
	if node != "" {
		d = d.WithDetail("for node %s", node)
	}
	return d.WithHint("properties: name, project, kind, owner, id, path, cycle, paused, tags, outputs, fields, level, config; for example: kind == \"fact\" and \"pii\" in tags")
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}
