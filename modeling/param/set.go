package param

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// CrossRef names the producer of a cross-node parameter (semantics §2.6).
type CrossRef struct {
	Node   string
	Output string // the producer's parameter; "" = the reader's name for it
	// Default is the value of last resort, nil = none; Lookback the age in days
	// up to which a recorded value counts, nil = DefaultLookback.
	Default  *string
	Lookback *int
}

// Declared is one entry of a parameter configuration, as written.
type Declared struct {
	Name string
	// Value is a constant, an expression or $other; nil = declared without a
	// value, which is an error unless Verbatim or Cross is set or an override
	// gives one.
	Value *string
	// Raw values may stand outside literals whatever they hold.
	Raw bool
	// Verbatim placeholders are left in code as written.
	Verbatim bool
	// Cross makes the value late-bound, read from another node.
	Cross    *CrossRef
	Pos      diag.Pos // of the name
	ValuePos diag.Pos // of the value's first character; zero = Pos
}

// Config is everything that gives a node's parameters. Later layers win:
// built-ins, Project, Node, Overrides (semantics §2.5).
type Config struct {
	Dialect Dialect // "" = Dataphin
	Env     string  // value of the built-in env
	Project []Declared
	Node    []Declared
	// Overrides are the --param values of one backfill. They keep the Raw flag
	// of what they override; a name nobody declared is accepted.
	Overrides []Declared
}

// Origin tells which layer gave a value.
type Origin string

// The origins.
const (
	FromBuiltin  Origin = "builtin"
	FromProject  Origin = "project"
	FromNode     Origin = "table" // the node's own file, table or task
	FromOverride Origin = "override"
)

// Param is one effective parameter of a node.
type Param struct {
	Name     string // as declared
	Written  string // the value as written
	Expr     *Expr  // references resolved, never a $name; nil if Verbatim without a value
	Raw      bool
	Verbatim bool
	Origin   Origin
	// Shadows says that the name is built in and the user replaced it. The
	// bases of ${…} and $[…] do not change by that (semantics §2.5).
	Shadows bool
	Pos     diag.Pos
}

// Set is the checked parameter configuration of a node. It is immutable.
type Set struct {
	dialect Dialect
	params  map[string]*Param // by lower-case name, built-ins included
	order   []string          // user-given names, in order of declaration
	extra   []string          // overrides that nobody declared
	broken  map[string]bool   // given, but wrong: code that uses them gets no second complaint
}

// entry is an effective declaration while a Set is made.
type entry struct {
	Declared
	origin Origin
	src    Source
	expr   *Expr
	state  uint8 // 0 open, 1 on the path, 2 done, 3 broken
}

// NewSet checks a configuration and resolves its references. All effective
// parameters are checked, used or not. Codes: name, duplicate, unassigned,
// syntax, token, offset, range, undefined, cycle; warning mm_read_as_minute.
// The Set is usable even then: it lacks the broken parameters.
func NewSet(cfg Config) (*Set, diag.List) {
	if cfg.Dialect == "" {
		cfg.Dialect = Dataphin
	}
	m := setMaker{
		set:     &Set{dialect: cfg.Dialect, params: builtins(cfg.Dialect, cfg.Env), broken: map[string]bool{}},
		entries: map[string]*entry{},
	}
	m.layer(cfg.Project, FromProject)
	m.layer(cfg.Node, FromNode)
	m.layer(cfg.Overrides, FromOverride)
	m.parse()
	m.resolve()
	return m.set, m.diags
}

// builtins gives the built-in parameters of a dialect (semantics §2.5).
func builtins(d Dialect, env string) map[string]*Param {
	out := map[string]*Param{}
	add := func(name, written string, parts ...part) {
		e := &Expr{dialect: d, src: Text(written), parts: parts}
		out[name] = &Param{Name: name, Written: written, Expr: e, Origin: FromBuiltin}
	}
	date := func(name, written string) {
		e, _ := Parse(d, Text(written)) // constant texts of this function, each in a test
		out[name] = &Param{Name: name, Written: written, Expr: e, Origin: FromBuiltin}
	}
	date("bizdate", "${yyyymmdd}")
	add("nodeid", "${nodeid}", part{kind: partLate, late: LateRef{Kind: LateNodeID, Key: "nodeid"}})
	add("instanceid", "${instanceid}", part{kind: partLate, late: LateRef{Kind: LateInstanceID, Key: "instanceid"}})
	add("env", env, part{text: env})
	add("slotutc", "${slotutc}", part{kind: partSlotUTC})
	if d == DataWorks {
		date("cyctime", "$[yyyymmddhh24miss]")
		date("gmtdate", "$[yyyymmdd]")
	}
	return out
}

type setMaker struct {
	set     *Set
	entries map[string]*entry
	order   []string
	diags   diag.List
}

// layer puts one layer over those before it.
func (m *setMaker) layer(decls []Declared, origin Origin) {
	seen := map[string]Declared{}
	for _, d := range decls {
		key := strings.ToLower(d.Name)
		if !ValidName(d.Name) {
			m.diags = append(m.diags, diag.Errorf("name", "%q is not a parameter name", d.Name).At(d.Pos).
				WithHint("a name is 1 to 32 of the characters A-Z a-z 0-9 _"))
			m.set.broken[key] = true
			continue
		}
		if first, dup := seen[key]; dup {
			dg := diag.Errorf("duplicate", "parameter %s is given twice", d.Name).At(d.Pos).
				WithHint("letter case does not tell names apart; remove one of the two")
			if p := first.Pos.String(); p != "" {
				dg = dg.WithDetail("first given as %s at %s", first.Name, p)
			}
			m.diags = append(m.diags, dg)
			continue
		}
		seen[key] = d
		prev := m.entries[key]
		if prev == nil {
			m.order = append(m.order, key)
		}
		if origin == FromOverride {
			if prev != nil {
				d.Raw = prev.Raw
			} else if m.set.params[key] == nil {
				m.set.extra = append(m.set.extra, d.Name)
			}
		}
		e := &entry{Declared: d, origin: origin}
		e.src.Pos = d.ValuePos
		if e.src.Pos == (diag.Pos{}) {
			e.src.Pos = d.Pos
		}
		m.entries[key] = e
	}
}

// parse reads every effective value.
func (m *setMaker) parse() {
	for _, key := range m.order {
		e := m.entries[key]
		switch {
		case e.Value != nil:
			e.src.Text = *e.Value
			x, diags := Parse(m.set.dialect, e.src)
			for _, d := range diags {
				d.Summary = "parameter " + e.Name + ": " + d.Summary
				if d.Code == "token" {
					d.Hint += m.referenceHint(e.src.Text)
				}
				m.diags = append(m.diags, d)
			}
			if e.expr = x; x == nil {
				e.state = 3
			}
		case e.Cross != nil:
			ref := LateRef{Kind: LateCross, Key: key, Node: e.Cross.Node, Output: e.Cross.Output, Default: e.Cross.Default, Lookback: e.Cross.Lookback}
			if ref.Output == "" {
				ref.Output = e.Name
			}
			e.expr = &Expr{dialect: m.set.dialect, src: e.src, parts: []part{{kind: partLate, late: ref}}}
		case e.Verbatim:
		default:
			m.diags = append(m.diags, diag.Errorf("unassigned", "parameter %s is declared without a value", e.Name).At(e.Pos).
				WithHint("give it a value (\"\" is one), or --param %s=…", e.Name))
			e.state = 3
		}
	}
}

// referenceHint helps who wrote ${other} in a value for $other.
func (m *setMaker) referenceHint(value string) string {
	name, ok := strings.CutPrefix(value, "${")
	name, ok2 := strings.CutSuffix(name, "}")
	key := strings.ToLower(name)
	if _, user := m.entries[key]; ok && ok2 && (user || m.set.params[key] != nil) {
		return "; the value of another parameter is written $" + name
	}
	return ""
}

// resolve follows the references and fills the set.
func (m *setMaker) resolve() {
	for _, key := range m.order {
		m.follow(key, nil)
	}
	for _, key := range m.order {
		e := m.entries[key]
		_, builtin := m.set.params[key]
		if e.state == 3 {
			delete(m.set.params, key)
			m.set.broken[key] = true
			continue
		}
		p := &Param{Name: e.Name, Written: e.src.Text, Expr: e.expr, Raw: e.Raw, Verbatim: e.Verbatim,
			Origin: e.origin, Shadows: builtin, Pos: e.Pos}
		m.set.params[key] = p
		m.set.order = append(m.set.order, key)
	}
}

// follow resolves one entry. Path holds the names on the way to it.
func (m *setMaker) follow(key string, path []string) {
	e := m.entries[key]
	if e.state >= 2 {
		return
	}
	if e.state == 1 {
		m.cycle(path[slices.Index(path, key):])
		return
	}
	e.state = 1
	defer func() {
		if e.state == 1 {
			e.state = 2
		}
	}()
	if e.expr == nil {
		return
	}
	ref, is := e.expr.Ref()
	if !is {
		return
	}
	if target := m.entries[ref]; target != nil {
		m.follow(ref, append(path, key))
		switch {
		case e.state == 3:
		case target.state == 3:
			e.state = 3
		case target.expr == nil: // verbatim without a value
			m.diags = append(m.diags, diag.Errorf("unassigned", "parameter %s refers to %s, which has no value", e.Name, target.Name).At(e.src.At(0)).
				WithHint("give %s a value", target.Name))
			e.state = 3
		default:
			e.expr = target.expr
		}
		return
	}
	if b := m.set.params[ref]; b != nil {
		e.expr = b.Expr
		return
	}
	m.diags = append(m.diags, diag.Errorf("undefined", "parameter %s refers to $%s, which is not defined", e.Name, ref).At(e.src.At(0)).
		WithHint("%s", diag.DidYouMean(ref, m.names(), "declare "+ref+" under params")))
	e.state = 3
}

func (m *setMaker) cycle(keys []string) {
	var names []string
	for _, k := range keys {
		m.entries[k].state = 3
		names = append(names, m.entries[k].Name)
	}
	names = append(names, names[0])
	first := m.entries[keys[0]]
	m.diags = append(m.diags, diag.Errorf("cycle", "parameters refer to each other in a circle: %s", strings.Join(names, " → ")).
		At(first.src.At(0)).WithHint("give one of them a value of its own"))
}

func (m *setMaker) names() []string {
	var out []string
	for k := range m.set.params {
		out = append(out, k)
	}
	for _, k := range m.order {
		out = append(out, m.entries[k].Name)
	}
	slices.Sort(out)
	return out
}
