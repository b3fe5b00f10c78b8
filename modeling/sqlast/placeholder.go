package sqlast

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Placeholders. `${x}` is no SQL, so before parsing each one is replaced by
// something that parses where it stands and is found again in the tree: a
// private-use mark inside string literals and quoted names, a prepared
// parameter for a bare value, a name fragment inside a bare name.
const (
	markOpen  = '\uE000'
	markClose = '\uE001'
	paramName = "rfparam_"
	fragOpen  = "__rfparam_"
	fragClose = "__"
)

// prepared is a text made ready for the parser.
type prepared struct {
	text      string   // what the parser sees
	templates []string // what stands behind mark or parameter number i, as written
	segs      []segment
}

// segment maps the parser's text to the author's: from byte `to` on, offset
// `to + n` is `from + n` (or `from` itself inside a replacement).
type segment struct {
	to, from int
	fixed    bool
}

var markPattern = regexp.MustCompile(`\x{E000}(\d+)\x{E001}|__rfparam_(\d+)__`)

// prepare replaces the placeholders of text, leaving comments and verbatim
// parameters (lower-case names) alone.
func prepare(text string, verbatim map[string]bool) prepared {
	p := prepared{}
	if !strings.Contains(text, "${") {
		p.text = text
		p.segs = []segment{{0, 0, false}}
		return p
	}
	var b strings.Builder
	emit := func(from int, s string, fixed bool) {
		p.segs = append(p.segs, segment{b.Len(), from, fixed})
		b.WriteString(s)
	}
	toks := tokenize(text)
	prev := "" // last meaning-carrying token before
	for i, t := range toks {
		s := text[t.start:t.end]
		switch {
		case t.kind == tokSpace || t.kind == tokComment || !strings.Contains(s, "${"):
			emit(t.start, s, false)
		case t.kind == tokWord:
			p.replaceWord(emit, text, t, prev, i+1 < len(toks) && strings.HasPrefix(text[t.end:], "."), verbatim)
		default:
			p.replaceInside(emit, s, t.start, verbatim, func(n int) string {
				return string(markOpen) + strconv.Itoa(n) + string(markClose)
			})
		}
		if t.kind != tokSpace && t.kind != tokComment {
			prev = strings.ToUpper(s)
		}
	}
	p.text = b.String()
	return p
}

func (p *prepared) replaceInside(emit func(int, string, bool), s string, base int, verbatim map[string]bool, mark func(int) string) {
	for i := 0; i < len(s); {
		n := strings.Index(s[i:], "${")
		end := -1
		if n >= 0 {
			end = strings.IndexByte(s[i+n:], '}')
		}
		if end < 0 {
			emit(base+i, s[i:], false)
			return
		}
		if n > 0 {
			emit(base+i, s[i:i+n], false)
		}
		ph := s[i+n : i+n+end+1]
		if verbatim[strings.ToLower(placeholderName(ph))] {
			emit(base+i+n, ph, false)
		} else {
			p.templates = append(p.templates, ph)
			emit(base+i+n, mark(len(p.templates)-1), true)
		}
		i += n + end + 1
	}
}

var numberTemplate = regexp.MustCompile(`^([0-9]|\$\{[^}]*\})+$`)

func (p *prepared) replaceWord(emit func(int, string, bool), text string, t token, prev string, dotAfter bool, verbatim map[string]bool) {
	s := text[t.start:t.end]
	nameHere := dotAfter || prev == "." || prev == "FROM" || prev == "JOIN" || prev == "AS" || prev == "TABLE"
	if numberTemplate.MatchString(s) && !nameHere {
		p.templates = append(p.templates, s)
		name := "$" + paramName + strconv.Itoa(len(p.templates)-1)
		if prev == "INTERVAL" { // INTERVAL $x DAY does not parse
			name = "(" + name + ")"
		}
		emit(t.start, name, true)
		return
	}
	p.replaceInside(emit, s, t.start, verbatim, func(n int) string {
		return fragOpen + strconv.Itoa(n) + fragClose
	})
}

// original maps a byte offset of the parser's text to the author's text.
func (p *prepared) original(off int) int {
	i := sort.Search(len(p.segs), func(i int) bool { return p.segs[i].to > off }) - 1
	if i < 0 {
		return off
	}
	s := p.segs[i]
	if s.fixed {
		return s.from
	}
	return s.from + off - s.to
}

// template gives the text behind a prepared parameter, or false if the
// parameter is the author's own.
func (p *prepared) template(identifier string) (string, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(identifier), paramName))
	if err != nil || !strings.HasPrefix(strings.ToLower(identifier), paramName) || n >= len(p.templates) {
		return "", false
	}
	return p.templates[n], true
}

// restore puts the placeholders back into a literal or a name.
func (p *prepared) restore(s string) string {
	if len(p.templates) == 0 || !strings.ContainsRune(s, markOpen) && !strings.Contains(s, fragOpen) {
		return s
	}
	return markPattern.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.Atoi(strings.Trim(m, "_rfpam"+string(markOpen)+string(markClose)))
		if err != nil || n >= len(p.templates) {
			return m
		}
		return p.templates[n]
	})
}

func placeholderName(ph string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(ph, "${"), "}"))
}

// params resolves placeholder names to what they mean.
type params struct {
	exprs    map[string]string // lower-case name -> value expression
	verbatim map[string]bool
}

func newParams(d Definition) params {
	p := params{exprs: map[string]string{}, verbatim: map[string]bool{}}
	for k, v := range d.Params {
		p.exprs[strings.ToLower(k)] = v
	}
	for _, v := range d.Verbatim {
		p.verbatim[strings.ToLower(v)] = true
	}
	return p
}

// isBuiltin tells the names that are defined without a declaration
// (semantics §2.5); they ignore letter case.
func isBuiltin(lower string) bool {
	switch lower {
	case "bizdate", "nodeid", "instanceid", "env", "slotutc", "cyctime", "gmtdate":
		return true
	}
	return false
}

// identity gives the parameter's name as reported (lower case; a time
// expression as written) and its meaning: parameters compare by value
// expression (cases, changes 3).
func (p params) identity(ph string) (name, meaning string) {
	name = placeholderName(ph)
	lower := strings.ToLower(name)
	if v, ok := p.exprs[lower]; ok {
		return lower, p.expand(v, 0)
	}
	if isBuiltin(lower) {
		return lower, "${" + lower + "}"
	}
	return name, tidyExpression("${" + name + "}")
}

var (
	offsetBlanks = regexp.MustCompile(`\s*([+-])\s*(\d[\d/* ]*?)\s*([}\]])`)
	otherParam   = regexp.MustCompile(`^\$([A-Za-z0-9_]{1,32})$`)
)

func (p params) expand(v string, depth int) string {
	if m := otherParam.FindStringSubmatch(v); m != nil && depth < 32 {
		if o, ok := p.exprs[strings.ToLower(m[1])]; ok {
			return p.expand(o, depth+1)
		}
		return "${" + strings.ToLower(m[1]) + "}"
	}
	return tidyExpression(v)
}

// tidyExpression drops the blanks around an offset's sign, which mean nothing.
func tidyExpression(v string) string {
	if !strings.Contains(v, "${") && !strings.Contains(v, "$[") {
		return v
	}
	return offsetBlanks.ReplaceAllString(v, "$1$2$3")
}

// describe cuts a template into its literal parts and parameters: the names
// used, and the canonical text.
func (p params) describe(template string) (names []string, canonical string) {
	var b strings.Builder
	for i := 0; i < len(template); {
		n := strings.Index(template[i:], "${")
		end := -1
		if n >= 0 {
			end = strings.IndexByte(template[i+n:], '}')
		}
		if end < 0 {
			b.WriteString(quoteText(template[i:]))
			break
		}
		if n > 0 {
			b.WriteString(quoteText(template[i : i+n]))
		}
		ph := template[i+n : i+n+end+1]
		name, meaning := p.identity(ph)
		if p.verbatim[strings.ToLower(name)] {
			b.WriteString(quoteText(ph))
		} else {
			names = append(names, name)
			fmt.Fprintf(&b, "«%s»", strings.ReplaceAll(meaning, "»", "»»"))
		}
		i += n + end + 1
	}
	return names, b.String()
}
