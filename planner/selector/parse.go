package selector

import (
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// The methods of the language.
const (
	MethodName    = "name"
	MethodPath    = "path"
	MethodTag     = "tag"
	MethodProject = "project"
	MethodOutput  = "output"
	MethodOwner   = "owner"
	MethodKind    = "kind"
	MethodID      = "id"
	MethodConfig  = "config"
	MethodBetween = "between"
	MethodField   = "field"
)

// Methods gives every method's name, in the order of the documentation.
func Methods() []string {
	return []string{
		MethodName, MethodPath, MethodTag, MethodProject, MethodOutput, MethodOwner,
		MethodKind, MethodID, MethodConfig, MethodBetween, MethodField,
	}
}

// Part is one part of a selector: `[@ | n+ | +] [method[.key]:] value [+ | +n]`.
// A backslash takes the meaning from the character behind it, so that names
// with blanks, commas or operators can be written (Quote does so).
type Part struct {
	At       bool   // @: descendants and all their ancestors
	Parents  bool   // n+ or + in front
	Children bool   // + or +n behind
	Up, Down int    // levels of Parents and Children; All without a number
	Method   string // one of Methods
	Arg      string // the key of config, with dots
	Value    string // as written, with its backslashes
}

// maxDepth caps numbers of levels; no graph is deeper.
const maxDepth = 1 << 30

// String writes the part so that ParsePart reads it back.
func (p Part) String() string {
	var b strings.Builder
	depth := func(n int) {
		if n != All {
			b.WriteString(strconv.Itoa(n))
		}
	}
	if p.At {
		b.WriteByte('@')
	}
	if p.Parents {
		depth(p.Up)
		b.WriteByte('+')
	}
	b.WriteString(p.Method)
	if p.Arg != "" {
		b.WriteString("." + p.Arg)
	}
	b.WriteString(":" + p.Value)
	if p.Children {
		b.WriteByte('+')
		depth(p.Down)
	}
	return b.String()
}

// Quote writes a name so that the language reads it literally.
func Quote(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ { // bytes: what is special is ASCII
		c := name[i]
		if strings.IndexByte(",+:*?[\\/", c) >= 0 || isBlank(c) || i == 0 && c == '@' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Parse reads one `--select` or `--exclude` text: terms by blanks (a union),
// each of parts by commas (an intersection). Everything wrong is reported:
// syntax, unknown_method.
func Parse(text string) ([][]Part, diag.List) {
	var terms [][]Part
	var problems diag.List
	words := split(text, isBlank)
	for _, word := range words {
		if word == "" {
			continue
		}
		var term []Part
		for _, s := range split(word, func(c byte) bool { return c == ',' }) {
			if s == "" {
				problems = append(problems, syntax(word, "a part between commas is empty"))
				continue
			}
			p, bad := parsePart(s)
			if bad != nil {
				problems = append(problems, *bad)
				continue
			}
			term = append(term, p)
		}
		terms = append(terms, term)
	}
	if len(terms) == 0 && len(problems) == 0 {
		problems = append(problems, syntax(text, "the selector is empty"))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return terms, nil
}

// ParsePart reads a single part.
func ParsePart(text string) (Part, diag.List) {
	terms, problems := Parse(text)
	if len(problems) > 0 {
		return Part{}, problems
	}
	if len(terms) != 1 || len(terms[0]) != 1 {
		return Part{}, diag.List{syntax(text, "one part is wanted")}
	}
	return terms[0][0], nil
}

func syntax(text, why string) diag.Diagnostic {
	return diag.Errorf("syntax", "selector %q: %s", text, why).
		WithHint("a part is [@ | n+ | +] [method[.key]:] value [+ | +n]; blanks unite, commas intersect; a backslash takes a character literally")
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// split cuts at separators that no backslash precedes.
func split(s string, sep func(byte) bool) []string {
	var out []string
	from := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
		case sep(s[i]):
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// index finds the first c that no backslash precedes, −1 without one.
func index(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == c {
			return i
		}
	}
	return -1
}

// cutBetween cuts at the first two dots that no backslash precedes.
func cutBetween(s string) (a, b string, ok bool) {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == '.' && s[i+1] == '.' {
			return s[:i], s[i+2:], true
		}
	}
	return s, "", false
}

// unescape takes the backslashes away.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// depthOf reads a number of levels, All without one.
func depthOf(s string) int {
	if s == "" {
		return All
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > maxDepth {
		return maxDepth // digits only, so the number is too large: deeper than any graph
	}
	return n
}

func parsePart(text string) (Part, *diag.Diagnostic) {
	var p Part
	bad := func(why string) (Part, *diag.Diagnostic) {
		d := syntax(text, why)
		return Part{}, &d
	}
	rest := text
	if strings.HasPrefix(rest, "@") {
		p.At, rest = true, rest[1:]
	}
	if n := digits(rest); n < len(rest) && rest[n] == '+' {
		p.Parents, p.Up, rest = true, depthOf(rest[:n]), rest[n+1:]
	}
	if i := index(rest, '+'); i >= 0 {
		if digits(rest[i+1:]) != len(rest)-i-1 {
			return bad("+ stands in front of a value or behind it, with a number of levels at most")
		}
		p.Children, p.Down, rest = true, depthOf(rest[i+1:]), rest[:i]
	}
	if p.At && (p.Parents || p.Children) {
		return bad("@ and + exclude each other")
	}
	if rest == "" {
		return bad("the value is missing")
	}
	if rest[0] == '@' {
		return bad("@ stands alone in front")
	}
	if i := index(rest, ':'); i == 0 {
		return bad("the method is missing before the colon")
	} else if i > 0 && isMethod(rest[:i]) {
		p.Method, p.Arg, _ = strings.Cut(rest[:i], ".")
		p.Value = rest[i+1:]
		return finish(p, text, strings.Contains(rest[:i], "."))
	}
	p.Method, p.Value = MethodName, rest
	if index(rest, '/') >= 0 {
		p.Method = MethodPath
	}
	return p, nil
}

// isMethod tells whether the text before a colon can be a method and its key.
// Keys of settings may hold any character but separators.
func isMethod(s string) bool {
	name, _, _ := strings.Cut(s, ".")
	for _, r := range name {
		if r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return !strings.Contains(s, "/")
}

// finish checks the method, its key and the form of its value.
func finish(p Part, text string, dotted bool) (Part, *diag.Diagnostic) {
	bad := func(why string) (Part, *diag.Diagnostic) {
		d := syntax(text, why)
		return Part{}, &d
	}
	known := false
	for _, m := range Methods() {
		known = known || m == p.Method
	}
	if !known {
		d := diag.Errorf("unknown_method", "selector %q: there is no method %q", text, p.Method).
			WithHint("%s", diag.DidYouMean(p.Method, Methods(), "methods: "+strings.Join(Methods(), ", ")))
		return Part{}, &d
	}
	if p.Value == "" {
		return bad("the value is missing after the colon")
	}
	switch {
	case p.Method == MethodConfig:
		for _, k := range strings.Split(p.Arg, ".") {
			if k == "" {
				return bad("config needs the key of a setting, as in config.cycle:daily")
			}
		}
	case dotted:
		return bad("only config takes a key")
	}
	switch p.Method {
	case MethodBetween:
		a, b, ok := cutBetween(p.Value)
		if _, _, more := cutBetween(b); !ok || more || a == "" || b == "" {
			return bad("between needs two nodes, as in between:a..b")
		}
	case MethodField:
		if i := strings.LastIndexByte(p.Value, '.'); i <= 0 || i == len(p.Value)-1 {
			return bad("field needs a table and a field, as in field:orders.amount")
		}
	}
	return p, nil
}
